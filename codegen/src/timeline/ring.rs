//! Which iteration each statement works on in a step, and which iterations the slots hold.

use std::collections::BTreeSet;
use std::ops::Range;

use ir::{Mechanism, Name};

use super::{Base, Column, Held, Moment, Part, Ring, Sync, find::Found};
use crate::lower::{ComponentReport, PipelineReport, SlotReport};

/// A number of iterations to count with where it is not known, or too large to draw all.
const MANY: i64 = 1 << 20;
/// So many steps of the steady state are drawn at most.
const MAX_STEADY: i64 = 4;

/// The statements of a pipeline in the order in which they run.
pub(super) struct Schedule {
    pub(super) components: Vec<ComponentReport>,
    pub(super) names: Vec<Name>,
    pub(super) stages: Vec<i64>,
    pub(super) writes: Vec<BTreeSet<Name>>,
    pub(super) last: i64,
    pub(super) trips: Option<i64>,
    pub(super) cycle: i64,
}

impl Schedule {
    pub(super) fn of(report: &PipelineReport) -> Schedule {
        let mut components = report.components.clone();
        components.sort_by_key(|it| it.order);
        let slots = report.buffers.iter().map(|it| it.slots);
        let cycle = slots.chain([report.unroll]).fold(1, |a, b| lcm(a, b.max(1)));
        Schedule {
            names: components.iter().map(|it| it.name.clone()).collect(),
            stages: components.iter().map(|it| it.stage).collect(),
            writes: components.iter().map(|it| it.writes.iter().cloned().collect()).collect(),
            last: components.iter().map(|it| it.stage).max().unwrap_or(0),
            trips: report.extent.as_int(),
            cycle,
            components,
        }
    }

    /// The steps and statements that run in a range of steps, where all iterations are known to exist or not.
    pub(super) fn expected(&self, steps: Range<i64>) -> Vec<(usize, usize)> {
        let trips = self.trips.unwrap_or(MANY);
        let runs = |step: i64| {
            let ranks = self.stages.iter().enumerate();
            ranks.filter(move |(_, stage)| (0..trips).contains(&(step - **stage))).map(|it| it.0)
        };
        let at = |step: i64| usize::try_from(step).unwrap_or(0);
        steps.flat_map(|step| runs(step).map(move |rank| (at(step), rank))).collect()
    }
}

/// A buffer's slots.
pub(super) fn ring(it: &SlotReport) -> Ring {
    let name = &it.buffer;
    let note = it.forced.map(|forced| match it.needed {
        needed if needed >= forced => format!("no effect: {name} already has {needed} slots"),
        needed => format!("{name}: the order needs {needed}, the script asks for {forced}"),
    });
    let (buffer, scope) = (name.clone(), it.scope);
    Ring { buffer, scope, slots: it.slots, needed: it.needed, forced: it.forced, bytes: it.bytes, note }
}

/// A step to draw: where it is, as a number to count with, and what that number counts from.
struct Place {
    part: Part,
    step: i64,
    base: Base,
    origin: i64,
}

/// The steps of a pipeline, the steady state as a few of its steps.
pub(super) fn columns(schedule: &Schedule, report: &PipelineReport, found: &Found<'_>) -> Vec<Column> {
    let end = MANY * schedule.cycle;
    let trips = schedule.trips.unwrap_or(2 * end);
    let mut out: Vec<Column> = places(schedule, end)
        .into_iter()
        .enumerate()
        .map(|(at, place)| {
            // In the steady state every statement has an iteration to work on.
            let trips = if place.base == Base::Steady { i64::MAX } else { trips };
            let moment = |value: i64| Moment { base: place.base, offset: value - place.origin };
            let runs = schedule.stages.iter().map(|stage| {
                let iteration = place.step - stage;
                (0..trips).contains(&iteration).then(|| moment(iteration))
            });
            let slots = report.buffers.iter().map(|it| held(schedule, it, place.step, trips, &moment));
            Column {
                part: place.part,
                step: moment(place.step),
                runs: runs.collect(),
                syncs: syncs(schedule, report, found, &place, at),
                slots: slots.collect(),
                in_flight: 0,
            }
        })
        .collect();
    count_groups(&mut out);
    out
}

