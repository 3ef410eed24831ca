//! `--fail-on`: which verdicts end with exit code 1, and which with 3, because what was asked cannot be told.

use std::fmt;

use tuner::{
    bench::{Verdict, is_not_slower, verdict},
    bootstrap::Interval,
};

/// Which verdicts are not wanted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum FailOn {
    /// Slower, by at least that part if one is given.
    Slower(Option<f64>),
    /// Anything that is not shown to be faster.
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

    /// What a verdict means for whoever asked. `margin` is that of the verdict.
    pub(super) fn answer(
        self,
        margin: f64,
        told: Verdict,
        ratio: Option<Interval>,
        noise_floor: Option<Interval>,
    ) -> Answer {
        match (self, told) {
            // Without having been timed they are one program.
            (FailOn::Slower(_) | FailOn::Different, Verdict::Same) | (FailOn::NotFaster, Verdict::Faster) => {
                Answer::Wanted
            }
            (FailOn::NotFaster, _) | (FailOn::Different, Verdict::Faster | Verdict::Slower) => {
                Answer::Unwanted
            }
            (FailOn::Different, Verdict::Ambiguous) => Answer::Unsure,
            (FailOn::Slower(part), _) => {
                let part = part.unwrap_or(margin);
                if verdict(part, ratio, noise_floor) == Verdict::Slower {
                    Answer::Unwanted
                } else if is_not_slower(part, ratio, noise_floor) {
                    Answer::Wanted
                } else {
                    Answer::Unsure
                }
            }
        }
    }
}

/// What a comparison says to `--fail-on`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// It is shown that all is well.
    Wanted,
    /// It is not.
    Unwanted,
    /// It cannot be told.
    Unsure,
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
