//! Prints the lowered form, and remembers what each line was printed from.

use std::fmt::{self, Display, Formatter};

use super::expr::{All, separated};
use crate::{
    Alloc, Arg, ForKind, Independence, Instr, Kernel, Mbarriers, Module, Name, Op, Origin, RingCounter,
    ThreadAxis,
};

/// A printed module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModuleListing {
    /// The text, each line ended by a newline.
    pub text: String,
    /// What each line was printed from; none for the lines of the module itself, and for those that
    /// tell where statements come from.
    pub line_sources: Vec<Option<LineSource>>,
    /// The number of the next statement.
    next: usize,
    /// Where the instruction printed last comes from.
    origin: Origin,
}

/// What a line of a lowered program, or of its source, was printed from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LineSource {
    /// How a kernel is launched; kernels are counted from zero.
    Launch(usize),
    /// An axis of the launch of a kernel.
    Axis(usize, ThreadAxis),
    /// A statement. Statements are counted from zero through all kernels, in the order of [`Op::walk`].
    Op(usize),
}

/// Prints a lowered program.
pub fn print_module(module: &Module) -> ModuleListing {
    let mut out = ModuleListing::default();
    let mut dims = String::new();
    if !module.dims.is_empty() {
        dims = format!("({})", module.dims.iter().map(Name::as_str).collect::<Vec<_>>().join(", "));
    }
    out.line(0, None, format_args!("module {}{dims}", module.name));
    for (name, arg) in &module.args {
        out.line(1, None, format_args!("{} {name}: {arg}", arg.role.as_str()));
    }
    for (n, kernel) in module.kernels.iter().enumerate() {
        out.text.push('\n');
        out.line_sources.push(None);
        out.kernel(1, n, kernel);
    }
    out
}

/// Prints a kernel by itself, as a module's first.
pub fn print_kernel(kernel: &Kernel) -> ModuleListing {
    let mut out = ModuleListing::default();
    out.kernel(0, 0, kernel);
    out
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&print_module(self).text)
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&print_kernel(self).text)
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = ModuleListing::default();
        out.op(0, self);
        f.write_str(&out.text)
    }
}

impl Display for Arg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        separated(f, ", ", &self.shape)?;
        write!(f, "]{}", self.layout)?;
        if self.zeroed {
            f.write_str(" zeroed")?;
        }
        self.below.as_ref().map_or(Ok(()), |it| write!(f, " below {it}"))
    }
}

impl Display for Mbarriers {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] arrivals {}", self.slots, self.arrivals)
    }
}

impl Display for Alloc {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "alloc {}: {}[", self.name, self.dtype)?;
        separated(f, ", ", &self.shape)?;
        write!(f, "] @{}{}", self.scope, self.layout)?;
        self.per.as_ref().map_or(Ok(()), |per| write!(f, " per {per}"))?;
        f.write_str(if self.is_register { " register" } else { "" })?;
        self.offset.map_or(Ok(()), |offset| write!(f, " at {offset}"))?;
        if self.align == Alloc::ALIGN { Ok(()) } else { write!(f, " align {}", self.align) }
    }
}

impl ModuleListing {
    /// The first line of each statement, from 1; statements are in the order of [`Op::walk`].
    pub fn op_lines(&self) -> Vec<usize> {
        let mut out = Vec::new();
        for (line, source) in (1..).zip(&self.line_sources) {
            if *source == Some(LineSource::Op(out.len())) {
                out.push(line);
            }
        }
        out
    }

    fn line(&mut self, depth: usize, source: Option<LineSource>, text: fmt::Arguments<'_>) {
        self.text.extend(std::iter::repeat_n("  ", depth));
        fmt::write(&mut self.text, text).expect("writing to a string does not fail");
        self.text.push('\n');
        self.line_sources.push(source);
    }

