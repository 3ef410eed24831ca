//! Compressing the segments of finished runs. Readers take them as they are; nobody writes them again.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader, BufWriter, Read, Write},
    ops::ControlFlow,
    path::Path,
};

use flate2::{Compression, bufread::GzDecoder, write::GzEncoder};

use super::{
    Damage, Entry, LogError, LogLine, Reason,
    merge::with_suffix,
    names::{is_packed, segments},
    scan::scan,
    writer::{open_again, sync_folders},
};

/// What packing did with a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packed {
    /// It was compressed.
    Done {
        /// Its bytes before.
        from: u64,
        /// Its bytes now.
        to: u64,
    },
    /// It was compressed before.
    Already,
    /// Its run is not finished and may be resumed.
    Unfinished,
}

/// Compresses the segments of finished runs in a log, a folder or one segment. `done` is told what became of each.
/// The same bytes are made everywhere.
pub fn pack(log: &Path, done: &mut dyn FnMut(&Path, Result<Packed, LogError>)) -> Result<(), LogError> {
    for segment in segments(log)? {
        let packed = pack_segment(&segment);
        done(&segment, packed);
    }
    Ok(())
}

fn pack_segment(segment: &Path) -> Result<Packed, LogError> {
    if is_packed(segment) {
        return Ok(Packed::Already);
    }
    let file = open_again(segment)?;
    if !is_finished(segment)? {
        return Ok(Packed::Unfinished);
    }
    let target = with_suffix(segment, ".gz");
    let part = with_suffix(&target, &format!(".part-{}", std::process::id()));
    let write = || {
        let output = OpenOptions::new().write(true).create_new(true).open(&part)?;
        let mut encoder = GzEncoder::new(BufWriter::new(output), Compression::default());
        io::copy(&mut BufReader::new(&file), &mut encoder)?;
        let mut output = encoder.finish()?;
        output.flush()?;
        output.get_ref().sync_all()?;
        if !unpacks_to(&part, segment)? {
            return Err(io::Error::other("what was compressed does not come out again"));
        }
        fs::rename(&part, &target)
    };
    let written = write();
    if written.is_err() {
        // The error says more than that its leavings cannot be removed.
        let _ = fs::remove_file(&part);
    }
    let folder = target.parent().unwrap_or(Path::new("."));
    let written = written.and_then(|()| sync_folders(folder)).and_then(|()| fs::remove_file(segment));
    written.map_err(LogError::write(&target))?;
    let bytes = |file: io::Result<fs::Metadata>| file.map(|it| it.len()).map_err(LogError::io(&target));
    Ok(Packed::Done { from: bytes(file.metadata())?, to: bytes(target.metadata())? })
}

/// Whether the last that is told of the run is that it is finished.
fn is_finished(segment: &Path) -> Result<bool, LogError> {
    let (mut finished, mut newer) = (false, None);
    scan(segment, &mut |line| {
        match line {
            LogLine::Record { raw, .. } if raw.kind() == "event" => {
                if let Ok(Entry::Event(event)) = raw.entry() {
                    finished = event.what.completes().unwrap_or(finished);
                }
            }
            LogLine::Damage(Damage { reason: Reason::Newer(it), .. }) => newer = Some(it),
            LogLine::Record { .. } | LogLine::Damage(_) | LogLine::Torn(_) => {}
        }
        ControlFlow::Continue(())
    })?;
    match newer {
        Some(version) => Err(LogError::Newer { segment: segment.to_owned(), version }),
        None => Ok(finished),
    }
}

fn unpacks_to(packed: &Path, plain: &Path) -> io::Result<bool> {
    let mut a = GzDecoder::new(BufReader::new(File::open(packed)?));
    let mut b = BufReader::new(File::open(plain)?);
    let (mut part_a, mut part_b) = (vec![], vec![]);
    loop {
        part_a.clear();
        part_b.clear();
        a.by_ref().take(1 << 16).read_to_end(&mut part_a)?;
        b.by_ref().take(1 << 16).read_to_end(&mut part_b)?;
        if part_a != part_b || part_a.is_empty() {
            return Ok(part_a == part_b);
        }
    }
}
