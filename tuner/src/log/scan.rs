//! Reading a log line by line, in memory that does not grow with it.
//!
//! A damaged line never costs another record. A last line that does not end is torn, as by a process that was killed:
//! it is no damage, and it is a record all the same if its checksum is good.

use std::{
    fmt,
    io::{self, BufRead, BufReader, Read},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use flate2::bufread::MultiGzDecoder;
use serde::Deserialize;

use super::{LOG_VERSION, LogError, Raw, frame, names::segments};
use crate::regular;

/// The longest line that is read. A longer one is damage, and is not kept in memory.
pub(super) const MAX_LINE_BYTES: usize = 64 << 20;

/// The largest segment that is read, in bytes, unpacked: a million trials are six gibibytes. A file may say that it has any
/// length, and a small one may unpack to any.
pub(super) const MAX_SEGMENT_BYTES: u64 = 16 << 30;

/// What stands in a log.
#[derive(Clone, PartialEq, Debug)]
pub enum LogLine<'a> {
    /// A whole record.
    Record {
        /// Where.
        location: LineLocation<'a>,
        /// The record.
        raw: Raw<'a>,
    },
    /// Bytes that are no record.
    Damage(Damage),
    /// A last line that does not end and is no record.
    Torn(Torn),
}

/// The location of a line: its segment and its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineLocation<'a> {
    /// The file.
    pub segment: &'a Path,
    /// The line, from 1.
    pub line: u64,
}

/// A line that is not what was written, or a whole segment that is not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{}: {reason}", segment.display(), if *line == 0 { String::new() } else { format!(":{line}") })]
pub struct Damage {
    /// The file.
    pub segment: PathBuf,
    /// The line, from 1; 0 where it is about the segment.
    pub line: u64,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What is wrong with a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Its bytes are not those that were written.
    Checksum {
        /// Of the bytes as they are.
        found: u32,
        /// As it stands in the line.
        stored: u32,
    },
    /// It ends otherwise.
    NoChecksum,
    /// Whole records and other bytes in one line. The records count.
    Joined(usize),
    /// It is too long to be a record.
    TooLong(u64),
    /// Its checksum is good, but it is not what its kind has to be.
    Entry(String),
    /// It contradicts itself or another line.
    Wrong(String),
    /// A newer tilewright wrote the segment. Nothing of it is read.
    Newer(u32),
    /// The rest of the segment cannot be uncompressed.
    Packed(String),
    /// The system does not hand out the segment, or not all of it.
    Unreadable(io::ErrorKind, String),
    /// The segment is no tuning log at all.
    Foreign,
}

/// A last line that does not end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Torn {
    /// The file.
    pub segment: PathBuf,
    /// How many bytes are no record.
    pub bytes: u64,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Checksum { found, stored } => {
                write!(f, "the checksum of the line is {found:08x}, and {stored:08x} stands there")
            }
            Reason::NoChecksum => write!(f, "the line does not end with a checksum"),
            Reason::Joined(1) => write!(f, "other bytes stand beside one whole record"),
            Reason::Joined(records) => write!(f, "other bytes stand beside {records} whole records"),
            Reason::TooLong(bytes) => write!(f, "the line has {bytes} bytes"),
            Reason::Entry(reason) | Reason::Wrong(reason) => write!(f, "{}", reason.escape_debug()),
            Reason::Newer(version) => write!(
                f,
                "the segment has format version {version}, and this build reads up to {LOG_VERSION}: it is not read"
            ),
            Reason::Packed(reason) => write!(f, "the rest cannot be uncompressed: {reason}"),
            Reason::Unreadable(_, words) => write!(f, "the segment is not read: {words}"),
            Reason::Foreign => write!(f, "the segment is not read: it is no tuning log"),
        }
    }
}

impl Reason {
    /// Why a segment of a folder is not read.
    fn of(err: LogError) -> Reason {
        match err {
            LogError::Foreign(_) => Reason::Foreign,
            LogError::Io { source, .. } => Reason::Unreadable(source.kind(), source.to_string()),
            other => Reason::Unreadable(io::ErrorKind::Other, other.to_string()),
        }
    }
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: the last line is torn; {} bytes of it are not read",
            self.segment.display(),
            self.bytes
        )
    }
}

