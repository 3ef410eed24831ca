//! One compiled program at many values of its symbolic dimensions: each verified, and timed where that is wanted.

use codegen::device::{Machine, MachineInfo};
use indexmap::IndexMap;
use ir::{Arch, Name, Target};
use schedule::script::ScriptTarget;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{Bench, Case, Environment, Failure, Measured, Rate, Tensor, Verification, Work};

use crate::{
    build::{Built, build, open},
    diagnostic::Diagnostic,
    figures::{failure_words, speed_words, time_words},
    measuring::{bench_error, case, record},
    options::dims,
    options::measure::Measure,
    plan::Plan,
    progress::compare,
    records::log,
    term::shell::Shell,
    term::table::{Table, grouped},
    usage_error::UsageError,
};

/// How many failures are shown in full.
const MAX_FAILURES_SHOWN: usize = 5;

/// What to do at each value.
pub(crate) struct Sweep<'a> {
    pub(crate) measure: &'a Measure,
    /// Whether to time as well.
    pub(crate) time: bool,
    /// What the script is called.
    pub(crate) name: &'a str,
}

/// What came out at all values.
#[derive(Default)]
pub(crate) struct Summary {
    /// How many were right.
    right: usize,
    compared: usize,
    elements: usize,
    /// The largest error in parts of the tolerance, and where it was.
    worst: Option<(f64, String)>,
    failures: Vec<Diagnostic>,
}

impl Summary {
    /// Adds right numbers.
    pub(crate) fn right(&mut self, at: &str, verdict: &Verification) {
        self.right += 1;
        for it in &verdict.outputs {
            self.compared += it.compared;
            self.elements += it.elements;
        }
        let error = verdict.error_in_tolerances();
        if self.worst.as_ref().is_none_or(|it| error > it.0) {
            self.worst = Some((error, at.to_owned()));
        }
    }

    /// Adds what went wrong.
    pub(crate) fn wrong(&mut self, report: Diagnostic) {
        self.failures.push(report);
    }

    /// Prints what was right, and gives what was not.
    pub(crate) fn end(mut self, of: usize, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        shell.done();
        if !shell.json {
            write!(shell.out, "verified   {} of {of} sizes with one program", self.right)?;
            if let Some((worst, at)) = &self.worst {
                let all = if self.compared == self.elements { "" } else { ", all looked at" };
                write!(
                    shell.out,
                    ": {} of {} elements compared{all}; largest error {worst:.3} of the tolerance, at {at}",
                    grouped(self.compared as u128),
                    grouped(self.elements as u128)
                )?;
            }
            writeln!(shell.out)?;
        }
        let untold = self.failures.len().saturating_sub(MAX_FAILURES_SHOWN);
        self.failures.truncate(MAX_FAILURES_SHOWN);
        if untold > 0 {
            self.failures
                .push(Diagnostic::failed(UsageError::NoResult, format!("and at {untold} other sizes")));
        }
        Diagnostic::all(self.failures).map_or(Ok(()), Err)
    }
}

