//! The steps of a pipeline in the order in which they run.

use ir::pipeline::{Emission, PipelinePlan, Section, Step};

/// A step at a time.
pub(super) struct Moment<'a> {
    pub(super) time: i64,
    pub(super) section: Section,
    pub(super) number: usize,
    pub(super) step: &'a Step,
}

/// The steps in the order in which they run, for each number of runs of the steady loop that may be, up to as many as
/// tell all there is to tell.
pub(super) fn timelines<'a>(plan: &PipelinePlan, emission: &'a Emission) -> Vec<Vec<Moment<'a>>> {
    let Some(steady) = &emission.steady else { return vec![timeline(emission, 0)] };
    let slots = plan.slots.values().map(|it| it.count()).max().unwrap_or(1);
    let enough = 2 * plan.last_stage() + slots + 2;
    match steady.extent.as_int() {
        Some(runs) => vec![timeline(emission, runs.min(enough))],
        None => (0..=enough).rev().map(|runs| timeline(emission, runs)).collect(),
    }
}

/// A run of the loop behind another one, in which the iterations are counted on.
pub(super) fn two_runs<'a>(plan: &PipelinePlan, emission: &'a Emission) -> Vec<Vec<Moment<'a>>> {
    let runs = emission.steady.as_ref().and_then(|it| it.extent.as_int()).unwrap_or(0);
    // As many as bring the loop back to its first slots tell all there is to tell.
    let runs = runs.min(plan.period());
    let first = timeline(emission, runs);
    let count = i64::try_from(first.len()).expect("they are written out");
    let again = timeline(emission, runs).into_iter();
    let again = again.map(|it| Moment { time: it.time + count, ..it });
    vec![first.into_iter().chain(again).collect()]
}

fn timeline(emission: &Emission, runs: i64) -> Vec<Moment<'_>> {
    let steady = (0..runs).flat_map(|_| emission.steady.iter().flat_map(|it| it.steps.iter().enumerate()));
    let prologue = emission.prologue.iter().enumerate().map(|it| (Section::Prologue, it));
    let steady = steady.map(|it| (Section::Steady, it));
    let epilogue = emission.epilogue.iter().enumerate().map(|it| (Section::Epilogue, it));
    let steps = (0..).zip(prologue.chain(steady).chain(epilogue));
    steps.map(|(time, (section, (number, step)))| Moment { time, section, number, step }).collect()
}
