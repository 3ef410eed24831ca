//! How long a run will take, before it is begun.

use std::collections::HashMap;

use indexmap::IndexMap;
use ir::{Instr, Kernel, Module, Name, Op};

/// About how many assignments a program makes, each thread and each element counted: what the time of a run depends
/// on. Conditions count as true, and extents that depend on other loops as in the first iteration of those.
pub fn estimate(module: &Module, dims: &IndexMap<Name, i64>) -> u64 {
    let mut total: u64 = 0;
    for kernel in &module.kernels {
        let mut known: HashMap<Name, i64> = dims.iter().map(|(name, it)| (name.clone(), *it)).collect();
        let sizes = |of_threads: bool| {
            let axes = kernel.launch.iter().filter(move |it| it.0.is_thread() == of_threads);
            axes.map(|it| size(it.1, &known)).fold(1, u64::saturating_mul)
        };
        let (blocks, threads) = (sizes(false), sizes(true));
        for axis in kernel.launch.keys() {
            known.insert(ir::axis_var(*axis), 0);
        }
        let each = Each { kernel, threads };
        total = total.saturating_add(blocks.saturating_mul(each.steps(&kernel.body, &mut known)));
    }
    total
}

fn size(extent: &ir::Index, known: &HashMap<Name, i64>) -> u64 {
    let value = extent.eval(&|it| known.get(it).copied()).unwrap_or(1);
    value.max(0).cast_unsigned()
}

/// How many elements an instruction assigns.
fn written(it: &Instr) -> u64 {
    let mut lanes = 0;
    it.each_access(&mut |access, mode| lanes += if mode.writes() { u64::from(access.lanes) } else { 0 });
    lanes
}

/// A kernel, and how many threads come to a statement.
struct Each<'a> {
    kernel: &'a Kernel,
    threads: u64,
}

impl Each<'_> {
    fn steps(&self, ops: &[Op], known: &mut HashMap<Name, i64>) -> u64 {
        let mut total: u64 = 0;
        for op in ops {
            total = total.saturating_add(match op {
                Op::For(it) => {
                    let trips = size(&it.extent, known);
                    known.insert(it.var.clone(), 0);
                    trips.saturating_mul(self.steps(&it.body, known))
                }
                Op::If(_, body) => self.steps(body, known),
                Op::Leader(_, body) => Each { threads: 1, ..*self }.steps(body, known),
                Op::Role(name, body) => {
                    let role = self.kernel.roles.get(name);
                    let threads = role.map_or(0, |it| it.threads().max(0).cast_unsigned());
                    Each { threads, ..*self }.steps(body, known)
                }
                Op::Instr(it, _) => self.threads.saturating_mul(written(it)),
                Op::Alloc(_) => 0,
            });
        }
        total
    }
}