impl Sweep<'_> {
    /// Compiles once, and goes through all values.
    pub(crate) fn run(
        &self,
        mut plan: Plan,
        all: &[IndexMap<Name, i64>],
        asked: Option<&ScriptTarget>,
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        if self.measure.log.is_some() && !self.time {
            return Err(Diagnostic::usage(
                UsageError::Options,
                "nothing is measured, so there is nothing to log",
            )
            .help("`--time` measures at each value".to_owned()));
        }
        let wanted = plan.target(asked, None);
        // What can be refused without a machine is refused before one is opened.
        plan.schedule(&wanted, None)?;
        let mut machine = open(&wanted)?;
        let info = machine.info().clone();
        let target = plan.target(asked, Arch::parse(&info.arch));
        shell.progress("compiling");
        let mut built = build(plan.schedule(&target, None)?.func(), &target, &all[0])?;
        if !shell.json {
            writeln!(shell.out, "workload   {}", plan.headline())?;
            writeln!(shell.out, "machine    {} ({}, {} units)", info.name, info.arch, info.units)?;
        }
        let mut summary = Summary::default();
        let mut rows = vec![];
        let mut inputs = IndexMap::new();
        for (n, values) in all.iter().enumerate() {
            let at = dims::words(values);
            shell.progress(&format!("{at}: {} of {}", n + 1, all.len()));
            plan.dims.clone_from(values);
            built.program = built.at(values)?;
            let case = case(&plan, self.measure.seed, target == Target::Cpu)?;
            inputs = case.inputs_again(inputs);
            let res = self.one(&plan, &built, &case, &inputs, machine.as_mut(), &info, shell)?;
            rows.extend(res.row.map(|it| (at.clone(), it)));
            shell.line(&AtValues {
                ok: res.failure.is_none(),
                dims: values,
                verified: res.verified.as_ref(),
                failure: res.failure.as_ref().map(|it| it.0.as_str()),
                gflops: res.gflops,
                versus_baseline: res.ratio,
            })?;
            match (res.failure, &res.verified) {
                (None, Some(verdict)) => summary.right(&at, verdict),
                (None, None) => {}
                (Some((words, lost)), _) => {
                    summary.wrong(Diagnostic::failed(
                        UsageError::NoResult,
                        format!("{} at {at}: {words}", self.name),
                    ));
                    if lost {
                        break;
                    }
                }
            }
        }
        shell.done();
        if self.time && !shell.json {
            table(&rows).print(shell.out)?;
        }
        summary.end(all.len(), shell)
    }

    /// One value.
    #[expect(clippy::too_many_arguments, reason = "a plan, what became of it, and where to run and tell it")]
    fn one(
        &self,
        plan: &Plan,
        built: &Built,
        case: &Case,
        inputs: &IndexMap<Name, Tensor>,
        machine: &mut dyn Machine,
        info: &MachineInfo,
        shell: &mut Shell<'_>,
    ) -> Result<One, Diagnostic> {
        let mut reference = case.reference_on(info, inputs).map_err(|err| bench_error(err.into()))?;
        let mut bench = Bench::new(machine, case, inputs, &mut reference).map_err(bench_error)?;
        if !self.time {
            let found = bench.verify(&built.program);
            return Ok(One::verified(found));
        }
        let settings = self.measure.settings(info);
        let comparison =
            compare(&mut bench, &[(self.name, built)], &settings, &dims::words(&case.dims), shell);
        let measured = &comparison.candidates[0];
        let environment = Environment::new(info, case, &settings);
        let record = record(plan, built, case, &comparison, measured, environment);
        log(self.measure.log.as_deref(), std::slice::from_ref(&record))?;
        Ok(One::measured(measured, case.work))
    }
}

/// What came out at one combination of values of the symbolic dimensions.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "at values of symbolic dimensions")]
pub(crate) struct AtValues<'a> {
    /// Whether the numbers are right, and there is a time where one was asked for.
    ok: bool,
    /// The values.
    dims: &'a IndexMap<Name, i64>,
    /// The verdict on the numbers, if it came so far.
    verified: Option<&'a Verification>,
    /// What is wrong, in words.
    failure: Option<&'a str>,
    /// GFLOPS at the median, if it was timed.
    gflops: Option<f64>,
    /// How many times as fast as the vendor's library in the same rounds.
    versus_baseline: Option<tuner::Ratio>,
}

/// What came out at one value.
struct One {
    verified: Option<Verification>,
    /// What is wrong, and whether the machine is lost with it.
    failure: Option<(String, bool)>,
    gflops: Option<f64>,
    ratio: Option<tuner::Ratio>,
    /// What a table says of it.
    row: Option<Row>,
}

/// A row of the table: how long it took, if it has a result.
struct Row {
    work: Work,
    seconds: Option<f64>,
    ratio: String,
}

fn table(rows: &[(String, Row)]) -> Table {
    let rate = Rate::of_all(rows.iter().map(|(_, it)| it.work));
    let mut table = Table::new(["size", "time", rate.unit(), "of the library"]);
    for (at, it) in rows {
        let cell = |words: &dyn Fn(f64) -> String| it.seconds.map_or_else(String::new, words);
        let speed = cell(&|seconds| speed_words(rate.speed(&it.work, seconds)));
        table.row([at.clone(), cell(&time_words), speed, it.ratio.clone()]);
    }
    table
}

impl One {
    fn verified(found: Result<Verification, Failure>) -> One {
        let (verified, failure) = match found {
            Ok(verdict) => {
                let wrong = verdict.outputs.iter().find(|it| it.wrong > 0);
                let words = wrong.map(|it| (format!("its numbers are wrong: {}", it.wrong_words()), false));
                (Some(verdict), words)
            }
            Err(failure) => (None, Some((failure.to_string(), is_lost(&failure)))),
        };
        One { verified, failure, gflops: None, ratio: None, row: None }
    }

    fn measured(it: &Measured, work: Work) -> One {
        let lost = it.failure.as_ref().is_some_and(is_lost);
        let failure = failure_words(it).map(|words| (words, lost));
        let ratio = it.versus_baseline.map_or_else(String::new, |it| format!("{:.3}", it.median));
        One {
            verified: it.after.clone().or_else(|| it.before.clone()),
            failure,
            gflops: it.gflops,
            ratio: it.versus_baseline,
            row: Some(Row { work, seconds: it.stats.map(|it| it.median), ratio }),
        }
    }
}

/// Whether nothing runs on the machine any more.
fn is_lost(failure: &Failure) -> bool {
    use codegen::device::DeviceError::{Hang, Lost};
    matches!(failure, Failure::Device(Lost { .. } | Hang { .. }))
}
