//! What a run prints at its end.

use std::{io::Write, path::Path};

use schedule::Decisions;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{
    Rate, Stats,
    bench::tied,
    bootstrap::{Interval, LEAST_VALUES},
    log::{Finalist, Finals, Run, StepResult},
    tune::{Best, Ended, Exhausted, Stopped, Summary},
};

use crate::{
    diagnostic::Diagnostic,
    figures::{interval_words, rate_words, speed_words, spread_warning, time_words, times_words},
    term::report::Report,
    term::shell::Shell,
    term::table::{Table, counted},
    usage_error::UsageError,
};

/// What came out of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "the last line")]
pub(crate) struct Outcome<'a> {
    /// Whether any candidate gave a result.
    ok: bool,
    /// The name of the run.
    run: &'a str,
    /// The folder of its log.
    log: &'a Path,
    /// How many trials have ended, well or not.
    trials: u64,
    /// The fastest of the search.
    best: Option<BestTrial<'a>>,
    /// The winner of the finals, if it is a trial.
    winner: Option<Winner<'a>>,
    /// What ended the run before it was complete.
    stopped: Option<String>,
    /// The command that goes on.
    resume: Option<&'a str>,
    #[serde(skip)]
    head: &'a Run,
    #[serde(skip)]
    ended: &'a Ended,
}

/// The fastest trial of a search.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "FastestTrial")]
struct BestTrial<'a> {
    /// Its number.
    n: u64,
    /// GFLOPS at the median.
    gflops: f64,
    /// What was decided.
    decisions: &'a Decisions,
}

/// The trial that won the finals.
#[derive(Debug, Serialize, JsonSchema)]
struct Winner<'a> {
    /// Its number.
    n: u64,
    /// SHA-256 of the workload, the target and the steps, in hexadecimal.
    id: &'a str,
    /// What was decided.
    decisions: &'a Decisions,
}

impl Report for Outcome<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let out = &mut *shell.out;
        summary(self.head, self.log, &self.ended.summary, out)?;
        if let Some(finals) = &self.ended.finals {
            print_finals(self.head, finals, out)?;
        }
        print_winner(self.head, self.ended, out)?;
        print_steps(self.head, &self.ended.steps, out)
    }
}

/// Prints the end of a run, and fails if it has no result.
pub(super) fn ended(head: &Run, folder: &Path, it: &Ended, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let resume = format!("tilewright resume {}", shell_word(folder));
    shell.report(&Outcome {
        ok: it.summary.best.is_some(),
        run: &head.run,
        log: folder,
        trials: it.summary.trials,
        best: it.summary.best.as_ref().map(|Best { n, gflops, decisions, seconds: _ }| BestTrial {
            n: *n,
            gflops: *gflops,
            decisions,
        }),
        winner: it.winner.as_ref().map(|it| Winner { n: it.n, id: &it.id, decisions: &it.decisions }),
        stopped: it.stopped.as_ref().map(ToString::to_string),
        resume: it.stopped.as_ref().map(|_| resume.as_str()),
        head,
        ended: it,
    })?;
    if let Some(why) = &it.stopped {
        // Where there is nobody to measure, or the finals fail, the run did not do what it was asked to.
        let error = match why {
            Stopped::User(_) => {
                shell.note(&format!("{why}; go on with: {resume}"));
                return Ok(());
            }
            Stopped::NoWorker(_) => UsageError::NoCandidate,
            Stopped::Finals(_) => UsageError::Finals,
        };
        return Err(Diagnostic::failed(error, why.to_string()).help(format!("try again with: {resume}")));
    }
    if it.summary.best.is_some() {
        return Ok(());
    }
    Err(Diagnostic::failed(UsageError::NoCandidate, "no candidate gave a result")
        .help(no_result(head, folder, it)))
}

