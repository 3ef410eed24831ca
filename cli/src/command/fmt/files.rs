//! The files to lay out.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::diagnostic::Diagnostic;

/// A file, and whether the user named it; others were found in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) is_named: bool,
}

/// The files that are named, and the RON files in and below the folders that are, in the order of their names. Links to folders
/// are not followed, and what is hidden is left out, as is `target`, where cargo puts what it makes.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<Found>, Diagnostic> {
    let mut out = vec![];
    for path in paths {
        if path.is_dir() {
            walk(path, &mut out)?;
        } else {
            out.push(Found { path: path.clone(), is_named: true });
        }
    }
    Ok(out)
}

fn walk(folder: &Path, out: &mut Vec<Found>) -> Result<(), Diagnostic> {
    let io = |err| Diagnostic::io(folder, &err);
    let entries = fs::read_dir(folder).map_err(io)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(io)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let kind = entry.file_type().map_err(io)?;
        if name.as_encoded_bytes().starts_with(b".") || (kind.is_dir() && name == "target") {
            continue;
        }
        // The current folder is not named before each file in it.
        let path = if folder == Path::new(".") { PathBuf::from(name) } else { entry.path() };
        if kind.is_dir() {
            walk(&path, out)?;
        } else if path.extension().is_some_and(|it| it == "ron") && path.is_file() {
            out.push(Found { path, is_named: false });
        }
    }
    Ok(())
}
