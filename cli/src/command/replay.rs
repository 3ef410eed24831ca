//! `tilewright replay`.

use std::{fmt::Write as _, path::PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use tuner::{
    bench::Verdict,
    build::Problem,
    log::{Run, RunLog, Trial},
    replay::{self, Again, Compiled, Difference, HeadError},
};

use crate::{
    diagnostic::Diagnostic, figures::interval_words, log_notes::Noted, options::workers::WorkerArgs,
    term::report::Report, term::shell::Shell, term::table::Table, usage_error::UsageError,
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

/// What came of one run of a log.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Replayed {
    /// Whether nothing is other than the log says.
    ok: bool,
    /// The run.
    run: String,
    /// How many trials were looked at.
    #[serde(rename = "trials")]
    asked: usize,
    /// How many trials the run has.
    #[serde(skip)]
    of: usize,
    /// What was compared, in words, with how many were the same.
    lines: Vec<Level>,
    /// What is other than the log says.
    differences: Vec<Differing>,
    /// The comparison of speeds.
    speeds: Vec<replay::Speed>,
    /// What is worth knowing besides.
    notes: Vec<String>,
}

/// What was compared.
#[derive(Debug, Serialize, JsonSchema)]
struct Level {
    /// What: sources, machine code, numbers.
    level: &'static str,
    /// How many were the same, in words.
    result: String,
}

/// A trial that is not as the log says.
#[derive(Debug, Serialize, JsonSchema)]
struct Differing {
    /// The trial.
    n: u64,
    /// What is other, in words.
    difference: String,
}

impl Replay {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let log = tuner::log::read(&self.log).map_err(|err| Diagnostic::log(&err))?;
        Noted::of(&log).tell(&self.log, shell);
        let wanted = |name: &String| self.run.as_ref().is_none_or(|it| it == name);
        let runs: Vec<_> = log.runs.iter().filter(|it| wanted(it.0)).map(|it| it.1).collect();
        if runs.is_empty() {
            let run = self.run.as_deref();
            return Err(Diagnostic::no_run(&log, &self.log, run));
        }
        let mut different = 0;
        // A run that cannot be replayed is no reason to leave out the others.
        let mut failed = vec![];
        for it in runs {
            let head = match it.head() {
                Ok(head) => head,
                Err(err) => {
                    failed.push(Diagnostic::log(&err));
                    continue;
                }
            };
            match self.replay(head, it, shell) {
                Ok(replayed) => {
                    shell.done();
                    different += replayed.differences.len();
                    shell.report(&replayed)?;
                }
                Err(err) => failed.push(err),
            }
        }
        let differs = |words: String| Diagnostic::failed(UsageError::Differs, words);
        failed.extend(match different {
            0 => None,
            1 => Some(differs("one trial is not as the log says".to_owned())),
            it => Some(differs(format!("{it} trials are not as the log says"))),
        });
        Diagnostic::all(failed).map_or(Ok(()), Err)
    }

    fn replay(&self, head: &Run, log: &RunLog, shell: &mut Shell<'_>) -> Result<Replayed, Diagnostic> {
        let damaged = |err: HeadError| Diagnostic::failed(&err, format!("run {}: {err}", head.run));
        let problem = head.problem().map_err(damaged)?;
        let space = head.space().map_err(damaged)?;
        let trials = self.chosen(head, log)?;
        let mut it = Replayed {
            ok: true,
            run: head.run.clone(),
            asked: trials.len(),
            of: log.trials.len(),
            differences: vec![],
            notes: notes(head),
            lines: vec![],
            speeds: vec![],
        };
        let workload = problem.workload_id();
        let mut again: Vec<(Again, &Trial)> = vec![];
        for trial in trials {
            shell.progress(&format!("making the source of trial {} again", trial.n));
            match replay::check(&problem, &workload, &space, trial) {
                Ok(same) => again.push((same, trial)),
                Err(difference) => it.differ(trial.n, &difference),
            }
        }
        it.level("sources", format!("{} of {} identical", again.len(), it.asked));
        if self.compile || self.verify || self.measure {
            self.beyond(head, log, &problem, again, &mut it, shell)?;
        }
        Ok(it)
    }

    /// The levels that need workers.
    fn beyond(
        &self,
        head: &Run,
        log: &RunLog,
        problem: &Problem,
        mut again: Vec<(Again, &Trial)>,
        it: &mut Replayed,
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        // What did not compile then is not asked to compile now.
        again.retain(|(_, trial)| trial.bin.is_some());
        shell.progress("starting workers");
        let mut pool = if self.compile {
            self.workers.workers().compilers()?
        } else {
            self.workers.workers().start(&problem.target)?
        };
        let elsewhere = pool.machine().filter(|here| here.name != head.machine.name).cloned();
        if let Some(here) = &elsewhere {
            it.notes.push(format!("it was measured on {}, and this is {}", head.machine.name, here.name));
        }
        let toolchain = replay::toolchain_difference(head, &problem.target);
        it.notes.extend(toolchain.clone());
        let mut going = || true;
        let mut replay = replay::Replay { problem, pool: &mut pool, going: &mut going };
        shell.progress("compiling");
        let made = replay.compile(&again).unwrap_or_default();
        let mut compiled: Vec<Compiled> = vec![];
        for (made, (again, _)) in made.into_iter().zip(&again) {
            match made {
                Ok(made) if made.same == Some(false) && toolchain.is_none() => {
                    it.differ(again.n, &Difference::Binary);
                }
                Ok(made) => compiled.push(made),
                Err(difference) => it.differ(again.n, &difference),
            }
        }
        let same = compiled.iter().filter(|it| it.same == Some(true)).count();
        it.level("machine code", format!("{same} of {} identical", again.len()));
        if self.verify {
            shell.progress("verifying");
            let has_result = |n| again.iter().any(|(it, trial)| it.n == n && trial.result.is_some());
            compiled.retain(|it| has_result(it.n));
            let verdicts = replay.verify(&compiled, head.plan.threads).unwrap_or_default();
            let right = verdicts.iter().filter(|it| it.is_ok()).count();
            let told =
                verdicts.iter().filter(|it| !it.as_ref().is_err_and(Difference::is_unanswered)).count();
            let mut words = format!("{right} of {told} right");
            if told < compiled.len() {
                let _ = write!(words, ", {} not verified", compiled.len() - told);
            }
            it.level("numbers", words);
            let wrong =
                verdicts.into_iter().zip(&compiled).filter_map(|(it, made)| Some((made.n, it.err()?)));
            wrong.for_each(|(n, difference)| it.differ(n, &difference));
        }
        if self.measure {
            shell.progress("timing");
            match replay.measure(&compiled, head) {
                Some(Ok(finals)) => {
                    it.speeds = replay::speeds(log, &finals, elsewhere.is_some());
                    it.notes.extend(replay::ranking(&it.speeds).filter(|_| elsewhere.is_some()));
                }
                Some(Err(difference)) => {
                    compiled.iter().take(1).for_each(|first| it.differ(first.n, &difference));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The trials to look at.
    fn chosen<'a>(&self, head: &Run, log: &'a RunLog) -> Result<Vec<&'a Trial>, Diagnostic> {
        if !self.trials.is_empty() {
            let find = |n: &u64| {
                log.trials.get(n).ok_or_else(|| {
                    Diagnostic::usage(UsageError::NoRun, format!("run {} has no trial {n}", head.run))
                })
            };
            return self.trials.iter().map(find).collect();
        }
        let top = self.top.or(self.measure.then_some(5));
        Ok(match top {
            Some(count) => replay::best(log).into_iter().take(count).collect(),
            None => log.trials.values().collect(),
        })
    }
}

/// What is other than when the run was made, before anything is compared.
fn notes(head: &Run) -> Vec<String> {
    let here = env!("CARGO_PKG_VERSION");
    let other =
        (head.tool != here).then(|| format!("it was made by tilewright {}, and this is {here}", head.tool));
    other.into_iter().collect()
}

impl Replayed {
    /// Adds that a trial is not as the log says.
    fn differ(&mut self, n: u64, difference: &Difference) {
        self.differences.push(Differing { n, difference: difference.to_string() });
        self.ok = false;
    }

    /// Adds what a level came to.
    fn level(&mut self, level: &'static str, result: String) {
        self.lines.push(Level { level, result });
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
