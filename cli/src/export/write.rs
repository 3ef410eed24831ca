//! Writing a bundle: all of it or nothing, and never over anything else.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// The file that a folder must have to count as a bundle.
pub(super) const MANIFEST: &str = "kernel.json";
/// What `kernel.json` says first.
pub(super) const SCHEMA: &str = "tilewright/kernel/1";

/// Writes the files into a folder beside `out`, then puts that in its place.
pub(crate) fn bundle(out: &Path, files: &[(String, Vec<u8>)], force: bool) -> Result<(), Diagnostic> {
    refuse_other_folders(out, force)?;
    let failed = |err: io::Error| Diagnostic::io(out, &err);
    let parent = parent(out);
    fs::create_dir_all(parent).map_err(failed)?;
    let name = out.file_name().map_or_else(|| "bundle".into(), |it| it.to_string_lossy().into_owned());
    let beside = |what: &str| parent.join(format!(".{name}.{what}-{}", process::id()));
    let (fresh, old) = (beside("new"), beside("old"));
    let written = fill(&fresh, files).and_then(|()| swap(out, &fresh, &old));
    if written.is_err() {
        // Whatever is left of it is of no use; that it cannot be removed is the lesser problem.
        let _ = fs::remove_dir_all(&fresh);
    }
    written.map_err(failed)
}

fn parent(out: &Path) -> &Path {
    match out.parent() {
        Some(it) if it != Path::new("") => it,
        Some(_) | None => Path::new("."),
    }
}

fn fill(folder: &Path, files: &[(String, Vec<u8>)]) -> io::Result<()> {
    fs::create_dir(folder)?;
    files.iter().try_for_each(|(name, bytes)| {
        let path = folder.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, bytes)
    })
}

/// A rename cannot replace a folder with files in it: the old one steps aside first.
fn swap(out: &Path, fresh: &Path, old: &Path) -> io::Result<()> {
    let there = out.symlink_metadata().is_ok();
    if there {
        fs::rename(out, old)?;
    }
    if let Err(err) = fs::rename(fresh, out) {
        if there {
            fs::rename(old, out)?;
        }
        return Err(err);
    }
    if there { fs::remove_dir_all(old) } else { Ok(()) }
}

/// Only what is nothing, an empty folder or, with `--force`, a bundle gives way.
fn refuse_other_folders(out: &Path, force: bool) -> Result<(), Diagnostic> {
    let refuse = |what: &str| {
        let title = format!("{} {what}", out.display());
        Err(Diagnostic::usage(UsageError::Target, title))
    };
    if out.file_name().is_none() {
        return refuse("is no name for a new folder");
    }
    let Ok(there) = out.symlink_metadata() else { return Ok(()) };
    if !there.is_dir() {
        return refuse("is there already, and is no folder");
    }
    let mut entries = fs::read_dir(out).map_err(|err| Diagnostic::io(out, &err))?;
    match (entries.next().is_none(), is_bundle(out), force) {
        (true, ..) | (false, true, true) => Ok(()),
        (false, true, false) => refuse("is a bundle already")
            .map_err(|it: Diagnostic| it.help("`--force` writes it anew".to_owned())),
        (false, false, _) => refuse("is a folder with other files in it").map_err(|it: Diagnostic| {
            it.help("name a new folder; nothing but bundles is overwritten".to_owned())
        }),
    }
}

/// Whether a folder is what this command writes.
fn is_bundle(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join(MANIFEST)).unwrap_or_default();
    let manifest: Result<serde_json::Value, _> = serde_json::from_str(&text);
    manifest.is_ok_and(|it| it["schema"] == SCHEMA)
}

/// A folder of its own for building, removed with its owner.
pub(super) fn scratch() -> Result<tempfile::TempDir, Diagnostic> {
    let made = tempfile::Builder::new().prefix("tilewright-bundle-").tempdir();
    made.map_err(|err| Diagnostic::io(&PathBuf::from("a temporary folder"), &err))
}
