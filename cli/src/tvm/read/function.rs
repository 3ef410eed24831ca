//! The function: its header, its parameters, and what is true of it as a whole.

use std::{collections::HashMap, ops::Range};

use indexmap::IndexMap;
use ir::{Buffers, DType, Func, Index, Less, Literal, Name, Number, Role};
use ruff_python_ast::{self as ast, Expr, Parameter, Stmt};

use super::{
    Imported, PrimFunc,
    args::{Args, path_below, text_of},
    attrs::{Entry, entries},
    block::Leaf,
    call::dtype_of,
    error::{Refusal, malformed, unsayable},
    names::Names,
    scope::{Meaning, Scope},
    span,
};

/// The attributes of functions that hold what TVM has no words for: how far outputs may be from exact ones,
pub(in crate::tvm) const TOLERANCE: &str = "tilewright.tolerance";
/// which names have other words, since Python has another use for them,
pub(in crate::tvm) const NAMES: &str = "tilewright.names";
/// how buffers are stored,
pub(in crate::tvm) const LAYOUT: &str = "tilewright.layout";
/// and what elements of inputs are less than.
pub(in crate::tvm) const BELOW: &str = "tilewright.below";

/// What is known while a function is read.
pub(super) struct Reader<'a> {
    pub(super) alias: &'a str,
    /// Whole numbers that have names outside the function.
    pub(super) constants: HashMap<String, i64>,
    pub(super) scope: Scope,
    pub(super) names: Names,
    pub(super) places: IndexMap<Name, Range<usize>>,
    pub(super) buffers: Buffers,
    pub(super) dims: Vec<Name>,
    pub(super) tolerance: Option<Literal>,
    /// The parameters that are handles, each with its buffer once it has one.
    handles: Vec<(String, Range<usize>, Option<Name>)>,
    /// The guards of conditions and left-out blocks around.
    pub(super) guards: Vec<Less>,
    /// The block whose body is read.
    pub(super) leaf: Option<Leaf>,
    /// Whether it is the body that is read, and no binding or guard.
    pub(super) in_body: bool,
    /// How many loops of the block are around.
    pub(super) loop_depth: usize,
    pub(super) expression_depth: usize,
    /// How many expressions there are so far, names written out.
    pub(super) weight: usize,
    pub(super) statement_depth: usize,
}

/// Reads a function of a module.
pub(super) fn read(func: &PrimFunc<'_>, module: &[Stmt]) -> Result<Imported, Refusal> {
    let def = func.def;
    let mut it = Reader {
        alias: func.alias,
        constants: constants(module, def.range.start().to_usize()),
        scope: Scope::default(),
        names: Names::default(),
        places: IndexMap::new(),
        buffers: Buffers::default(),
        dims: vec![],
        tolerance: None,
        handles: vec![],
        guards: vec![],
        leaf: None,
        in_body: false,
        loop_depth: 0,
        expression_depth: 0,
        weight: 0,
        statement_depth: 0,
    };
    it.given_names(&def.body)?;
    it.dimensions(&def.body)?;
    for param in def.parameters.iter_non_variadic_params() {
        it.size_parameter(&param.parameter);
    }
    for param in def.parameters.iter_non_variadic_params() {
        it.parameter(&param.parameter)?;
    }
    let body = ir::Stmt::seq(it.statements(&def.body)?);
    // Scripts speak of blocks and loops, and so these have their names first.
    let name = it.names.other(&named(func));
    it.places.insert(name.clone(), span(&def.name));
    if let Some((word, at, _)) = it.handles.iter().find(|it| it.2.is_none()) {
        let title = format!("no buffer is made of the parameter `{word}`");
        return Err(malformed(at.clone(), title).help("say which: `A = T.match_buffer(a, (128, 128))`"));
    }
    it.buffer_attributes(&def.body)?;
    it.give_roles(&body)?;
    let order = |name: &Name| it.handles.iter().position(|at| at.2.as_ref() == Some(name));
    it.buffers.sort_by(|a, _, b, _| {
        order(a).map_or(usize::MAX, |it| it).cmp(&order(b).map_or(usize::MAX, |it| it))
    });
    let (dims, tolerance, buffers) = (it.dims, it.tolerance, it.buffers);
    let mbarriers = IndexMap::new();
    let func = Func { name, dims, tolerance, buffers, mbarriers, body };
    Ok(Imported { func, places: it.places, renamed: it.names.renamed })
}

