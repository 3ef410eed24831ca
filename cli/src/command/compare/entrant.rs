//! What takes part in a comparison: a script, a record, or a trial. Nothing stored is executed: a record or a trial is
//! its script with its decisions, made again here, and its source has to be the one that was measured.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use codegen::device::{MachineInfo, Resources};
use indexmap::IndexMap;
use ir::{Func, Name};
use schedule::{Step, script::ScriptTarget, workload::Param};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tuner::{
    Record, RecordedStep, Regime,
    build::parse_target_word,
    log::{RunLog, Trial},
    replay,
};

use crate::{diagnostic::Diagnostic, plan::Plan, records, usage_error::UsageError};

/// A schedule to compare.
#[derive(Debug)]
pub(super) struct Entrant {
    /// As the user named it; of the last or the best with its number.
    pub(super) name: String,
    pub(super) origin: Origin,
    /// The unscheduled program.
    pub(super) func: Func,
    pub(super) dims: IndexMap<Name, i64>,
    /// The target that it is for, if it says so.
    pub(super) target: Option<ScriptTarget>,
    pub(super) steps: Vec<Step>,
    /// The script, as a record has it.
    pub(super) script: tuner::Script,
    /// Every parameter of the workload.
    pub(super) params: IndexMap<String, Param>,
    /// The script as it was read, for what is wrong in it; only of scripts.
    pub(super) plan: Option<Plan>,
    /// What a log says of it.
    pub(super) recorded: Option<Recorded>,
}

/// Where an entrant comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "EntrantOrigin")]
pub(crate) enum Origin {
    Script,
    Record,
    Trial,
}

/// What was measured then.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// SHA-256 of the source.
    pub(super) source: String,
    pub(super) machine: MachineInfo,
    pub(super) regime: Regime,
    pub(super) threads: usize,
    pub(super) tool: String,
    /// Seconds per call; empty if it failed.
    pub(super) seconds: Vec<f64>,
    pub(super) gflops: Option<f64>,
    pub(super) resources: Vec<Resources>,
    pub(super) time: String,
}

impl Origin {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Origin::Script => "script",
            Origin::Record => "record",
            Origin::Trial => "trial",
        }
    }
}

impl Entrant {
    /// What a word on the command line stands for.
    pub(super) fn find(
        word: &str,
        params: &[(String, Param)],
        dims: &[(Name, i64)],
    ) -> Result<Entrant, Diagnostic> {
        let (path, number) = split(word);
        match (kind(&path)?, number) {
            (FileKind::Script, None) => script(word, &path, params, dims),
            (FileKind::Script, Some(_)) => {
                let title = format!("{}: a script has no numbers", path.display());
                Err(Diagnostic::usage(UsageError::NoRun, title)
                    .help("numbers are of lines in logs of `run`, and of trials".to_owned()))
            }
            (FileKind::Records, number) => record(&path, number, dims),
            (FileKind::Tuning, number) => trial(&path, number),
        }
    }
}

/// The sorts of files.
enum FileKind {
    Script,
    Records,
    Tuning,
}

/// A path, and the number behind it.
fn split(word: &str) -> (PathBuf, Option<u64>) {
    let whole = PathBuf::from(word);
    let parts = word.rsplit_once(':').and_then(|(path, number)| Some((path, number.parse::<u64>().ok()?)));
    match parts {
        Some((path, number)) if !whole.exists() => (PathBuf::from(path), Some(number)),
        Some(_) | None => (whole, None),
    }
}

/// A log of trials says in every line what sort it is, and a log of records never does.
fn kind(path: &Path) -> Result<FileKind, Diagnostic> {
    let io = |err: &std::io::Error| Diagnostic::io(path, err);
    if fs::metadata(path).map_err(|err| io(&err))?.is_dir() {
        return Ok(FileKind::Tuning);
    }
    match path.extension().and_then(|it| it.to_str()) {
        Some("jsonl") => {}
        Some("gz" | "twlog") => return Ok(FileKind::Tuning),
        Some(_) | None => return Ok(FileKind::Script),
    }
    let mut first = vec![];
    let file = tuner::regular::open(path).map_err(|err| io(&err))?;
    BufReader::new(file.take(64)).read_until(b'\n', &mut first).map_err(|err| io(&err))?;
    let tuning = first.starts_with(b"{\"k\":");
    Ok(if tuning { FileKind::Tuning } else { FileKind::Records })
}

