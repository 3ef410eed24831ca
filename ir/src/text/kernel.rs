//! Prints the lowered form.

use std::fmt::{self, Display, Formatter};

use super::{
    expr::{All, separated},
    print::Listing,
};
use crate::{Alloc, ForKind, Instr, Kernel, Module, Op};

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = Listing::default();
        let mut dims = String::new();
        if !self.dims.is_empty() {
            separated(&mut dims, ", ", &self.dims)?;
            dims = format!("({dims})");
        }
        out.line(0, format_args!("module {}{dims}", self.name));
        for (name, arg) in &self.args {
            let zeroed = if arg.zeroed { " zeroed" } else { "" };
            out.line(1, format_args!("{} {name}: {}[{}]{zeroed}", arg.role.as_str(), arg.dtype, arg.len));
        }
        for kernel in &self.kernels {
            out.text.push('\n');
            out.kernel(1, kernel);
        }
        f.write_str(&out.text)
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = Listing::default();
        out.kernel(0, self);
        f.write_str(&out.text)
    }
}

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut out = Listing::default();
        out.op(0, self);
        f.write_str(&out.text)
    }
}

impl Display for Alloc {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "alloc {}: {}[{}] @{}", self.name, self.dtype, self.len, self.scope)?;
        self.offset.map_or(Ok(()), |offset| write!(f, " at {offset}"))?;
        if self.align == Alloc::ALIGN { Ok(()) } else { write!(f, " align {}", self.align) }
    }
}

impl Listing {
    fn kernel(&mut self, depth: usize, kernel: &Kernel) {
        let axes = kernel.launch.iter().map(|(axis, extent)| format!("{}: {extent}", axis.as_str()));
        let axes = axes.collect::<Vec<_>>().join(", ");
        let resident = kernel.blocks_per_sm.map(|it| format!(" blocks_per_sm {it}")).unwrap_or_default();
        let launch = if axes.is_empty() { axes } else { format!("<<<{axes}>>>") };
        let args = kernel.args.iter().map(|(name, written)| match written {
            true => format!("mut {name}"),
            false => name.to_string(),
        });
        let args = args.collect::<Vec<_>>().join(", ");
        self.line(depth, format_args!("kernel {}{launch}({args}){resident}", kernel.name));
        self.ops(depth + 1, &kernel.body);
    }

    fn ops(&mut self, depth: usize, ops: &[Op]) {
        for op in ops {
            self.op(depth, op);
        }
    }

    fn op(&mut self, depth: usize, op: &Op) {
        match op {
            Op::Alloc(it) => {
                self.line(depth, format_args!("{it}"));
            }
            Op::For(it) => {
                let kind = match it.kind {
                    ForKind::Serial => "",
                    ForKind::Parallel => " @parallel",
                    ForKind::Vectorized => " @vectorized",
                    ForKind::Unrolled => " @unrolled",
                };
                self.line(depth, format_args!("for {} in 0..{}{kind}", it.var, it.extent));
                self.ops(depth + 1, &it.body);
            }
            Op::If(cond, body) => {
                self.line(depth, format_args!("if {}", All(cond)));
                self.ops(depth + 1, body);
            }
            Op::Instr(Instr::Comment(text)) => {
                for line in text.lines() {
                    self.line(depth, format_args!("// {line}"));
                }
            }
            Op::Instr(it) => {
                self.line(depth, format_args!("{it}"));
            }
        }
    }
}