fn places(schedule: &Schedule, end: i64) -> Vec<Place> {
    let last = schedule.last;
    let drawn = if schedule.cycle <= MAX_STEADY { schedule.cycle } else { 2 };
    let start = |part, step| Place { part, step, base: Base::Start, origin: 0 };
    let steady = |at| Place { part: Part::Steady, step: end + at, base: Base::Steady, origin: end };
    match schedule.trips {
        Some(trips) if trips <= last => (0..trips + last).map(|it| start(Part::Prologue, it)).collect(),
        Some(trips) => {
            let whole = trips - last <= drawn;
            let middle: Vec<_> = if whole {
                (last..trips).map(|it| start(Part::Steady, it)).collect()
            } else {
                (0..drawn).map(steady).collect()
            };
            let after = (trips..trips + last).map(|it| start(Part::Epilogue, it));
            (0..last).map(|it| start(Part::Prologue, it)).chain(middle).chain(after).collect()
        }
        None => {
            let after = (0..last).map(|it| Place {
                part: Part::Epilogue,
                step: 2 * end + it,
                base: Base::End,
                origin: 2 * end,
            });
            (0..last).map(|it| start(Part::Prologue, it)).chain((0..drawn).map(steady)).chain(after).collect()
        }
    }
}

fn syncs(
    schedule: &Schedule,
    report: &PipelineReport,
    found: &Found<'_>,
    place: &Place,
    at: usize,
) -> Vec<Vec<Sync>> {
    let nothing = || vec![vec![]; schedule.names.len() + 1];
    let steady = |step: i64| match found.steady.len() {
        0 => None,
        copies => found.steady.get(usize::try_from(step).unwrap_or(0) % copies),
    };
    let last = usize::try_from(schedule.last).unwrap_or(0);
    let step = match place.part {
        Part::Prologue | Part::Epilogue if report.style == "predicate" => steady(place.step),
        Part::Prologue => found.prologue.get(at),
        Part::Steady => steady(place.step - schedule.last),
        Part::Epilogue => found.epilogue.get(match schedule.trips {
            Some(trips) => usize::try_from(place.step - trips).unwrap_or(0),
            None => at % last.max(1),
        }),
    };
    step.cloned().unwrap_or_else(nothing)
}

/// What the slots of a buffer hold in a step: from the first write of an iteration to its last use.
fn held(
    schedule: &Schedule,
    it: &SlotReport,
    step: i64,
    trips: i64,
    moment: &dyn Fn(i64) -> Moment,
) -> Vec<Vec<Held>> {
    let stages = |touches: &dyn Fn(&ComponentReport) -> bool| -> Vec<i64> {
        schedule.components.iter().filter(|it| touches(it)).map(|it| it.stage).collect()
    };
    let writers = stages(&|other| other.writes.contains(&it.buffer));
    let readers = stages(&|other| other.reads.contains(&it.buffer) && !other.writes.contains(&it.buffer));
    let copied = schedule
        .components
        .iter()
        .any(|other| other.writes.contains(&it.buffer) && other.mechanism == Mechanism::CpAsync);
    let first = writers.iter().min().copied().unwrap_or(0);
    let last = writers.iter().chain(&readers).max().copied().unwrap_or(first);
    let read = readers.iter().min().copied().unwrap_or(last);
    let mut out = vec![vec![]; usize::try_from(it.slots.max(1)).unwrap_or(1)];
    for iteration in (step - last..=step - first).filter(|it| (0..trips).contains(it)) {
        let slot = usize::try_from(iteration.rem_euclid(it.slots.max(1))).unwrap_or(0);
        let landed = !copied || step >= iteration + read;
        out[slot].push(Held { iteration: moment(iteration), landed });
    }
    out
}

/// Counts the groups under way at the end of each step; the steady state is run until it repeats.
fn count_groups(columns: &mut [Column]) {
    const ROUNDS: usize = 64;
    let mut now = 0;
    let steady = columns.iter().filter(|it| it.part == Part::Steady && it.step.base == Base::Steady).count();
    let first = columns.iter().position(|it| it.part == Part::Steady).unwrap_or(columns.len());
    for at in 0..columns.len() {
        let rounds = if steady > 0 && at == first { ROUNDS } else { 0 };
        for _ in 0..rounds {
            columns[first..first + steady].iter().for_each(|it| now = after(it, now));
        }
        now = after(&columns[at], now);
        columns[at].in_flight = now;
    }
}

fn after(column: &Column, groups: u32) -> u32 {
    column.syncs.iter().flatten().fold(groups, |now, it| match it {
        Sync::Commit => now + 1,
        Sync::Wait { in_flight, .. } => now.min(*in_flight),
        Sync::Barrier { .. } => now,
    })
}

fn lcm(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
