//! The unscheduled program as plain loops in C and in Rust, element by element where it is asked: what the bundle's own
//! launchers compare with.
//!
//! Floats of every type are computed in double and integers wrap, as in [`ir::reference`], so that the tuner's
//! tolerance holds. The program must be plain as that module says, which is checked before.

use ir::{Access, Block, DType, Func, Index, IterKind, Name, Role, Stmt, Store};

use super::{expr::Lang, spec::Spec};

/// One block of the program, with what it writes.
pub(super) struct Stage<'a> {
    block: &'a Block,
    store: &'a Store,
    /// Whether a later stage reads it, so that its elements are remembered.
    is_kept: bool,
}

/// What a template needs of the program.
pub(super) struct Reference {
    /// The functions, one for each block.
    pub(super) stages: String,
    /// What makes the memory of stages that are kept.
    pub(super) keep: String,
    /// The arms that choose the function of an output.
    pub(super) outputs: String,
    /// How many stages there are.
    pub(super) count: usize,
}

/// Prints the program.
pub(super) fn print(spec: &Spec<'_>, lang: Lang) -> Reference {
    let func = &spec.subject.plain;
    let stages = stages(func);
    let printer = Printer { spec, func, lang, stages: &stages };
    let mut out =
        Reference { stages: String::new(), keep: String::new(), outputs: String::new(), count: stages.len() };
    for (number, it) in stages.iter().enumerate() {
        out.stages.push_str(&printer.stage(number, it));
        out.stages.push('\n');
        if it.is_kept {
            out.keep.push_str(&printer.keep(number, it));
        }
        let param = spec.params().iter().position(|param| param.name == it.store.place.buffer);
        let at: Vec<_> = (0..it.store.place.indices.len()).map(|axis| format!("at[{axis}]")).collect();
        let call = call(number, &at);
        out.outputs.extend(param.map(|param| match lang {
            Lang::C => format!("    case {param}: return (double){call};\n"),
            Lang::Rust => format!("        {param} => {call} as f64,\n"),
        }));
    }
    out
}

fn stages(func: &Func) -> Vec<Stage<'_>> {
    let blocks = func.body.blocks();
    let is_read = |name: &Name, but: &Block| {
        let mut others = blocks.iter().filter(|it| it.name != but.name);
        others.any(|it| it.reads().iter().any(|access| access.buffer == *name))
    };
    let stages = blocks.iter().filter_map(|&block| match &block.body {
        Stmt::Store(store) => {
            let is_kept = is_read(&store.place.buffer, block);
            Some(Stage { block, store, is_kept })
        }
        Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) | Stmt::Instr(_) => None,
    });
    stages.collect()
}

fn call(number: usize, at: &[String]) -> String {
    let at: Vec<_> = at.iter().map(|it| format!(", {it}")).collect();
    format!("stage_{number}(r{})", at.concat())
}

pub(super) struct Printer<'a> {
    spec: &'a Spec<'a>,
    pub(super) func: &'a Func,
    pub(super) lang: Lang,
    stages: &'a [Stage<'a>],
}

