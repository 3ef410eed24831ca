//! The steps to draw: which iteration each statement works on, and which iterations the slots hold.

use ir::Name;

use super::{Base, Column, Held, Moment, Part, Ring, clock::Clock, find::LoweredPipeline};
use crate::lower::{ComponentReport, PipelineReport, SlotReport};

/// So many steps of the steady state are drawn at most.
const MAX_STEADY: i64 = 6;

/// A buffer's slots.
pub(super) fn ring(it: &SlotReport) -> Ring {
    Ring {
        buffer: it.buffer.clone(),
        scope: it.scope,
        slots: it.slots,
        needed: it.needed,
        forced: it.forced,
        bytes: it.bytes,
        note: it.note(),
    }
}

/// A step to draw: where it is, as a number to count with, and what that number counts from.
struct DrawnStep {
    part: Part,
    step: i64,
    base: Base,
    origin: i64,
}

/// The steps of a pipeline, the steady state as a few of its steps.
pub(super) fn columns(clock: &Clock, report: &PipelineReport, found: &LoweredPipeline<'_>) -> Vec<Column> {
    let pretended = clock.trips.unwrap_or(2 * clock.far());
    let column = |place: DrawnStep| {
        // In the steady state every statement has an iteration to work on.
        let trips = if place.base == Base::Steady { i64::MAX } else { pretended };
        let in_kernel = pretended.max(3 * clock.far() * i64::from(place.base == Base::Steady));
        let moment = |value: i64| Moment { base: place.base, offset: value - place.origin };
        let runs = clock.components.iter().map(|it| {
            let iteration = place.step - it.stage;
            (0..trips).contains(&iteration).then(|| moment(iteration))
        });
        let groups = clock.in_flight(found, place.step, in_kernel);
        let flying = |name: &Name, iteration: i64| {
            groups
                .iter()
                .flatten()
                .any(|(rank, at)| *at == iteration && clock.components[*rank].writes.contains(name))
        };
        let slots = report.buffers.iter().map(|it| held(clock, it, place.step, trips, &moment, &flying));
        let syncs = clock.step(found, place.step, in_kernel).cloned();
        Column {
            part: place.part,
            step: moment(place.step),
            runs: runs.collect(),
            syncs: syncs.unwrap_or_else(|| vec![vec![]; clock.components.len() + 1]),
            slots: slots.collect(),
            in_flight: groups.iter().filter(|it| !it.is_empty()).count(),
        }
    };
    places(clock, report).into_iter().map(column).collect()
}

fn places(clock: &Clock, report: &PipelineReport) -> Vec<DrawnStep> {
    let (last, far) = (clock.last, clock.far());
    let drawn = if clock.cycle <= MAX_STEADY { clock.cycle } else { clock.unroll.clamp(2, MAX_STEADY) };
    let start = |part, step| DrawnStep { part, step, base: Base::Start, origin: 0 };
    let steady = (0..drawn).map(|at| DrawnStep {
        part: Part::Steady,
        step: far + at,
        base: Base::Steady,
        origin: far,
    });
    let before = (0..last).map(|it| start(Part::Prologue, it));
    let Some(trips) = clock.trips else {
        let base = Base::End(count_letter(report));
        let after =
            (0..last).map(|it| DrawnStep { part: Part::Epilogue, step: 2 * far + it, base, origin: 2 * far });
        return before.chain(steady).chain(after).collect();
    };
    if trips <= last {
        let part = |it| if it < trips { Part::Prologue } else { Part::Epilogue };
        return (0..trips + last).map(|it| start(part(it), it)).collect();
    }
    // A loop that is unrolled leaves some steps over.
    let end = if clock.is_predicated { trips } else { trips - (trips - last) % clock.unroll };
    let middle: Vec<_> = if end - last <= drawn {
        (last..end).map(|it| start(Part::Steady, it)).collect()
    } else {
        steady.collect()
    };
    let after = (end..trips + last).map(|it| start(Part::Epilogue, it));
    before.chain(middle).chain(after).collect()
}

/// What to call the number of iterations: `n`, unless its expression has an `n` of its own.
pub(super) fn count_letter(report: &PipelineReport) -> char {
    let is_n = report.extent.to_string() == "n";
    if report.extent.any_var(&|name| name.as_str() == "n") && !is_n { 'N' } else { 'n' }
}

/// What the slots of a buffer hold in a step: from the first write of an iteration to its last use.
fn held(
    clock: &Clock,
    it: &SlotReport,
    step: i64,
    trips: i64,
    moment: &dyn Fn(i64) -> Moment,
    flying: &dyn Fn(&Name, i64) -> bool,
) -> Vec<Vec<Held>> {
    let stages = |touches: &dyn Fn(&ComponentReport) -> bool| -> Vec<i64> {
        clock.components.iter().filter(|it| touches(it)).map(|it| it.stage).collect()
    };
    let writers = stages(&|other| other.writes.contains(&it.buffer));
    let users = stages(&|other| other.reads.contains(&it.buffer) || other.writes.contains(&it.buffer));
    let first = writers.iter().min().copied().unwrap_or(0);
    let last = users.iter().max().copied().unwrap_or(first);
    let mut out = vec![vec![]; usize::try_from(it.slots.max(1)).expect("slots are in memory")];
    for iteration in (step - last..=step - first).filter(|it| (0..trips).contains(it)) {
        let slot = usize::try_from(iteration.rem_euclid(it.slots.max(1))).expect("it is one of the slots");
        out[slot].push(Held { iteration: moment(iteration), landed: !flying(&it.buffer, iteration) });
    }
    out
}
