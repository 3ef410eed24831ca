//! Why a log cannot be read or written.

use std::{io, path::PathBuf};

use super::LOG_VERSION;

/// Why a log cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line could not be written. The log is as it was before.
    #[error("{}: the log cannot be written: {source}", path.display())]
    Write {
        /// The segment.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An entry that could not be read again, such as one with a number that is not finite.
    #[error("an entry cannot be written: {0}")]
    Entry(String),
    /// Two writers at once.
    #[error("{}: another process is writing it", .0.display())]
    Locked(PathBuf),
    /// There is a run of this name.
    #[error("{}: there is a run of this name already", .0.display())]
    Exists(PathBuf),
    /// Its name becomes that of a file.
    #[error("`{}` cannot be the name of a run", .0.escape_debug())]
    Name(String),
    /// A newer tilewright wrote it.
    #[error("{} has format version {version}; this build reads up to {LOG_VERSION}", segment.display())]
    Newer {
        /// The segment.
        segment: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Without it nobody knows what the trials are of.
    #[error("{} does not begin with the head of a run", .0.display())]
    NoHead(PathBuf),
    /// A segment that is to be written is compressed.
    #[error("{}: a compressed log is only read", .0.display())]
    Packed(PathBuf),
    /// A folder without segments.
    #[error("{}: there is no log in this folder", .0.display())]
    Empty(PathBuf),
    /// Two runs of one name.
    #[error("{} is not the run of {}, though it has its name", theirs.display(), ours.display())]
    Different {
        /// What is there.
        ours: PathBuf,
        /// What was to be merged.
        theirs: PathBuf,
    },
    /// A file that is no log at all.
    #[error("{}: this is no tuning log", .0.display())]
    Foreign(PathBuf),
    /// The segment is no longer what was written: somebody else changed it, or took it away.
    #[error("{}: the log {what} while it was written", path.display())]
    Lost {
        /// The segment.
        path: PathBuf,
        /// What became of it, after "the log".
        what: String,
    },
}

ir::codes!(LogError {
    Io = 4001,
    Write = 4002,
    Entry = 4003,
    Locked = 4004,
    Exists = 4005,
    Name = 4006,
    Newer = 4007,
    NoHead = 4008,
    Packed = 4009,
    Empty = 4010,
    Different = 4011,
    Foreign = 4012,
    Lost = 4013,
});

impl LogError {
    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LogError {
        let path = path.into();
        |source| LogError::Io { path, source }
    }

    pub(super) fn write(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> LogError {
        let path = path.into();
        |source| LogError::Write { path, source }
    }

    /// What to do about it, if there is one thing to do.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            LogError::Write { source, .. } | LogError::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                    "make room; everything that was recorded before is in the log"
                }
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                    "give another folder for the log"
                }
                _ => return None,
            },
            LogError::Locked(_) => {
                "wait for the other run, or stop it; any number of runs may share a folder"
            }
            LogError::Packed(_) => "unpack it with `gzip -d`",
            LogError::Newer { .. } => "use the tilewright that wrote it, or a newer one",
            LogError::Empty(_) => "a log is a folder of files `run-….jsonl`, or one of them",
            LogError::NoHead(_) => "start a new run; `tilewright log cat` prints what is left of this one",
            LogError::Foreign(_) => "its lines are objects that begin with `{\"k\":` and end with a checksum",
            LogError::Lost { .. } => {
                "nothing more was written to it; start a run of its own, and leave its folder alone until it ends"
            }
            LogError::Different { .. } => "neither was changed; keep them in two folders",
            LogError::Entry(_) | LogError::Exists(_) | LogError::Name(_) => return None,
        };
        Some(help.to_owned())
    }
}