/// The name of a function: what TVM calls all of them is less than the one of its attributes.
fn named(func: &PrimFunc<'_>) -> String {
    let word = func.def.name.to_string();
    if word != "main" {
        return word;
    }
    let attrs = func.def.body.iter().filter_map(|stmt| match stmt {
        Stmt::Expr(it) => match &*it.value {
            Expr::Call(call) if path_below(&call.func, func.alias).as_deref() == Some("func_attr") => {
                call.arguments.args.first()
            }
            _ => None,
        },
        _ => None,
    });
    let symbol = attrs.filter_map(|it| entries(it).ok()).flatten().find(|it| it.key == "global_symbol");
    symbol.and_then(|it| text_of(it.value).ok()).map_or(word, |it| it)
}

/// The whole numbers that have names before a place, whatever they are nested in.
fn constants(module: &[Stmt], before: usize) -> HashMap<String, i64> {
    let mut out = HashMap::new();
    for stmt in module {
        if span(stmt).start >= before {
            break;
        }
        match stmt {
            Stmt::Assign(it) => {
                if let ([Expr::Name(name)], Expr::NumberLiteral(value)) = (&*it.targets, &*it.value)
                    && let ast::Number::Int(value) = &value.value
                    && let Some(value) = value.as_i64()
                {
                    out.insert(name.id.to_string(), value);
                }
            }
            Stmt::FunctionDef(it) if span(it).end > before => out.extend(constants(&it.body, before)),
            Stmt::ClassDef(it) if span(it).end > before => out.extend(constants(&it.body, before)),
            _ => {}
        }
    }
    out
}

