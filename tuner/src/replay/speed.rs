//! Whether what was fast is fast again.
//!
//! Seconds of two sessions cannot be compared: clocks, temperatures and neighbours are others. What can be compared is
//! how a trial stood against something that was timed in the same rounds, then and now: the vendor's library, or where
//! there is none the winner of the finals.

use serde::Serialize;

use crate::{
    bench::Verdict,
    log::{Finalist, Finals, Interval, RunLog, Trial},
};

/// How a trial stood then and stands now.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Speed {
    /// The trial.
    pub n: u64,
    /// What it was timed against: `library`, `winner`, or `nothing`.
    pub against: &'static str,
    /// How many times as fast as that it was.
    pub then: Option<Interval>,
    /// How many times as fast as that it is.
    pub now: Option<Interval>,
    /// Seconds per call then, in the search where it was not in the finals.
    pub seconds_then: Option<f64>,
    /// Seconds per call now.
    pub seconds_now: Option<f64>,
    /// Whether that is the same; none on another machine, or where there is nothing to compare.
    pub verdict: Option<Verdict>,
}

/// The trials of a run that gave a result, best first: those of the finals in their order, then by the search's times.
pub fn best(log: &RunLog) -> Vec<&Trial> {
    let finals = log.finals.last();
    let place = |n: u64| finals.and_then(|it| it.finalists.iter().position(|it| it.n == Some(n)));
    let mut trials: Vec<(usize, f64, &Trial)> = log
        .trials
        .values()
        .filter_map(|it| Some((place(it.n).unwrap_or(usize::MAX), it.seconds()?, it)))
        .collect();
    trials.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.n.cmp(&b.2.n)));
    trials.into_iter().map(|it| it.2).collect()
}

/// Compares finals held now with those of a log. On another machine there are no verdicts.
pub fn speeds(log: &RunLog, now: &Finals, elsewhere: bool) -> Vec<Speed> {
    let then = log.finals.last();
    let floor = [then, Some(now)].into_iter().flatten().filter_map(|it| it.noise_floor);
    let floor = floor.max_by(|a, b| width(*a).total_cmp(&width(*b)));
    let speed = |it: &Finalist| {
        let n = it.n?;
        let old = then.and_then(|finals| finals.finalists.iter().find(|old| old.n == Some(n)));
        let library = old.and_then(|old| old.versus_baseline).zip(it.versus_baseline);
        let winner = old.and_then(|old| old.versus_winner).zip(it.versus_winner);
        let (against, pair) = match (library, winner) {
            (Some(pair), _) => ("library", Some(pair)),
            (None, Some(pair)) => ("winner", Some(pair)),
            (None, None) => ("nothing", None),
        };
        let trial = log.trials.get(&n);
        let result = old.and_then(|it| it.result.as_ref()).or(trial.and_then(|it| it.result.as_ref()));
        Some(Speed {
            n,
            against,
            then: pair.map(|it| it.0),
            now: pair.map(|it| it.1),
            seconds_then: result.map(|it| it.stats.median),
            seconds_now: it.result.as_ref().map(|it| it.stats.median),
            verdict: pair.filter(|_| !elsewhere).map(|(then, now)| changed(then, now, floor)),
        })
    };
    now.finalists.iter().filter_map(speed).collect()
}

/// How far the same program is from itself in two processes on one device: memory lies elsewhere, and clocks are
/// others. Seen on an H200: up to 0.5 %.
const SESSIONS: f64 = 0.01;

/// How wide the interval of a change may be to be told: wider, it says nothing.
const TOO_WIDE: f64 = 0.05;

/// The verdict on a ratio that was `then` and is `now`: that they are the same if their intervals overlap or their
/// difference is no larger than what a program differs from itself.
fn changed(then: Interval, now: Interval, floor: Option<Interval>) -> Verdict {
    let (low, high) = (now.low / then.high, now.high / then.low);
    let floor = floor.map_or(SESSIONS, |it| SESSIONS.max(it.high - 1.0).max(1.0 - it.low));
    let change = now.median / then.median - 1.0;
    let overlap = low <= 1.0 && high >= 1.0;
    if high - low > TOO_WIDE.max(2.0 * change.abs()) {
        Verdict::Ambiguous
    } else if overlap || change.abs() <= floor {
        Verdict::Same
    } else if change > 0.0 {
        Verdict::Faster
    } else {
        Verdict::Slower
    }
}

fn width(it: Interval) -> f64 {
    it.high - it.low
}

/// How alike two orders of the same trials are: Kendall's τ, from -1 to 1 (M. G. Kendall, "A new measure of rank
/// correlation", 1938). In words, where at least two have both times.
pub fn ranking(speeds: &[Speed]) -> Option<String> {
    let times: Vec<_> = speeds.iter().filter_map(|it| it.seconds_then.zip(it.seconds_now)).collect();
    let pairs = times.iter().enumerate().flat_map(|(at, a)| times[..at].iter().map(move |b| (a, b)));
    let signs: Vec<f64> = pairs.map(|(a, b)| ((a.0 - b.0) * (a.1 - b.1)).signum()).collect();
    let tau = signs.iter().sum::<f64>() / signs.len() as f64;
    (!signs.is_empty())
        .then(|| format!("the order of these trials agrees with that of the log to τ = {tau:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_where_it_can_be() {
        let at =
            |median: f64, half: f64| Interval { median, low: median - half, high: median + half, rounds: 31 };
        let verdict = |then, now| changed(then, now, Some(at(1.0, 0.002)));
        // As measured twice on an H200.
        assert_eq!(verdict(at(0.994, 0.001), at(0.990, 0.001)), Verdict::Same);
        assert_eq!(verdict(at(0.994, 0.001), at(0.960, 0.001)), Verdict::Slower);
        assert_eq!(verdict(at(0.994, 0.001), at(1.100, 0.001)), Verdict::Faster);
        assert_eq!(verdict(at(2.2, 0.3), at(2.1, 0.4)), Verdict::Ambiguous);
        assert_eq!(verdict(at(2.2, 0.1), at(1.1, 0.1)), Verdict::Slower);
    }
}
