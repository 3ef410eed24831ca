//! Bringing segments together by copying them. Doing it twice does nothing the second time.

use std::{
    fs::{self, OpenOptions},
    io::{self, BufRead, Read, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use super::{
    LogError, LogLine, Run,
    names::{is_packed, segment_name, segments},
    scan::{self, LineEnd, MAX_SEGMENT_BYTES, read_line, scan},
    writer::{open_again, sync_folders},
};
use crate::regular;

/// What merging did with a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Merged {
    /// It was not there.
    Added,
    /// An earlier state of the same run was there.
    Extended,
    /// It was there, or a later state of the same run.
    Same,
}

/// Copies the segments of a log, a folder or one of them, into a folder, which is made if it is not there. `done`
/// is told what became of each. What is there already is never changed, but for a run that went on.
pub fn merge(
    into: &Path,
    log: &Path,
    done: &mut dyn FnMut(&Path, Result<Merged, LogError>),
) -> Result<(), LogError> {
    let found = segments(log)?;
    fs::create_dir_all(into).map_err(LogError::io(into))?;
    for segment in found {
        let merged = merge_segment(into, &segment);
        done(&segment, merged);
    }
    Ok(())
}

fn merge_segment(into: &Path, segment: &Path) -> Result<Merged, LogError> {
    let plain = into.join(name_of(segment)?);
    let packed = with_suffix(&plain, ".gz");
    let (target, other) = if is_packed(segment) { (packed, plain) } else { (plain, packed) };
    let present = [&target, &other].into_iter().find(|it| it.exists());
    let Some(present) = present else {
        copy(segment, &target, false)?;
        return Ok(Merged::Added);
    };
    if same_file(present, segment) {
        return Ok(Merged::Same);
    }
    match compare(present, segment)? {
        SegmentRelation::Same | SegmentRelation::FirstLonger => Ok(Merged::Same),
        SegmentRelation::Differ => {
            Err(LogError::Different { ours: present.clone(), theirs: segment.to_owned() })
        }
        SegmentRelation::SecondLonger => {
            // Not under the hands of a run that goes on there.
            let _held = open_again(present)?;
            copy(segment, &target, true)?;
            if *present == other {
                fs::remove_file(&other).map_err(LogError::io(&other))?;
            }
            Ok(Merged::Extended)
        }
    }
}

/// The name that the segment of a run has in a folder, compressed or not.
fn name_of(segment: &Path) -> Result<String, LogError> {
    let mut head: Option<Run> = None;
    scan(segment, &mut |line| {
        if let LogLine::Record { raw, .. } = line
            && raw.kind() == "run"
        {
            head = raw.fields().ok();
        }
        ControlFlow::Break(())
    })?;
    if let Some(head) = head {
        return segment_name(&head.run);
    }
    // A damaged head, or one of a newer version; the file still says which run it is.
    let name = segment.file_name().and_then(|it| it.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let run = name.strip_prefix("run-").and_then(|it| it.strip_suffix(".jsonl"));
    segment_name(run.ok_or_else(|| LogError::NoHead(segment.to_owned()))?)
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Writes a copy beside its place and gives it the name once it is whole and on the disk.
fn copy(from: &Path, to: &Path, replace: bool) -> Result<(), LogError> {
    let part = with_suffix(to, &format!(".part-{}", std::process::id()));
    let write = || {
        let mut input = regular::open(from)?;
        let mut output = OpenOptions::new().write(true).create_new(true).open(&part)?;
        io::copy(&mut input, &mut output)?;
        output.flush()?;
        output.sync_all()?;
        if replace { fs::rename(&part, to) } else { publish(&part, to) }
    };
    let written = write();
    if written.is_err() {
        // The error says more than that its leavings cannot be removed.
        let _ = fs::remove_file(&part);
    }
    written.map_err(LogError::write(to))?;
    sync_folders(to.parent().unwrap_or(Path::new("."))).map_err(LogError::write(to))
}

/// Gives a file its name unless there is one of that name.
fn publish(part: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(part, to) {
        Ok(()) => fs::remove_file(part),
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Err(err),
        // A file system without links: the moment between looking and naming is short.
        Err(_) if !to.exists() => fs::rename(part, to),
        Err(err) => Err(err),
    }
}

/// How the whole lines of two segments relate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SegmentRelation {
    Same,
    FirstLonger,
    SecondLonger,
    Differ,
}

/// Compares the whole lines of two segments, compressed or not. A torn end counts for nothing.
fn compare(first: &Path, second: &Path) -> Result<SegmentRelation, LogError> {
    let mut a = scan::open(first).map_err(LogError::io(first))?.take(MAX_SEGMENT_BYTES);
    let mut b = scan::open(second).map_err(LogError::io(second))?.take(MAX_SEGMENT_BYTES);
    let (mut line_a, mut line_b) = (vec![], vec![]);
    loop {
        let more_a = whole_line(&mut a, &mut line_a).map_err(LogError::io(first))?;
        let more_b = whole_line(&mut b, &mut line_b).map_err(LogError::io(second))?;
        match (more_a, more_b) {
            (false, false) => return Ok(SegmentRelation::Same),
            (true, false) => return Ok(SegmentRelation::FirstLonger),
            (false, true) => return Ok(SegmentRelation::SecondLonger),
            (true, true) if line_a != line_b => return Ok(SegmentRelation::Differ),
            (true, true) => {}
        }
    }
}

/// Reads a line that ends; whether there is one. Of a line that is longer than any record its pieces are compared.
fn whole_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    Ok(match read_line(input, line)? {
        LineEnd::Newline | LineEnd::Longer => true,
        LineEnd::File => false,
    })
}
