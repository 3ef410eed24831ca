//! Writing the files that a user names: as a whole or not at all, and never over anything by accident.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// Writes a file. Where there is one already, that is refused unless it is forced.
pub(crate) fn write(out: &Path, bytes: &[u8], force: bool) -> Result<(), Diagnostic> {
    if !force && out.symlink_metadata().is_ok() {
        return Err(taken(out, "there is such a file"));
    }
    replace(out, bytes)
}

/// The refusal to write where something is that may not be made again.
pub(crate) fn taken(out: &Path, why: &str) -> Diagnostic {
    Diagnostic::usage(UsageError::Target, format!("{}: {why}", out.display()))
        .help("name another file, or say --force".to_owned())
}

/// Writes a file, in the place of another or not, as a whole or not at all: a reader sees the old one or the new one. Only
/// files give way: not folders, and no devices.
pub(crate) fn replace(out: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    replace_with(out, bytes, None)
}

fn replace_with(out: &Path, bytes: &[u8], permissions: Option<Permissions>) -> Result<(), Diagnostic> {
    match tuner::regular::open(out) {
        Err(err) if err.kind() == io::ErrorKind::NotFound || out.is_file() => {}
        Err(err) => return Err(Diagnostic::io(out, &err)),
        Ok(_) => {}
    }
    let temporary = beside(out)?;
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        permissions.map_or(Ok(()), |it| file.set_permissions(it))?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&temporary, out));
    moved.map_err(|err| {
        // The error says more than that its leavings cannot be removed.
        let _ = fs::remove_file(&temporary);
        Diagnostic::io(out, &err)
    })
}

/// Writes a file anew that is there: it keeps its permissions, and where a link leads to it that is left as it is.
pub(crate) fn rewrite(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    let io = |err: io::Error| Diagnostic::io(path, &err);
    let target = path.canonicalize().map_err(io)?;
    let permissions = fs::metadata(&target).map_err(io)?.permissions();
    replace_with(&target, bytes, Some(permissions))
}

/// A name in the same folder, so that moving is one step of the file system.
fn beside(out: &Path) -> Result<PathBuf, Diagnostic> {
    let Some(name) = out.file_name() else {
        return Err(Diagnostic::usage(
            UsageError::Target,
            format!("{}: this is no name of a file", out.display()),
        ));
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.part", std::process::id()));
    Ok(out.with_file_name(hidden))
}
