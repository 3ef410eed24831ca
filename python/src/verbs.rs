//! `compile`, `auto`, `check` and `show`.

use std::path::PathBuf;

use indexmap::IndexMap;
use ir::Target;
use pyo3::{
    prelude::*,
    types::{PyDict, PyList},
};
use serde_json::json;
use tilewright::{Diagnostic, Plan, UsageError, target_here};

use crate::{
    convert::{Script, from_json, params, target},
    error::Result,
    kernel::Kernel,
};

/// Compiles a script.
#[pyfunction]
pub(crate) fn compile(
    py: Python<'_>,
    path: PathBuf,
    text: Option<String>,
    given: &Bound<'_, PyDict>,
    asked: Option<&str>,
    threads: usize,
) -> Result<Kernel> {
    let (params, asked) = (params(given)?, target(asked)?);
    let script = Script::new(path, text);
    let made = py.detach(|| {
        let plan = script.plan(&params)?;
        let target = plan.target_here(asked.as_ref());
        tilewright::Kernel::compile(&plan, &target, threads)
    });
    Ok(Kernel::new(made?))
}

/// Makes a schedule of a workload without search, and compiles it.
#[pyfunction]
pub(crate) fn auto(
    py: Python<'_>,
    workload: &str,
    given: &Bound<'_, PyDict>,
    asked: Option<&str>,
    threads: usize,
) -> Result<Kernel> {
    let (params, asked) = (params(given)?, target(asked)?);
    let made = py.detach(|| -> std::result::Result<_, Diagnostic> {
        let target = target_here(asked.as_ref());
        let made = automatic(workload, &params, &target)?;
        let plan = Plan::parse("auto.ron".as_ref(), &made.script, &[])?;
        Ok((tilewright::Kernel::compile(&plan, &target, threads)?, made))
    });
    let (kernel, made) = made?;
    Ok(Kernel::new(kernel).by_rule(made.rule, made.reasons))
}

fn automatic(
    workload: &str,
    params: &[(String, schedule::workload::Param)],
    target: &Target,
) -> std::result::Result<tilewright::Automatic, Diagnostic> {
    let params: IndexMap<_, _> = params.iter().cloned().collect();
    tilewright::auto(workload, &params, target, None)
}

/// The schedule that `auto` compiles, and why it is that; needs no compiler.
#[pyfunction]
pub(crate) fn auto_script<'py>(
    py: Python<'py>,
    workload: &str,
    given: &Bound<'_, PyDict>,
    asked: Option<&str>,
) -> Result<Bound<'py, PyAny>> {
    let (params, asked) = (params(given)?, target(asked)?);
    let made = py.detach(|| automatic(workload, &params, &target_here(asked.as_ref())))?;
    let tilewright::Automatic { rule, script, reasons, refused } = made;
    Ok(from_json(py, &json!({ "rule": rule, "script": script, "reasons": reasons, "refused": refused }))?)
}

/// Checks that every step of a script is legal, and that the result can be lowered.
#[pyfunction]
pub(crate) fn check<'py>(
    py: Python<'py>,
    path: PathBuf,
    text: Option<String>,
    given: &Bound<'_, PyDict>,
    asked: Option<&str>,
) -> Result<Bound<'py, PyAny>> {
    let (params, asked) = (params(given)?, target(asked)?);
    let script = Script::new(path, text);
    let found = py.detach(|| -> std::result::Result<_, Diagnostic> {
        let plan = script.plan(&params)?;
        let target = plan.target(asked.as_ref(), None);
        let session = plan.schedule(&target, None)?;
        let lowered = tilewright::emitted(session.func(), &target)?;
        let kernels: Vec<_> = lowered.module.kernels.iter().map(|it| it.name.to_string()).collect();
        Ok(json!({
            "target": tuner::build::target_word(&target),
            "steps": session.trace().count(),
            "kernels": kernels,
            "notes": lowered.notes,
        }))
    });
    Ok(from_json(py, &found?)?)
}

/// One form of what a script makes.
#[pyfunction]
pub(crate) fn show(
    py: Python<'_>,
    path: PathBuf,
    text: Option<String>,
    emit: &str,
    given: &Bound<'_, PyDict>,
    asked: Option<&str>,
) -> Result<String> {
    let (params, asked) = (params(given)?, target(asked)?);
    let script = Script::new(path, text);
    Ok(py.detach(|| {
        let plan = script.plan(&params)?;
        let target = plan.target(asked.as_ref(), None);
        shown(&plan, &target, emit)
    })?)
}

fn shown(plan: &Plan, target: &Target, emit: &str) -> std::result::Result<String, Diagnostic> {
    let session = plan.schedule(target, None)?;
    let func = session.func();
    match emit {
        "ir" => Ok(func.to_string()),
        "script" => Ok(plan.plain_script(target, None)),
        "kernel" => Ok(tilewright::emitted(func, target)?.module.to_string()),
        "source" => Ok(tilewright::emitted(func, target)?.source),
        other => {
            let title = format!("`show` has no form `{other}`");
            let help = "there is `ir`, `script`, `kernel` and `source`; a compiled kernel has `resources`";
            Err(Diagnostic::usage(UsageError::Options, title).help(help.to_owned()))
        }
    }
}

/// The codes of all refusals.
#[pyfunction]
pub(crate) fn codes(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    PyList::new(py, tilewright::codes().iter().map(ToString::to_string))
}

/// Works as a process that compiles or measures for a search, with the arguments behind `worker`, until its input ends.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "so Python's arguments come")]
pub(crate) fn serve_worker(py: Python<'_>, arguments: Vec<String>) -> i32 {
    py.detach(|| tilewright::serve_worker(&arguments.iter().map(Into::into).collect::<Vec<_>>()))
}
