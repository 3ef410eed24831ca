//! All admitted points of a space in an order drawn from a seed.

use std::{collections::HashSet, sync::Arc};

use super::{
    Permutation, Space,
    permutation::next,
    walk::{DecisionOrder, Walk, WalkResult},
};

/// Every admitted point of a space once, in an order that depends on the space and the seed alone.
///
/// Points are drawn without replacement and those that are not admitted are passed over. Where of the first 65,536
/// drawn fewer than one in 10,000 is admitted, the rest is found by backtracking: all of it at once if it is little,
/// and then shuffled; otherwise by thousands of searches in turn, one for each way to decide the first knobs, which is
/// a random order of its own kind: neighbours in it differ in these knobs.
#[derive(Debug)]
pub struct Stream {
    space: Space,
    seed: u64,
    mode: Mode,
    gave_up: bool,
}

#[derive(Debug)]
enum Mode {
    Drawing { order: Permutation, drawn: u128, found: Vec<u128> },
    Listed { points: Vec<u128>, order: Permutation, given: usize },
    Searching { walks: Vec<Walk>, at: usize, seen: HashSet<u128> },
}

/// How many points are drawn before their share is judged.
const JUDGED: u128 = 1 << 16;
/// Fewer admitted points than this among them are too few.
const MIN_ADMITTED: usize = 7;
/// How many decisions the search for all points at once may take.
const LIST_WORK: u64 = 1 << 20;
/// How many points are listed at most.
const LIST_LEN: usize = 1 << 18;
/// How many searches share the space.
const SEARCHES: usize = 1 << 12;
/// How many decisions a search takes before the next one has its turn.
const TURN: u64 = 1 << 10;
/// After so many decisions without a point the stream gives up.
const MAX_FRUITLESS_DECISIONS: u64 = 1 << 26;

impl Stream {
    /// The stream of a space and a seed.
    pub fn new(space: &Space, seed: u64) -> Stream {
        let order = Permutation::new(space.size(), seed);
        let mode = Mode::Drawing { order, drawn: 0, found: vec![] };
        Stream { space: space.clone(), seed, mode, gave_up: false }
    }

    /// Whether the stream ended because it found no point for long, and not because there are no more.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Changes from drawing to backtracking.
    fn search(&mut self, found: &[u128]) {
        let order = Arc::new(DecisionOrder::new(&self.space));
        let mut state = self.seed;
        let mut walk = Walk::new(&order, next(&mut state));
        let (mut work, mut points) = (LIST_WORK, vec![]);
        self.mode = loop {
            match walk.next(&mut work) {
                WalkResult::Point(it) if points.len() < LIST_LEN => points.push(it),
                WalkResult::Point(_) | WalkResult::Pause => {
                    let walks = Walk::split(&order, SEARCHES, next(&mut state));
                    let count = walks.len() as u128;
                    let turns = Permutation::new(count, next(&mut state));
                    let mut walks: Vec<_> = walks.into_iter().map(Some).collect();
                    let turn = |it| walks.get_mut(usize::try_from(turns.at(it)).ok()?)?.take();
                    let walks = (0..count).filter_map(turn).collect();
                    break Mode::Searching { walks, at: 0, seen: found.iter().copied().collect() };
                }
                WalkResult::End => {
                    points.retain(|it| !found.contains(it));
                    points.sort_unstable();
                    let order = Permutation::new(points.len() as u128, next(&mut state));
                    break Mode::Listed { points, order, given: 0 };
                }
            }
        };
    }
}

impl Iterator for Stream {
    type Item = u128;

    fn next(&mut self) -> Option<u128> {
        if let Mode::Drawing { order, drawn, found } = &mut self.mode {
            while *drawn < self.space.size() && (*drawn != JUDGED || found.len() >= MIN_ADMITTED) {
                let index = order.at(*drawn);
                *drawn += 1;
                if self.space.admits(index).is_ok() {
                    if *drawn <= JUDGED && found.len() < MIN_ADMITTED {
                        found.push(index);
                    }
                    return Some(index);
                }
            }
            if *drawn >= self.space.size() {
                return None;
            }
            let found = std::mem::take(found);
            self.search(&found);
        }
        match &mut self.mode {
            Mode::Drawing { .. } => None,
            Mode::Listed { points, order, given } => {
                let place = usize::try_from(order.at(*given as u128)).ok()?;
                *given += 1;
                points.get(place).copied()
            }
            Mode::Searching { walks, at, seen } => in_turn(walks, at, seen, &mut self.gave_up),
        }
    }
}

/// A point of the next search that has one.
fn in_turn(walks: &mut Vec<Walk>, at: &mut usize, seen: &HashSet<u128>, gave_up: &mut bool) -> Option<u128> {
    let mut patience = MAX_FRUITLESS_DECISIONS;
    while !walks.is_empty() {
        if patience == 0 || *gave_up {
            *gave_up = true;
            return None;
        }
        *at %= walks.len();
        let mut work = TURN.min(patience);
        let had = work;
        let found = walks[*at].next(&mut work);
        patience -= had - work;
        match found {
            WalkResult::Point(it) if seen.contains(&it) => {}
            WalkResult::Point(it) => {
                *at += 1;
                return Some(it);
            }
            WalkResult::Pause => *at += 1,
            WalkResult::End => {
                walks.remove(*at);
            }
        }
    }
    None
}
