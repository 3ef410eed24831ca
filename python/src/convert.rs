//! Python values as the library's.

use std::path::PathBuf;

use pyo3::{
    prelude::*,
    types::{PyBool, PyDict, PyString},
};
use schedule::{script::ScriptTarget, workload::Param};
use tilewright::{CallError, Diagnostic, Plan, UsageError, parse_target};

use crate::error::Result;

/// A script: a text, or a file.
pub(crate) struct Script {
    path: PathBuf,
    text: Option<String>,
}

impl Script {
    /// From a path, and a text where that is not the file's.
    pub(crate) fn new(path: PathBuf, text: Option<String>) -> Script {
        Script { path, text }
    }

    /// The script, read, with parameters and knobs as given.
    pub(crate) fn plan(&self, params: &[(String, Param)]) -> std::result::Result<Plan, Diagnostic> {
        match &self.text {
            Some(text) => Plan::parse(&self.path, text, params),
            None => Plan::load(&self.path, params),
        }
    }
}

/// Parameters of a workload and knobs, in the order in which they were given.
pub(crate) fn params(given: &Bound<'_, PyDict>) -> Result<Vec<(String, Param)>> {
    given.iter().map(|(name, value)| Ok((name.extract::<String>()?, param(&name, &value)?))).collect()
}

fn param(name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> Result<Param> {
    let wrong = || {
        let title = format!("the parameter `{name}` is a number or a word, not {}", value.get_type());
        Diagnostic::usage(CallError::Arguments, title)
    };
    if value.is_instance_of::<PyBool>() {
        return Err(wrong().into());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Param::Text(text.to_string()));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(Param::Int(number));
    }
    Ok(value.extract::<f64>().map(Param::Float).map_err(|_| wrong())?)
}

/// What to compile for: `cpu`, `cuda`, or with an architecture `cuda:sm_90a`.
pub(crate) fn target(word: Option<&str>) -> Result<Option<ScriptTarget>> {
    let Some(word) = word else { return Ok(None) };
    match parse_target(word) {
        Ok(target) => Ok(Some(target)),
        Err(why) => {
            let title = format!("there is no target `{word}`");
            Err(Diagnostic::usage(UsageError::Arguments, title).help(why).into())
        }
    }
}

/// Text with JSON as a Python value.
pub(crate) fn from_json<'py>(py: Python<'py>, it: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (it.to_string(),))
}
