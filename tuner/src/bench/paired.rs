//! Pairs of participants that were timed in the same rounds, and what may be said of them.
//!
//! # The witness
//!
//! After each sample the clock of the multiprocessors is read. A round counts for a pair only if the clocks of the two
//! were at least three quarters of the highest clock seen, and stood to each other as they usually do, within 2 %
//! (5 % in the regime `sustained`, where the power limit moves them all the time). *As they usually do*: a program that
//! draws more power runs at a lower clock in every round, by 5 % and more for large products. That is its own doing and
//! belongs to its time, as the order of the programs, which is drawn anew each round, has no part in it; what disturbs
//! single rounds does not. Where more than 30 % of the rounds do not count, there is no interval.

use super::verdict::MARGIN;
use crate::{
    Regime,
    bootstrap::{Interval, median, ratio_interval},
    log::{Finalist, Finals, Measurement},
};

/// The least part of the highest clock.
const LEAST_CLOCK: f64 = 0.75;
/// The most rounds that may be dropped, in parts.
const MAX_DROPPED_SHARE: f64 = 0.3;
/// What is closer than this to the fastest may win in its place for its registers, even if it is surely slower.
const TIE: f64 = 0.005;

/// How to look at pairs.
pub(super) struct Pairs {
    /// The highest clock that any participant had.
    highest: f64,
    /// How far the clocks of a pair may be from their usual ratio.
    tolerance: f64,
}

/// What a pair shows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Paired {
    /// How many times as fast the one is as the other, unless too many rounds were dropped.
    pub(super) interval: Option<Interval>,
    /// How many rounds do not count.
    pub(super) dropped: usize,
}

impl Pairs {
    pub(super) fn new<'a>(regime: Regime, all: impl Iterator<Item = &'a Measurement>) -> Pairs {
        let highest = all.flat_map(|it| &it.clock_mhz).copied().fold(0.0, f64::max);
        let tolerance = match regime {
            Regime::Cool | Regime::ColdL2 => 0.02,
            Regime::Sustained => 0.05,
        };
        Pairs { highest, tolerance }
    }

    /// How many times as fast `ours` is as `theirs`. Both have a sample in every round.
    pub(super) fn versus(&self, ours: &Measurement, theirs: &Measurement) -> Paired {
        let rounds = ours.seconds.len().min(theirs.seconds.len());
        let counts = self.counting(&ours.clock_mhz, &theirs.clock_mhz, rounds);
        let ratios = theirs.seconds.iter().zip(&ours.seconds).zip(&counts).filter(|it| *it.1);
        let ratios: Vec<f64> = ratios.map(|((theirs, ours), _)| theirs / ours).collect();
        let dropped = rounds - ratios.len();
        let enough = dropped as f64 <= MAX_DROPPED_SHARE * rounds as f64;
        Paired { interval: ratio_interval(&ratios, 0).filter(|_| enough), dropped }
    }

    /// Which rounds count, by the clocks; all where there are none.
    fn counting(&self, ours: &[f64], theirs: &[f64], rounds: usize) -> Vec<bool> {
        if ours.len() != rounds || theirs.len() != rounds {
            return vec![true; rounds];
        }
        let logs: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| (ours / theirs).ln()).collect();
        let usual = median(&logs).unwrap_or(0.0);
        let least = LEAST_CLOCK * self.highest;
        let pairs = ours.iter().zip(theirs).zip(logs);
        let counts = pairs.map(|((ours, theirs), log)| {
            let same = (log - usual).abs() < self.tolerance.ln_1p();
            same && *ours > least && *theirs > least
        });
        counts.collect()
    }
}

/// Says of each finalist how fast it is in terms of one of them, and gives the most rounds that a pair lost.
pub(super) fn relate(finalists: &mut [Finalist], winner: &Measurement, pairs: &Pairs) -> usize {
    let mut most = 0;
    for it in finalists {
        let paired = it.result.as_ref().filter(|it| !it.suspicious).map(|it| pairs.versus(it, winner));
        it.versus_winner = paired.and_then(|it| it.interval);
        most = most.max(paired.map_or(0, |it| it.dropped));
    }
    most
}

