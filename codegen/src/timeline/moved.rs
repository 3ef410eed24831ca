//! How many bytes the statements of a pipeline move.

use indexmap::IndexMap;
use ir::{DType, Effect, Kernel, Module, Name, Op, Participants, Scope, intrin};

use super::{Lane, Moved, Statement, clock::Clock, find::LoweredPipeline};
use crate::lower::ComponentReport;

/// The statements of a pipeline, with what they move in one iteration.
pub(super) fn statements(
    module: &Module,
    kernel: &Kernel,
    clock: &Clock,
    found: &LoweredPipeline<'_>,
    lanes: &[Lane],
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
    let of = |(rank, it): (usize, &ComponentReport)| {
        let lane = &lanes[clock.lane_of[rank]];
        let mut traffic = Traffic {
            memory: &memory,
            threads: lane.threads.map(|it| it / lane.turns),
            reads: IndexMap::new(),
            writes: IndexMap::new(),
        };
        for (leader, op) in &found.bodies[rank] {
            traffic.op(op, Some(1), *leader);
        }
        let moved = |(buffer, bytes)| {
            let scope = memory.get(&buffer).map_or(Scope::Global, |it: &(DType, Scope)| it.1);
            Moved { buffer, scope, bytes }
        };
        Statement {
            name: it.name.clone(),
            role: lane.role.clone(),
            stage: it.declared.0,
            order: it.declared.1,
            mechanism: it.mechanism.as_str(),
            reason: it.reason.clone(),
            reads: traffic.reads.into_iter().map(moved).collect(),
            writes: traffic.writes.into_iter().map(moved).collect(),
            fills: found.fills[rank],
        }
    };
    clock.components.iter().enumerate().map(of).collect()
}

/// Bytes by buffer; `None` where they are not known.
struct Traffic<'a> {
    memory: &'a IndexMap<Name, (DType, Scope)>,
    /// How many threads come to the statements of an iteration.
    threads: Option<i64>,
    reads: IndexMap<Name, Option<i64>>,
    writes: IndexMap<Name, Option<i64>>,
}

impl Traffic<'_> {
    /// Adds a statement to which each thread comes so many times, or one thread of each such team.
    fn op(&mut self, op: &Op, times: Option<i64>, leader: Participants) {
        match op {
            Op::For(it) => {
                let times = times.zip(it.extent.as_int()).and_then(|(a, b)| a.checked_mul(b));
                it.body.iter().for_each(|op| self.op(op, times, leader));
            }
            Op::If(_, body) | Op::Role(_, body) => body.iter().for_each(|op| self.op(op, times, leader)),
            Op::Leader(of, body) => body.iter().for_each(|op| self.op(op, times, *of)),
            Op::Instr(it, _) if it.sync().is_none() => {
                it.each_effect(&mut |Effect { access, extents, mode, .. }| {
                    let to = if mode.writes() { &mut self.writes } else { &mut self.reads };
                    // A warpgroup reads a box together.
                    let is_box = !extents.is_empty();
                    let elements = if is_box { extents.iter().product() } else { access.lanes.into() };
                    let together = is_box && it.participants() == Participants::Warpgroup;
                    let team = if together { Participants::Warpgroup } else { leader };
                    let times = times.zip(teams(self.threads, team)).and_then(|(a, b)| a.checked_mul(b));
                    add(to, self.memory, &access.buffer, elements, times);
                });
            }
            Op::Alloc(_) | Op::Instr(..) => {}
        }
    }
}

/// How many such teams so many threads are.
fn teams(threads: Option<i64>, team: Participants) -> Option<i64> {
    match team {
        Participants::Thread => threads,
        Participants::Warp => threads.map(|it| it / intrin::WARP),
        Participants::Warpgroup => threads.map(|it| it / intrin::WARPGROUP),
        Participants::Role | Participants::Block | Participants::Cluster => Some(1),
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
