//! `tune`.

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use ir::Name;
use pyo3::{prelude::*, types::PyDict};
use serde_json::{Value, json};
use tilewright::{Cluster, Plan, TuneOptions, Tuner, Workers, target_here};
use tuner::tune::{Ended, Summary, TuneEvent};

use crate::{
    convert::{Script, from_json, params, target},
    error::{Error, Result},
};

/// How to search, from the dictionary that the package makes of the caller's words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Search {
    log: PathBuf,
    trials: u64,
    seconds: Option<f64>,
    seed: u64,
    strategy: Option<String>,
    finalists: usize,
    rounds: usize,
    baseline: bool,
    threads: usize,
    workers: Processes,
    dims: Vec<(String, i64)>,
}

/// The processes that compile and measure, as the package says them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Processes {
    compilers: Option<usize>,
    devices: Vec<u32>,
    /// The address of a cluster.
    on: Option<String>,
    gpu: Option<String>,
    measurers: Option<usize>,
    worker_cmd: Vec<String>,
    compile_cmd: Option<String>,
    /// The command that starts a worker.
    own: Vec<String>,
    /// This interpreter.
    python: String,
}

impl From<Processes> for Workers {
    fn from(it: Processes) -> Workers {
        let Processes { compilers, devices, on, gpu, measurers, worker_cmd, compile_cmd, own, python } = it;
        let on = on.map(|address| Cluster { address, gpu, python: Some(python) });
        Workers { compilers, measurers, device: devices, worker_cmd, compile_cmd, on, own }
    }
}

impl Search {
    fn options(self, target: Option<schedule::script::ScriptTarget>, strategy: &str) -> TuneOptions {
        let mut out = TuneOptions::new(self.log, self.trials);
        out.target = target;
        out.seed = self.seed;
        out.strategy = self.strategy.unwrap_or_else(|| strategy.to_owned());
        out.plan.seconds = self.seconds;
        out.plan.finalists = self.finalists;
        out.plan.rounds = self.rounds;
        out.plan.baseline = self.baseline;
        out.plan.threads = self.threads;
        out.workers = self.workers.into();
        out
    }
}

/// Searches the space of a script, or that of `auto` around a workload, and tells what won. `seen` is called with what is known after each
/// trial; what it raises ends the search, whose log can be resumed.
#[pyfunction]
pub(crate) fn tune<'py>(
    py: Python<'py>,
    path: PathBuf,
    text: Option<String>,
    given: &Bound<'_, PyDict>,
    asked: Option<&str>,
    search: Search,
    seen: &Bound<'_, PyAny>,
) -> Result<Bound<'py, PyAny>> {
    let (params, asked) = (params(given)?, target(asked)?);
    let seen = seen.clone().unbind();
    let found = py.detach(|| -> Result<Value> {
        let is_workload = text.is_none() && tilewright::is_workload(&path);
        let plan = match path.to_str().filter(|_| is_workload) {
            Some(workload) => tilewright::space(workload, &params, &target_here(asked.as_ref()))?,
            None => Script::new(path, text).plan(&params)?,
        };
        let dims = search.dims.iter().map(|(name, it)| (Name::new(name.as_str()), *it));
        let plan = plan.with_dims(dims.collect::<Vec<_>>());
        let options = search.options(asked, if is_workload { "evolution" } else { "random" });
        run(&plan, &options, is_workload, &seen)
    });
    Ok(from_json(py, &found?)?)
}

fn run(plan: &Plan, options: &TuneOptions, is_workload: bool, seen: &Py<PyAny>) -> Result<Value> {
    let tuner = Tuner::start(plan, options)?;
    let head = tuner.head();
    let (run, target) = (head.run.clone(), head.target.clone());
    let (stop, mut raised) = (AtomicBool::new(false), None);
    let mut last = None;
    let ended = tuner.run(&stop, &mut |it| {
        let (what, summary) = match it {
            TuneEvent::Entry(_, summary) => ("searching", summary),
            TuneEvent::Progress(what, summary) => (what, summary),
        };
        let told = progress(summary, options.plan.trials, what);
        // Lines of the log that are no trials, and the time that passes, change nothing that is worth a call.
        if last.as_ref() == Some(&told) || raised.is_some() {
            return;
        }
        let mut with_load = told.clone();
        with_load["waits_for"] = summary.load.waits_for().into();
        with_load["idle"] = summary.load.idle().into();
        let called = Python::attach(|py| {
            py.check_signals()?;
            seen.call1(py, (from_json(py, &with_load)?,))
        });
        last = Some(told);
        if let Err(err) = called {
            stop.store(true, Ordering::Relaxed);
            raised = Some(err);
        }
    })?;
    match raised {
        Some(err) => Err(Error::Raised(err)),
        None => Ok(json!({
            "run": run,
            "is_workload": is_workload,
            "target": target,
            "log": options.log.display().to_string(),
            "script": plan.text(),
            "summary": progress(&ended.summary, options.plan.trials, "done"),
            "winner": winner(&ended),
            "finals": ended.finals.as_ref().map(|it| serde_json::to_value(it).expect("they are plain data")),
            "stopped": ended.stopped.as_ref().map(ToString::to_string),
        })),
    }
}

/// Where a run stands.
fn progress(it: &Summary, trials: u64, what: &str) -> Value {
    let failed: serde_json::Map<_, _> =
        it.failed.iter().map(|(kind, count)| (kind.to_string(), (*count).into())).collect();
    json!({
        "what": what,
        "trials": it.trials,
        "of": trials,
        "ok": it.ok,
        "failed": failed,
        "refused": it.rejected.values().map(|it| it.count).sum::<u64>(),
        "best": it.best.as_ref().map(|best| json!({
            "trial": best.n,
            "seconds": best.seconds,
            "gflops": best.gflops,
        })),
    })
}

/// The trial that won, with what was decided for each knob.
fn winner(ended: &Ended) -> Option<Value> {
    let trial = ended.winner.as_ref()?;
    let decisions: serde_json::Map<_, _> =
        trial.decisions.iter().map(|(knob, it)| (knob.to_string(), it.to_string().into())).collect();
    Some(json!({ "trial": trial.n, "seconds": trial.seconds(), "decisions": decisions }))
}
