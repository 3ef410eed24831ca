//! What two timings in the same rounds may be said to show.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::bootstrap::Interval;

/// Whether one program is faster than another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As fast: a difference, if there is one, is shown to be within the margin.
    Same,
    /// Faster.
    Faster,
    /// Slower.
    Slower,
    /// It cannot be told: the times scatter, or the clocks did, or there were too few rounds.
    Ambiguous,
}

impl Verdict {
    /// The word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Same => "SAME",
            Verdict::Faster => "FASTER",
            Verdict::Slower => "SLOWER",
            Verdict::Ambiguous => "AMBIGUOUS",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What counts as a difference where programs were timed in the same rounds, unless somebody says otherwise: 1 %.
pub const MARGIN: f64 = 0.01;

/// The noise floor of figures of which none was timed against itself. The margin alone counts then, and has to be wide
/// enough for what two runs differ by.
pub const NO_FLOOR: Interval = Interval { median: 1.0, low: 1.0, high: 1.0, rounds: 0 };

/// How far an interval reaches from 1, as a part: 0.02 of one that ends at 1.02, and of one that begins at 1/1.02.
/// Infinite for what is no number.
pub fn reach(it: Interval) -> f64 {
    let far = [it.low, it.median, it.high].map(|it| it.ln().abs().exp_m1());
    far.into_iter().fold(0.0, |a, b| if b.is_nan() { f64::INFINITY } else { a.max(b) })
}

/// What an interval of *how many times as fast* shows, where the same program against itself gave `noise_floor`.
///
/// A difference counts from `margin` on (0.01 is one per cent), and never within the reach of the noise floor.
/// *Faster* and *slower* need the whole interval on one side of 1, and its median beyond margin and floor. *Same* is a
/// claim, too: it needs the whole interval within the margin, and a floor that is not wider. Everything else is
/// ambiguous, and so is everything without an interval or a floor.
pub fn verdict(margin: f64, interval: Option<Interval>, noise_floor: Option<Interval>) -> Verdict {
    let floor = noise_floor.map_or(f64::INFINITY, reach);
    interval.map_or(Verdict::Ambiguous, |it| judged(margin, it, floor))
}

fn judged(margin: f64, ratio: Interval, floor: f64) -> Verdict {
    let beyond = ratio.median.ln().abs().exp_m1() > margin.max(floor);
    if floor <= margin && reach(ratio) <= margin {
        Verdict::Same
    } else if ratio.low > 1.0 && beyond {
        Verdict::Faster
    } else if ratio.high < 1.0 && beyond {
        Verdict::Slower
    } else {
        Verdict::Ambiguous
    }
}

/// Whether it is shown that something is not slower by `margin` or more, though perhaps not whether it is faster.
pub fn is_not_slower(margin: f64, interval: Option<Interval>, noise_floor: Option<Interval>) -> bool {
    let is_quiet = noise_floor.is_some_and(|it| reach(it) <= margin);
    match verdict(margin, interval, noise_floor) {
        Verdict::Same | Verdict::Faster => true,
        Verdict::Slower => false,
        Verdict::Ambiguous => is_quiet && interval.is_some_and(|it| it.low * (1.0 + margin) >= 1.0),
    }
}

#[cfg(test)]
#[path = "verdict_rates.rs"]
mod rates;

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "both arguments of `verdict` are options")]
    fn interval(low: f64, median: f64, high: f64) -> Option<Interval> {
        Some(Interval { median, low, high, rounds: 31 })
    }

    #[test]
    fn verdicts() {
        use Verdict::{Ambiguous, Faster, Same, Slower};
        let quiet = interval(0.999, 1.0, 1.001);
        let loud = interval(0.99, 1.001, 1.02);
        let wild = interval(0.72, 0.95, 1.3);
        let no_number = interval(f64::NAN, f64::NAN, f64::NAN);
        let cases = [
            (0.01, interval(1.01, 1.02, 1.03), quiet, Faster),
            (0.01, interval(0.97, 0.98, 0.99), quiet, Slower),
            (0.01, interval(0.998, 1.001, 1.004), quiet, Same),
            // Sure to be faster, but by nothing that means anything.
            (0.01, interval(1.001, 1.002, 1.003), quiet, Same),
            (0.01, interval(0.98, 1.0, 1.02), quiet, Ambiguous),
            (0.01, interval(1.001, 1.004, 1.02), quiet, Ambiguous),
            (0.01, interval(0.999, 1.03, 1.06), quiet, Ambiguous),
            // The same program is as much faster than itself: that shows nothing, least of all that they are the same.
            (0.01, interval(1.005, 1.01, 1.015), loud, Ambiguous),
            (0.01, interval(0.995, 1.0, 1.005), loud, Ambiguous),
            (0.01, interval(1.01, 1.015, 1.03), loud, Ambiguous),
            (0.01, interval(1.021, 1.03, 1.04), loud, Faster),
            // A quarter slower, on a machine whose noise is larger.
            (0.01, interval(0.74, 0.8, 0.86), wild, Ambiguous),
            (0.01, interval(0.4, 0.5, 0.6), wild, Slower),
            (0.01, None, quiet, Ambiguous),
            (0.01, interval(1.1, 1.2, 1.3), None, Ambiguous),
            (0.01, interval(1.1, 1.2, 1.3), no_number, Ambiguous),
            (0.01, no_number, quiet, Ambiguous),
            (0.01, interval(1.1, 1.2, f64::INFINITY), quiet, Faster),
            // A wider margin.
            (0.02, interval(1.012, 1.015, 1.019), quiet, Same),
            (0.03, interval(1.005, 1.01, 1.015), loud, Same),
            (0.01, interval(0.985, 0.992, 0.999), quiet, Ambiguous),
        ];
        for (margin, ratio, noise, expected) in cases {
            assert_eq!(verdict(margin, ratio, noise), expected, "{margin} {ratio:?} {noise:?}");
        }
        assert_eq!(format!("{Faster:>10}"), "    FASTER");
    }

    #[test]
    fn without_pairs_the_margin_alone_counts() {
        let verdict = |ratio| verdict(0.05, ratio, Some(NO_FLOOR));
        assert_eq!(verdict(interval(0.90, 0.92, 0.94)), Verdict::Slower);
        assert_eq!(verdict(interval(0.96, 0.97, 1.01)), Verdict::Same);
        assert_eq!(verdict(interval(0.94, 0.97, 1.01)), Verdict::Ambiguous);
        assert_eq!(verdict(None), Verdict::Ambiguous);
    }

    #[test]
    fn not_slower_may_be_known_where_faster_is_not() {
        let quiet = interval(0.999, 1.0, 1.001);
        let loud = interval(0.95, 1.0, 1.05);
        let cases = [
            (interval(0.995, 1.03, 1.06), quiet, true),
            (interval(0.98, 1.03, 1.06), quiet, false),
            (interval(0.995, 1.03, 1.06), loud, false),
            (interval(1.1, 1.2, 1.3), loud, true),
            (interval(0.998, 1.0, 1.002), quiet, true),
            (interval(0.90, 0.95, 0.97), quiet, false),
            (None, quiet, false),
        ];
        for (ratio, noise, expected) in cases {
            assert_eq!(is_not_slower(0.01, ratio, noise), expected, "{ratio:?} {noise:?}");
        }
    }
}