/// Tells every line of a log, a folder or one segment, until `found` breaks. Segments come in the order of their
/// names, lines as they stand there. A segment of a folder that cannot be read, or that is of a newer version, is told as
/// damage, and the next one is read.
///
/// # Errors
/// Where there is no log, or the one file that was asked for cannot be read.
pub fn scan(log: &Path, found: &mut dyn FnMut(LogLine<'_>) -> ControlFlow<()>) -> Result<(), LogError> {
    for segment in segments(log)? {
        let flow = scan_segment(&segment, found).or_else(|err| {
            if segment == log {
                return Err(err);
            }
            let reason = Reason::of(err);
            Ok(found(LogLine::Damage(Damage { segment: segment.clone(), line: 0, reason })))
        });
        if flow?.is_break() {
            break;
        }
    }
    Ok(())
}

fn scan_segment(
    path: &Path,
    found: &mut dyn FnMut(LogLine<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, LogError> {
    let mut input = open(path).map_err(LogError::io(path))?.take(MAX_SEGMENT_BYTES + 1);
    let mut segment = Segment { path, line: 0, found };
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        segment.line += 1;
        let ended = match read_line(&mut input, &mut bytes) {
            Ok(LineEnd::Newline) => true,
            Ok(LineEnd::File) => false,
            // No run begins like that.
            Ok(LineEnd::Longer) if segment.line == 1 => return Err(LogError::Foreign(path.to_owned())),
            Ok(LineEnd::Longer) => {
                let rest = skip_line(&mut input).map_err(LogError::io(path))?;
                let length = bytes.len() as u64 + rest;
                bytes = Vec::new();
                if segment.damage(Reason::TooLong(length)).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                continue;
            }
            Err(err) if is_of_packing(&err) => {
                // The last line that came out may be whole all the same.
                let flow =
                    if bytes.is_empty() { ControlFlow::Continue(()) } else { segment.part(&bytes, true) };
                return Ok(match flow {
                    ControlFlow::Continue(()) => segment.damage(Reason::Packed(err.to_string())),
                    ControlFlow::Break(()) => flow,
                });
            }
            Err(err) => return Err(LogError::io(path)(err)),
        };
        if input.limit() == 0 {
            regular::expect_at_most(MAX_SEGMENT_BYTES + 1, MAX_SEGMENT_BYTES).map_err(LogError::io(path))?;
        }
        if !ended && bytes.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        if segment.line == 1 && is_foreign(&bytes, ended) {
            return Err(LogError::Foreign(path.to_owned()));
        }
        if let Some(version) = newer(&bytes) {
            return Ok(segment.damage(Reason::Newer(version)));
        }
        let flow = segment.part(&bytes, ended);
        if flow.is_break() || !ended {
            return Ok(flow);
        }
    }
}

/// Opens a segment, compressed or not.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = regular::open(path)?;
    regular::expect_at_most(file.metadata()?.len(), MAX_SEGMENT_BYTES)?;
    let mut input = BufReader::with_capacity(1 << 18, file);
    if input.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(input))));
    }
    Ok(Box::new(input))
}

/// Whether a read failed because compressed bytes are not what was written.
fn is_of_packing(err: &io::Error) -> bool {
    matches!(
        err.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof
    )
}

/// How the reading of a line ended.
pub(super) enum LineEnd {
    Newline,
    File,
    /// It is longer than [`MAX_LINE_BYTES`], and its rest is still to be read.
    Longer,
}

/// Reads a line without its end.
pub(super) fn read_line(input: &mut dyn BufRead, bytes: &mut Vec<u8>) -> io::Result<LineEnd> {
    input.take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', bytes)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        return Ok(LineEnd::Newline);
    }
    Ok(if bytes.len() <= MAX_LINE_BYTES { LineEnd::File } else { LineEnd::Longer })
}

