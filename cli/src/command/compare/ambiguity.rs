//! Verdicts that are ambiguous, and what a comparison answers to `--fail-on`.

use tuner::{
    bench::{NO_FLOOR, Verdict, reach},
    bootstrap::{Interval, LEAST_VALUES},
};

use super::{
    fail_on::{Answer, FailOn},
    report::{Method, Pair, Report},
};

impl Report {
    /// The first verdict that is not wanted or else the first that leaves it open, in words; whether it is the latter.
    pub(super) fn unwanted(&self, fail_on: Option<FailOn>) -> Option<(String, bool)> {
        let fail_on = fail_on?;
        let answer = |it: &Pair| fail_on.answer(self.margin, it.verdict, it.ratio, self.floor());
        let first = |wanted: Answer| self.pairs.iter().find(|it| answer(it) == wanted);
        let (found, is_open) = match first(Answer::Unwanted) {
            Some(it) => (it, false),
            None => (first(Answer::Unsure)?, true),
        };
        let words = format!("{} against {}: {}", found.name, found.against, found.verdict);
        let asked = format!("`--fail-on {fail_on}` was given");
        let words = if is_open {
            format!("{words}; {asked}, and the rounds leave that open")
        } else {
            format!("{words}, and {asked}")
        };
        Some((words, is_open))
    }

    /// What the first shows against itself, where that was asked.
    fn floor(&self) -> Option<Interval> {
        match self.method {
            Method::Paired => self.noise_floor,
            Method::Source | Method::Recorded => Some(NO_FLOOR),
        }
    }

    /// Why a verdict is [`Verdict::Ambiguous`].
    pub(super) fn ambiguity(&self, it: &Pair) -> Option<String> {
        let failed = |name: &str| self.entrants.iter().any(|it| it.name == name && it.failure.is_some());
        let percent = |it: f64| format!("{:.1} %", 100.0 * it);
        let (margin, floor) = (percent(self.margin), self.floor().map(reach));
        if it.verdict != Verdict::Ambiguous {
            return None;
        }
        Some(match (it.ratio, floor) {
            _ if failed(&it.name) || failed(&it.against) => "one of the two has no result".to_owned(),
            (None, _) if self.method == Method::Recorded || self.rounds < LEAST_VALUES => {
                format!("an interval needs {LEAST_VALUES} rounds")
            }
            (None, _) | (_, None) => {
                "the clocks of the machine were too far apart in too many rounds".to_owned()
            }
            (_, Some(floor)) if floor > self.margin => {
                let itself = percent(floor);
                format!("the same program differs from itself by up to {itself}, and the margin is {margin}")
            }
            (Some(ratio), _) => {
                let far = percent(reach(ratio));
                format!("the two may be the same, or differ by up to {far}, and the margin is {margin}")
            }
        })
    }
}
