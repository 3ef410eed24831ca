//! `replay`: the trials of a log made again, and compared with what it says.

use std::{fmt::Write as _, path::Path};

use serde::Serialize;
use serde_json::Value;
use tuner::{
    build::Problem,
    log::{Log, Run, RunLog, Trial},
    replay::{self, Again, Compiled, Difference, HeadError},
};

use crate::{diagnostic::Diagnostic, tuning::Workers, usage_error::UsageError};

/// How far a replay goes: each level has those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum ReplayLevel {
    /// Makes the sources again and compares them, which needs neither compiler nor device.
    #[default]
    Sources,
    /// Compiles them and compares the machine code.
    MachineCode,
    /// Runs them and compares their numbers with the reference.
    Numbers,
    /// Times them against each other and the vendor's library, and compares with what the log says; their numbers are not looked at apart.
    Speed,
}

/// What is replayed, and how far.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// How far.
    pub level: ReplayLevel,
    /// Only this run; by default all.
    pub run: Option<String>,
    /// Only so many of the fastest, those of the finals first; by default all, of speeds five.
    pub top: Option<usize>,
    /// Only these trials.
    pub trials: Vec<u64>,
    /// The processes that compile and measure.
    pub workers: Workers,
}

/// What happens in a replay.
#[derive(Debug)]
pub enum ReplayEvent<'a> {
    /// What is under way.
    Progress(&'a str),
    /// A run is done.
    Run(Replayed),
}

/// Who hears of it; an error ends the run under way.
type Seen<'a> = &'a mut dyn FnMut(ReplayEvent<'_>) -> Result<(), Diagnostic>;

/// What came of a replay.
#[derive(Debug, Default)]
pub struct Replays {
    /// How many trials are not as the log says.
    pub different: usize,
    /// Why runs could not be replayed: one that cannot is no reason to leave out the others.
    pub failed: Vec<Diagnostic>,
}

/// What came of one run of a log.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Replayed {
    /// Whether nothing is other than the log says.
    pub(crate) ok: bool,
    /// The run.
    pub(crate) run: String,
    /// How many trials were looked at.
    #[serde(rename = "trials")]
    pub(crate) asked: usize,
    /// How many trials the run has.
    #[serde(skip)]
    pub(crate) of: usize,
    /// What was compared, in words, with how many were the same.
    pub(crate) lines: Vec<Level>,
    /// What is other than the log says.
    pub(crate) differences: Vec<Differing>,
    /// The comparison of speeds.
    pub(crate) speeds: Vec<replay::Speed>,
    /// What is worth knowing besides.
    pub(crate) notes: Vec<String>,
}

/// What was compared.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub(crate) struct Level {
    /// What: sources, machine code, numbers.
    pub(crate) level: &'static str,
    /// How many were the same, in words.
    pub(crate) result: String,
}

/// A trial that is not as the log says.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub(crate) struct Differing {
    /// The trial.
    pub(crate) n: u64,
    /// What is other, in words.
    pub(crate) difference: String,
}

/// Makes the trials of a log again, and compares. Nothing that it holds is executed: candidates are made anew from its script and decisions.
/// `path` is what the log is called in errors.
///
/// # Errors
///
/// The log has no such run.
pub fn replay(
    path: &Path,
    log: &Log,
    options: &ReplayOptions,
    seen: Seen<'_>,
) -> Result<Replays, Diagnostic> {
    let wanted = |name: &String| options.run.as_ref().is_none_or(|it| it == name);
    let runs: Vec<_> = log.runs.iter().filter(|it| wanted(it.0)).map(|it| it.1).collect();
    if runs.is_empty() {
        return Err(Diagnostic::no_run(log, path, options.run.as_deref()));
    }
    let mut out = Replays::default();
    for it in runs {
        let head = match it.head() {
            Ok(head) => head,
            Err(err) => {
                out.failed.push(Diagnostic::log(&err));
                continue;
            }
        };
        match options.of_run(head, it, seen) {
            Ok(replayed) => {
                out.different += replayed.differences.len();
                seen(ReplayEvent::Run(replayed))?;
            }
            Err(err) => out.failed.push(err),
        }
    }
    Ok(out)
}

impl ReplayOptions {
    fn of_run(&self, head: &Run, log: &RunLog, seen: Seen<'_>) -> Result<Replayed, Diagnostic> {
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
            seen(ReplayEvent::Progress(&format!("making the source of trial {} again", trial.n)))?;
            match replay::check(&problem, &workload, &space, trial) {
                Ok(same) => again.push((same, trial)),
                Err(difference) => it.differ(trial.n, &difference),
            }
        }
        it.level("sources", format!("{} of {} identical", again.len(), it.asked));
        if self.level > ReplayLevel::Sources {
            self.beyond(head, log, &problem, again, &mut it, seen)?;
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
        seen: Seen<'_>,
    ) -> Result<(), Diagnostic> {
        // What did not compile then is not asked to compile now.
        again.retain(|(_, trial)| trial.bin.is_some());
        seen(ReplayEvent::Progress("starting workers"))?;
        let mut pool = if self.level == ReplayLevel::MachineCode {
            self.workers.compilers(&problem.target)?
        } else {
            self.workers.start(&problem.target)?
        };
        let elsewhere = pool.machine().filter(|here| here.name != head.machine.name).cloned();
        if let Some(here) = &elsewhere {
            it.notes.push(format!("it was measured on {}, and this is {}", head.machine.name, here.name));
        }
        let toolchain = replay::toolchain_difference(head, &problem.target);
        it.notes.extend(toolchain.clone());
        let mut going = || true;
        let mut replay = replay::Replay { problem, pool: &mut pool, going: &mut going };
        seen(ReplayEvent::Progress("compiling"))?;
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
        if self.level == ReplayLevel::Numbers {
            seen(ReplayEvent::Progress("verifying"))?;
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
        if self.level == ReplayLevel::Speed {
            seen(ReplayEvent::Progress("timing"))?;
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
        let top = self.top.or((self.level == ReplayLevel::Speed).then_some(5));
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
    /// Whether nothing is other than the log says.
    pub fn is_same(&self) -> bool {
        self.ok
    }

    /// As data, for `--json`.
    pub fn data(&self) -> Value {
        serde_json::to_value(self).expect("it is plain data")
    }

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
