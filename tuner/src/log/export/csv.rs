//! A line for each trial, as RFC 4180 has it, with a column for each knob.

use indexmap::IndexSet;
use ir::Name;
use schedule::Choice;

use super::{ExportError, known};
use crate::log::{Log, Origin, RunLog, Trial, is_control};

const BEFORE: [&str; 7] = ["run", "n", "workload", "target", "machine", "status", "origin"];
const AFTER: [&str; 20] = [
    "gflops",
    "median_s",
    "min_s",
    "max_s",
    "samples",
    "screened",
    "registers",
    "spill_bytes",
    "static_shared_bytes",
    "dynamic_shared_bytes",
    "threads",
    "generate_ms",
    "compile_ms",
    "measure_ms",
    "time",
    "worker",
    "id",
    "src",
    "stage",
    "message",
];

/// All trials of a log, or of a run of it, with a head line. Knobs of all these runs have a column; what a trial does
/// not decide is empty. `status` is `ok`, `suspicious`, or the kind of the error.
///
/// # Errors
/// [`ExportError::Unknown`] where there is no such run.
pub fn csv(log: &Log, run: Option<&str>) -> Result<String, ExportError> {
    known(log, run)?;
    let runs = || log.runs.iter().filter(|(name, _)| run.is_none_or(|run| run == *name));
    let knobs: IndexSet<&Name> = runs().flat_map(|(_, it)| knobs(it)).collect();
    let heads = BEFORE.into_iter().chain(knobs.iter().map(|it| it.as_str())).chain(AFTER);
    let mut out = line(heads.map(str::to_owned));
    for (_, run) in runs() {
        for trial in run.trials.values() {
            let decided = knobs.iter().map(|it| trial.decisions.get(*it));
            let decided = decided.map(|it| it.map(Choice::to_string).unwrap_or_default());
            out += &line(before(run, trial).into_iter().chain(decided).chain(after(trial)));
        }
    }
    Ok(out)
}

/// Those of the head, or what the trials tell if it is damaged.
fn knobs(run: &RunLog) -> Vec<&Name> {
    match &run.head {
        Some(head) => head.script.knobs.keys().collect(),
        None => run.trials.values().flat_map(|it| it.decisions.keys()).collect(),
    }
}

fn before(run: &RunLog, trial: &Trial) -> [String; 7] {
    let head = run.head.as_ref();
    let status = match (&trial.error, &trial.result) {
        (Some(error), _) => error.kind.as_str(),
        (None, Some(result)) if result.suspicious => "suspicious",
        (None, Some(_)) => "ok",
        (None, None) => "none",
    };
    let origin = match &trial.origin {
        Origin::Random => "random".to_owned(),
        Origin::Rule => "rule".to_owned(),
        Origin::Default => "default".to_owned(),
        Origin::Mutation { of } => format!("mutation of {of}"),
        Origin::Crossover { of: [a, b] } => format!("crossover of {a} and {b}"),
    };
    [
        trial.run.clone(),
        trial.n.to_string(),
        head.map(|it| it.workload.name.clone()).unwrap_or_default(),
        head.map(|it| it.target.clone()).unwrap_or_default(),
        head.map(|it| it.machine.name.clone()).unwrap_or_default(),
        status.to_owned(),
        origin,
    ]
}

fn after(trial: &Trial) -> [String; 20] {
    fn cell<T: ToString>(it: Option<T>) -> String {
        it.map(|it| it.to_string()).unwrap_or_default()
    }
    let result = trial.result.as_ref();
    let (res, launches) = (&trial.res, &trial.launches);
    let threads = launches.iter().map(|it| it.block.iter().map(|it| u64::from(*it)).product::<u64>());
    [
        cell(result.map(|it| it.gflops)),
        cell(result.map(|it| it.stats.median)),
        cell(result.map(|it| it.stats.min)),
        cell(result.map(|it| it.stats.max)),
        cell(result.map(|it| it.seconds.len())),
        cell(result.map(|it| it.screened)),
        cell(res.iter().map(|it| it.registers).max()),
        cell(res.iter().map(|it| it.spill_store_bytes).max()),
        cell(res.iter().map(|it| it.static_shared_bytes).max()),
        cell(launches.iter().map(|it| it.shared_bytes).max()),
        cell(threads.max()),
        trial.t.generate.to_string(),
        trial.t.compile.to_string(),
        trial.t.measure.to_string(),
        trial.time.clone(),
        trial.worker.clone(),
        trial.id.clone(),
        trial.src.clone(),
        cell(
            trial
                .error
                .as_ref()
                .and_then(|it| serde_json::to_value(it.stage).ok())
                .as_ref()
                .and_then(|it| it.as_str()),
        ),
        cell(trial.error.as_ref().map(|it| &it.message)),
    ]
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<_> = cells.map(|it| quoted(&it)).collect();
    cells.join(",") + "\r\n"
}

/// A cell that no reader takes for several, that steers no terminal, and that no spreadsheet takes for a formula.
fn quoted(text: &str) -> String {
    let mut out: String = text.chars().flat_map(visible).collect();
    if out.starts_with(['=', '@']) || (out.starts_with(['+', '-']) && out.parse::<f64>().is_err()) {
        out.insert(0, '\'');
    }
    if out.contains([',', '"']) { format!("\"{}\"", out.replace('"', "\"\"")) } else { out }
}

fn visible(it: char) -> Vec<char> {
    if is_control(it) { it.escape_default().collect() } else { vec![it] }
}
