//! Where the records of measurements go, and where they come from.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use tuner::{LogError, Record, append, read_log};

use crate::{diagnostic::Diagnostic, term::table::counted, usage_error::UsageError};

/// Appends to the log, if one is wanted.
pub(crate) fn log(path: Option<&Path>, records: &[Record]) -> Result<(), Diagnostic> {
    let Some(path) = path else { return Ok(()) };
    append(path, records, true).map_err(|err| Diagnostic::io(path, &err))?;
    Ok(())
}

/// The records of a file that [`log`] wrote.
pub(crate) fn read(path: &Path) -> Result<Vec<Record>, Diagnostic> {
    let log = read_log(path).map_err(|err| match err {
        LogError::Io(err) => Diagnostic::io(path, &err),
        LogError::Line { .. } | LogError::Newer { .. } => {
            Diagnostic::usage(UsageError::Damage, format!("{}: {err}", path.display()))
        }
    })?;
    Ok(log.records)
}

/// Where the tutorial keeps its records unless told otherwise: `tilewright/tutorial.jsonl` in `$XDG_STATE_HOME`, or in
/// `~/.local/state`. `None` for a user without a home.
pub(crate) fn state_log() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("tilewright/tutorial.jsonl"))
}

/// Appends to a log that nobody asked for by name, and says where, or why not: that must not stop a tutorial.
pub(crate) fn keep(path: &Path, records: &[Record]) -> String {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| append(path, records, true)) {
        Ok(_) => {
            let were = if records.len() == 1 { "was" } else { "were" };
            format!("{} {were} added to {}", counted(records.len(), "record"), path.display())
        }
        Err(err) => format!("no records were kept: {}: {err}", path.display()),
    }
}
