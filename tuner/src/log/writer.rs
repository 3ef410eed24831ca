//! Writing a segment: one writer, whole lines, on the disk before the caller goes on.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{
    Entry, Event, Happening, LOG_VERSION, LogError, Raw, Run, frame, names,
    scan::{MAX_LINE_BYTES, MAX_SEGMENT_BYTES},
};
use crate::regular;

/// After how many entries [`Durability::Batch`] waits for the disk.
const BATCH: u32 = 16;

/// When an entry is safe from a loss of power. A killed process loses none in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// Before `append` returns.
    #[default]
    Each,
    /// After some entries, and at the end.
    Batch,
}

/// The one writer of a segment. Others are kept out by a lock that goes with the process.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    run: String,
    /// The length of the whole lines.
    end: u64,
    /// Whether there may be bytes behind `end`, of a line that could not be written.
    dirty: bool,
    durability: Durability,
    /// How many entries the disk may not have yet.
    waiting: u32,
}

/// What was found at the end of a segment that is written again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// How many bytes of a torn last line were cut off.
    pub cut: u64,
    /// Whether the last line was whole but for its newline.
    pub completed: bool,
}

impl Writer {
    /// Begins the segment of a run in a folder, which is made if it is not there.
    ///
    /// # Errors
    /// Where the folder or the file cannot be written, or there is a run of this name. Nothing is left behind.
    pub fn create(folder: &Path, head: &Run) -> Result<Writer, LogError> {
        let path = folder.join(names::segment_name(&head.run)?);
        let line = sealed(&Entry::Run(head.clone()))?;
        fs::create_dir_all(folder).map_err(LogError::io(folder))?;
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create_new(true).open(&path);
        let file = file.map_err(|err| match err.kind() {
            io::ErrorKind::AlreadyExists => LogError::Exists(path.clone()),
            _ => LogError::io(&path)(err),
        })?;
        lock(&file, &path)?;
        let run = head.run.clone();
        let mut writer =
            Writer { file, path, run, end: 0, dirty: false, durability: Durability::Each, waiting: 0 };
        let written = writer.write(&line).and_then(|()| sync_folders(folder));
        written.map_err(|source| {
            // Without its head the segment says nothing; that it cannot be removed either adds nothing.
            let _ = fs::remove_file(&writer.path);
            LogError::Write { path: writer.path.clone(), source }
        })?;
        Ok(writer)
    }

    /// Goes on with a segment. A torn last line is cut off, or completed if only its newline is missing, and an event
    /// tells of it. `now` is RFC 3339 in UTC. A log should be read after this, so that no other writer comes between.
    ///
    /// # Errors
    /// Where another process writes it, a newer tilewright wrote it, it has no head, or it cannot be written.
    pub fn reopen(segment: &Path, now: &str) -> Result<(Writer, Recovered), LogError> {
        if names::is_packed(segment) {
            return Err(LogError::Packed(segment.to_owned()));
        }
        let file = open_again(segment)?;
        let run = head_of(&file, segment)?;
        let path = segment.to_owned();
        let mut writer =
            Writer { file, path, run, end: 0, dirty: false, durability: Durability::Each, waiting: 0 };
        let recovered = writer.recover().map_err(LogError::write(segment))?;
        if recovered.cut > 0 {
            let detail = format!("{} bytes of a torn last line were cut off", recovered.cut);
            writer.append(&Entry::Event(Event {
                device: None,
                run: writer.run.clone(),
                what: Happening::TailTruncated,
                detail,
                rejected: indexmap::IndexMap::new(),
                time: now.to_owned(),
                other: indexmap::IndexMap::new(),
            }))?;
        }
        Ok((writer, recovered))
    }

    /// With this durability from now on.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Writer {
        self.durability = durability;
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// Where it cannot be written, as on a full disk. The log is then as it was before, and the entry may be tried
    /// again. [`LogError::Lost`] where the log is no longer there, or no longer what was written.
    pub fn append(&mut self, entry: &Entry) -> Result<(), LogError> {
        let line = sealed(entry)?;
        // What others left of it is not added to.
        self.expect_whole()?;
        self.write(&line).map_err(LogError::write(&self.path))?;
        self.expect_whole()
    }

