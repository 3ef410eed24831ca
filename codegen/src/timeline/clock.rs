//! Which steps a pipeline takes, where each of them stands in the kernel, and what is under way in it.

use ir::{Mechanism, Name, pipeline::Section};

use super::{
    Sync,
    find::{LoweredPipeline, Step},
};
use crate::lower::{ComponentReport, PipelineReport};

/// A number of iterations to count with where it is not known, or too large to draw all.
const MANY: i64 = 1 << 20;
/// So many steps before one tell what is under way in it.
const BEFORE: i64 = 64;

/// The statements of a pipeline in the order in which they run, and its steps.
pub(super) struct Clock {
    pub(super) var: Name,
    pub(super) components: Vec<ComponentReport>,
    /// The place of each component in program order among those in the order in which they run.
    ranks: Vec<usize>,
    /// The greatest stage.
    pub(super) last: i64,
    /// How many iterations there are, if it is known.
    pub(super) trips: Option<i64>,
    /// After how many steps slots and text come round.
    pub(super) cycle: i64,
    pub(super) unroll: i64,
    pub(super) is_predicated: bool,
}

/// A group of copies: the statement, by its rank, and the iteration of each.
type Group = Vec<(usize, i64)>;

impl Clock {
    pub(super) fn of(report: &PipelineReport) -> Clock {
        let mut order: Vec<usize> = (0..report.components.len()).collect();
        order.sort_by_key(|at| report.components[*at].order);
        let mut ranks = vec![0; order.len()];
        for (rank, at) in order.iter().enumerate() {
            ranks[*at] = rank;
        }
        let components: Vec<_> = order.into_iter().map(|at| report.components[at].clone()).collect();
        let slots = report.buffers.iter().map(|it| it.slots);
        Clock {
            var: report.var.clone(),
            ranks,
            last: components.iter().map(|it| it.stage).max().unwrap_or(0),
            components,
            trips: report.extent.as_int(),
            cycle: slots.chain([report.unroll]).fold(1, |a, b| lcm(a, b.max(1))),
            unroll: report.unroll.max(1),
            is_predicated: report.style == "predicate",
        }
    }

    /// The rank of a component.
    pub(super) fn rank(&self, component: usize) -> usize {
        self.ranks[component]
    }

    /// A step far from the start, a multiple of the cycle.
    pub(super) fn far(&self) -> i64 {
        MANY * self.cycle
    }

    /// How often the steady loop runs, if it is known.
    pub(super) fn runs(&self) -> Option<i64> {
        let trips = self.trips?;
        Some(if self.is_predicated {
            (trips + self.last + self.unroll - 1) / self.unroll
        } else {
            (trips - self.last).max(0) / self.unroll
        })
    }

    /// Where a step stands in the kernel, for a number of iterations.
    pub(super) fn place(&self, step: i64, trips: i64) -> (Section, i64) {
        let (last, unroll) = (self.last, self.unroll);
        let end = last + (trips - last).max(0) / unroll * unroll;
        if self.is_predicated {
            (Section::Steady, step % unroll)
        } else if step < last || end == last {
            (Section::Prologue, step)
        } else if step < end {
            (Section::Steady, (step - last) % unroll)
        } else {
            (Section::Epilogue, step - end)
        }
    }

    /// What stands between the statements of a step.
    pub(super) fn step<'a>(&self, found: &'a LoweredPipeline<'_>, step: i64, trips: i64) -> Option<&'a Step> {
        let (section, at) = self.place(step, trips);
        found.steps.get(&(section, usize::try_from(at).ok()?))
    }

    /// The groups of copies that a thread may have under way at the end of a step, oldest first; the last is still
    /// open.
    pub(super) fn in_flight(&self, found: &LoweredPipeline<'_>, step: i64, trips: i64) -> Vec<Group> {
        let (mut groups, mut open): (Vec<Group>, Group) = (Vec::new(), Group::new());
        for step in (step - BEFORE).max(0)..=step {
            let Some(syncs) = self.step(found, step, trips) else { continue };
            for (rank, syncs) in syncs.iter().enumerate() {
                for it in syncs {
                    match it {
                        Sync::Commit => groups.push(std::mem::take(&mut open)),
                        Sync::Wait { in_flight, .. } => {
                            let most = *in_flight as usize;
                            groups.drain(..groups.len().saturating_sub(most));
                        }
                        Sync::Barrier { .. } => {}
                    }
                }
                let Some(it) = self.components.get(rank) else { continue };
                if it.mechanism == Mechanism::CpAsync && (0..trips).contains(&(step - it.stage)) {
                    open.push((rank, step - it.stage));
                }
            }
        }
        groups.into_iter().chain([open]).collect()
    }
}

fn lcm(a: i64, b: i64) -> i64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
