//! What is exported: a candidate, from a script or from a trial of a tuning log, with where it comes from.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use ir::{Func, Module, Name, Target};
use schedule::{Step, script::ScriptTarget, workload::Param};
use serde_json::{Value, json};
use tuner::{
    build::{Problem, generate, target_word},
    log::{Run, RunLog, Trial},
    replay,
};

use super::name;
use crate::{
    build::{found_arch, lower, source},
    diagnostic::Diagnostic,
    plan::Plan,
    usage_error::UsageError,
};

/// The size of a symbolic dimension that the user gives none: no power of two, so that tails are run.
const DEFAULT_SIZE: i64 = 250;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// A schedule script; or a tuning log, whose best trial is exported, or with `LOG:N` trial N.
    pub(crate) what: &'a Path,
    /// What the bundle is called, instead of the workload's name.
    pub(crate) name: Option<&'a str>,
    /// What to compile for, instead of the script's or the log's.
    pub(crate) target: Option<&'a ScriptTarget>,
    /// Parameters of a script.
    pub(crate) params: &'a [(String, Param)],
    /// Sizes of symbolic dimensions.
    pub(crate) dims: &'a [(Name, i64)],
    /// With a log of several runs: which.
    pub(crate) run: Option<&'a str>,
}

/// A scheduled and lowered program, and what made it.
#[derive(Debug)]
pub(crate) struct Subject {
    /// What the bundle is called.
    pub(crate) name: String,
    /// The unscheduled program: what the numbers must be.
    pub(crate) plain: Func,
    /// The sizes of symbolic dimensions that its own launcher runs with unless told otherwise.
    pub(crate) dims: IndexMap<Name, i64>,
    /// What it is compiled for.
    pub(crate) target: Target,
    /// The steps, no knobs left.
    pub(crate) steps: Vec<Step>,
    /// The lowered program.
    pub(crate) module: Module,
    /// The emitted source.
    pub(crate) source: String,
    /// Where it comes from.
    pub(crate) provenance: Value,
    /// The same in a few words.
    pub(crate) origin: String,
}

impl Subject {
    /// From what the command line names.
    pub(crate) fn of(request: &Request<'_>) -> Result<Subject, Diagnostic> {
        match log_and_trial(request.what) {
            Some((log, trial)) => from_log(request, &log, trial),
            None => from_script(request),
        }
    }

    /// From a schedule with its workload.
    pub(crate) fn of_plan(
        plan: Plan,
        target: Target,
        name: Option<&str>,
        given: &[(Name, i64)],
    ) -> Result<Subject, Diagnostic> {
        let name = name::of(name, &plan.func.name)?;
        let scheduled = plan.schedule(&target, None)?.func().clone();
        let (module, _) = lower(&scheduled, &target)?;
        let source = source(&scheduled, &module, &target)?;
        let params: IndexMap<_, _> = plan.all_params.iter().collect();
        let path = plan.path.display();
        let provenance = json!({
            "script": path.to_string(),
            "script_sha256": tuner::sha256(plan.text.text()),
            "workload": plan.script.workload.value,
            "params": params,
        });
        Ok(Subject {
            name,
            origin: format!("script {path}"),
            dims: dims(&plan.func, given)?,
            plain: plan.func,
            target,
            steps: plan.steps,
            module,
            source,
            provenance,
        })
    }
}

/// A log, and the trial after a colon. A script is a file that ends in `.ron`; a log is anything that says it is one.
fn log_and_trial(what: &Path) -> Option<(PathBuf, Option<u64>)> {
    let is_log = |path: &Path| {
        path.extension().is_some_and(|it| it == "twlog" || it == "jsonl" || it == "gz") || path.is_dir()
    };
    let text = what.to_str();
    let split = text.and_then(|it| it.rsplit_once(':')).and_then(|(log, n)| Some((log, n.parse().ok()?)));
    match split {
        Some((log, n)) if is_log(Path::new(log)) => Some((log.into(), Some(n))),
        Some(_) | None => is_log(what).then(|| (what.to_owned(), None)),
    }
}

fn from_script(request: &Request<'_>) -> Result<Subject, Diagnostic> {
    if request.run.is_some() {
        return Err(Diagnostic::usage(
            UsageError::Options,
            "`--run` chooses a run of a log, and this is a script",
        ));
    }
    let plan = Plan::load(request.what, request.params)?;
    let target = plan.target(request.target, found_arch());
    Subject::of_plan(plan, target, request.name, request.dims)
}

/// A value for each symbolic dimension.
fn dims(func: &Func, given: &[(Name, i64)]) -> Result<IndexMap<Name, i64>, Diagnostic> {
    if let Some((name, _)) = given.iter().find(|it| !func.dims.contains(&it.0)) {
        let title = format!("the workload has no symbolic dimension `{name}`");
        return Err(Diagnostic::usage(UsageError::Dimension, title));
    }
    let value = |dim: &Name| given.iter().rev().find(|it| it.0 == *dim).map_or(DEFAULT_SIZE, |it| it.1);
    Ok(func.dims.iter().map(|it| (it.clone(), value(it))).collect())
}