/// What to do about a run without a result.
fn no_result(head: &Run, folder: &Path, it: &Ended) -> String {
    let folder = shell_word(folder);
    match &it.summary {
        _ if head.plan.trials == 0 => "no trials were asked for: give `--trials` one or more".to_owned(),
        Summary { trials: 0, rejected, .. } if rejected.is_empty() => match it.exhausted {
            Exhausted::Space => {
                let script = shell_word(Path::new(&head.script.name));
                format!(
                    "the constraints admit none of the {} points of the space: `tilewright show {script} --emit space` \
                     says what each refuses",
                    head.script.size
                )
            }
            Exhausted::Time | Exhausted::Trials => {
                "the time was over before the first candidate was ready: give `--time` more".to_owned()
            }
        },
        // Those that a step refuses are counted and not written down: there may be millions.
        Summary { trials: 0, .. } => {
            "each was refused before it was compiled: `tilewright check` of the script says why the first is"
                .to_owned()
        }
        Summary { ok: 0, .. } => format!("`tilewright log cat {folder}` shows why each failed"),
        Summary { .. } => format!(
            "each result is faster than this machine can be, and none is believed: `tilewright log cat {folder}` shows \
             them"
        ),
    }
}

fn summary(head: &Run, folder: &Path, it: &Summary, out: &mut dyn Write) -> Result<(), Diagnostic> {
    let sizes: Vec<_> = head.script.params.iter().map(|(name, it)| format!("{name}={it}")).collect();
    writeln!(out, "workload   {} {}", head.workload.name, sizes.join(" ").replace('"', ""))?;
    writeln!(out, "machine    {} ({}, {} units)", head.machine.name, head.machine.arch, head.machine.units)?;
    let failed: u64 = it.failed.values().sum();
    writeln!(
        out,
        "trials     {}: {} measured ({} of them left after the screen), {failed} failed; {} more refused before",
        it.trials,
        it.ok,
        it.screened,
        it.rejections()
    )?;
    for (kind, count) in &it.failed {
        writeln!(out, "failed     {count} × {kind}: {}", kind.words())?;
    }
    for (reason, it) in &it.rejected {
        writeln!(out, "refused    {} × {reason}; the first: {}", it.count, first_line(&it.example))?;
    }
    writeln!(out, "log        {} ({})", folder.display(), head.run)?;
    Ok(())
}

fn print_finals(head: &Run, it: &Finals, out: &mut dyn Write) -> Result<(), Diagnostic> {
    let library = tuner::library(&head.machine);
    writeln!(out)?;
    let floor = it.noise_floor.map_or_else(|| no_floor(it).to_owned(), interval_words);
    writeln!(
        out,
        "finals     {}, {}; the first against itself: {floor}",
        counted(it.rounds, "round"),
        it.regime.as_str()
    )?;
    let work = head.workload.work();
    let rate = Rate::of(&work);
    let mut table = Table::new(["trial", rate.unit(), "against the first", &format!("against {library}")]);
    let names: Vec<String> = it.finalists.iter().map(finalist_words).collect();
    for (finalist, name) in it.finalists.iter().zip(&names) {
        let ratio = |it: Option<Interval>| it.map_or_else(|| "—".to_owned(), interval_words);
        let speed = match (&finalist.result, &finalist.error) {
            (Some(result), _) => speed_words(rate.speed(&work, result.stats.median)),
            (None, Some(error)) => error.kind.to_string(),
            (None, None) => "—".to_owned(),
        };
        table.row([name.clone(), speed, ratio(finalist.versus_winner), ratio(finalist.versus_baseline)]);
    }
    table.print(out)?;
    let loud = it
        .finalists
        .iter()
        .zip(&names)
        .filter_map(|(it, name)| Some((name.as_str(), it.result.as_ref()?.stats)));
    if let Some(words) = spread_warning(loud) {
        writeln!(out, "warning    {words}")?;
    }
    if let Some(baseline) = &it.baseline {
        let of =
            if baseline.tried > 1 { format!(", the best of {} ways", baseline.tried) } else { String::new() };
        let median = Stats::of(&baseline.seconds).map(|it| rate_words(&work, it.median));
        let speed = median.unwrap_or_else(|| "no time".to_owned());
        writeln!(out, "baseline   {}: {speed}{of}", baseline.name)?;
    }
    Ok(())
}

