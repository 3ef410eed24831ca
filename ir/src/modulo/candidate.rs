//! What a search answers: annotations, and why.

use std::{fmt, sync::Arc};

use indexmap::IndexMap;

use super::{
    placement::{Estimate, Placement, estimate, lead, slots},
    problem::Problem,
    search::search,
    work::{Pace, Resource},
};
use crate::{
    Arch, Block, Func, Loop, Name, Numbers, Stmt,
    pipeline::{ORDER, PipelineError, STAGE, check, forced, numbers},
};

/// Stages, an order and slots for a loop.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The stage of each component, in program order.
    pub stages: IndexMap<Name, i64>,
    /// The components, first to last in a step.
    pub order: Vec<Name>,
    /// The components that copy asynchronously.
    pub asynchronous: Vec<Name>,
    /// The slots that blocks have to ask for, because their buffers shall have more than are needed.
    pub slots: IndexMap<Name, i64>,
    /// Why.
    pub reason: Reason,
}

/// Why a candidate is as it is, in cycles and bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Reason {
    /// Cycles from one iteration of a block to the next.
    pub interval: f64,
    /// What bounds them.
    pub bound: Bound,
    /// The cycles that the slowest copy takes, if there is one that others wait for.
    pub latency: Option<f64>,
    /// How many steps ahead it runs.
    pub ahead: i64,
    /// Bytes of shared memory that the slots take, and how many there are.
    pub shared: [f64; 2],
    /// Blocks that a multiprocessor holds, about.
    pub resident: f64,
    /// Cycles for all iterations of all blocks of a multiprocessor.
    pub cycles: f64,
}

/// What bounds the interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// For so long it is busy.
    Resource(Resource),
    /// Values that go round from one iteration to the next.
    Recurrence,
    /// Latencies that nothing hides.
    Latency,
}

/// How many candidates are kept.
const KEPT: usize = 8;

/// Candidates for a loop, best first, each legal, and at least one. No ring in shared memory has more than `most_slots`.
///
/// # Errors
/// Why the loop cannot be pipelined, or why nothing is found.
pub fn candidates(
    func: &Func,
    var: &Name,
    arch: &Arch,
    most_slots: i64,
) -> Result<Vec<Candidate>, PipelineError> {
    let none = |why| PipelineError::NotWorkedOut { name: var.clone(), why };
    let problem = Problem::of(func, var, arch)?;
    let problem = problem.ok_or_else(|| none("how much its statements do is not known before it runs"))?;
    let found = search(&problem, most_slots);
    let all = found.iter().map(|(placement, estimate)| candidate(&problem, placement, estimate));
    let legal: Vec<_> = all.filter(|it| is_legal(func, var, it)).take(KEPT).collect();
    if legal.is_empty() {
        return Err(none("the slots that it needs are more than there may be"));
    }
    Ok(legal)
}

/// What the same clock says of the stages, the order and the slots that a loop has; nothing where it counts other components, where
/// a size is not known or where the slots do not fit.
///
/// # Errors
/// Why the loop is no pipeline.
pub fn assess(func: &Func, var: &Name, arch: &Arch) -> Result<Option<Reason>, PipelineError> {
    let it = func.find_loop(var).ok_or_else(|| PipelineError::NoPipeline { name: var.clone() })?;
    let (stages, orders) = (numbers(it, STAGE)?, numbers(it, ORDER)?);
    let Some(problem) = Problem::of(func, var, arch)? else { return Ok(None) };
    let mut order: Vec<usize> = (0..orders.len()).collect();
    order.sort_by_key(|at| orders[*at]);
    let stages: Vec<i64> = stages.into_values().collect();
    if stages.len() != problem.names.len() || order.len() != problem.names.len() {
        return Ok(None);
    }
    let mut slots = slots(&problem, &stages, &order, &|_| true);
    for (count, ring) in slots.iter_mut().zip(&problem.rings) {
        let asked = ring.blocks.iter().filter_map(|it| forced(func.find_block(it)?));
        *count = asked.fold(*count, i64::max);
    }
    let placement = Placement { lead: lead(&problem, &stages, &order), stages, order, slots };
    Ok(estimate(&problem, &placement).map(|it| reason(&problem, &placement, &it)))
}

