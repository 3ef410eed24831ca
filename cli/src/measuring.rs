//! `run`: a schedule built, verified, and timed beside the library of its vendor.

use codegen::device::MachineInfo;
use ir::{Arch, Target};
use schedule::{script::ScriptTarget, workload::Param};
use tuner::{
    Bench, BenchError, Candidate, Case, CaseError, Comparison, Environment, Measured, Progress, Record,
    RecordedStep, Regime, Settings, sha256,
};

use crate::{
    build::{Built, build, open},
    clock,
    diagnostic::Diagnostic,
    plan::Plan,
};

/// How to measure.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The target, instead of the script's.
    pub target: Option<ScriptTarget>,
    /// Where inputs, sampled elements and the order of measurement come from.
    pub seed: u64,
    /// The state of the machine.
    pub regime: Regime,
    /// CPU threads, 0 for all.
    pub threads: usize,
}

impl Default for RunOptions {
    /// On the script's target, cool, from seed 1, on all cores.
    fn default() -> RunOptions {
        RunOptions { target: None, seed: 1, regime: Regime::Cool, threads: 0 }
    }
}

/// What a run found.
#[derive(Debug)]
pub struct Run {
    /// The machine.
    pub machine: MachineInfo,
    /// The program that was measured.
    pub built: Built,
    /// All that was measured: the program first, the library beside it.
    pub comparison: Comparison,
    /// The line for a log.
    pub record: Record,
}

impl Run {
    /// The program's result: its time, its GFLOPS and whether its numbers are right.
    pub fn measured(&self) -> &Measured {
        &self.comparison.candidates[0]
    }
}

/// Builds a schedule, verifies its numbers before and after timing, and times it in rounds with the vendor's library.
///
/// Wrong numbers are no error of this function: [`Run::measured`] then has a failure and no time. `seen` hears how far it is.
/// Kernels run in the process that calls this; the command `run` starts one for them.
pub fn run(plan: &Plan, options: &RunOptions, seen: &mut dyn FnMut(Progress<'_>)) -> Result<Run, Diagnostic> {
    plan.expect_dims()?;
    let wanted = plan.target(options.target.as_ref(), None);
    // What can be refused without a machine is refused before one is opened.
    plan.schedule(&wanted, None)?;
    let mut machine = open(&wanted)?;
    let info = machine.info().clone();
    let target = plan.target(options.target.as_ref(), Arch::parse(&info.arch));
    let built = build(plan.schedule(&target, None)?.func(), &target, &plan.dims)?;
    let case = case(plan, options.seed, target == Target::Cpu)?;
    let settings = Settings { threads: options.threads, ..Settings::new(options.regime, info.arch != "cpu") };
    let inputs = case.inputs();
    let mut reference = case.reference_on(&info, &inputs).map_err(|err| bench_error(err.into()))?;
    let mut bench = Bench::new(machine.as_mut(), &case, &inputs, &mut reference).map_err(bench_error)?;
    let candidate = Candidate { label: plan.path.display().to_string(), program: &built.program };
    let comparison = bench.compare(&[candidate], &settings, seen);
    let environment = Environment::new(&info, &case, &settings);
    let record = record(plan, &built, &case, &comparison, &comparison.candidates[0], environment);
    Ok(Run { machine: info, built, comparison, record })
}

/// The case of a plan, if its tensors fit the memory here.
pub(crate) fn case(plan: &Plan, seed: u64, on_cpu: bool) -> Result<Case, Diagnostic> {
    let case = Case::new(plan.func.clone(), plan.dims.clone(), seed);
    let case = case.and_then(|it| it.expect_memory(on_cpu).map(|()| it));
    case.map_err(|err: CaseError| Diagnostic::failed(&err, format!("{}: {err}", plan.script.workload.value)))
}

/// The error of a bench.
pub(crate) fn bench_error(err: BenchError) -> Diagnostic {
    match err {
        BenchError::Device(err) => Diagnostic::device(&err),
        BenchError::Reference(ref inner) => Diagnostic::failed(inner, err.to_string()),
    }
}

/// The log's line about a program.
pub(crate) fn record(
    plan: &Plan,
    built: &Built,
    case: &Case,
    comparison: &Comparison,
    measured: &Measured,
    environment: Environment,
) -> Record {
    let value = |it: &Param| serde_json::to_value(it).expect("parameters are plain data");
    let script = tuner::Script {
        name: plan.path.display().to_string(),
        text: plan.text.text().to_owned(),
        workload: plan.script.workload.value.clone(),
        params: plan.params.iter().map(|(name, it)| (name.clone(), value(it))).collect(),
        steps: plan.steps.iter().cloned().map(RecordedStep::Known).collect(),
    };
    let mut record = Record::new(case, comparison, measured, script, environment, clock::now());
    record.ir_sha256 = sha256(&ir::text::print(&built.func).text);
    record.source_sha256 = sha256(&built.source);
    record.launches.clone_from(&built.program.launches);
    record.resources = (!built.resources.is_empty())
        .then(|| serde_json::to_value(&built.resources).expect("they are plain data"));
    record
}