impl Printer<'_> {
    /// A variable of the reference: a dimension or an iterator.
    fn var(&self, name: &Name) -> String {
        let at = self.func.dims.iter().position(|it| it == name);
        at.map_or_else(|| format!("v_{name}"), |at| format!("dims[{at}]"))
    }

    pub(super) fn index(&self, index: &Index) -> String {
        self.lang.plain(index, &|name| self.var(name), &|table, at| {
            let dtype = self.func.dtype_of(table).expect("the program is verified");
            self.input(table, at, dtype)
        })
    }

    /// The type that elements are computed in.
    pub(super) const fn kind(&self, dtype: DType) -> &'static str {
        match (self.lang, dtype.is_float()) {
            (Lang::C, true) => "double",
            (Lang::C, false) => "int64_t",
            (Lang::Rust, true) => "f64",
            (Lang::Rust, false) => "i64",
        }
    }

    /// The row-major offset of a place.
    fn flat(&self, place: &Access) -> String {
        let shape = self.func.buffers.get(&place.buffer).map_or(&[][..], |it| &it.shape);
        let mut out: Option<String> = None;
        for (index, size) in place.indices.iter().zip(shape) {
            let index = self.index(index);
            out = Some(match out {
                None => index,
                Some(before) if before.contains(' ') => {
                    format!("({before}) * {} + {index}", self.index(size))
                }
                Some(before) => format!("{before} * {} + {index}", self.index(size)),
            });
        }
        out.unwrap_or_else(|| self.lang.int(0))
    }

    /// An element, wherever it comes from.
    pub(super) fn load(&self, place: &Access, dtype: DType) -> String {
        let written = self.stages.iter().position(|it| it.store.place.buffer == place.buffer);
        if let Some(number) = written {
            let at: Vec<_> = place.indices.iter().map(|it| self.index(it)).collect();
            return call(number, &at);
        }
        self.input(&place.buffer, &self.flat(place), dtype)
    }

    /// An element of an input at a row-major offset.
    fn input(&self, buffer: &Name, flat: &str, dtype: DType) -> String {
        let param = self.spec.params().iter().position(|it| it.name == *buffer);
        let param = param.expect("what no stage writes is an input");
        let kind = self.kind(dtype);
        match self.lang {
            Lang::C => format!("({kind})tw_decode({}, r->params[{param}], {flat})", c_name(dtype)),
            Lang::Rust => {
                let value = format!("r.inputs[{param}][({flat}) as usize]");
                if dtype.is_float() { value } else { format!("({value} as i64)") }
            }
        }
    }

    /// The function of a stage.
    fn stage(&self, number: usize, it: &Stage<'_>) -> String {
        let dtype = self.func.dtype_of(&it.store.place.buffer).expect("the program is verified");
        let kind = self.kind(dtype);
        let at = it.store.place.indices.iter().map(|it| self.index(it));
        let mut lines = vec![];
        if it.is_kept {
            lines.extend(self.recall(number, it, kind));
        }
        lines.extend(self.work(it, dtype));
        if it.is_kept {
            lines.extend(self.remember(number));
        }
        let (open, last) = match self.lang {
            Lang::C => {
                let at = at.map(|it| format!(", int64_t {it}")).collect::<Vec<_>>().concat();
                (format!("static {kind} stage_{number}(tw_reference *r{at}) {{"), "return acc;")
            }
            Lang::Rust => {
                let at = at.map(|it| format!(", {it}: i64")).collect::<Vec<_>>().concat();
                (format!("fn stage_{number}(r: &mut Reference{at}) -> {kind} {{"), "acc")
            }
        };
        lines.push(last.to_owned());
        if lines.iter().any(|it| it.contains("dims[")) {
            lines.insert(
                0,
                match self.lang {
                    Lang::C => "const int64_t *const dims = r->dims;".to_owned(),
                    Lang::Rust => "let dims = r.dims;".to_owned(),
                },
            );
        }
        let indent = self.indent();
        let body = lines.iter().map(|it| format!("{indent}{it}\n")).collect::<Vec<_>>().concat();
        let (buffer, block) = (&it.store.place.buffer, &it.block.name);
        let comment = match self.lang {
            Lang::C => format!("/* An element of `{buffer}`, as the block `{block}` makes it. */"),
            Lang::Rust => format!("/// An element of `{buffer}`, as the block `{block}` makes it."),
        };
        format!("{comment}\n{open}\n{body}}}\n")
    }

    const fn indent(&self) -> &'static str {
        match self.lang {
            Lang::C => "  ",
            Lang::Rust => "    ",
        }
    }

    /// Lines that compute `acc`.
    fn work(&self, it: &Stage<'_>, dtype: DType) -> Vec<String> {
        let (block, kind, indent) = (it.block, self.kind(dtype), self.indent());
        let reduce: Vec<_> = block.iters.iter().filter(|it| it.kind == IterKind::Reduce).collect();
        let value = self.value(&it.store.value, &it.store.place).0;
        let Some(Stmt::Store(init)) = &block.init else {
            return vec![match self.lang {
                Lang::C => format!("const {kind} acc = {value};"),
                Lang::Rust => format!("let acc: {kind} = {value};"),
            }];
        };
        let start = self.value(&init.value, &it.store.place).0;
        let mut lines = vec![match self.lang {
            Lang::C => format!("{kind} acc = {start};"),
            Lang::Rust => format!("let mut acc: {kind} = {start};"),
        }];
        for (depth, it) in reduce.iter().enumerate() {
            let (var, extent) = (format!("v_{}", it.var), self.index(&it.extent));
            let head = match self.lang {
                Lang::C => format!("for (int64_t {var} = 0; {var} < {extent}; {var}++)"),
                Lang::Rust => format!("for {var} in 0..{extent} {{"),
            };
            lines.push(format!("{}{head}", indent.repeat(depth)));
        }
        lines.push(format!("{}acc = {value};", indent.repeat(reduce.len())));
        if self.lang == Lang::Rust {
            lines.extend((0..reduce.len()).rev().map(|depth| format!("{}}}", indent.repeat(depth))));
        }
        lines
    }

    /// Lines that answer with what is known already.
    fn recall(&self, number: usize, it: &Stage<'_>, kind: &str) -> Vec<String> {
        let flat = self.flat(&it.store.place);
        match self.lang {
            Lang::C => vec![
                format!("const int64_t flat = {flat};"),
                format!("if (r->kept[{number}].known[flat]) return ({kind})r->kept[{number}].value[flat];"),
            ],
            Lang::Rust => vec![
                format!("let flat = ({flat}) as usize;"),
                format!("if let Some(known) = r.kept[{number}][flat] {{"),
                format!("    return known as {kind};"),
                "}".to_owned(),
            ],
        }
    }

    fn remember(&self, number: usize) -> Vec<String> {
        match self.lang {
            Lang::C => vec![
                format!("r->kept[{number}].value[flat] = (double)acc;"),
                format!("r->kept[{number}].known[flat] = 1;"),
            ],
            Lang::Rust => vec![format!("r.kept[{number}][flat] = Some(acc as f64);")],
        }
    }

    /// What makes the memory of a stage that is kept.
    fn keep(&self, number: usize, it: &Stage<'_>) -> String {
        let shape = self.func.buffers.get(&it.store.place.buffer).map_or(&[][..], |it| &it.shape);
        let size = self.lang.checked(&super::expr::product(shape), &|name| self.var(name));
        match self.lang {
            Lang::C => format!(
                "  {{\n    const int64_t size = {size};\n    if (!bad) {{\n      r->kept[{number}].value = \
                 malloc((size_t)size * sizeof(double));\n      r->kept[{number}].known = calloc((size_t)size, 1);\n      \
                 bad = r->kept[{number}].value == NULL || r->kept[{number}].known == NULL;\n    }}\n  }}\n"
            ),
            Lang::Rust => format!("    kept[{number}] = vec![None; usize::try_from({size}).ok()?];\n"),
        }
    }

    /// Whether a place is the one that the block writes: the running value of its reduction.
    pub(super) fn is_own(&self, access: &Access, own: &Access) -> bool {
        access == own && self.func.buffers.get(&own.buffer).is_none_or(|it| it.role != Role::Input)
    }
}

/// A type in the C of the reference.
pub(super) fn c_name(dtype: DType) -> String {
    format!("TW_{}", dtype.as_str().to_uppercase())
}

/// A type in the Rust of the reference.
pub(super) fn rust_name(dtype: DType) -> String {
    let word = dtype.as_str();
    let (head, tail) = word.split_at(1);
    format!("DType::{}{tail}", head.to_uppercase())
}
