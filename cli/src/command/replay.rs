//! `tilewright replay`.

use std::path::PathBuf;

use tuner::bench::Verdict;

use crate::{
    diagnostic::Diagnostic,
    figures::interval_words,
    log_notes::Noted,
    options::workers::WorkerArgs,
    replaying::{Differing, Level, ReplayEvent, ReplayLevel, ReplayOptions, Replayed, replay},
    term::{report::Report, shell::Shell, table::Table},
    usage_error::UsageError,
};

/// Make the trials of a log again and compare
///
/// Nothing that a log holds is executed: candidates are made anew from its script and decisions. Without a level only
/// the sources are compared, which needs neither compiler nor device.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct Replay {
    /// The folder of the log, or one segment of it
    log: PathBuf,
    /// Only this run; by default all
    #[arg(long)]
    run: Option<String>,
    /// Make the sources again and compare them (the default)
    #[arg(long)]
    check: bool,
    /// Then compile them and compare the machine code
    #[arg(long, conflicts_with = "check")]
    compile: bool,
    /// Then run them and compare their numbers with the reference
    #[arg(long, conflicts_with_all = ["check", "compile"])]
    verify: bool,
    /// Then time them against each other and the vendor's library, and compare with what the log says
    #[arg(long, conflicts_with_all = ["check", "compile", "verify"])]
    measure: bool,
    /// Only so many of the fastest, those of the finals first; by default all, with `--measure` five
    #[arg(long)]
    top: Option<usize>,
    /// Only this trial; may be given several times
    #[arg(long = "trial", value_name = "NUMBER", conflicts_with = "top")]
    trials: Vec<u64>,
    #[command(flatten)]
    workers: WorkerArgs,
}

impl Replay {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let log = tuner::log::read(&self.log).map_err(|err| Diagnostic::log(&err))?;
        Noted::of(&log).tell(&self.log, shell);
        let found = replay(&self.log, &log, &self.options(), &mut |it| {
            match it {
                ReplayEvent::Progress(text) => shell.progress(text),
                ReplayEvent::Run(replayed) => {
                    shell.done();
                    shell.report(&replayed)?;
                }
            }
            Ok(())
        })?;
        let differs = |words: String| Diagnostic::failed(UsageError::Differs, words);
        let mut failed = found.failed;
        failed.extend(match found.different {
            0 => None,
            1 => Some(differs("one trial is not as the log says".to_owned())),
            it => Some(differs(format!("{it} trials are not as the log says"))),
        });
        Diagnostic::all(failed).map_or(Ok(()), Err)
    }

    fn options(&self) -> ReplayOptions {
        let level = match self {
            Replay { compile: true, .. } => ReplayLevel::MachineCode,
            Replay { verify: true, .. } => ReplayLevel::Numbers,
            Replay { measure: true, .. } => ReplayLevel::Speed,
            _ => ReplayLevel::Sources,
        };
        let Replay { run, top, trials, workers, .. } = self;
        ReplayOptions {
            level,
            run: run.clone(),
            top: *top,
            trials: trials.clone(),
            workers: workers.workers(),
        }
    }
}

impl Report for Replayed {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let out = &mut *shell.out;
        writeln!(out, "run          {}: {} of {} trials", self.run, self.asked, self.of)?;
        for Level { level, result } in &self.lines {
            writeln!(out, "{level:<12} {result}")?;
        }
        for note in &self.notes {
            writeln!(out, "note         {note}")?;
        }
        for Differing { n, difference } in &self.differences {
            writeln!(out, "trial {n:<6} {difference}")?;
        }
        if self.speeds.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let mut table = Table::new(["trial", "against", "then", "now", "verdict"]);
        for it in &self.speeds {
            let words = |it: Option<_>| it.map_or_else(|| "—".to_owned(), interval_words);
            let verdict = it.verdict.map_or("—", Verdict::as_str);
            table.row([
                it.n.to_string(),
                it.against.to_owned(),
                words(it.then),
                words(it.now),
                verdict.to_owned(),
            ]);
        }
        table.print(out)?;
        Ok(())
    }
}
