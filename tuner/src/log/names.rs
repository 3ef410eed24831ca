//! The names of runs and of their segments.

use std::path::{Path, PathBuf};

use super::LogError;

/// The name of a run that begins at a time (RFC 3339 in UTC): `20261121T191300Z-1f3a9c2b`. Names sort by time, and the
/// random part keeps apart runs that begin in the same second.
pub fn run_name(time: &str, random: u32) -> String {
    let time: String = time.chars().filter(|it| !matches!(it, '-' | ':')).collect();
    format!("{time}-{random:08x}")
}

/// The file of a run: `run-20261121T191300Z-1f3a9c2b.jsonl`.
pub fn segment_name(run: &str) -> Result<String, LogError> {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if run.is_empty() || run.len() > 100 || !run.chars().all(fits) {
        return Err(LogError::Name(run.to_owned()));
    }
    Ok(format!("run-{run}.jsonl"))
}

/// Whether a segment is compressed, by its name.
pub(super) fn is_packed(segment: &Path) -> bool {
    segment.extension().is_some_and(|it| it == "gz")
}

/// The segments of a log in the order of their names, that is of their times: those of a folder, or the one file.
/// Of a run that is there twice, compressed and not, as when packing was interrupted, the plain one counts.
pub fn segments(log: &Path) -> Result<Vec<PathBuf>, LogError> {
    if !std::fs::metadata(log).map_err(LogError::io(log))?.is_dir() {
        return Ok(vec![log.to_owned()]);
    }
    let mut out = vec![];
    for entry in log.read_dir().map_err(LogError::io(log))? {
        let path = entry.map_err(LogError::io(log))?.path();
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        let plain = name.strip_suffix(".gz").unwrap_or(name);
        let run = plain.strip_prefix("run-").and_then(|it| it.strip_suffix(".jsonl"));
        // One that is no file is told by whoever opens it.
        if run.is_some() {
            out.push(path);
        }
    }
    out.sort();
    // The name of a plain segment is the beginning of that of its compressed copy, and stands before it.
    out.dedup_by(|later, kept| {
        let mut packed = kept.clone().into_os_string();
        packed.push(".gz");
        *later == packed
    });
    if out.is_empty() { Err(LogError::Empty(log.to_owned())) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use super::{run_name, segment_name, segments};

    #[test]
    fn names_are_files_of_the_folder() {
        let run = run_name("2026-11-21T19:13:00Z", 0x1f3a_9c2b);
        assert_eq!(run, "20261121T191300Z-1f3a9c2b");
        assert_eq!(segment_name(&run).unwrap(), "run-20261121T191300Z-1f3a9c2b.jsonl");
        for bad in ["", "../x", "a/b", "a b", "ä", "\0", &"x".repeat(101)] {
            assert!(segment_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn segments_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(segments(folder.path()).unwrap_err().help().unwrap().find("a log is a folder"), Some(0));
        for name in ["run-b.jsonl.gz", "run-a.jsonl", "run-a.jsonl.gz", "best.json", "run-c.jsonl.gz.part"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = segments(folder.path()).unwrap();
        let names: Vec<_> = found.iter().map(|it| it.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["run-a.jsonl", "run-b.jsonl.gz"]);
        assert!(segments(&folder.path().join("none")).is_err());
    }
}
