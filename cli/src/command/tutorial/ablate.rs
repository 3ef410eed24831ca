//! `tilewright tutorial --ablate`: what each step of a rung is worth, by leaving it out.
//!
//! All schedules that build are verified and timed in one comparison, so that a step's worth is a ratio within rounds. The
//! whole schedule takes part twice; what it shows against itself is the noise floor, and verdicts are those of `compare`:
//! that a step has no effect is told only where it is shown.

use codegen::device::Machine;
use ir::Target;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{
    Bench, Comparison, Failure, Measured, Rate, Ratio, Settings,
    bench::{self, MARGIN},
};

use crate::{
    build::{Built, build},
    diagnostic::Diagnostic,
    figures::{failure_words, measured_words, range_words, ratio_words, times_words},
    ladder::report::versus,
    measuring::{bench_error, case},
    plan::Plan,
    progress::compare,
    term::markup::shortened,
    term::report::Report,
    term::shell::Shell,
    term::table::Table,
    term::wrap::wrapped,
    usage_error::UsageError,
};

use super::without::{Needed, Without, without_each};

/// A rung at a size.
pub(super) struct Ablation<'a> {
    pub(super) ladder: &'a str,
    pub(super) rung: &'a str,
    pub(super) size: &'a str,
    pub(super) plan: &'a Plan,
    pub(super) target: &'a Target,
}

/// A step and what came of leaving it out.
struct Row {
    without: Without,
    /// Its place in the comparison, unless the code is that of the whole schedule.
    candidate: Option<usize>,
}

/// What a step does for the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StepVerdict {
    Helps,
    #[serde(rename = "no effect")]
    NoEffect,
    #[serde(rename = "cannot tell")]
    CannotTell,
    Hurts,
    #[serde(rename = "no effect (the same code)")]
    SameCode,
    Needed,
    #[serde(rename = "does not run")]
    Failed,
}

/// A step that was left out.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "a step that was left out")]
pub(crate) struct LeftOut<'a> {
    /// The step, from 1.
    step: usize,
    /// The step as a script has it.
    text: String,
    /// The later steps that went with it.
    with: Vec<usize>,
    /// Why it cannot be left out.
    needed: Option<NeededBy<'a>>,
    /// GFLOPS without it.
    gflops: Option<f64>,
    /// Why there are none.
    failure: Option<String>,
    /// How many times as fast it makes the rest.
    worth: Option<Ratio>,
    /// What it does for the time.
    verdict: StepVerdict,
}

/// What refuses a schedule without a step.
#[derive(Debug, Serialize, JsonSchema)]
struct NeededBy<'a> {
    /// The later step that refuses, from 1; without one lowering does, or the compiler.
    step: Option<usize>,
    /// The code of the refusal.
    code: String,
    /// Its words.
    error: &'a str,
}

/// The last line of `--ablate`.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "the last line of --ablate")]
pub(crate) struct Ablated<'a> {
    /// Whether the whole schedule has a result.
    ok: bool,
    /// The ladder.
    ladder: &'a str,
    /// The rung.
    rung: &'a str,
    /// The size.
    size: &'a str,
    /// GFLOPS with all steps.
    gflops: Option<f64>,
    /// What the whole schedule shows against itself.
    noise: Option<Ratio>,
    #[serde(skip)]
    of: (&'a Ablation<'a>, &'a [Row], &'a Comparison),
}

impl Report for Ablated<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let (ablation, rows, found) = self.of;
        ablation.print(rows, found, shell)
    }
}

