//! What two timings in the same rounds may be said to show.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::paired::TIE;
use crate::log::Interval;

/// Whether one program is faster than another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As fast, as far as can be told.
    Same,
    /// Faster.
    Faster,
    /// Slower.
    Slower,
    /// It cannot be told: the times scatter, or the clocks did.
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

/// What an interval of *how many times as fast* shows, where the same program against itself gave `noise_floor`.
///
/// The floor is how far that interval reaches from 1, and at least 0.5 %. *Faster* and *slower* need the whole interval
/// on one side of 1 and its median beyond the floor; *same* needs the whole interval within the floor. Without an
/// interval or a floor nothing is claimed.
pub fn verdict(interval: Option<Interval>, noise_floor: Option<Interval>) -> Verdict {
    let Some(noise) = noise_floor else { return Verdict::Ambiguous };
    verdict_beyond(TIE, interval, Some(noise))
}

/// The same where a difference counts from `margin` on (0.01 is one per cent), or from the noise floor if that is
/// farther from 1; without a floor, as where nothing was timed against itself, the margin alone counts.
pub fn verdict_beyond(margin: f64, interval: Option<Interval>, noise_floor: Option<Interval>) -> Verdict {
    let Some(ratio) = interval else { return Verdict::Ambiguous };
    let reach = |it: f64| it.ln().abs();
    let noise = noise_floor.map(|it| [it.low, it.median, it.high].map(reach)).unwrap_or_default();
    // A floor that is no number is never within reach: nothing is claimed then.
    let floor =
        noise.into_iter().fold(margin.ln_1p(), |a, b| if b.is_nan() { f64::INFINITY } else { a.max(b) });
    if floor.is_infinite() {
        return Verdict::Ambiguous;
    }
    if reach(ratio.low).max(reach(ratio.high)) <= floor {
        Verdict::Same
    } else if ratio.low > 1.0 && reach(ratio.median) > floor {
        Verdict::Faster
    } else if ratio.high < 1.0 && reach(ratio.median) > floor {
        Verdict::Slower
    } else {
        Verdict::Ambiguous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "both arguments of `verdict` are options")]
    fn interval(low: f64, median: f64, high: f64) -> Option<Interval> {
        Some(Interval { median, low, high, rounds: 31 })
    }

    #[test]
    fn verdicts() {
        let quiet = interval(0.999, 1.0, 1.001);
        let loud = interval(0.99, 1.001, 1.02);
        let cases = [
            (interval(1.01, 1.02, 1.03), quiet, Verdict::Faster),
            (interval(0.97, 0.98, 0.99), quiet, Verdict::Slower),
            (interval(0.998, 1.001, 1.004), quiet, Verdict::Same),
            // Sure to be faster, but by nothing that means anything.
            (interval(1.001, 1.002, 1.003), quiet, Verdict::Same),
            (interval(0.98, 1.0, 1.02), quiet, Verdict::Ambiguous),
            (interval(1.001, 1.004, 1.02), quiet, Verdict::Ambiguous),
            (interval(0.999, 1.03, 1.06), quiet, Verdict::Ambiguous),
            // The same program is as much faster than itself.
            (interval(1.005, 1.01, 1.015), loud, Verdict::Same),
            (interval(1.01, 1.015, 1.03), loud, Verdict::Ambiguous),
            (interval(1.02, 1.03, 1.04), loud, Verdict::Faster),
            (None, quiet, Verdict::Ambiguous),
            (interval(1.1, 1.2, 1.3), None, Verdict::Ambiguous),
            (interval(f64::NAN, f64::NAN, f64::NAN), quiet, Verdict::Ambiguous),
        ];
        for (ratio, noise, expected) in cases {
            assert_eq!(verdict(ratio, noise), expected, "{ratio:?} {noise:?}");
        }
        assert_eq!(format!("{:>10}", Verdict::Faster), "    FASTER");
    }

    #[test]
    fn a_margin_is_what_counts_as_a_difference() {
        let quiet = interval(0.999, 1.0, 1.001);
        let loud = interval(0.97, 1.0, 1.03);
        let cases = [
            (0.01, interval(1.012, 1.015, 1.02), quiet, Verdict::Faster),
            (0.02, interval(1.012, 1.015, 1.019), quiet, Verdict::Same),
            (0.01, interval(0.985, 0.992, 0.999), quiet, Verdict::Ambiguous),
            (0.01, interval(0.992, 0.995, 0.999), quiet, Verdict::Same),
            (0.01, interval(0.97, 0.98, 0.985), quiet, Verdict::Slower),
            (0.01, interval(0.97, 0.98, 0.985), loud, Verdict::Same),
            (0.01, interval(0.90, 0.92, 0.94), loud, Verdict::Slower),
            (0.05, interval(0.90, 0.92, 0.94), None, Verdict::Slower),
            (0.05, interval(0.94, 0.97, 1.01), None, Verdict::Ambiguous),
            (0.05, None, None, Verdict::Ambiguous),
            (0.01, interval(1.1, 1.2, 1.3), interval(f64::NAN, f64::NAN, f64::NAN), Verdict::Ambiguous),
            (0.01, interval(1.1, 1.2, f64::INFINITY), quiet, Verdict::Faster),
        ];
        for (margin, ratio, noise, expected) in cases {
            assert_eq!(verdict_beyond(margin, ratio, noise), expected, "{margin} {ratio:?} {noise:?}");
        }
    }
}
