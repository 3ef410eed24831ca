//! How many bytes the statements of a pipeline move.

use indexmap::IndexMap;
use ir::{DType, Effect, Kernel, Module, Name, Op, Participants, Scope, intrin};

use super::{Moved, Statement, clock::Clock};

/// The statements of a pipeline, with what they move in one iteration.
pub(super) fn statements(
    module: &Module,
    kernel: &Kernel,
    clock: &Clock,
    bodies: &[Vec<&Op>],
    threads: Option<i64>,
) -> Vec<Statement> {
    let mut memory: IndexMap<Name, (DType, Scope)> =
        module.args.iter().map(|(name, it)| (name.clone(), (it.dtype, Scope::Global))).collect();
    for op in &kernel.body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op {
                memory.insert(it.name.clone(), (it.dtype, it.scope));
            }
        });
    }
    let of = |(it, body): (&crate::lower::ComponentReport, &Vec<&Op>)| {
        let mut traffic =
            Traffic { memory: &memory, threads, reads: IndexMap::new(), writes: IndexMap::new() };
        for op in body {
            traffic.op(op, threads);
        }
        let moved = |(buffer, bytes)| {
            let scope = memory.get(&buffer).map_or(Scope::Global, |it: &(DType, Scope)| it.1);
            Moved { buffer, scope, bytes }
        };
        Statement {
            name: it.name.clone(),
            stage: it.stage,
            order: it.order,
            mechanism: it.mechanism.as_str(),
            reason: it.reason.clone(),
            reads: traffic.reads.into_iter().map(moved).collect(),
            writes: traffic.writes.into_iter().map(moved).collect(),
        }
    };
    clock.components.iter().zip(bodies).map(of).collect()
}

/// Bytes by buffer; `None` where they are not known.
struct Traffic<'a> {
    memory: &'a IndexMap<Name, (DType, Scope)>,
    /// How many threads a block has.
    threads: Option<i64>,
    reads: IndexMap<Name, Option<i64>>,
    writes: IndexMap<Name, Option<i64>>,
}

impl Traffic<'_> {
    /// Adds a statement that runs so many times, over all threads.
    fn op(&mut self, op: &Op, times: Option<i64>) {
        match op {
            Op::For(it) => {
                let times = times.zip(it.extent.as_int()).and_then(|(a, b)| a.checked_mul(b));
                it.body.iter().for_each(|op| self.op(op, times));
            }
            Op::If(_, body) | Op::Role(_, body) => body.iter().for_each(|op| self.op(op, times)),
            // One thread does it for all.
            Op::Leader(..) => {
                let once = times.zip(self.threads).map(|(times, threads)| times / threads.max(1));
                op.children().iter().for_each(|op| self.op(op, once));
            }
            Op::Instr(it, _) if it.sync().is_none() => {
                it.each_effect(&mut |Effect { access, extents, mode, .. }| {
                    let to = if mode.writes() { &mut self.writes } else { &mut self.reads };
                    // A warpgroup reads a box together.
                    let is_box = !extents.is_empty();
                    let elements = if is_box { extents.iter().product() } else { access.lanes.into() };
                    let together = is_box && it.participants() == Participants::Warpgroup;
                    let times = if together { times.map(|it| it / intrin::WARPGROUP) } else { times };
                    add(to, self.memory, &access.buffer, elements, times);
                });
            }
            Op::Alloc(_) | Op::Instr(..) => {}
        }
    }
}

fn add(
    to: &mut IndexMap<Name, Option<i64>>,
    memory: &IndexMap<Name, (DType, Scope)>,
    buffer: &Name,
    elements: i64,
    times: Option<i64>,
) {
    let Some((dtype, scope)) = memory.get(buffer) else { return };
    if *scope == Scope::Local {
        return;
    }
    let each = i64::try_from(dtype.bytes()).ok().map(|it| it * elements);
    let bytes = times.zip(each).and_then(|(a, b)| a.checked_mul(b));
    let sum = to.entry(buffer.clone()).or_insert(Some(0));
    *sum = sum.zip(bytes).and_then(|(a, b)| a.checked_add(b));
}
