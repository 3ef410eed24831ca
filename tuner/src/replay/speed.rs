//! Whether what was fast is fast again.
//!
//! Seconds of two sessions cannot be compared: clocks, temperatures and neighbours are others. What can be compared is
//! how a trial stood against something that was timed in the same rounds, then and now: the vendor's library, or where
//! there is none the winner of the finals.

use serde::Serialize;

use crate::{
    bench::{Verdict, reach, verdict},
    bootstrap::Interval,
    log::{Finalist, Finals, RunLog, Trial},
};

/// How a trial stood then and stands now.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    // The wider one; without one of now nothing is claimed.
    let floors = then.and_then(|it| it.noise_floor).into_iter().chain(now.noise_floor);
    let floor = now.noise_floor.and(floors.max_by(|a, b| reach(*a).total_cmp(&reach(*b))));
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

/// From where on a speed is another than then: the same program differs from itself in two processes on one device, for
/// memory lies elsewhere, and clocks are others. Seen on an H200: up to 0.5 %.
const SESSIONS: f64 = 0.01;

/// The verdict on a ratio that was `then` and is `now`. Their quotient lies between those of their ends.
fn changed(then: Interval, now: Interval, floor: Option<Interval>) -> Verdict {
    let change = Interval {
        median: now.median / then.median,
        low: now.low / then.high,
        high: now.high / then.low,
        rounds: now.rounds.min(then.rounds),
    };
    verdict(SESSIONS, Some(change), floor)
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
        let quiet = Some(at(1.0, 0.002));
        let verdict = |then, now| changed(then, now, quiet);
        // As measured twice on an H200.
        assert_eq!(verdict(at(0.994, 0.001), at(0.990, 0.001)), Verdict::Same);
        assert_eq!(verdict(at(0.994, 0.001), at(0.960, 0.001)), Verdict::Slower);
        assert_eq!(verdict(at(0.994, 0.001), at(1.100, 0.001)), Verdict::Faster);
        assert_eq!(verdict(at(2.2, 0.3), at(2.1, 0.4)), Verdict::Ambiguous);
        assert_eq!(verdict(at(2.2, 0.1), at(1.1, 0.1)), Verdict::Slower);
        // Intervals that overlap are not the same for that: the second may be as much as 4 % slower.
        assert_eq!(verdict(at(1.0, 0.02), at(0.98, 0.02)), Verdict::Ambiguous);
        // Where the program differs from itself by more than the change, or by an unknown amount, there is no verdict.
        let (then, now) = (at(0.994, 0.001), at(0.990, 0.001));
        assert_eq!(changed(then, now, Some(at(1.0, 0.03))), Verdict::Ambiguous);
        assert_eq!(changed(then, at(0.960, 0.001), Some(at(1.0, 0.05))), Verdict::Ambiguous);
        assert_eq!(changed(then, now, None), Verdict::Ambiguous);
    }
}
