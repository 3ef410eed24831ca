//! What is under way in a step: the steps before it are gone through one by one, and every group and phase is booked.

use std::collections::BTreeSet;

use ir::{Group, pipeline::Section};

use super::{
    Sync,
    clock::Clock,
    find::{LoweredPipeline, Step},
    pace::Pace,
};

/// So many steps before one tell what is under way in it.
const BEFORE: i64 = 64;

/// A statement, by its rank, and an iteration of it.
type Work = (usize, i64);

/// The groups of a kind that a thread of a lane may have under way, oldest first; the last is still open.
struct Queue {
    lane: usize,
    kind: Group,
    groups: Vec<Vec<Work>>,
}

/// What is under way after a step.
#[derive(Default)]
pub(super) struct Book {
    queues: Vec<Queue>,
    /// The phases of mbarriers that were waited for, by position, with the fill that each of them is about.
    awaited: BTreeSet<(usize, i64)>,
}

/// A pipeline, and the number of iterations to count with.
pub(super) struct Replay<'a> {
    pub(super) clock: &'a Clock,
    pub(super) pace: &'a Pace,
    pub(super) found: &'a LoweredPipeline<'a>,
    /// As many as the steady loop of the kernel is to have.
    pub(super) in_kernel: i64,
    /// As many as there are.
    pub(super) trips: i64,
}

impl Replay<'_> {
    /// What stands between the statements of a step of a lane; in the step after its last one, what closes the loop.
    pub(super) fn step(&self, lane: usize, step: i64) -> Option<&Step> {
        let own = self.pace.own_step(lane, step, self.clock, self.trips)?;
        let (section, at) = if self.clock.is_predicated && own >= self.trips.saturating_add(self.clock.last) {
            (Section::Epilogue, own - self.trips - self.clock.last)
        } else {
            self.clock.place(own, self.in_kernel)
        };
        self.found.steps.get(&(lane, section, usize::try_from(at).ok()?))
    }

    /// What is done of it before a statement, or behind the last one of the lane: conditions leave out what there is no iteration for.
    pub(super) fn done(&self, lane: usize, step: i64, rank: usize) -> impl Iterator<Item = &Sync> {
        let all = self.step(lane, step).map_or(&[][..], |it| &it[rank]);
        all.iter().filter(move |it| match it {
            Sync::Await { .. } | Sync::Expect { .. } => {
                rank < self.clock.components.len() && self.fill(rank, step).is_some()
            }
            Sync::Arrive { fill: Some(fill), .. } => {
                let before = self.clock.before(lane, rank);
                before.is_none_or(|it| self.is_fill(it, step - self.pace.time(self.clock, it) + fill))
            }
            _ => true,
        })
    }

    /// The fill that a statement works on in a step, if it runs then: its iteration, counted through the runs of the loop.
    pub(super) fn fill(&self, rank: usize, step: i64) -> Option<i64> {
        let fill = step - self.pace.time(self.clock, rank);
        self.is_fill(rank, fill).then_some(fill)
    }

    fn is_fill(&self, rank: usize, fill: i64) -> bool {
        let most = if self.pace.goes_on[self.clock.lane_of[rank]] { i64::MAX } else { self.trips };
        (0..most).contains(&fill)
    }

    /// What is under way at the end of a step.
    pub(super) fn until(&self, step: i64) -> Book {
        let mut book = Book::default();
        for step in (step - BEFORE).max(0)..=step {
            for lane in 0..self.clock.lanes.len() {
                self.go(&mut book, lane, step);
            }
        }
        book
    }

    fn go(&self, book: &mut Book, lane: usize, step: i64) {
        let end = self.clock.components.len();
        for rank in self.clock.ranks_of(lane).chain([end]) {
            for it in self.done(lane, step, rank) {
                match it {
                    Sync::Commit { group } => book.groups(lane, *group).push(vec![]),
                    Sync::Wait { group, in_flight, .. } => book.wait(lane, *group, *in_flight as usize),
                    Sync::Await { mbarrier, fill } => {
                        let about = self.fill(rank, step).zip(*fill).map(|(at, fill)| at + fill);
                        book.awaited.extend(about.map(|it| (*mbarrier, it)));
                        if let Some(iteration) = about
                            && !self.found.fills.contains(&Some(*mbarrier))
                        {
                            book.told(lane, iteration);
                        }
                    }
                    Sync::Barrier { .. } | Sync::Arrive { .. } | Sync::Expect { .. } | Sync::Fence { .. } => {
                    }
                }
            }
            let Some(fill) = (rank < end).then(|| self.fill(rank, step)).flatten() else { continue };
            if let Some(kind) = self.clock.group_of(rank, &self.found.fills) {
                let open = book.groups(lane, kind).last_mut().expect("the last is open");
                open.push((rank, fill));
            }
        }
    }
}

impl Book {
    fn groups(&mut self, lane: usize, kind: Group) -> &mut Vec<Vec<Work>> {
        let known = self.queues.iter().position(|it| it.lane == lane && it.kind == kind);
        let at = known.unwrap_or_else(|| {
            self.queues.push(Queue { lane, kind, groups: vec![vec![]] });
            self.queues.len() - 1
        });
        &mut self.queues[at].groups
    }

    fn wait(&mut self, lane: usize, kind: Group, in_flight: usize) {
        let groups = self.groups(lane, kind);
        // The open one is not waited for.
        let over = (groups.len() - 1).saturating_sub(in_flight);
        groups.drain(..over);
    }

    /// Somebody of a lane has heard that slots are free up to those of an iteration: products into tensor memory tell it by their end, and nobody
    /// closes groups of them then.
    fn told(&mut self, lane: usize, iteration: i64) {
        let others = self.queues.iter_mut().filter(|it| it.lane != lane && it.kind == Group::Tcgen05);
        others.flat_map(|it| &mut it.groups).for_each(|group| group.retain(|it| it.1 > iteration));
    }

    /// How many groups of a kind a thread of a lane has under way; empty ones do not count.
    pub(super) fn count(&self, lane: usize, kind: Group) -> usize {
        let groups =
            self.queues.iter().filter(|it| it.lane == lane && it.kind == kind).flat_map(|it| &it.groups);
        groups.filter(|it| !it.is_empty()).count()
    }

    /// The work of statements that is under way.
    pub(super) fn under_way(&self) -> impl Iterator<Item = Work> {
        self.queues.iter().flat_map(|it| &it.groups).flatten().copied()
    }

    /// Whether the phase of an mbarrier that is about a fill was waited for.
    pub(super) fn is_awaited(&self, mbarrier: usize, fill: i64) -> bool {
        self.awaited.contains(&(mbarrier, fill))
    }
}
