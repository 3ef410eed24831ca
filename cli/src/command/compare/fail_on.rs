//! `--fail-on`: which verdicts end with exit code 1.

use std::fmt;

use tuner::{
    bench::{Verdict, verdict_beyond},
    log::Interval,
};

/// Which verdicts are not wanted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum FailOn {
    /// Slower, by at least that part if one is given.
    Slower(Option<f64>),
    /// Anything but faster, that nothing can be told included.
    NotFaster,
    /// Faster or slower.
    Different,
}

impl FailOn {
    pub(super) fn parse(word: &str) -> Result<FailOn, String> {
        match (word, word.strip_prefix("slower=")) {
            ("slower", _) => Ok(FailOn::Slower(None)),
            ("not-faster", _) => Ok(FailOn::NotFaster),
            ("different", _) => Ok(FailOn::Different),
            (_, Some(part)) => parse_part(part).map(|it| FailOn::Slower(Some(it))),
            (_, None) => Err("there is slower, slower=2%, not-faster, different".to_owned()),
        }
    }

    /// Whether a verdict is not wanted.
    pub(super) fn refuses(
        self,
        verdict: Verdict,
        ratio: Option<Interval>,
        noise_floor: Option<Interval>,
    ) -> bool {
        match self {
            FailOn::Slower(None) => verdict == Verdict::Slower,
            FailOn::Slower(Some(part)) => verdict_beyond(part, ratio, noise_floor) == Verdict::Slower,
            FailOn::NotFaster => verdict != Verdict::Faster,
            FailOn::Different => matches!(verdict, Verdict::Faster | Verdict::Slower),
        }
    }
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailOn::Slower(None) => f.write_str("slower"),
            FailOn::Slower(Some(part)) => write!(f, "slower={}%", 100.0 * part),
            FailOn::NotFaster => f.write_str("not-faster"),
            FailOn::Different => f.write_str("different"),
        }
    }
}

/// A part: `2%` or `0.02`.
pub(super) fn parse_part(word: &str) -> Result<f64, String> {
    let number = match word.strip_suffix('%') {
        Some(it) => it.trim().parse::<f64>().map(|it| it / 100.0),
        None => word.parse::<f64>(),
    };
    number
        .ok()
        .filter(|it| (0.0..=1.0).contains(it))
        .ok_or_else(|| "a part is 2%, or 0.02, and at most 1".to_owned())
}