impl Reader<'_> {
    /// The dimensions that the body declares, which parameters may speak of before.
    fn dimensions(&mut self, body: &[Stmt]) -> Result<(), Refusal> {
        for stmt in body {
            let Stmt::Assign(it) = stmt else { continue };
            let ([Expr::Name(name)], Expr::Call(call)) = (&*it.targets, &*it.value) else { continue };
            if let Some(dtype) = self.dimension_type(call)? {
                self.dimension(name.id.as_str(), span(name), dtype);
            }
        }
        Ok(())
    }

    /// The type of a dimension, if a call declares one: `T.int32()` or `T.Var("n", "int32")`.
    pub(super) fn dimension_type(&self, call: &ast::ExprCall) -> Result<Option<DType>, Refusal> {
        let path = self.path(&call.func);
        let of_type = |word: &str| dtype_of(word).filter(|it| matches!(it, DType::I32 | DType::I64));
        match path.as_deref() {
            Some("var" | "Var" | "size_var" | "SizeVar") => {
                let word = call.arguments.args.last().map_or(Ok("int32".to_owned()), text_of)?;
                Ok(of_type(&word))
            }
            Some(word) => {
                let is_size =
                    |it: &ast::Keyword| it.arg.as_ref().is_some_and(|it| it.as_str() == "is_size_var");
                let declares = call.arguments.args.is_empty() && call.arguments.keywords.iter().all(is_size);
                Ok(of_type(word).filter(|_| declares))
            }
            None => Ok(None),
        }
    }

    fn dimension(&mut self, word: &str, at: Range<usize>, dtype: DType) {
        let name = self.names.other(word);
        self.places.insert(name.clone(), at);
        self.scope.bind(word, Meaning::Index(Index::var(&name), dtype));
        self.dims.push(name);
    }

    /// A size, which shapes of parameters before it may speak of.
    fn size_parameter(&mut self, param: &Parameter) {
        let path = match param.annotation.as_deref() {
            Some(Expr::Call(call)) => self.path(&call.func),
            Some(other) => self.path(other),
            None => None,
        };
        if let Some(dtype) =
            path.as_deref().and_then(dtype_of).filter(|it| matches!(it, DType::I32 | DType::I64))
        {
            self.dimension(param.name.as_str(), span(&param.name), dtype);
        }
    }

    fn parameter(&mut self, param: &Parameter) -> Result<(), Refusal> {
        let word = param.name.as_str();
        let unsaid = |at: Range<usize>| {
            unsayable(
                at,
                format!("the parameter `{word}` is no buffer and no size"),
                "parameters are handles, `T.Buffer(…)`, and sizes of type T.int32 or T.int64",
            )
        };
        let Some(annotation) = param.annotation.as_deref() else { return Err(unsaid(span(param))) };
        match annotation {
            Expr::Call(call) if self.path(&call.func).as_deref() == Some("Buffer") => {
                let name = self.buffer(call, word, &super::buffer::PARAMETER, span(&param.name))?;
                self.handles.push((word.to_owned(), span(&param.name), Some(name)));
                Ok(())
            }
            // As older versions wrote it: `T.Buffer[(16, 16), "float32"]`.
            Expr::Subscript(it) if self.path(&it.value).as_deref() == Some("Buffer") => {
                let name = self.subscripted_buffer(it, word, span(&param.name))?;
                self.handles.push((word.to_owned(), span(&param.name), Some(name)));
                Ok(())
            }
            other => {
                let path = match other {
                    Expr::Call(call) => self.path(&call.func),
                    other => self.path(other),
                };
                match path.as_deref() {
                    Some("handle") => {
                        self.scope.bind(word, Meaning::Handle(self.handles.len()));
                        self.handles.push((word.to_owned(), span(&param.name), None));
                        Ok(())
                    }
                    Some("int32" | "int64") => Ok(()),
                    _ => Err(unsaid(span(other))),
                }
            }
        }
    }

    /// A parameter has its buffer now.
    pub(super) fn match_handle(
        &mut self,
        at: usize,
        buffer: &Name,
        place: Range<usize>,
    ) -> Result<(), Refusal> {
        let (word, _, matched) = &mut self.handles[at];
        if matched.is_some() {
            return Err(unsayable(
                place,
                format!("`{word}` has a buffer already"),
                "use one buffer for it: two views of the same memory are not told apart from two buffers",
            ));
        }
        *matched = Some(buffer.clone());
        Ok(())
    }

    /// What is said about the whole function.
    pub(super) fn function_attributes(&mut self, call: &ast::ExprCall) -> Result<(), Refusal> {
        for it in entries(Args::of(call, &["attrs"])?.need("attrs")?)? {
            // Others are what TVM tells its own passes: names, targets, aliasing.
            if it.key != TOLERANCE {
                continue;
            }
            match self.term(it.value)?.into_value(Some(DType::F64)).0 {
                ir::Value::Const(Literal { number: Number::Float(bits), .. }) => {
                    self.tolerance = Some(Literal { dtype: DType::F64, number: Number::Float(bits) });
                }
                _ => return Err(malformed(it.span, "a number is expected here")),
            }
        }
        Ok(())
    }

    /// The attributes of the function.
    fn attributes<'b>(&self, body: &'b [Stmt]) -> Result<Vec<Entry<'b>>, Refusal> {
        let mut out = vec![];
        for stmt in body {
            let Stmt::Expr(it) = stmt else { continue };
            let Expr::Call(call) = &*it.value else { continue };
            if self.path(&call.func).as_deref() == Some("func_attr") {
                out.extend(entries(Args::of(call, &["attrs"])?.need("attrs")?)?);
            }
        }
        Ok(out)
    }

    /// The names that words stand for.
    fn given_names(&mut self, body: &[Stmt]) -> Result<(), Refusal> {
        for it in self.attributes(body)?.iter().filter(|it| it.key == NAMES) {
            for it in entries(it.value)? {
                self.names.given.insert(it.key, text_of(it.value)?);
            }
        }
        Ok(())
    }

    /// What is said about buffers, once they are known.
    fn buffer_attributes(&mut self, body: &[Stmt]) -> Result<(), Refusal> {
        for it in self.attributes(body)? {
            match it.key.as_str() {
                LAYOUT => self.layouts(it.value)?,
                BELOW => self.bounds(it.value)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Finds out what the caller fills and what it reads.
    fn give_roles(&mut self, body: &ir::Stmt) -> Result<(), Refusal> {
        let blocks = body.blocks();
        for (word, _, buffer) in &self.handles {
            let buffer = buffer.as_ref().expect("each handle has a buffer by now");
            let is_written = blocks.iter().any(|it| it.writes().iter().any(|it| it.buffer == *buffer));
            let role = if is_written { Role::Output } else { Role::Input };
            self.buffers[buffer].role = role;
            let touches = |it: &&&ir::Block| it.any_access(&mut |access, _| access.buffer == *buffer);
            if let (true, Some(first)) = (is_written, blocks.iter().find(touches)) {
                let starts = first.init.as_ref().is_some_and(|it| {
                    let mut found = false;
                    it.each_store(&mut |store| found |= store.place.buffer == *buffer);
                    found
                });
                if !starts && first.reads().iter().any(|it| it.buffer == *buffer) {
                    let at = self.places.get(&first.name).cloned().expect("each block has a place");
                    return Err(unsayable(
                        at,
                        format!("`{}` reads `{word}` before anything is written into it", first.name),
                        "a parameter is filled by the caller or by the program: read one buffer and write another, or \
                         begin a sum with `with T.init():`",
                    ));
                }
            }
        }
        Ok(())
    }
}
