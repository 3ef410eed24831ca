//! A program that is asked one thing, and may not take longer than a time for its answer.
//!
//! Nothing that it does can hold up whoever asks: its streams are read by threads that nobody waits for, and at the end
//! its whole process group is killed. A process that does not even die, as one stuck in a driver, is left behind.

use std::{
    ffi::OsStr,
    io::{self, Read},
    os::unix::process::CommandExt,
    process::{Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::worker::IN_POOL;

/// The most bytes that are kept of each stream.
const MAX_STREAM_BYTES: u64 = 1 << 20;

/// What a program said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Once {
    /// Its standard output, at most one mebibyte.
    pub stdout: String,
    /// Its standard error, at most one mebibyte.
    pub stderr: String,
    /// Whether it ended with exit code 0.
    pub success: bool,
    /// How it ended, in words: `exit status: 1`.
    pub status: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// It cannot be started.
    #[error("it cannot be started: {0}")]
    Start(#[from] io::Error),
    /// It took too long.
    #[error("it did not answer within {} s", .0.as_secs())]
    Slow(Duration),
}

/// Starts a program without a shell and without input, and takes what it prints.
///
/// # Errors
/// [`OnceError`]; a program that ends with another exit code than 0 is none.
pub fn once(program: &OsStr, arguments: &[&OsStr], limit: Duration) -> Result<Once, OnceError> {
    let until = Instant::now() + limit;
    let mut command = Command::new(program);
    command.args(arguments).process_group(0).env(IN_POOL, "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let missing = || io::Error::other("a stream is missing");
    let stdout = read(child.stdout.take().ok_or_else(missing)?);
    let stderr = read(child.stderr.take().ok_or_else(missing)?);
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait()));
    let left = || until.saturating_duration_since(Instant::now());
    let status: Option<ExitStatus> = match ended.recv_timeout(left()) {
        Ok(status) => Some(status?),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
    };
    // Of a program that has ended there may be others that it started, which hold its streams.
    let texts = status.map(|_| (text(&stdout, left()), text(&stderr, left())));
    if texts.is_none() || texts.as_ref().is_some_and(|it| it.0.is_none() || it.1.is_none()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let (Some(status), Some((Some(stdout), Some(stderr)))) = (status, texts) else {
        return Err(OnceError::Slow(limit));
    };
    Ok(Once { stdout, stderr, success: status.success(), status: status.to_string() })
}

fn read(stream: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, bytes) = mpsc::channel();
    thread::spawn(move || {
        let mut stream = stream;
        let mut kept = Vec::new();
        // What is beyond is read as well, so that the writer can end.
        if stream.by_ref().take(MAX_STREAM_BYTES).read_to_end(&mut kept).is_ok() {
            let _ = io::copy(&mut stream, &mut io::sink());
        }
        let _ = sender.send(kept);
    });
    bytes
}

fn text(bytes: &Receiver<Vec<u8>>, left: Duration) -> Option<String> {
    let bytes = bytes.recv_timeout(left).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration) -> Result<Once, OnceError> {
        once(OsStr::new("sh"), &[OsStr::new("-c"), OsStr::new(script)], limit)
    }

    #[test]
    fn what_it_said_and_how_it_ended() {
        let it = sh("echo out; echo err >&2; exit 3", Duration::from_mins(1)).unwrap();
        assert_eq!((it.stdout.as_str(), it.stderr.as_str(), it.success), ("out\n", "err\n", false));
        assert!(it.status.contains('3'));
        let long = sh("head -c 3000000 /dev/zero; echo end >&2", Duration::from_mins(1)).unwrap();
        assert_eq!((long.stdout.len(), long.stderr.as_str()), (1 << 20, "end\n"));
        let none = once(OsStr::new("tilewright-no-such-program"), &[], Duration::from_mins(1)).unwrap_err();
        assert!(matches!(none, OnceError::Start(_)), "{none}");
    }

    #[test]
    fn one_that_hangs_is_killed_with_all_that_it_started() {
        let begin = Instant::now();
        for script in ["sleep 1000", "sleep 1000 &", "sleep 1000 & wait"] {
            let slow = sh(script, Duration::from_millis(200)).unwrap_err();
            assert!(matches!(slow, OnceError::Slow(_)), "{script}: {slow}");
        }
        assert!(begin.elapsed() < Duration::from_mins(1));
    }
}
