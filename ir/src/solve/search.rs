//! Looks for a point by trying values, corners first.

use super::{
    Problem,
    eliminate::is_impossible,
    linear::{Range, Row, VarSet},
    propagate::propagate,
    system::System,
};

/// So many choices of one row of two are tried in a proof.
const CHOICES: usize = 3;
/// In a box of fewer points, trying values is cheaper than elimination.
const SMALL_BOX: u64 = 32;

/// What a search ended with.
pub(super) enum SearchResult {
    /// Values of the problem's variables for which all conditions hold.
    Point(Vec<i64>),
    /// There are none.
    Nothing,
    /// It ended before the end.
    Limit,
}

/// A search for a point.
pub(super) struct Search<'a> {
    problem: &'a Problem,
    system: &'a System,
    nodes: usize,
    eliminate: bool,
}

impl<'a> Search<'a> {
    /// A search of a problem and its rows.
    pub(super) fn new(problem: &'a Problem, system: &'a System) -> Search<'a> {
        Search { problem, system, nodes: 0, eliminate: false }
    }

    /// Searches so many boxes, with elimination in each of them if asked to.
    pub(super) fn run(&mut self, nodes: usize, eliminate: bool) -> SearchResult {
        (self.nodes, self.eliminate) = (nodes, eliminate);
        self.search(self.system.ranges.clone(), VarSet::ALL)
    }

    /// Whether elimination proves that there is no point.
    pub(super) fn refute(&self) -> bool {
        let mut ranges = self.system.ranges.clone();
        propagate(self.system, &mut ranges, VarSet::ALL).is_err()
            || self.refute_choices(&ranges, &mut vec![], 0)
    }

    /// Elimination with the rows as they are; then with the first row of each pair, and with the second.
    fn refute_choices(&self, ranges: &[Range], chosen: &mut Vec<Row>, depth: usize) -> bool {
        if is_impossible(self.system, chosen, ranges) {
            return true;
        }
        let Some(either) = self.system.either.get(depth) else { return false };
        depth < CHOICES
            && either.iter().all(|row| {
                chosen.push(row.clone());
                let out = self.refute_choices(ranges, chosen, depth + 1);
                chosen.pop();
                out
            })
    }

    /// Searches a box of which the rows know all but that the ranges of `news` are smaller.
    fn search(&mut self, mut ranges: Vec<Range>, news: VarSet) -> SearchResult {
        if self.nodes == 0 {
            return SearchResult::Limit;
        }
        self.nodes -= 1;
        let Ok(is_settled) = propagate(self.system, &mut ranges, news) else { return SearchResult::Nothing };
        let own = &ranges[..self.system.own];
        let free = (0..own.len()).filter(|&var| own[var].fixed().is_none());
        let Some(var) = free.min_by_key(|&var| own[var].span()) else {
            let point: Vec<i64> = own.iter().map(|it| it.low).collect();
            return if self.problem.holds(&point) {
                SearchResult::Point(point)
            } else {
                SearchResult::Nothing
            };
        };
        let points = own.iter().fold(1_u64, |out, it| out.saturating_mul(it.span().saturating_add(1)));
        if self.eliminate && points > SMALL_BOX && is_impossible(self.system, &[], &ranges) {
            return SearchResult::Nothing;
        }
        for part in parts(ranges[var]) {
            let mut inside = ranges.clone();
            inside[var] = part;
            let news = if is_settled { VarSet::one(var) } else { VarSet::ALL };
            match self.search(inside, news) {
                SearchResult::Nothing => {}
                out @ (SearchResult::Point(_) | SearchResult::Limit) => return out,
            }
        }
        SearchResult::Nothing
    }
}

/// The two ends, then the halves of what is between them.
fn parts(range: Range) -> impl Iterator<Item = Range> {
    let Range { low, high } = range;
    let only = |value| Range { low: value, high: value };
    let middle = low + (high - low) / 2;
    let inner = [Range { low: low + 1, high: middle }, Range { low: middle + 1, high: high - 1 }];
    let inner = inner.into_iter().filter(|it| it.low <= it.high);
    [only(low), only(high)].into_iter().chain(inner)
}
