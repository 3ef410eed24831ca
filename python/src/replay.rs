//! `replay`.

use std::path::PathBuf;

use pyo3::{prelude::*, types::PyList};
use tilewright::{Diagnostic, ReplayEvent, ReplayLevel, ReplayOptions, UsageError};

use crate::{convert::from_json, error::Result, tune::Processes};

/// What is replayed, and how far, from the dictionary that the package makes of the caller's words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Again {
    level: String,
    run: Option<String>,
    top: Option<usize>,
    trials: Vec<u64>,
    workers: Processes,
}

/// Makes the trials of a log again, and compares with what it says: a value for each run.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "so Python's arguments come")]
pub(crate) fn replay(py: Python<'_>, log: PathBuf, again: Again) -> Result<Bound<'_, PyList>> {
    let Again { level, run, top, trials, workers } = again;
    let level = match level.as_str() {
        "sources" => ReplayLevel::Sources,
        "machine code" => ReplayLevel::MachineCode,
        "numbers" => ReplayLevel::Numbers,
        "speed" => ReplayLevel::Speed,
        other => {
            let title = format!("a replay has no level `{other}`");
            let help = "there is `sources`, `machine code`, `numbers` and `speed`".to_owned();
            return Err(Diagnostic::usage(UsageError::Options, title).help(help).into());
        }
    };
    let options = ReplayOptions { level, run, top, trials, workers: workers.into() };
    let mut runs = vec![];
    let found = py.detach(|| {
        let read = tuner::log::read(&log).map_err(|err| Diagnostic::log(&err))?;
        tilewright::replay(&log, &read, &options, &mut |it| {
            if let ReplayEvent::Run(it) = it {
                runs.push(it.data());
            }
            Ok(())
        })
    })?;
    if let Some(err) = Diagnostic::all(found.failed) {
        return Err(err.into());
    }
    let runs = runs.iter().map(|it| from_json(py, it)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, runs)?)
}