fn candidate(problem: &Problem, placement: &Placement, estimate: &Estimate) -> Candidate {
    let name = |at: usize| problem.names[at].clone();
    let stages = (0..problem.names.len()).map(|at| (name(at), placement.stages[at])).collect();
    let order = placement.order.iter().map(|at| name(*at)).collect();
    let copies = problem.work.iter().enumerate().filter(|it| matches!(it.1.pace, Pace::Copy(_)));
    let asynchronous = copies.map(|it| name(it.0)).collect();
    let needed = slots(problem, &placement.stages, &placement.order, &|_| true);
    let rings = problem.rings.iter().zip(&placement.slots).zip(needed);
    let forced = rings.filter(|it| *it.0.1 > it.1);
    let slots = forced.flat_map(|((ring, slots), _)| ring.blocks.iter().map(|it| (it.clone(), *slots)));
    Candidate {
        stages,
        order,
        asynchronous,
        slots: slots.collect(),
        reason: reason(problem, placement, estimate),
    }
}

fn reason(problem: &Problem, placement: &Placement, estimate: &Estimate) -> Reason {
    let (resource, busy) = problem.of_resources();
    let together = estimate.resident.min(problem.share());
    let bound = match () {
        () if !estimate.is_bound => Bound::Latency,
        () if busy * together >= problem.of_recurrences() => Bound::Resource(resource),
        () => Bound::Recurrence,
    };
    let fetches = (0..problem.work.len()).filter(|at| problem.is_fetch(*at)).map(|at| &problem.work[at]);
    let latency = fetches.map(|it| it.longest().1 * together + it.latency * problem.load()).reduce(f64::max);
    let budget = f64::from(problem.arch.caps().max_shared_per_block);
    Reason {
        interval: estimate.interval,
        bound,
        latency,
        ahead: placement.lead.copies,
        shared: [problem.shared(&placement.slots), budget],
        resident: estimate.resident,
        cycles: estimate.cycles,
    }
}

/// Whether the exact rule accepts a candidate.
fn is_legal(func: &Func, var: &Name, it: &Candidate) -> bool {
    let mut func = func.clone();
    annotate(&mut func, var, it);
    check(&func, &|it| it.var == *var).is_ok()
}

/// Asks for the stages, the order and the slots of a candidate.
pub(super) fn annotate(func: &mut Func, var: &Name, it: &Candidate) {
    let orders = it.order.iter().cloned().zip(0..).collect();
    func.replace_loop(var, |mut old: Loop| {
        let spec = old.attrs.pipeline_mut();
        (spec.stages, spec.orders) = (Some(Numbers::Map(it.stages.clone())), Some(Numbers::Map(orders)));
        Stmt::Loop(Arc::new(old))
    });
    for (name, count) in &it.slots {
        func.replace_block(name, |mut old: Block| {
            old.attrs.slots = Some(*count);
            Stmt::Block(Arc::new(old))
        });
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reason { interval, bound, latency, ahead, shared: [shared, budget], resident, .. } = self;
        write!(f, "an iteration every {interval:.0} cycles, ")?;
        match bound {
            Bound::Resource(it) => write!(f, "bounded by {}", it.as_str())?,
            Bound::Recurrence => write!(f, "bounded by what goes round from one to the next")?,
            Bound::Latency => write!(f, "of which latencies take a part")?,
        }
        if let Some(latency) = latency {
            let needed = (latency / interval).ceil();
            write!(f, "; copies take {latency:.0} and run {ahead} ahead ({needed:.0} needed)")?;
        }
        if *shared > 0.0 {
            write!(f, "; {:.0} of {:.0} KiB of shared memory", shared / 1024.0, budget / 1024.0)?;
        }
        let blocks = if *resident > 1.0 { "blocks" } else { "block" };
        write!(f, "; {resident:.0} {blocks} on a multiprocessor")
    }
}
