//! How many bytes the statements of a pipeline move.

use indexmap::IndexMap;
use ir::{DType, Kernel, Module, Name, Op, Scope};

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
        let mut traffic = Traffic { memory: &memory, reads: IndexMap::new(), writes: IndexMap::new() };
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
            Op::If(_, body) => body.iter().for_each(|op| self.op(op, times)),
            Op::Instr(it, _) if it.sync().is_none() => it.each_access(&mut |access, mode| {
                let to = if mode.writes() { &mut self.writes } else { &mut self.reads };
                add(to, self.memory, access, times);
            }),
            Op::Alloc(_) | Op::Instr(..) => {}
        }
    }
}

fn add(
    to: &mut IndexMap<Name, Option<i64>>,
    memory: &IndexMap<Name, (DType, Scope)>,
    access: &ir::Access,
    times: Option<i64>,
) {
    let Some((dtype, scope)) = memory.get(&access.buffer) else { return };
    if *scope == Scope::Local {
        return;
    }
    let each = i64::try_from(dtype.bytes()).ok().map(|it| it * i64::from(access.lanes));
    let bytes = times.zip(each).and_then(|(a, b)| a.checked_mul(b));
    let sum = to.entry(access.buffer.clone()).or_insert(Some(0));
    *sum = sum.zip(bytes).and_then(|(a, b)| a.checked_add(b));
}