fn script(
    word: &str,
    path: &Path,
    params: &[(String, Param)],
    dims: &[(Name, i64)],
) -> Result<Entrant, Diagnostic> {
    let mut plan = Plan::load(path, params)?;
    plan.dims = dims.iter().cloned().collect();
    plan.expect_dims()?;
    let steps = plan.steps.clone();
    Ok(Entrant::of(plan, word.to_owned(), Origin::Script, steps))
}

impl Entrant {
    fn of(plan: Plan, name: String, origin: Origin, steps: Vec<Step>) -> Entrant {
        let value = |it: &Param| serde_json::to_value(it).expect("parameters are plain data");
        let script = tuner::Script {
            name: plan.path.display().to_string(),
            text: plan.text.text().to_owned(),
            workload: plan.script.workload.value.clone(),
            params: plan.params.iter().map(|(name, it)| (name.clone(), value(it))).collect(),
            steps: steps.iter().cloned().map(RecordedStep::Known).collect(),
        };
        Entrant {
            name,
            origin,
            func: plan.func.clone(),
            dims: plan.dims.clone(),
            target: plan.script.target.as_ref().map(|it| it.value.clone()),
            steps,
            script,
            params: plan.all_params.clone(),
            plan: Some(plan),
            recorded: None,
        }
    }
}

/// A record of `run` or `tutorial`: the last, or that of a line.
fn record(path: &Path, line: Option<u64>, dims: &[(Name, i64)]) -> Result<Entrant, Diagnostic> {
    let fail = |words: String| Diagnostic::usage(UsageError::NoRun, format!("{}: {words}", path.display()));
    let records = records::read(path)?;
    let count = records.len() as u64;
    let line = line.unwrap_or(count);
    let at = line.checked_sub(1).and_then(|it| usize::try_from(it).ok());
    let record = at.and_then(|it| records.get(it));
    let record = record.ok_or_else(|| fail(format!("it has {count} records, and none of number {line}")))?;
    let name = format!("{}:{line}", path.display());
    let params = params(&record.script.params).map_err(&fail)?;
    let mut plan = Plan::parse(Path::new(&record.script.name), &record.script.text, &params)?;
    plan.dims = record_dims(record, &plan, dims);
    plan.expect_dims()?;
    let steps = record.script.steps.iter().map(|it| match it {
        RecordedStep::Known(it) => Ok(it.clone()),
        RecordedStep::Unknown(it) => Err(fail(format!("record {line}: no step of this version: {it}"))),
    });
    // A script without knobs says all, and the first records sorted the parts of a `split`.
    let has_knobs = !plan.script.knobs.is_empty();
    let steps = if has_knobs { steps.collect::<Result<Vec<_>, _>>()? } else { plan.steps.clone() };
    let mut entrant = Entrant::of(plan, name, Origin::Record, steps);
    entrant.plan = None;
    // A script for any GPU was compiled for the one that was there.
    let arch = ir::Arch::parse(&record.environment.machine.arch);
    entrant.target = Some(arch.map_or(ScriptTarget::Cpu, |it| ScriptTarget::Cuda(Some(it))));
    let resources = record.resources.clone().and_then(|it| serde_json::from_value(it).ok());
    entrant.recorded = Some(Recorded {
        source: record.source_sha256.clone(),
        machine: record.environment.machine.clone(),
        regime: record.environment.regime,
        threads: record.environment.threads,
        tool: record.tool.clone(),
        seconds: if record.gflops.is_some() { record.seconds.clone() } else { vec![] },
        gflops: record.gflops,
        resources: resources.unwrap_or_default(),
        time: record.time.clone(),
    });
    Ok(entrant)
}