fn from_log(request: &Request<'_>, path: &Path, number: Option<u64>) -> Result<Subject, Diagnostic> {
    if let Some((name, _)) = request.params.first() {
        let title = format!("a log's trial has its parameters; `--param {name}=…` is for scripts");
        return Err(Diagnostic::usage(UsageError::Options, title));
    }
    let log = tuner::log::read(path)?;
    let (run, trial) = chosen(&log, path, request.run, number)?;
    let head = run.head()?;
    let damaged = |err: replay::HeadError| Diagnostic::failed(&err, format!("run {}: {err}", head.run));
    let (problem, space) = (head.problem().map_err(damaged)?, head.space().map_err(damaged)?);
    let again = replay::check(&problem, &problem.workload_id(), &space, trial)
        .map_err(|err| Diagnostic::failed(UsageError::Differs, format!("trial {}: {err}", trial.n)))?;
    let target = plan_target(request, &problem)?;
    let made = generate(&Problem { target: target.clone(), ..problem.clone() }, &again.steps)
        .map_err(|err| Diagnostic::failed(UsageError::Differs, format!("trial {}: {err}", trial.n)))?;
    let given = |name: &Name| request.dims.iter().rev().find(|it| it.0 == *name).map(|it| it.1);
    dims(&problem.case.func, request.dims)?;
    let of_run = problem.case.dims.iter();
    Ok(Subject {
        name: name::of(request.name, &problem.case.func.name)?,
        dims: of_run.map(|(name, it)| (name.clone(), given(name).unwrap_or(*it))).collect(),
        plain: problem.case.func,
        target,
        steps: again.steps,
        module: made.module,
        source: made.source,
        provenance: log_provenance(head, trial),
        origin: format!("trial {} of run {}", trial.n, head.run),
    })
}

/// Another architecture gives another source than the one in the log, which is checked first.
fn plan_target(request: &Request<'_>, problem: &Problem) -> Result<Target, Diagnostic> {
    match (request.target, &problem.target) {
        (None | Some(ScriptTarget::Cuda(None)), target @ Target::Cuda(_)) | (None, target) => {
            Ok(target.clone())
        }
        (Some(ScriptTarget::Cpu), Target::Cpu) => Ok(Target::Cpu),
        (Some(ScriptTarget::Cuda(Some(arch))), Target::Cuda(_)) => Ok(Target::Cuda(arch.clone())),
        (Some(ScriptTarget::Cpu | ScriptTarget::Cuda(_)), of_log) => Err(Diagnostic::usage(
            UsageError::Options,
            format!("the log is of {}, and its trials are exported for that", target_word(of_log)),
        )),
    }
}

/// The trial of a number, or the best of the last run that has one.
fn chosen<'a>(
    log: &'a tuner::log::Log,
    path: &Path,
    run: Option<&str>,
    number: Option<u64>,
) -> Result<(&'a RunLog, &'a Trial), Diagnostic> {
    let wanted: Vec<_> = log.runs.iter().filter(|it| run.is_none_or(|run| it.0 == run)).collect();
    let none =
        |what: String| Diagnostic::usage(UsageError::NoRun, format!("{} has no {what}", path.display()));
    if wanted.is_empty() {
        return Err(Diagnostic::no_run(log, path, run));
    }
    if let Some(n) = number {
        let mut found = wanted.iter().filter_map(|it| Some((it.0, it.1, it.1.trials.get(&n)?)));
        let (name, first, trial) = found.next().ok_or_else(|| none(format!("trial {n}")))?;
        return match found.next() {
            None => Ok((first, trial)),
            Some((other, ..)) => {
                let title = format!("runs {name} and {other} both have a trial {n}");
                Err(Diagnostic::usage(UsageError::NoRun, title).help("choose one: `--run NAME`".to_owned()))
            }
        };
    }
    let best = wanted.iter().rev().find_map(|it| Some((it.1, *replay::best(it.1).first()?)));
    best.ok_or_else(|| none("trial with a result".to_owned()))
}

fn log_provenance(head: &Run, trial: &Trial) -> Value {
    let decisions: IndexMap<_, _> =
        trial.decisions.iter().map(|(knob, it)| (knob.clone(), it.to_string())).collect();
    json!({
        "log": {
            "run": head.run,
            "trial": trial.n,
            "id": trial.id,
            "tool": head.tool,
            "machine": head.machine.name,
            "time": head.time,
            "seconds": trial.seconds(),
        },
        "script": head.script.name,
        "script_sha256": tuner::sha256(&head.script.text),
        "workload": head.workload.name,
        "params": head.script.params,
        "decisions": decisions,
    })
}
