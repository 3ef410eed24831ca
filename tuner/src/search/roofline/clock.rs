//! A clock along one warp that has a multiprocessor to itself.

use super::tree::{Node, Tree, Work};

/// Cycles until all threads of a block have met, once they have.
const BARRIER: f64 = 20.0;
/// Cycles that a warp takes for an issue slot when no other is there to fill the gaps.
const LONE_WARP: f64 = 1.25;

struct Clock {
    now: f64,
    /// When the contents of each buffer are there for the thread that wrote them.
    ready: Vec<f64>,
    /// When the stores to shared memory under way have landed.
    stored: f64,
    /// When the copies of the open group land, and when those of each group committed do.
    open: f64,
    groups: Vec<f64>,
}

/// Cycles from the start of a block to its end.
pub(super) fn cycles(tree: &Tree) -> f64 {
    let mut clock =
        Clock { now: 0.0, ready: vec![0.0; tree.buffers], stored: 0.0, open: 0.0, groups: vec![] };
    clock.run(&tree.body);
    clock.ready.iter().fold(clock.now, |latest, it| latest.max(*it))
}

impl Clock {
    fn run(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Work(it) => self.work(it),
                Node::Loop { trips, is_unrolled, body } => self.repeat(*trips, *is_unrolled, body),
                Node::Commit => {
                    self.groups.push(self.open);
                    self.open = 0.0;
                }
                Node::Wait(in_flight) => {
                    if let Some(at) = self.groups.len().checked_sub(in_flight + 1) {
                        self.now = self.groups[..=at].iter().fold(self.now, |a, b| a.max(*b));
                    }
                }
                Node::Barrier => self.now = self.now.max(self.stored) + BARRIER,
            }
        }
    }

    fn work(&mut self, it: &Work) {
        let operands = it.reads.iter().map(|it| self.ready[*it]).fold(self.now, f64::max);
        if it.is_copy {
            self.now += it.costs.issue * it.share * LONE_WARP;
            self.open = self.open.max(self.now + it.latency);
        } else if it.is_move {
            // Nobody waits for a load until somebody uses it, nor for a store.
            self.now += it.costs.issue * it.share * LONE_WARP;
            let done = operands.max(self.now) + it.latency * it.share;
            self.ready[it.writes] = done;
            if it.is_shared_store {
                self.stored = self.stored.max(done);
            }
        } else {
            self.now =
                self.now + it.costs.issue * it.share * LONE_WARP + (operands - self.now).max(0.0) * it.share;
            self.now += it.latency * it.share;
            self.ready[it.writes] = self.now + 4.0;
        }
    }

    /// Two iterations are run and the others are like the second; of a loop that is written out they only take their
    /// slots, because the compiler lets them overlap.
    fn repeat(&mut self, trips: f64, is_unrolled: bool, body: &[Node]) {
        if trips < 1.0 {
            return;
        }
        self.run(body);
        if trips < 2.0 {
            return;
        }
        if is_unrolled && !meets(body) {
            let more = (trips - 1.0) * super::tree::totals(body).issue * LONE_WARP;
            self.now += more;
            // What is stored under way is stored in every iteration.
            self.stored += if self.stored > self.now - more { more } else { 0.0 };
            return;
        }
        // Copies fly over several iterations, so the steady state comes after as many.
        let (mut last, warm) = (0.0, trips.min(6.0));
        let mut done = 1.0;
        while done < warm {
            let start = self.now;
            self.run(body);
            last = self.now - start;
            done += 1.0;
            if !meets(body) {
                break;
            }
        }
        self.skip((trips - done) * last);
    }

    fn skip(&mut self, cycles: f64) {
        self.now += cycles;
        self.stored += cycles;
        self.open += cycles;
        for it in self.ready.iter_mut().chain(&mut self.groups) {
            *it += cycles;
        }
    }
}

/// Whether threads meet, or wait for copies, in there.
fn meets(nodes: &[Node]) -> bool {
    nodes.iter().any(|it| match it {
        Node::Barrier | Node::Wait(_) | Node::Commit => true,
        Node::Loop { body, .. } => meets(body),
        Node::Work(_) => false,
    })
}