/// The values of symbolic dimensions: a launch has them in the order of the workload.
fn record_dims(record: &Record, plan: &Plan, given: &[(Name, i64)]) -> IndexMap<Name, i64> {
    let values = record.launches.first().map(|it| it.dims.as_slice()).unwrap_or_default();
    if values.len() == plan.func.dims.len() {
        return plan.func.dims.iter().cloned().zip(values.iter().copied()).collect();
    }
    given.iter().cloned().collect()
}

fn params(of: &IndexMap<String, Value>) -> Result<Vec<(String, Param)>, String> {
    let read = |(name, value): (&String, &Value)| {
        let value = serde_json::from_value::<Param>(value.clone());
        Ok((name.clone(), value.map_err(|err| format!("its parameter `{name}`: {err}"))?))
    };
    of.iter().map(read).collect()
}

/// A trial of a tuning log: the best, or that of a number.
fn trial(path: &Path, number: Option<u64>) -> Result<Entrant, Diagnostic> {
    let log = tuner::log::read(path).map_err(|err| Diagnostic::log(&err))?;
    let fail = |words: String| Diagnostic::usage(UsageError::NoRun, format!("{}: {words}", path.display()));
    let (run, trial) = chosen(&log.runs, number)
        .map_err(|words| log.unread(None).map_or_else(|| fail(words), |err| Diagnostic::log(&err)))?;
    let head = run.head().map_err(|err| Diagnostic::log(&err))?;
    let name = format!("{}:{}", path.display(), trial.n);
    let damaged = |err: replay::HeadError| Diagnostic::failed(&err, format!("{name}: {err}"));
    let (problem, space) = (head.problem().map_err(damaged)?, head.space().map_err(damaged)?);
    let again = replay::check(&problem, &problem.workload_id(), &space, trial)
        .map_err(|err| Diagnostic::failed(UsageError::Differs, format!("{name}: {err}")))?;
    let params = params(&head.script.params).map_err(fail)?;
    let script = tuner::Script {
        name: head.script.name.clone(),
        text: head.script.text.clone(),
        workload: head.workload.name.clone(),
        params: head.script.params.clone(),
        steps: again.steps.iter().cloned().map(RecordedStep::Known).collect(),
    };
    let target = parse_target_word(&head.target).map(|it| match it {
        ir::Target::Cpu => ScriptTarget::Cpu,
        ir::Target::Cuda(arch) => ScriptTarget::Cuda(Some(arch)),
    });
    let right = trial.seconds().and(trial.result.as_ref());
    let recorded = Recorded {
        source: trial.src.clone(),
        machine: head.machine.clone(),
        // What a search times are bursts, whatever its finals are.
        regime: Regime::Cool,
        threads: head.measure.threads,
        tool: head.tool.clone(),
        seconds: right.map(|it| it.seconds.clone()).unwrap_or_default(),
        gflops: right.map(|it| it.gflops),
        resources: trial.res.clone(),
        time: trial.time.clone(),
    };
    Ok(Entrant {
        name,
        origin: Origin::Trial,
        func: problem.case.func.clone(),
        dims: problem.case.dims.clone(),
        target,
        steps: again.steps,
        script,
        params: params.into_iter().collect(),
        plan: None,
        recorded: Some(recorded),
    })
}

/// The trial of a number, or the best of all runs.
fn chosen(runs: &IndexMap<String, RunLog>, number: Option<u64>) -> Result<(&RunLog, &Trial), String> {
    let Some(number) = number else {
        let best = runs.values().filter_map(|run| Some((run, *replay::best(run).first()?)));
        let time = |it: &Trial| it.seconds().unwrap_or(f64::INFINITY);
        let best = best.min_by(|a, b| time(a.1).total_cmp(&time(b.1)));
        return best.ok_or_else(|| "it has no trial with a result".to_owned());
    };
    let mut found = runs.values().filter_map(|run| Some((run, run.trials.get(&number)?)));
    match (found.next(), found.next()) {
        (Some(it), None) => Ok(it),
        (None, _) => Err(format!("it has no trial {number}")),
        (Some(_), Some(_)) => Err(format!(
            "several of its runs have a trial {number}; name the segment: DIR/run-NAME.jsonl:{number}"
        )),
    }
}