fn print_winner(head: &Run, it: &Ended, out: &mut dyn Write) -> Result<(), Diagnostic> {
    let first = it.finals.as_ref().and_then(|it| it.finalists.first());
    let Some(winner) = &it.winner else {
        if it.stopped.is_some() && first.is_none() {
            return print_best(head, it, out);
        }
        if first.is_some_and(|it| it.n.is_none()) {
            writeln!(out, "winner     an incumbent: no trial was faster")?;
        }
        return Ok(());
    };
    let result = first.and_then(|it| it.result.as_ref()).or(winner.result.as_ref());
    let Some(result) = result else { return Ok(()) };
    let speed = speed_of_run(head, result.stats.median);
    writeln!(out, "winner     trial {}: {speed}", winner.n)?;
    print_decisions(&winner.decisions, out)?;
    if let Some(words) = it.finals.as_ref().and_then(tied_words) {
        writeln!(out, "           {words}")?;
    }
    Ok(())
}

/// The best so far of a run that names no winner.
fn print_best(head: &Run, it: &Ended, out: &mut dyn Write) -> Result<(), Diagnostic> {
    let Some(best) = &it.summary.best else { return Ok(()) };
    let speed = speed_of_run(head, best.seconds);
    let finals = if head.plan.finalists == 0 { "" } else { "; the finals were not held" };
    writeln!(out, "best       trial {}: {speed}, in the search so far{finals}", best.n)?;
    print_decisions(&best.decisions, out)
}

fn speed_of_run(head: &Run, seconds: f64) -> String {
    let part = head.roofline.part(seconds);
    let part = part.map(|it| format!(", {:.1} % of the roofline", 100.0 * it)).unwrap_or_default();
    format!("{}, {}{part}", rate_words(&head.workload.work(), seconds), time_words(seconds))
}

fn print_decisions(it: &Decisions, out: &mut dyn Write) -> Result<(), Diagnostic> {
    if !it.is_empty() {
        writeln!(out, "           {}", decision_words(it))?;
    }
    Ok(())
}

/// Why there is no noise floor.
fn no_floor(it: &Finals) -> &'static str {
    match it.rounds {
        ..LEAST_VALUES => "too few rounds to tell",
        _ => "the clock was too unsteady to tell",
    }
}

fn finalist_words(it: &Finalist) -> String {
    let name = it.n.map(|it| it.to_string()).or_else(|| it.name.clone());
    name.unwrap_or_else(|| "incumbent".to_owned())
}

/// Who may as well have won: `tied with 117, 80; fewer registers and less shared memory decide`.
fn tied_words(it: &Finals) -> Option<String> {
    let tied: Vec<String> = tied(it).into_iter().map(|at| finalist_words(&it.finalists[at])).collect();
    (!tied.is_empty())
        .then(|| format!("tied with {}; fewer registers, then less shared memory, decide", tied.join(", ")))
}

/// What each step of the winner's schedule is worth.
fn print_steps(head: &Run, steps: &[StepResult], out: &mut dyn Write) -> Result<(), Diagnostic> {
    if steps.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    // Each was measured by itself, so that these are no ratios of pairs.
    let work = head.workload.work();
    let rate = Rate::of(&work);
    let mut table = Table::new([rate.unit(), "unpaired", "after the step"]);
    let mut before: Option<f64> = None;
    for it in steps {
        let seconds = it.result.as_ref().map(|it| it.stats.median);
        let change = match (it.no_effect, seconds.zip(before)) {
            (true, _) => "no effect".to_owned(),
            (false, Some((now, before))) => times_words(before / now),
            (false, None) => String::new(),
        };
        let value = match (seconds, &it.error) {
            (Some(seconds), _) => speed_words(rate.speed(&work, seconds)),
            (None, Some(error)) => error.kind.to_string(),
            (None, None) => "—".to_owned(),
        };
        let step = if it.step.is_empty() { "(none: the workload as it is)" } else { &it.step };
        table.row([value, change, step.to_owned()]);
        before = seconds.or(before);
    }
    table.print(out)?;
    Ok(())
}

/// `bm=64 ti=8x4x2`.
pub(crate) fn decision_words(it: &Decisions) -> String {
    it.iter().map(|(name, it)| format!("{name}={it}")).collect::<Vec<_>>().join(" ")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A path as a shell takes it.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |it: char| it.is_alphanumeric() || "/._-".contains(it);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
