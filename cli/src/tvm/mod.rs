//! TVM's files: its programs (TVMScript) and its records, in and out.
//!
//! `read/` makes a program of a `@T.prim_func`, `write/` prints one as such a function. Both go by the language of TVM 0.27, and the
//! words of older versions are read, too.

mod read;
#[cfg(test)]
mod tests;
mod trace;
mod write;

use std::path::Path;

use ir::{Func, Target};

use crate::diagnostic::Diagnostic;

pub(crate) use read::ImportProblem;
pub(crate) use read::Imported;
pub(crate) use trace::{Replayed, TraceError, Writer};
pub(crate) use write::Unwritable;
use write::script;

/// The steps of a record, or of a trace alone, on a program.
pub(crate) fn replay(
    text: &str,
    record: Option<usize>,
    func: Func,
    target: Target,
) -> Result<Replayed, Diagnostic> {
    trace::find(text, record)
        .and_then(|it| trace::steps(&it, func, target))
        .map_err(|it| Diagnostic::trace(&it))
}

/// A program in TVMScript.
pub(crate) fn written(func: &Func) -> Result<String, Diagnostic> {
    script(func).map_err(|err| Diagnostic::unwritable(func, &err))
}

/// Reads a program of TVM's from the text of a file, and checks it as any other.
pub(crate) fn import(path: &Path, text: &str, name: Option<&str>) -> Result<Imported, Diagnostic> {
    let made = read::import(text, name).map_err(|it| {
        let report = Diagnostic::failed(it.problem, it.message).help(it.help);
        if it.span.is_empty() { report } else { report.at(path, text, it.span) }
    })?;
    let errors = ir::verify(&made.func).err().unwrap_or_default();
    let reports = errors.iter().map(|err| {
        let report = Diagnostic::failed(&err.kind, err.to_string()).help(err.kind.help());
        match made.places.get(&err.at) {
            Some(span) => report.at(path, text, span.clone()),
            None => report,
        }
    });
    if let Some(report) = Diagnostic::all(reports) {
        return Err(report);
    }
    schedule::check_serpentine(&made.func).map_err(|err| {
        let report = Diagnostic::failed(&err, err.to_string());
        match err.names().first().and_then(|it| made.places.get(*it)) {
            Some(span) => report.at(path, text, span.clone()),
            None => report,
        }
    })?;
    Ok(Imported { func: codegen::lower::without_findings(made.func), ..made })
}