impl Ablation<'_> {
    /// Measures and tells.
    pub(super) fn run(
        &self,
        machine: &mut dyn Machine,
        seed: u64,
        settings: &Settings,
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        let full = build(self.plan.schedule(self.target, None)?.func(), self.target, &self.plan.dims)?;
        let (rows, built) = self.build_all(&full, shell);
        let case = case(self.plan, seed, *self.target == Target::Cpu)?;
        let inputs = case.inputs();
        let mut reference =
            case.reference_on(machine.info(), &inputs).map_err(|err| bench_error(err.into()))?;
        let mut bench = Bench::new(machine, &case, &inputs, &mut reference).map_err(bench_error)?;
        let twins = [("the whole schedule", &full), ("the same again", &full)];
        let all: Vec<_> =
            twins.into_iter().chain(built.iter().map(|(it, built)| (it.as_str(), built))).collect();
        let settings = Settings { baseline: false, ..settings.clone() };
        let comparison = compare(&mut bench, &all, &settings, self.size, shell);
        shell.done();
        for row in &rows {
            shell.line(&self.line(row, &comparison))?;
        }
        shell.report(&Ablated {
            ok: comparison.candidates[..2].iter().all(|it| it.failure.is_none()),
            ladder: self.ladder,
            rung: self.rung,
            size: self.size,
            gflops: comparison.candidates[0].gflops,
            noise: versus(&comparison.candidates[0], &comparison.candidates[1]),
            of: (self, &rows, &comparison),
        })?;
        // That a machine cannot run what is left without a step is an answer; wrong numbers never are.
        let is_wrong = |it: &&Measured| {
            matches!(it.failure, Some(Failure::Wrong | Failure::IllConditioned | Failure::WrongAfterTiming))
        };
        let (whole, others) = comparison.candidates.split_at(2);
        let failed = whole.iter().find(|it| it.failure.is_some()).or(others.iter().find(is_wrong));
        match failed.map(|it| (it, failure_words(it).unwrap_or_default())) {
            None => Ok(()),
            Some((it, words)) => {
                Err(Diagnostic::failed(UsageError::NoResult, format!("{} has no result: {words}", it.label)))
            }
        }
    }

    fn build_all(&self, full: &Built, shell: &mut Shell<'_>) -> (Vec<Row>, Vec<(String, Built)>) {
        let (mut rows, mut built) = (vec![], vec![]);
        for mut without in without_each(self.plan, self.target) {
            let label = format!("without step {}", without.at + 1);
            shell.progress(&format!("compiling {label}"));
            let made = match &without.program {
                Ok(func) => build(func, self.target, &self.plan.dims).map(Some),
                Err(_) => Ok(None),
            };
            let mut candidate = None;
            match made {
                Ok(Some(it)) if it.source != full.source => {
                    // Before the others come the whole schedule and its twin.
                    candidate = Some(built.len() + 2);
                    built.push((label, it));
                }
                Ok(Some(_) | None) => {}
                Err(err) => {
                    let message = err.message().to_owned();
                    without.program = Err(Needed { by: None, code: err.code(), message });
                }
            }
            rows.push(Row { without, candidate });
        }
        (rows, built)
    }

    fn print(&self, rows: &[Row], found: &Comparison, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let out = &mut *shell.out;
        let whole = &found.candidates[0];
        let rate = Rate::of(&found.work);
        let (speed, unit) = (measured_words(rate, found, whole).unwrap_or("no".to_owned()), rate.unit());
        writeln!(
            out,
            "{}, rung {}, at {}: {speed} {unit} with all steps",
            self.ladder, self.rung, self.size
        )?;
        if let Some(it) = versus(whole, &found.candidates[1]) {
            writeln!(out, "noise floor: the same program is {} as itself", ratio_words(&it, "as fast"))?;
        }
        writeln!(
            out,
            "\nWithout one step, all in the same rounds; worth is how many times as fast it makes the rest"
        )?;
        let mut table =
            Table::new(["step", "", &format!("{unit} without"), "worth", "95 % interval", "verdict"]);
        for row in rows.iter().filter(|it| it.without.program.is_ok()) {
            table.row(self.cells(row, found));
        }
        table.print(out)?;
        let needed = rows.iter().filter_map(|it| Some((&it.without, it.without.program.as_ref().err()?)));
        let needed: Vec<_> = needed.collect();
        if !needed.is_empty() {
            writeln!(out, "\nNeeded: without these steps the rest is refused")?;
        }
        for (it, why) in needed {
            wrapped(
                &format!("{}. {}: {}", it.at + 1, self.word(it.at), self.reason(why)),
                "  ",
                "     ",
                out,
            )?;
        }
        Ok(())
    }

    fn cells(&self, row: &Row, found: &Comparison) -> Vec<String> {
        let at = row.without.at;
        let mut cells = vec![(at + 1).to_string(), shortened(&self.word(at), 40)];
        let dash = || "—".to_owned();
        let failure = row.candidate.and_then(|it| failure_words(&found.candidates[it]));
        match (row.candidate, worth(row, found), failure) {
            (_, _, Some(failure)) => cells.extend([dash(), dash(), dash(), format!("✗ {failure}")]),
            (Some(candidate), Some(ratio), None) => cells.extend([
                measured_words(Rate::of(&found.work), found, &found.candidates[candidate])
                    .unwrap_or_else(dash),
                times_words(ratio.median),
                ratio.interval().map_or_else(dash, range_words),
                verdict(row, found).as_str().to_owned(),
            ]),
            (_, _, None) => cells.extend([dash(), dash(), dash(), StepVerdict::SameCode.as_str().to_owned()]),
        }
        if !row.without.with.is_empty() {
            let last = cells.pop().unwrap_or_default();
            let numbers: Vec<String> = row.without.with.iter().map(|it| (it + 1).to_string()).collect();
            cells.push(format!("{last}; with it went {}", numbers.join(", ")));
        }
        cells
    }

    fn line<'a>(&self, row: &'a Row, found: &Comparison) -> LeftOut<'a> {
        let it = &row.without;
        let needed = it.program.as_ref().err().map(|why| NeededBy {
            step: why.by.map(|it| it + 1),
            code: why.code.to_string(),
            error: &why.message,
        });
        let measured = row.candidate.map(|it| &found.candidates[it]);
        LeftOut {
            step: it.at + 1,
            text: self.word(it.at),
            with: it.with.iter().map(|it| it + 1).collect(),
            needed,
            gflops: measured.and_then(|it| it.gflops),
            failure: measured.and_then(failure_words),
            worth: worth(row, found),
            verdict: verdict(row, found),
        }
    }

    fn word(&self, at: usize) -> String {
        self.plan.steps[at].to_ron()
    }

    fn reason(&self, why: &Needed) -> String {
        let by = why.by.map(|it| format!(" (step {}, {})", it + 1, self.plan.steps[it].name()));
        format!("{} {}{}", why.code, why.message, by.unwrap_or_default())
    }
}

