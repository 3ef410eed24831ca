//! Reading the texts that a user or a script names.
//!
//! A path may be anything: a device that never ends, a pipe that nobody writes to, a folder, a disk image. Only regular files
//! of a bounded length are read, and one that says it is empty is not opened at all: those of the system that make up
//! what they hold say so.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Read,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// The longest script or workload, in bytes.
const TEXT: u64 = 1 << 20;
/// The longest program in the text form, in bytes: kernels that are unrolled are long.
const PROGRAM: u64 = 16 << 20;

/// The text of a file.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let most = if path.extension().is_some_and(|it| it == "tw") { PROGRAM } else { TEXT };
    let about = fs::metadata(path)?;
    if about.is_file() && about.len() == 0 {
        return Ok(String::new());
    }
    let mut text = String::new();
    // The file may have grown meanwhile.
    tuner::regular::open(path)?.take(most + 1).read_to_string(&mut text).map_err(|err| match err.kind() {
        io::ErrorKind::InvalidData if about.len() > most => too_long(most),
        _ => err,
    })?;
    if text.len() as u64 > most { Err(too_long(most)) } else { Ok(text) }
}

/// Texts that stand in place of files: what an editor has not saved yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unsaved(BTreeMap<PathBuf, Arc<str>>);

impl Unsaved {
    /// The text of a file, as an editor has it or as it is there.
    pub(crate) fn read(&self, path: &Path) -> io::Result<String> {
        self.0.get(&plain(path)).map_or_else(|| read(path), |it| Ok(it.to_string()))
    }

    /// Says what stands in place of a file; nothing any more if there is no text.
    pub(crate) fn set(&mut self, path: &Path, text: Option<Arc<str>>) {
        match text {
            Some(text) => self.0.insert(plain(path), text),
            None => self.0.remove(&plain(path)),
        };
    }
}

/// A path without `.` and `..`, as its letters say.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if out.file_name().is_some() => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::ParentDir | Component::Normal(_) => {
                out.push(part);
            }
        }
    }
    out
}

fn too_long(most: u64) -> io::Error {
    io::Error::other(format!("it is longer than {most} bytes"))
}

/// Whether a file holds a program by its name: in the text form, or one of TVM's.
pub(crate) fn is_program(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "tw" || (cfg!(feature = "cli") && it == "py"))
}

/// Whether a script may name a file as its workload. Others, such as those of the system, are not even looked at: an error
/// would show what is in them.
pub(crate) fn is_workload(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "ron") || is_program(path)
}
