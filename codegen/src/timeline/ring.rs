//! The steps to draw: which iteration each statement works on, and which iterations the slots hold.

use std::collections::BTreeSet;

use ir::Group;

use super::{
    Base, Column, Held, Moment, Part, Ring,
    clock::Clock,
    find::LoweredPipeline,
    pace::Pace,
    replay::{Book, Replay},
};
use crate::lower::{PipelineReport, SlotReport};

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
pub(super) fn columns(
    clock: &Clock,
    pace: &Pace,
    report: &PipelineReport,
    found: &LoweredPipeline<'_>,
    groups: &[(usize, Group)],
) -> Vec<Column> {
    let pretended = clock.pretended();
    let column = |place: DrawnStep| {
        // In the steady state every statement has an iteration to work on.
        let is_steady = place.base == Base::Steady;
        let trips = if is_steady { i64::MAX } else { pretended };
        let in_kernel = pretended.max(3 * clock.far() * i64::from(is_steady));
        let replay = Replay { clock, pace, found, in_kernel, trips };
        place.column(&replay, report, groups)
    };
    let mut places = places(clock, pace, report);
    places.push(closing(clock, pace, report));
    let mut out: Vec<_> = places.into_iter().map(column).collect();
    // The last one is there for what closes the loop, if anything does.
    let closes =
        |it: &Column| it.ends.iter().zip(&pace.goes_on).any(|(end, goes_on)| !goes_on && !end.is_empty());
    if out.last().is_some_and(|it| !closes(it)) {
        out.pop();
    }
    out
}

impl DrawnStep {
    fn moment(&self, value: i64, trips: i64) -> Moment {
        let is_next = self.base != Base::Steady && value >= trips;
        let (base, origin) = if is_next { (Base::Next, trips) } else { (self.base, self.origin) };
        Moment { base, offset: value - origin }
    }

    fn column(&self, replay: &Replay<'_>, report: &PipelineReport, groups: &[(usize, Group)]) -> Column {
        let Replay { clock, trips, .. } = *replay;
        let moment = |value| self.moment(value, trips);
        let ranks = 0..clock.components.len();
        let (earlier, book) = (replay.until(self.step - 1), replay.until(self.step));
        let held = |it| held(replay, it, self.step, (&earlier, &book), &moment);
        let syncs = |rank: usize| replay.done(clock.lane_of[rank], self.step, rank).cloned().collect();
        let end = |lane| replay.done(lane, self.step, clock.components.len()).cloned().collect();
        Column {
            part: self.part,
            step: Moment { base: self.base, offset: self.step - self.origin },
            runs: ranks.clone().map(|rank| replay.fill(rank, self.step).map(moment)).collect(),
            syncs: ranks.map(syncs).collect(),
            ends: (0..clock.lanes.len()).map(end).collect(),
            slots: report.buffers.iter().map(held).collect(),
            in_flight: groups.iter().map(|(lane, kind)| book.count(*lane, *kind)).collect(),
        }
    }
}

/// The step behind the last one.
fn closing(clock: &Clock, pace: &Pace, report: &PipelineReport) -> DrawnStep {
    let trips = clock.pretended();
    let (base, origin) =
        if clock.trips.is_some() { (Base::Start, 0) } else { (Base::End(count_letter(report)), trips) };
    DrawnStep { part: Part::Epilogue, step: trips + pace.last, base, origin }
}

fn places(clock: &Clock, pace: &Pace, report: &PipelineReport) -> Vec<DrawnStep> {
    let (last, far) = (pace.last, clock.far());
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
    let is_whole = clock.is_predicated || clock.lanes.len() > 1;
    let end = if is_whole { trips } else { trips - (trips - last) % clock.unroll };
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

/// What the slots of a buffer hold in a step: from the first write of an iteration to its last use, and until what reads it is no
/// longer under way.
fn held(
    replay: &Replay<'_>,
    it: &SlotReport,
    step: i64,
    (earlier, book): (&Book, &Book),
    moment: &dyn Fn(i64) -> Moment,
) -> Vec<Vec<Held>> {
    let Replay { clock, pace, found, .. } = *replay;
    let all = || 0..clock.components.len();
    let writes = |rank: &usize| clock.components[*rank].writes.contains(&it.buffer);
    let reads = |rank: &usize| clock.components[*rank].reads.contains(&it.buffer);
    let fillers: Vec<_> = all().filter(writes).collect();
    let first = fillers.iter().map(|rank| pace.time(clock, *rank)).min().unwrap_or(0);
    let last = all().filter(|it| reads(it) || writes(it)).map(|rank| pace.time(clock, rank)).max();
    let fill_of = |iteration: i64| {
        fillers.iter().any(|rank| replay.fill(*rank, iteration + pace.time(clock, *rank)).is_some())
    };
    let used = (step - last.unwrap_or(first)..=step - first).filter(|it| fill_of(*it));
    let read: BTreeSet<i64> = earlier.under_way().filter(|(rank, _)| reads(rank)).map(|it| it.1).collect();
    let landed = |iteration: i64| {
        let is_copied = book.under_way().any(|(rank, at)| at == iteration && writes(&rank));
        let counted = fillers.iter().filter_map(|rank| found.fills[*rank]);
        !is_copied && counted.into_iter().all(|it| book.is_awaited(it, iteration))
    };
    let slots = it.slots.max(1);
    let mut out = vec![vec![]; usize::try_from(slots).expect("slots are in memory")];
    for iteration in read.into_iter().chain(used).collect::<BTreeSet<_>>() {
        let slot = usize::try_from(iteration.rem_euclid(slots)).expect("it is one of the slots");
        out[slot].push(Held { iteration: moment(iteration), landed: landed(iteration) });
    }
    out
}
