//! A worker's process with the threads that serve its streams.
//!
//! None of these threads is ever waited for: a grandchild that holds a stream open must not hold up the pool.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{self, Receiver, Sender, SyncSender},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid},
};

use super::ring::Ring;
use crate::{protocol::MAX_LINE, worker::IN_POOL};

/// Something heard from a process.
pub(super) struct ProcessMessage {
    /// Which worker, by its position in the pool.
    pub(super) worker: usize,
    /// Which of the processes that it had.
    pub(super) generation: u64,
    pub(super) said: StreamEvent,
}

pub(super) enum StreamEvent {
    Line(Vec<u8>),
    TooLong,
    /// It closed its standard output, after so much of a line.
    End(Vec<u8>),
    /// It closed its standard input.
    Deaf,
}

/// Starts processes on a thread that lives as long as the pool. Workers ask the system to end them when their parent
/// ends, and to Linux the parent is the thread that started them.
///
/// Where there is no such thread, an error says at each start why.
pub(super) struct Starter(Result<Sender<StartRequest>, String>);

/// A command to start, and where to send the process.
type StartRequest = (Command, Sender<io::Result<Child>>);

impl Starter {
    pub(super) fn new() -> Starter {
        let (sender, requests) = mpsc::channel::<StartRequest>();
        let started = spawn(move || {
            for (mut command, answer) in requests {
                // A pool that no longer waits has no use for the process, but dropping a child does not end it.
                if let Err(mpsc::SendError(Ok(mut child))) = answer.send(command.spawn()) {
                    let _ = child.kill();
                    let _ = child.wait();
                }
            }
        });
        Starter(started.map(|()| sender).map_err(|err| format!("there is no room for a thread: {err}")))
    }

    fn start(&self, command: Command) -> io::Result<Child> {
        let gone = || io::Error::other("the thread that starts processes is gone");
        let (answer, started) = mpsc::channel();
        let requests = self.0.as_ref().map_err(|why| io::Error::other(why.clone()))?;
        requests.send((command, answer)).map_err(|_| gone())?;
        started.recv().map_err(|_| gone())?
    }
}

/// A running process. Dropping it kills its group and waits for it.
pub(super) struct Process {
    child: Child,
    group: Pid,
    jobs: Sender<String>,
    pub(super) generation: u64,
    pub(super) stderr: Ring,
    /// Whether all that it wrote has been heard.
    pub(super) silent: bool,
    /// When it was first seen to have ended.
    exited: Option<Instant>,
    reaped: Option<ExitStatus>,
}

impl Process {
    /// Starts a command in a process group of its own.
    pub(super) fn start(
        argv: &[String],
        worker: usize,
        generation: u64,
        heard: &SyncSender<ProcessMessage>,
        starter: &Starter,
        stderr_cap: usize,
    ) -> io::Result<Process> {
        let (program, arguments) = argv.split_first().ok_or_else(|| io::Error::other("no command"))?;
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).env(IN_POOL, "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = starter.start(command).map_err(|err| match err.kind() {
            io::ErrorKind::NotFound => io::Error::other(format!("there is no program `{program}`")),
            io::ErrorKind::PermissionDenied => {
                io::Error::other(format!("`{program}` is no program that may be run"))
            }
            _ if is_no_room(&err) => err,
            _ => io::Error::other(format!("`{program}`: {err}")),
        })?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(io::Error::other("a stream is missing"));
        };
        let (jobs, lines) = mpsc::channel();
        let group = Pid::from_child(&child);
        let ring = Ring::new(stderr_cap);
        let (to, said, filled) = (heard.clone(), heard.clone(), ring.clone());
        // From here on dropping it ends the process, as where there is no room for its threads.
        let process = Process {
            child,
            group,
            jobs,
            generation,
            stderr: ring,
            silent: false,
            exited: None,
            reaped: None,
        };
        spawn(move || write_jobs(stdin, &lines, &|| tell(&to, worker, generation, StreamEvent::Deaf)))?;
        spawn(move || read_lines(stdout, &|it| tell(&said, worker, generation, it)))?;
        spawn(move || filled.fill(stderr))?;
        Ok(process)
    }

    /// Sends a line, some time. That nobody reads it shows in other ways.
    pub(super) fn send(&self, line: String) {
        let _ = self.jobs.send(line);
    }

    /// Since when it has ended, if it has. It stays a zombie, so that its group's number cannot be given to others.
    pub(super) fn exited(&mut self, now: Instant) -> Option<Duration> {
        if self.exited.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            // An error says that there is no such child: it has ended too.
            if !matches!(waitid(WaitId::Pid(self.group), options), Ok(None)) {
                self.exited = Some(now);
            }
        }
        self.exited.map(|it| now.saturating_duration_since(it))
    }

    /// Kills it with all that it started.
    pub(super) fn kill(&self) {
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    /// Takes the status of a process that has ended, and ends what is left of its group.
    pub(super) fn reap(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.reaped {
            return Ok(status);
        }
        self.kill();
        let status = self.child.wait()?;
        self.reaped = Some(status);
        Ok(status)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.reaped.is_some() {
            return;
        }
        self.kill();
        // One that does not die is left to the system: waiting for ever would be worse.
        for _ in 0..2000 {
            if self.exited(Instant::now()).is_some() {
                let _ = self.reap();
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Starts a thread that nobody waits for; [`thread::spawn`] would panic where there is no room for one.
pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().spawn(work).map(drop)
}

/// Whether a start failed because the system has no more processes, threads, files or memory for us.
pub(super) fn is_no_room(err: &io::Error) -> bool {
    let full = [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE];
    Errno::from_io_error(err).is_some_and(|it| full.contains(&it))
}

fn tell(to: &SyncSender<ProcessMessage>, worker: usize, generation: u64, said: StreamEvent) -> bool {
    to.send(ProcessMessage { worker, generation, said }).is_ok()
}

/// Passes jobs on until there are no more, or nobody reads them.
fn write_jobs(mut stdin: ChildStdin, lines: &Receiver<String>, deaf: &dyn Fn() -> bool) {
    for line in lines {
        if stdin.write_all(line.as_bytes()).and_then(|()| stdin.flush()).is_err() {
            deaf();
            return;
        }
    }
}

/// Passes lines on until the end, or until nobody listens.
fn read_lines(stdout: impl Read, said: &dyn Fn(StreamEvent) -> bool) {
    let mut stdout = BufReader::with_capacity(1 << 16, stdout);
    loop {
        let mut line = Vec::new();
        let most = (MAX_LINE + 1) as u64;
        let read = stdout.by_ref().take(most).read_until(b'\n', &mut line);
        let complete = line.last() == Some(&b'\n');
        if complete {
            line.pop();
        }
        if line.len() > MAX_LINE {
            said(StreamEvent::TooLong);
            return;
        }
        if read.is_err() || !complete {
            said(StreamEvent::End(line));
            return;
        }
        if !said(StreamEvent::Line(line)) {
            return;
        }
    }
}
