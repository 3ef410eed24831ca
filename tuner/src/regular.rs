//! Opening files that somebody names. A path may be anything: a folder, a pipe that nobody writes to, a device that never
//! ends. Only regular files are opened, and opening one never waits.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::OFlags;

/// Opens a file to read.
///
/// # Errors
/// Where the system refuses, and for all that is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a file with some options, which may make it.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // To open some devices is to do something to them, so they are looked at before.
    match fs::metadata(path) {
        Ok(it) => expect_regular(&it)?,
        Err(err) if err.kind() == io::ErrorKind::NotFound => {}
        Err(err) => return Err(err),
    }
    // It may be another by now: a pipe would wait for a writer. Regular files know no difference.
    let file = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    expect_regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a file of at most so many bytes.
///
/// # Errors
/// As [`open`], and for longer files.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    expect_at_most(file.metadata()?.len(), most)?;
    let mut bytes = vec![];
    // The file may have grown meanwhile.
    file.take(most + 1).read_to_end(&mut bytes)?;
    expect_at_most(bytes.len() as u64, most)?;
    Ok(bytes)
}

/// Refuses a length that is beyond a limit, both in bytes.
///
/// # Errors
/// In words that name both.
pub fn expect_at_most(bytes: u64, most: u64) -> io::Result<()> {
    if bytes <= most {
        return Ok(());
    }
    Err(io::Error::other(format!("it has {bytes} bytes, and at most {most} are read")))
}

fn expect_regular(it: &Metadata) -> io::Result<()> {
    let kind = it.file_type();
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"))
    } else {
        let what = if kind.is_fifo() {
            "a pipe"
        } else if kind.is_socket() {
            "a socket"
        } else {
            "a device"
        };
        Err(io::Error::other(format!("it is {what}, no regular file")))
    }
}
