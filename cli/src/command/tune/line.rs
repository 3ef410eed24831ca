//! The progress line of a run on a terminal: as much of it as there is room for, what matters most last to go.

use std::time::Duration;

use tuner::{
    Work,
    tune::{Load, Summary},
};

use super::progress::{bar, clock, waits};
use crate::{figures::rate_words, term::width::width};

/// What the line is made of.
pub(super) struct ProgressLine<'a> {
    /// What goes on, where that is not the search itself.
    pub(super) what: Option<&'a str>,
    /// How many trials there are to be.
    pub(super) trials: u64,
    /// Where the run stands.
    pub(super) summary: &'a Summary,
    /// What the devices wait for, where it is the search that goes on.
    pub(super) load: Option<Load>,
    /// Which part of the roofline the best reaches, from 0 to 1.
    pub(super) part: Option<f64>,
    /// How much a call has to do.
    pub(super) work: Work,
    /// Calls per second of the best so far, after each trial that this process saw.
    pub(super) curve: &'a [f64],
    /// How long this process has been at it.
    pub(super) elapsed: Duration,
    /// How long it may take still.
    pub(super) left: Option<Duration>,
}

/// A part of the line: its longest form first, and then what it can be shortened to. An empty one is left out.
type Forms = Vec<String>;

/// Which parts give way in which order, where there is not enough room: each time one gets its next form.
const SHORTENED: [LinePart; 14] = [
    LinePart::Best,
    LinePart::Waits,
    LinePart::Refused,
    LinePart::Bar,
    LinePart::Waits,
    LinePart::Curve,
    LinePart::Time,
    LinePart::Best,
    LinePart::Failed,
    LinePart::Curve,
    LinePart::What,
    LinePart::Failed,
    LinePart::Time,
    LinePart::Count,
];

/// The parts in the order in which they stand.
#[derive(Clone, Copy)]
enum LinePart {
    Bar,
    Count,
    What,
    Curve,
    Best,
    Failed,
    Refused,
    Waits,
    Time,
}

impl ProgressLine<'_> {
    /// The line for so many columns. It may be longer where even the least does not fit.
    pub(super) fn fitted(&self, columns: usize) -> String {
        let mut parts = [
            vec![bar(self.done()), String::new()],
            vec![format!("{}/{}", self.summary.trials, self.trials), self.summary.trials.to_string()],
            vec![self.what.unwrap_or_default().to_owned(), String::new()],
            vec![curve(self.curve, 16), curve(self.curve, 8), String::new()],
            self.best(),
            self.failed(),
            self.refused(),
            self.waits(),
            self.time(),
        ];
        for part in SHORTENED {
            if width(&joined(&parts)) <= columns {
                break;
            }
            let forms: &mut Forms = &mut parts[part as usize];
            if forms.len() > 1 {
                forms.remove(0);
            }
        }
        joined(&parts)
    }

    fn done(&self) -> f64 {
        if self.trials == 0 { 1.0 } else { (self.summary.trials as f64 / self.trials as f64).min(1.0) }
    }

    fn best(&self) -> Forms {
        let Some(best) = &self.summary.best else { return vec!["no result yet".to_owned()] };
        let speed = rate_words(&self.work, best.seconds);
        let part = self.part.map(|it| format!("{:.1} %", 100.0 * it));
        let long = part.as_ref().map(|it| format!("{it} of the roofline, ")).unwrap_or_default();
        let short = part.map(|it| format!(" ({it})")).unwrap_or_default();
        vec![format!("best {speed} ({long}trial {})", best.n), format!("best {speed}{short}"), speed]
    }

    /// How many failed, by kind where there is room: the most frequent first.
    fn failed(&self) -> Forms {
        let count: u64 = self.summary.failed.values().sum();
        if count == 0 {
            return vec![String::new()];
        }
        let mut kinds: Vec<_> = self.summary.failed.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        vec![format!("{count} failed: {}", kinds.join(", ")), format!("{count} failed"), String::new()]
    }

    fn refused(&self) -> Forms {
        let count = self.summary.rejections();
        let words = if count == 0 { String::new() } else { format!("{count} refused") };
        vec![words, String::new()]
    }

    fn waits(&self) -> Forms {
        let Some((long, short)) = self.load.as_ref().and_then(waits) else { return vec![String::new()] };
        vec![long, short, String::new()]
    }

    fn time(&self) -> Forms {
        let elapsed = clock(self.elapsed);
        let left = self.left.map(|it| format!("{elapsed}, {} left", clock(it)));
        left.into_iter().chain([elapsed, String::new()]).collect()
    }
}

fn joined(parts: &[Forms]) -> String {
    let words: Vec<&str> = parts.iter().filter_map(|it| it.first()).map(String::as_str).collect();
    words.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("  ")
}

/// Numbers that do not fall as a small chart of at most so many columns, whose heights are parts of the last of them.
fn curve(values: &[f64], columns: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let Some(most) = values.last().copied().filter(|it| *it > 0.0) else { return String::new() };
    let count = values.len().min(columns);
    // Each column shows what there was at the end of its part.
    let ends = (1..=count).map(|at| values[at * values.len() / count - 1]);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 8")]
    let height = |it: f64| ((it / most * 8.0).ceil() as usize).clamp(1, 8);
    ends.map(|it| HEIGHTS[height(it) - 1]).collect()
}

#[cfg(test)]
mod tests {
    use tuner::{log::ErrorKind, tune::Best};

    use super::*;

    #[test]
    fn curves_are_small() {
        assert_eq!(curve(&[], 8), "");
        assert_eq!(curve(&[5.0], 8), "█");
        assert_eq!(curve(&[1.0, 2.0, 4.0, 8.0], 8), "▁▂▄█");
        let long: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert_eq!(curve(&long, 8), "▁▂▃▄▅▆▇█");
        assert_eq!(curve(&long, 4), "▂▄▆█");
    }

    #[test]
    fn what_matters_most_is_the_last_to_go() {
        let mut summary = Summary { trials: 12, ..Summary::default() };
        let decisions = schedule::Decisions::new();
        summary.best = Some(Best { n: 7, seconds: 1e-3, gflops: 51_234.0, decisions });
        summary.failed.extend([(ErrorKind::Compile, 2), (ErrorKind::Hang, 3)]);
        summary.reject(
            &tuner::log::TrialError {
                stage: tuner::log::Stage::Generate,
                kind: ErrorKind::Schedule,
                message: String::new(),
                sticky: false,
            },
            None,
        );
        let load = Load { measuring: 39.0, compiling: 50.0, scheduling: 11.0, results: 0.0 };
        let curve = [10_000.0, 10_000.0, 30_000.0, 51_234.0];
        let line = |what, columns| {
            let line = ProgressLine {
                what,
                trials: 200,
                summary: &summary,
                load: Some(load).filter(|_| what.is_none()),
                part: Some(0.612),
                work: Work { flops: 51_234e6, bytes: 1e6 },
                curve: &curve,
                elapsed: Duration::from_secs(31),
                left: Some(Duration::from_mins(8)),
            };
            line.fitted(columns)
        };
        let shown = [140, 120, 100, 80, 60, 40, 20, 8].map(|it| format!("{it:>3} {}", line(None, it)));
        let finals = [140, 80, 40].map(|it| format!("{it:>3} {}", line(Some("finals"), it)));
        insta::assert_snapshot!([&shown[..], &finals[..]].concat().join("\n"));
        let least = width("12  51234 GFLOPS");
        for columns in 8..200 {
            assert!(width(&line(Some("finals"), columns)) <= columns.max(least), "{columns}");
        }
    }
}