/// How many times as fast the whole schedule is as the one without a step.
fn worth(row: &Row, found: &Comparison) -> Option<Ratio> {
    let measured = &found.candidates[row.candidate?];
    versus(&found.candidates[0], measured)
}

fn verdict(row: &Row, found: &Comparison) -> StepVerdict {
    let noise = versus(&found.candidates[0], &found.candidates[1]).and_then(|it| it.interval());
    match (worth(row, found), row.candidate, &row.without.program) {
        (_, _, Err(_)) => StepVerdict::Needed,
        (None, None, Ok(_)) => StepVerdict::SameCode,
        (None, Some(_), Ok(_)) => StepVerdict::Failed,
        (Some(it), _, Ok(_)) => match bench::verdict(MARGIN, it.interval(), noise) {
            bench::Verdict::Faster => StepVerdict::Helps,
            bench::Verdict::Slower => StepVerdict::Hurts,
            bench::Verdict::Same => StepVerdict::NoEffect,
            bench::Verdict::Ambiguous => StepVerdict::CannotTell,
        },
    }
}

impl StepVerdict {
    fn as_str(self) -> &'static str {
        match self {
            StepVerdict::Helps => "helps",
            StepVerdict::NoEffect => "no effect",
            StepVerdict::CannotTell => "cannot tell",
            StepVerdict::Hurts => "hurts",
            StepVerdict::SameCode => "no effect (the same code)",
            StepVerdict::Needed => "needed",
            StepVerdict::Failed => "does not run",
        }
    }
}
