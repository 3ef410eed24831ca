//! Admitted points by backtracking: one knob after another, leaving a branch as soon as a constraint cannot hold any
//! more. For spaces of which constraints leave so little that drawing points at random would not find it.

use std::sync::Arc;

use super::{
    KnobPart, Space,
    permutation::{Permutation, next},
    range::{range, truth},
};

/// In which order knobs are decided, and what is checked after each.
#[derive(Debug)]
pub(super) struct DecisionOrder {
    space: Space,
    axes: Vec<usize>,
    /// For each place the constraints that the knob decided there stands in.
    checks: Vec<Vec<usize>>,
    /// The least and the greatest number of each knob and part.
    bounds: Vec<Vec<(i64, i64)>>,
}

impl DecisionOrder {
    /// Knobs that decide between alternatives first, since they make others inactive; then always the one that
    /// completes a constraint soonest, and of these the one with the fewest choices.
    pub(super) fn new(space: &Space) -> DecisionOrder {
        let inner = &space.0;
        let mut axes = vec![];
        inner.activity.forks(&mut axes);
        while axes.len() < inner.axes.len() {
            let decided = axes.iter().fold(0u64, |all, it| all | 1 << it);
            let open = |axis: usize| {
                let rules = inner.rules.iter().filter(|it| it.knobs >> axis & 1 == 1);
                rules.map(|it| (it.knobs & !decided).count_ones()).min().unwrap_or(u32::MAX)
            };
            let rest = (0..inner.axes.len()).filter(|axis| decided >> axis & 1 == 0);
            axes.extend(rest.min_by_key(|axis| (open(*axis), inner.axes[*axis].len())));
        }
        let of_axis = |axis: &usize| {
            let rules = inner.rules.iter().enumerate();
            rules.filter(|(_, it)| it.knobs >> axis & 1 == 1).map(|(at, _)| at).collect()
        };
        let checks = axes.iter().map(of_axis).collect();
        let bound = |column: &Vec<i64>| {
            (column.iter().min().copied().unwrap_or(0), column.iter().max().copied().unwrap_or(0))
        };
        let bounds = inner.columns.iter().map(|it| it.iter().map(bound).collect()).collect();
        DecisionOrder { space: space.clone(), axes, checks, bounds }
    }

    /// The digits that the knob at a place may have after those before it.
    fn choices(&self, digits: &[usize], place: usize) -> usize {
        let inner = &self.space.0;
        let axis = self.axes[place];
        let decided = self.decided(place);
        let digit = |it: usize| (decided >> it & 1 == 1).then(|| digits[it]);
        let active = inner.activity.possible(&digit) >> axis & 1 == 1;
        if active { inner.axes[axis].len() } else { 1 }
    }

    /// The knobs before a place.
    fn decided(&self, place: usize) -> u64 {
        self.axes[..place].iter().fold(0, |all, it| all | 1 << it)
    }

    /// Whether the constraints with the knob at a place may still hold, once it is decided.
    fn may_hold(&self, digits: &[usize], place: usize) -> bool {
        let inner = &self.space.0;
        let decided = self.decided(place + 1);
        let of = |it: &KnobPart| {
            let known = decided >> it.axis & 1 == 1;
            let value = || inner.columns[it.axis][it.part][digits[it.axis]];
            if known { (value(), value()) } else { self.bounds[it.axis][it.part] }
        };
        self.checks[place].iter().all(|rule| truth(range(&inner.rules[*rule].tree, &of)).0)
    }

    /// The constraints without knobs, which hold everywhere or nowhere.
    fn possible(&self) -> bool {
        let constant = self.space.0.rules.iter().filter(|it| it.knobs == 0);
        constant.into_iter().all(|it| it.tree.holds(&|_| 0))
    }
}

/// A search below some decided knobs.
#[derive(Debug)]
pub(super) struct Walk {
    order: Arc<DecisionOrder>,
    digits: Vec<usize>,
    /// Where the decided knobs end.
    start: usize,
    levels: Vec<Level>,
    seed: u64,
}

#[derive(Debug)]
struct Level {
    order: Permutation,
    len: usize,
    tried: usize,
}

/// What a search returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WalkResult {
    /// An admitted point.
    Point(u128),
    /// No point within the allowed work; it can go on.
    Pause,
    /// There are no more points.
    End,
}

impl Walk {
    /// Over the whole space.
    pub(super) fn new(order: &Arc<DecisionOrder>, seed: u64) -> Walk {
        Walk::below(order, vec![0; order.axes.len()], 0, seed)
    }

    fn below(order: &Arc<DecisionOrder>, digits: Vec<usize>, start: usize, seed: u64) -> Walk {
        let mut walk = Walk { order: Arc::clone(order), digits, start, levels: vec![], seed };
        if order.possible() {
            walk.enter();
        }
        walk
    }

    /// Begins with the next open knob, in an order of its choices of its own.
    fn enter(&mut self) {
        let place = self.start + self.levels.len();
        let len = if place < self.order.axes.len() { self.order.choices(&self.digits, place) } else { 1 };
        let order = Permutation::new(len as u128, next(&mut self.seed));
        self.levels.push(Level { order, len, tried: 0 });
    }

    /// The next point, for at most so many decisions, which are counted down.
    pub(super) fn next(&mut self, work: &mut u64) -> WalkResult {
        loop {
            let place = (self.start + self.levels.len()).wrapping_sub(1);
            let Some(level) = self.levels.last_mut() else { return WalkResult::End };
            if level.tried == level.len {
                self.levels.pop();
                continue;
            }
            if *work == 0 {
                return WalkResult::Pause;
            }
            *work -= 1;
            let digit =
                usize::try_from(level.order.at(level.tried as u128)).expect("it is less than a length");
            level.tried += 1;
            if let Some(axis) = self.order.axes.get(place) {
                self.digits[*axis] = digit;
                if !self.order.may_hold(&self.digits, place) {
                    continue;
                }
                if place + 1 < self.order.axes.len() {
                    self.enter();
                    continue;
                }
            }
            // Bounds are not exact, and whether a knob is used may turn out only here.
            if self.order.space.admits_digits(&self.digits).is_ok() {
                return WalkResult::Point(self.order.space.index(&self.digits));
            }
        }
    }

    /// Searches that share the space among them: each has other choices of the first knobs.
    pub(super) fn split(order: &Arc<DecisionOrder>, most: usize, seed: u64) -> Vec<Walk> {
        let mut prefixes = vec![vec![0; order.axes.len()]];
        let mut start = 0;
        while start < order.axes.len() && order.possible() {
            let next: usize = prefixes.iter().map(|it| order.choices(it, start)).sum();
            if next > most {
                break;
            }
            let mut longer = vec![];
            for digits in &prefixes {
                for digit in 0..order.choices(digits, start) {
                    let mut digits = digits.clone();
                    digits[order.axes[start]] = digit;
                    if order.may_hold(&digits, start) {
                        longer.push(digits);
                    }
                }
            }
            prefixes = longer;
            start += 1;
        }
        let mut state = seed;
        prefixes.into_iter().map(|it| Walk::below(order, it, start, next(&mut state))).collect()
    }
}