    /// Makes sure that the segment is where it was, and as long as what was written: a line that nobody will find is not on
    /// the disk, whatever the system says of it.
    ///
    /// # Errors
    /// [`LogError::Lost`] otherwise.
    pub fn expect_whole(&self) -> Result<(), LogError> {
        let lost = |what: String| Err(LogError::Lost { path: self.path.clone(), what });
        let ours = self.file.metadata().map_err(LogError::io(&self.path))?;
        let there = match fs::metadata(&self.path) {
            Ok(it) => it,
            Err(err) if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return lost("was taken away".to_owned());
            }
            Err(err) => return Err(LogError::io(&self.path)(err)),
        };
        if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
            return lost("was replaced by another file".to_owned());
        }
        match ours.len() {
            // Of a line that failed there may be a part, which the next one cuts off.
            len if len < self.end || (len > self.end && !self.dirty) => {
                lost(format!("was changed from {} to {len} bytes by somebody else", self.end))
            }
            _ => Ok(()),
        }
    }

    /// Waits until the disk has all entries.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.file.sync_data().map_err(LogError::write(&self.path))?;
        self.waiting = 0;
        Ok(())
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.dirty {
            self.cut_back()?;
        }
        let wait = match self.durability {
            Durability::Each => true,
            Durability::Batch => self.waiting + 1 >= BATCH,
        };
        let written = self.file.write_all(line);
        let written = if wait { written.and_then(|()| self.file.sync_data()) } else { written };
        if let Err(err) = written {
            self.dirty = true;
            // If this fails as well, it is tried again before the next line, and by whoever opens the segment.
            let _ = self.cut_back();
            return Err(err);
        }
        self.end += line.len() as u64;
        self.waiting = if wait { 0 } else { self.waiting + 1 };
        Ok(())
    }

    fn cut_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.dirty = false;
        Ok(())
    }

    fn recover(&mut self) -> io::Result<Recovered> {
        let length = self.file.seek(SeekFrom::End(0))?;
        let start = end_of_lines(&mut self.file, length)?;
        let mut tail = vec![];
        self.file.seek(SeekFrom::Start(start))?;
        // What is longer than a line may be is none.
        (&self.file).take(MAX_LINE_BYTES as u64).read_to_end(&mut tail)?;
        let whole = match Raw::of(&tail) {
            Some(_) => tail.len(),
            None => frame::salvage(&tail).last().map_or(0, |it| it.end),
        };
        let recovered = Recovered { cut: length - start - whole as u64, completed: whole > 0 };
        self.end = start + whole as u64;
        if recovered.cut > 0 {
            self.cut_back()?;
        }
        if recovered.completed {
            self.write(b"\n")?;
        }
        Ok(recovered)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.waiting > 0 {
            // Whoever needs to know calls `sync`.
            let _ = self.file.sync_data();
        }
    }
}

/// The line of an entry, which can be read again.
fn sealed(entry: &Entry) -> Result<Vec<u8>, LogError> {
    if *entry == Entry::Unknown {
        return Err(LogError::Entry("it is of an unknown kind".to_owned()));
    }
    let line = frame::seal(entry).map_err(LogError::Entry)?;
    let read = Raw::of(&line[..line.len() - 1]).ok_or_else(|| "its checksum is not found".to_owned());
    read.and_then(Raw::entry).map_err(LogError::Entry)?;
    Ok(line)
}

/// Opens a segment to go on with it, and keeps other writers out.
pub(super) fn open_again(segment: &Path) -> Result<File, LogError> {
    let file = regular::open_with(segment, OpenOptions::new().read(true).append(true));
    let file = file.map_err(LogError::io(segment))?;
    let length = file.metadata().map_err(LogError::io(segment))?.len();
    regular::expect_at_most(length, MAX_SEGMENT_BYTES).map_err(LogError::io(segment))?;
    lock(&file, segment)?;
    Ok(file)
}

/// How often a lock is asked for again, and after how long: a program that another one starts has the locks of that one until it runs, so that
/// a lock may outlast its owner for a moment.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(20);

/// Keeps other writers out as long as the process lives.
fn lock(file: &File, path: &Path) -> Result<(), LogError> {
    let mut left = TRIES;
    let mut answer = file.try_lock();
    while left > 0 && matches!(answer, Err(TryLockError::WouldBlock)) {
        thread::sleep(PAUSE);
        answer = file.try_lock();
        left -= 1;
    }
    match answer {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(LogError::Locked(path.to_owned())),
        // Some file systems of clusters know no locks; a run there has a name of its own all the same.
        Err(TryLockError::Error(err)) if err.kind() == io::ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(err)) => Err(LogError::io(path)(err)),
    }
}

/// The name of the run whose head is the first line.
fn head_of(file: &File, path: &Path) -> Result<String, LogError> {
    #[derive(serde::Deserialize)]
    struct Head {
        v: u32,
        run: String,
    }
    let mut line = vec![];
    let first = BufReader::new(file.take(MAX_LINE_BYTES as u64)).read_until(b'\n', &mut line);
    first.map_err(LogError::io(path))?;
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    let range = frame::salvage(line).into_iter().next().ok_or_else(|| LogError::NoHead(path.to_owned()))?;
    let raw = Raw::of(&line[range]).filter(|it| it.kind() == "run");
    let head: Option<Head> = raw.and_then(|it| it.fields().ok());
    match head {
        Some(head) if head.v > LOG_VERSION => {
            Err(LogError::Newer { segment: path.to_owned(), version: head.v })
        }
        // Whoever goes on with it, merges it or exports it makes a file of the name.
        Some(head) => names::segment_name(&head.run).map(|_| head.run),
        None => Err(LogError::NoHead(path.to_owned())),
    }
}

/// Where the last line that ends does.
fn end_of_lines(file: &mut File, length: u64) -> io::Result<u64> {
    let mut window = vec![0; 1 << 16];
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(window.len() as u64);
        let part = &mut window[..usize::try_from(end - start).expect("at most the window")];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|it| *it == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Makes sure that the names of new files survive a loss of power.
pub(super) fn sync_folders(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()?;
    match folder.parent().filter(|it| !it.as_os_str().is_empty()) {
        // The folder above may be one that cannot be read; it is ours to sync only where the folder is new.
        Some(above) => File::open(above).and_then(|it| it.sync_all()).or(Ok(())),
        None => Ok(()),
    }
}