/// Reads past the end of a line, and tells how many bytes that were.
fn skip_line(input: &mut dyn BufRead) -> io::Result<u64> {
    let mut length = 0;
    loop {
        let part = input.fill_buf()?;
        let (used, ended) = match part.iter().position(|it| *it == b'\n') {
            Some(at) => (at + 1, true),
            None => (part.len(), part.is_empty()),
        };
        input.consume(used);
        length += used as u64;
        if ended {
            return Ok(length);
        }
    }
}

/// Whether the first line says that the file was never a log: it is neither damaged nor torn, but something else.
fn is_foreign(bytes: &[u8], ended: bool) -> bool {
    let same = bytes.iter().zip(br#"{"k":"run""#).filter(|(a, b)| a == b).count();
    // A few flipped bits leave most of it; a file that was just made may have nothing but zeros yet.
    same < 7
        && (ended || bytes.len() >= 10)
        && bytes.iter().any(|it| *it != 0)
        && frame::salvage(bytes).is_empty()
}

/// The version of a head of a newer format, whatever else stands in it.
fn newer(bytes: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    if !bytes.starts_with(br#"{"k":"run","#) {
        return None;
    }
    serde_json::from_slice::<Version>(bytes).ok().map(|it| it.v).filter(|it| *it > LOG_VERSION)
}

/// A segment while it is read.
struct Segment<'a> {
    path: &'a Path,
    line: u64,
    found: &'a mut dyn FnMut(LogLine<'_>) -> ControlFlow<()>,
}

impl Segment<'_> {
    /// Tells what stands in a line.
    fn part(&mut self, bytes: &[u8], ended: bool) -> ControlFlow<()> {
        if let Some(raw) = Raw::of(bytes) {
            return self.record(raw);
        }
        let whole = frame::salvage(bytes);
        for range in &whole {
            if let Some(raw) = Raw::of(&bytes[range.clone()]) {
                self.record(raw)?;
            }
        }
        let end = whole.last().map_or(0, |it| it.end);
        if !ended {
            let before = whole.first().is_some_and(|it| it.start > 0) || whole.len() > 1;
            if before {
                self.damage(Reason::Joined(whole.len()))?;
            }
            let torn = Torn { segment: self.path.to_owned(), bytes: (bytes.len() - end) as u64 };
            return if torn.bytes > 0 {
                (self.found)(LogLine::Torn(torn))
            } else {
                ControlFlow::Continue(())
            };
        }
        self.damage(match frame::checksums(bytes) {
            _ if !whole.is_empty() => Reason::Joined(whole.len()),
            Some((found, stored)) if found != stored => Reason::Checksum { found, stored },
            Some(_) | None => Reason::NoChecksum,
        })
    }

    fn record(&mut self, raw: Raw<'_>) -> ControlFlow<()> {
        let location = LineLocation { segment: self.path, line: self.line };
        (self.found)(LogLine::Record { location, raw })
    }

    fn damage(&mut self, reason: Reason) -> ControlFlow<()> {
        (self.found)(LogLine::Damage(Damage { segment: self.path.to_owned(), line: self.line, reason }))
    }
}

impl LineLocation<'_> {
    /// Damage here.
    pub fn damage(self, reason: Reason) -> Damage {
        Damage { segment: self.segment.to_owned(), line: self.line, reason }
    }
}

impl Damage {
    /// As the error of whoever needs the segment, where it is not read.
    pub fn unread(&self) -> Option<LogError> {
        let segment = self.segment.clone();
        match &self.reason {
            Reason::Newer(version) => Some(LogError::Newer { segment, version: *version }),
            Reason::Foreign => Some(LogError::Foreign(segment)),
            Reason::Unreadable(kind, words) => {
                Some(LogError::io(segment)(io::Error::new(*kind, words.clone())))
            }
            Reason::Checksum { .. }
            | Reason::NoChecksum
            | Reason::Joined(_)
            | Reason::TooLong(_)
            | Reason::Entry(_)
            | Reason::Wrong(_)
            | Reason::Packed(_) => None,
        }
    }
}