/// How many times as fast as one of the finalists each of them is, round by round, in their order. Nothing where one of
/// the two has no result or one that does not count, or where the clocks disturbed too many rounds.
pub fn against(finals: &Finals, base: usize) -> Vec<Option<Interval>> {
    let pairs = Pairs::new(finals.regime, finals.finalists.iter().filter_map(sound));
    let Some(theirs) = finals.finalists.get(base).and_then(sound) else {
        return vec![None; finals.finalists.len()];
    };
    let versus = |it: &Finalist| sound(it).and_then(|it| pairs.versus(it, theirs).interval);
    finals.finalists.iter().map(versus).collect()
}

/// The fastest of the finalists that count.
pub(super) fn fastest(finalists: &[Finalist]) -> Option<&Measurement> {
    let sound = finalists.iter().filter_map(sound);
    sound.min_by(|a, b| a.stats.median.total_cmp(&b.stats.median))
}

fn sound(it: &Finalist) -> Option<&Measurement> {
    it.result.as_ref().filter(|it| !it.suspicious)
}

/// Puts the winner first and the others behind it by how fast they are against it, those without a result last.
///
/// The fastest is the one of the least median, unless another is surely faster in pairs. Finalists that tie with it
/// ([`tied`]) are told apart by `key`, the least of which wins; and then by their order. What they say about the winner
/// is about that one afterwards.
pub fn rank<K: Ord>(finals: &mut Finals, key: impl Fn(&Finalist) -> K) {
    let pairs = Pairs::new(finals.regime, finals.finalists.iter().filter_map(sound));
    let Some(best) = fastest(&finals.finalists).cloned() else { return };
    relate(&mut finals.finalists, &best, &pairs);
    let best = surely_faster(&finals.finalists).cloned().unwrap_or(best);
    relate(&mut finals.finalists, &best, &pairs);
    let tied = |it: &&Finalist| sound(it).is_some_and(|ours| is_tie(it.versus_winner, ours, &best));
    let winner = finals.finalists.iter().filter(tied).min_by_key(|it| key(it)).and_then(sound).cloned();
    let Some(winner) = winner else { return };
    relate(&mut finals.finalists, &winner, &pairs);
    finals.finalists.sort_by(|a, b| {
        let place = |it: &Finalist| match sound(it) {
            Some(ours) if *ours == winner => (0, 0.0),
            Some(ours) => (1, -times_as_fast(it.versus_winner, ours, &winner)),
            None => (2 + u8::from(it.result.is_none()), 0.0),
        };
        let (a, b) = (place(a), place(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
}

/// The one that is the fastest in pairs with whom all were related to last, if its whole interval is above 1.
fn surely_faster(finalists: &[Finalist]) -> Option<&Measurement> {
    let ahead = finalists.iter().filter_map(|it| Some((it.versus_winner?, sound(it)?)));
    let ahead = ahead.filter(|it| it.0.low > 1.0);
    ahead.max_by(|a, b| a.0.median.total_cmp(&b.0.median)).map(|it| it.1)
}

/// Which of the finalists tie with the first, by their places: the rounds cannot tell the two apart and their
/// difference is within 1 %, or it is within 0.5 % whether it can be told or not.
pub fn tied(finals: &Finals) -> Vec<usize> {
    let Some(winner) = finals.finalists.first().and_then(sound) else { return vec![] };
    let tied = |it: &Finalist| sound(it).is_some_and(|ours| is_tie(it.versus_winner, ours, winner));
    (1..finals.finalists.len()).filter(|at| tied(&finals.finalists[*at])).collect()
}

fn is_tie(versus: Option<Interval>, ours: &Measurement, best: &Measurement) -> bool {
    let apart = (times_as_fast(versus, ours, best) - 1.0).abs();
    apart < TIE || (apart < MARGIN && versus.is_some_and(|it| it.low <= 1.0 && 1.0 <= it.high))
}

/// By pairs, or by medians where too few rounds count.
fn times_as_fast(versus: Option<Interval>, ours: &Measurement, best: &Measurement) -> f64 {
    versus.map_or(best.stats.median / ours.stats.median, |it| it.median)
}
