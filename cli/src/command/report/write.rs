//! Putting the page where it belongs.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use super::page::MARK;
use crate::{diagnostic::Diagnostic, trouble::Trouble};

/// Writes a page as a whole or not at all: a reader sees the old one or the new one.
pub(super) fn write(out: &Path, page: &str, force: bool) -> Result<(), Diagnostic> {
    if !force && !is_ours(out).map_err(|err| Diagnostic::io(out, &err))? {
        let title = format!("{}: there is such a file, and it is no report of tilewright", out.display());
        return Err(
            Diagnostic::usage(Trouble::Target, title).help("name another file, or say --force".to_owned())
        );
    }
    let temporary = beside(out)?;
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(page.as_bytes())?;
        file.sync_all()
    });
    let moved = written.and_then(|()| fs::rename(&temporary, out));
    moved.map_err(|err| {
        let _ = fs::remove_file(&temporary);
        Diagnostic::io(out, &err)
    })
}

/// Whether a file may be replaced: there is none, or it is one of our pages.
fn is_ours(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(true),
        other => other?,
    };
    let mut start = vec![];
    file.take(MARK.len() as u64).read_to_end(&mut start)?;
    Ok(start == MARK.as_bytes())
}

/// A name in the same folder, so that moving is one step of the file system.
fn beside(out: &Path) -> Result<PathBuf, Diagnostic> {
    let Some(name) = out.file_name() else {
        return Err(Diagnostic::usage(
            Trouble::Target,
            format!("{}: this is no name of a file", out.display()),
        ));
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.part", std::process::id()));
    Ok(out.with_file_name(hidden))
}
