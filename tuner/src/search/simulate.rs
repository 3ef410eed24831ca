//! Strategies against a table of results: no machine, no time, any number of seeds.
//!
//! A [`Table`] knows what came of each point of a space that was tried exhaustively. Points that it does not have are
//! told as refused, which costs no trial. How good a strategy is after a number of trials is the *score* of the best it
//! has found: the least time of the table divided by its time, so 1 at best, and 0 while everything has failed. For
//! random search the expected score is known exactly, which checks the simulation and needs no repetitions.

use std::collections::{BTreeMap, VecDeque};

use super::{Evaluation, Next, Strategy};
use crate::{Space, log::Trial};

/// What came of each point of a space.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    results: BTreeMap<u128, Option<f64>>,
    best: Option<f64>,
}

/// The score of random search after some trials.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// Its mean over all orders of the table.
    pub mean: f64,
    /// Its standard deviation over them.
    pub deviation: f64,
}

impl FromIterator<(u128, Option<f64>)> for Table {
    /// Of indexes with their seconds, none for a failure. Times that are no positive number are failures.
    fn from_iter<I: IntoIterator<Item = (u128, Option<f64>)>>(results: I) -> Table {
        let sane = |it: Option<f64>| it.filter(|it| it.is_finite() && *it > 0.0);
        let results: BTreeMap<_, _> = results.into_iter().map(|(index, it)| (index, sane(it))).collect();
        let best = results.values().flatten().copied().min_by(f64::total_cmp);
        Table { results, best }
    }
}

impl Table {
    /// What the trials of a run over a space found; those of other spaces are left out.
    pub fn of<'a>(space: &Space, trials: impl IntoIterator<Item = &'a Trial>) -> Table {
        let result = |it: &Trial| Some((space.index_of(&it.decisions)?, it.seconds()));
        trials.into_iter().filter_map(result).collect()
    }

    /// How many points it has.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// How many of its points failed.
    pub fn failures(&self) -> usize {
        self.results.values().filter(|it| it.is_none()).count()
    }

    /// The indexes in order.
    pub fn indexes(&self) -> impl Iterator<Item = u128> + '_ {
        self.results.keys().copied()
    }

    /// What came of a point; none if the table does not have it.
    pub fn result(&self, index: u128) -> Option<Option<f64>> {
        self.results.get(&index).copied()
    }

    /// The score of a result.
    fn score(&self, seconds: Option<f64>) -> f64 {
        seconds.zip(self.best).map_or(0.0, |(seconds, best)| best / seconds)
    }

    /// The score after each of so many trials (fewer, where the strategy ends before) with up to `under_way` candidates
    /// proposed and not yet told.
    pub fn simulate(&self, strategy: &mut dyn Strategy, trials: usize, under_way: usize) -> Vec<f64> {
        let mut curve = Vec::new();
        let mut best: f64 = 0.0;
        let mut waiting = VecDeque::new();
        let mut count = 0;
        while curve.len() < trials {
            let next = if waiting.len() < under_way.max(1) { strategy.next() } else { Next::Wait };
            if let Next::Try(proposal) = next {
                waiting.push_back(proposal.index);
                continue;
            }
            // Whether it waits or is done, what is under way still counts; if nothing is, it will never go on.
            let Some(index) = waiting.pop_front() else { break };
            let Some(&seconds) = self.results.get(&index) else {
                strategy.tell(Evaluation { index, n: None, seconds: None });
                continue;
            };
            strategy.tell(Evaluation { index, n: Some(count), seconds });
            count += 1;
            best = best.max(self.score(seconds));
            curve.push(best);
        }
        curve
    }

    /// The score of random search without replacement after each of so many trials.
    ///
    /// The best of `n` of `N` points is the one of rank `i`, from 1, with probability `C(N-i, n-1) / C(N, n)`.
    pub fn expected_random(&self, trials: usize) -> Vec<Expected> {
        let mut scores: Vec<f64> = self.results.values().map(|it| self.score(*it)).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        (1..=trials.min(scores.len())).map(|drawn| expected(&scores, drawn)).collect()
    }
}

/// The expected highest of `drawn` of `scores`, which are sorted from the highest.
fn expected(scores: &[f64], drawn: usize) -> Expected {
    let all = scores.len();
    let mut chance = drawn as f64 / all as f64;
    let (mut mean, mut square) = (0.0, 0.0);
    for (above, score) in scores.iter().enumerate().take(all - drawn + 1) {
        mean += chance * score;
        square += chance * score * score;
        // Of the points below this one all `drawn` must come, where `drawn - 1` had to before.
        let below = all - above - 1;
        if below > 0 {
            chance *= (below + 1 - drawn) as f64 / below as f64;
        }
    }
    Expected { mean, deviation: (square - mean * mean).max(0.0).sqrt() }
}

/// The mean of curves, point by point, as far as the shortest goes.
pub fn mean(curves: &[Vec<f64>]) -> Vec<f64> {
    let shortest = curves.iter().map(Vec::len).min().unwrap_or(0);
    let at = |n: usize| curves.iter().map(|it| it[n]).sum::<f64>() / curves.len() as f64;
    (0..shortest).map(at).collect()
}