    fn kernel(&mut self, depth: usize, number: usize, kernel: &Kernel) {
        let axes = kernel.launch.iter().map(|(axis, extent)| format!("{}: {extent}", axis.as_str()));
        let axes = axes.collect::<Vec<_>>().join(", ");
        let resident = kernel.blocks_per_sm.map(|it| format!(" blocks_per_sm {it}")).unwrap_or_default();
        let early = if kernel.programmatic_launch { " programmatic_launch" } else { "" };
        let launch = if axes.is_empty() { axes } else { format!("<<<{axes}>>>") };
        let args = kernel.args.iter().map(|(name, written)| match written {
            true => format!("mut {name}"),
            false => name.to_string(),
        });
        let args = args.collect::<Vec<_>>().join(", ");
        let source = Some(LineSource::Launch(number));
        let index = if kernel.wide { " index i64" } else { "" };
        self.line(
            depth,
            source,
            format_args!("kernel {}{launch}({args}){resident}{early}{index}", kernel.name),
        );
        self.head(depth + 1, source, kernel);
        self.origin = Origin::default();
        self.ops(depth + 1, &kernel.body);
    }

    /// What a kernel has before its statements.
    fn head(&mut self, depth: usize, source: Option<LineSource>, kernel: &Kernel) {
        for (name, map) in &kernel.maps {
            self.line(depth, source, format_args!("tensor_map {name} = {map}"));
        }
        for (name, it) in &kernel.mbarriers {
            self.line(depth, source, format_args!("mbarriers {name}{it}"));
        }
        if let Some(name) = &kernel.claims {
            self.line(depth, source, format_args!("claims {name}"));
        }
        for (name, role) in &kernel.roles {
            let axes = role.axes.iter().map(|(axis, extent)| format!("{}: {extent}", axis.as_str()));
            let axes = axes.collect::<Vec<_>>().join(", ");
            let registers = role.registers.map(|it| format!(" registers {it}")).unwrap_or_default();
            self.line(depth, source, format_args!("role {name}<<<{axes}>>>{registers}"));
        }
    }

    /// Tells where all that is in a statement comes from, unless that is where what stands before it comes from.
    fn origin_of(&mut self, depth: usize, op: &Op) {
        if let Some(origin) = op.common_origin().filter(|it| **it != self.origin) {
            let blank = if origin.is_unknown() { "" } else { " " };
            self.line(depth, None, format_args!("of{blank}{origin}"));
            self.origin = origin.clone();
        }
    }

    fn ops(&mut self, depth: usize, ops: &[Op]) {
        for op in ops {
            self.op(depth, op);
        }
    }

    fn op(&mut self, depth: usize, op: &Op) {
        self.origin_of(depth, op);
        let source = Some(LineSource::Op(self.next));
        self.next += 1;
        match op {
            Op::Alloc(it) => self.line(depth, source, format_args!("{it}")),
            Op::For(it) => {
                let kind = match it.kind {
                    ForKind::Serial => "",
                    ForKind::Parallel => " @parallel",
                    ForKind::Vectorized => " @vectorized",
                    ForKind::Unrolled => " @unrolled",
                };
                let independent = match it.independent {
                    Independence::Unknown => String::new(),
                    Independence::Iterations => " independent".to_owned(),
                    Independence::Along(axis) => format!(" independent along {}", axis.as_str()),
                };
                let ring = |it: &RingCounter| format!("{} from {} of {}", it.var, it.start, it.count);
                let counters: Vec<_> = it.counters.iter().map(ring).collect();
                let with = if counters.is_empty() { "" } else { " with " };
                let with = format!("{with}{}", counters.join(", "));
                self.line(
                    depth,
                    source,
                    format_args!("for {} in 0..{}{kind}{independent}{with}", it.var, it.extent),
                );
                self.ops(depth + 1, &it.body);
            }
            Op::If(cond, body) => {
                self.line(depth, source, format_args!("if {}", All(cond)));
                self.ops(depth + 1, body);
            }
            Op::Leader(of, body) => {
                self.line(depth, source, format_args!("leader {}", of.as_str()));
                self.ops(depth + 1, body);
            }
            Op::Role(name, body) => {
                self.line(depth, source, format_args!("in {name}"));
                self.ops(depth + 1, body);
            }
            Op::Instr(Instr::Comment(text), _) => {
                for line in text.lines() {
                    self.line(depth, source, format_args!("// {line}"));
                }
            }
            Op::Instr(it, _) => self.line(depth, source, format_args!("{it}")),
        }
    }
}
