//! What a run shows while it goes on: on a terminal a line that replaces itself and fits, elsewhere one every ten seconds;
//! with `--json` each entry of the log on standard output, once it is on the disk.

use std::{
    io,
    time::{Duration, Instant},
};

use tuner::{
    log::{Entry, Happening, Run},
    tune::{Load, Summary, TuneEvent},
};

use super::line::ProgressLine;
use crate::{diagnostic::Diagnostic, figures::rate_words, term::shell::Shell};

/// What the search itself says that it does.
const SEARCHING: &str = "searching";

/// The progress of one run.
pub(super) struct Progress<'a, 'b> {
    run: &'a Run,
    shell: &'a mut Shell<'b>,
    began: Instant,
    /// How many trials the log had before.
    before: Option<u64>,
    /// The GFLOPS of the best so far, after each trial.
    curve: Vec<f64>,
    /// Why standard output cannot be written.
    broken: Option<io::Error>,
}

impl<'a, 'b> Progress<'a, 'b> {
    pub(super) fn new(run: &'a Run, shell: &'a mut Shell<'b>) -> Progress<'a, 'b> {
        Progress { run, shell, began: Instant::now(), before: None, curve: vec![], broken: None }
    }

    pub(super) fn on_event(&mut self, event: TuneEvent<'_>) {
        match event {
            TuneEvent::Entry(entry, summary) => {
                self.entry(entry);
                if let (Entry::Trial(_), Some(best)) = (entry, &summary.best) {
                    self.curve.push(best.seconds.recip());
                }
                self.show(SEARCHING, summary);
            }
            TuneEvent::Progress(what, summary) => {
                self.before.get_or_insert(summary.trials);
                self.show(what, summary);
            }
        }
    }

    fn show(&mut self, what: &str, summary: &Summary) {
        let Some(columns) = self.shell.columns() else { return self.shell.status(&self.line(what, summary)) };
        let line = ProgressLine {
            what: Some(what).filter(|it| *it != SEARCHING),
            trials: self.run.plan.trials,
            summary,
            load: Some(summary.load).filter(|_| what == SEARCHING),
            part: summary.best.as_ref().and_then(|it| self.run.roofline.part(it.seconds)),
            work: self.run.workload.work(),
            curve: &self.curve,
            elapsed: self.began.elapsed(),
            left: self.left(summary),
        };
        self.shell.progress(&line.fitted(columns));
    }

    fn entry(&mut self, entry: &Entry) {
        if self.shell.json {
            self.shell.done();
            let line = serde_json::to_string(entry).map_err(io::Error::from);
            let written = line.and_then(|it| {
                writeln!(self.shell.out, "{it}")?;
                // Whoever reads along may rely on what was said.
                self.shell.out.flush()
            });
            self.broken = self.broken.take().or(written.err());
        }
        if let Entry::Event(event) = entry {
            match event.what {
                Happening::WorkerReplaced
                | Happening::WorkerQuarantined
                | Happening::Throttled
                | Happening::Warning
                | Happening::Other => {
                    self.shell.note(&event.detail);
                }
                Happening::WorkerStarted
                | Happening::StrayAnswer
                | Happening::TailTruncated
                | Happening::Resumed
                | Happening::Stopped
                | Happening::Finished => {}
            }
        }
    }

    /// The line where there is no terminal, all of it:
    /// `[#####-----] 100/200 searching: best 1234 GFLOPS (61.2 % of the roofline, trial 37); 3 failed, 12 refused; waits for compiling (devices
    /// idle 61 %); 0:31, 0:30 left`
    fn line(&self, what: &str, it: &Summary) -> String {
        let of = self.run.plan.trials;
        let done = if of == 0 { 1.0 } else { (it.trials as f64 / of as f64).min(1.0) };
        let best = match &it.best {
            Some(best) => {
                let part = self.run.roofline.part(best.seconds);
                let part =
                    part.map(|it| format!("{:.1} % of the roofline, ", 100.0 * it)).unwrap_or_default();
                let speed = rate_words(&self.run.workload.work(), best.seconds);
                format!("best {speed} ({part}trial {})", best.n)
            }
            None => "no result yet".to_owned(),
        };
        let failed: u64 = it.failed.values().sum();
        let left = self.left(it).map(|it| format!(", {} left", clock(it))).unwrap_or_default();
        let waits = Some(&it.load).filter(|_| what == SEARCHING).and_then(waits);
        let waits = waits.map(|(long, _)| format!("{long}; ")).unwrap_or_default();
        format!(
            "{} {}/{of} {what}: {best}; {failed} failed, {} refused; {waits}{}{left}",
            bar(done),
            it.trials,
            it.rejections(),
            clock(self.began.elapsed())
        )
    }

    /// How long the rest of the trials will take, by those of this process.
    fn left(&self, it: &Summary) -> Option<Duration> {
        let here = it.trials.checked_sub(self.before?).filter(|it| *it > 0)?;
        let rest = self.run.plan.trials.saturating_sub(it.trials) as f64;
        let mut seconds = self.began.elapsed().as_secs_f64() / here as f64 * rest;
        if let Some(most) = self.run.plan.seconds {
            seconds = seconds.min((most - self.began.elapsed().as_secs_f64()).max(0.0));
        }
        Duration::try_from_secs_f64(seconds).ok().filter(|it| !it.is_zero())
    }

    /// Takes the line away.
    pub(super) fn end(self) -> Result<(), Diagnostic> {
        self.shell.done();
        self.broken.map_or(Ok(()), |it| Err(it.into()))
    }
}

/// Twenty characters, full from the left.
pub(super) fn bar(part: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is between 0 and 20")]
    let full = (part * 20.0) as usize;
    format!("[{}{}]", "#".repeat(full), "-".repeat(20 - full))
}

/// What a search waits for, by what its devices did so far: `waits for compiling (devices idle 61 %)`, and shorter.
pub(super) fn waits(load: &Load) -> Option<(String, String)> {
    let (idle, what) = (load.idle()?, load.waits_for()?);
    let idle = format!("idle {:.0} %", 100.0 * idle);
    Some((format!("waits for {what} (devices {idle})"), format!("{what}, {idle}")))
}

/// `1:05`, `2:00:09`.
pub(super) fn clock(it: Duration) -> String {
    let seconds = it.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_waits_for_in_words() {
        let load = Load { measuring: 39.0, compiling: 50.0, scheduling: 11.0, results: 0.0 };
        let (long, short) = waits(&load).unwrap();
        assert_eq!(long, "waits for compiling (devices idle 61 %)");
        assert_eq!(short, "compiling, idle 61 %");
        assert_eq!(waits(&Load::default()), None);
    }

    #[test]
    fn bars_and_clocks() {
        assert_eq!(bar(0.0), "[--------------------]");
        assert_eq!(bar(0.5), "[##########----------]");
        assert_eq!(bar(1.0), "[####################]");
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
        assert_eq!(clock(Duration::from_secs(7209)), "2:00:09");
    }
}
