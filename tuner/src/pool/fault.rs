//! What can go wrong with a worker, and what its job is told.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

use crate::{
    log::{ErrorKind, Stage, TrialError},
    protocol::{MAX_LINE, Outcome, PROTOCOL, Task},
};

/// A failure of a worker. Each costs the worker's process and the job it had.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum WorkerFault {
    /// It ended without being asked to.
    Ended(ExitStatus),
    /// It closed one of its standard streams and lived on.
    Closed(&'static str),
    /// It ended in the middle of a line.
    Partial(String),
    /// A line that is no message.
    Garbage { line: String, why: String },
    /// A line over [`MAX_LINE`].
    TooLong,
    /// No answer in time.
    Hang { seconds: f64 },
    /// No hello in time.
    Late { seconds: f64 },
    /// An answer before the hello.
    NoHello,
    /// A second hello.
    SecondHello,
    /// Another version of the protocol.
    Version(u32),
    /// A hello that takes no jobs.
    NoCapacity,
    /// It cannot measure, and this is why.
    NoMachine(String),
    /// It measures on another machine than the others.
    OtherMachine { theirs: String, ours: String },
    /// An answer to a job that it never had.
    WrongNumber(u64),
    /// An answer of another kind than the job.
    WrongOutcome,
    /// Answers that nobody asked for, without end.
    Flood,
    /// It cannot be started.
    Start(String),
    /// Its device is lost for the next process as well.
    DeviceLost,
    /// It had to be stopped because of another job that it had at the same time.
    Neighbour,
    /// It outlives being killed.
    Immortal,
}

/// What a job asks for, as far as faults are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Compile,
    Screen,
    /// With so many programs.
    Finals(usize),
}

impl Mode {
    pub(super) fn of(task: &Task) -> Mode {
        match task {
            Task::Compile { .. } => Mode::Compile,
            Task::Screen { .. } => Mode::Screen,
            Task::Finals { programs, .. } => Mode::Finals(programs.len()),
        }
    }

    /// Whether an answer is one to such a job.
    pub(super) fn fits(self, outcome: &Outcome) -> bool {
        match (self, outcome) {
            (Mode::Compile, Outcome::Program { .. }) | (Mode::Screen, Outcome::Measured(_)) => true,
            (Mode::Finals(count), Outcome::Finals(finals)) => finals.finalists.len() == count,
            (Mode::Compile | Mode::Screen | Mode::Finals(_), _) => false,
        }
    }

    pub(super) fn stage(self) -> Stage {
        match self {
            Mode::Compile => Stage::Compile,
            Mode::Screen | Mode::Finals(_) => Stage::Run,
        }
    }
}

impl WorkerFault {
    /// What the worker did, after its name.
    pub(super) fn words(&self) -> String {
        match self {
            WorkerFault::Ended(status) => status_words(*status),
            WorkerFault::Closed(what) => format!("closed its standard {what} and lived on"),
            WorkerFault::Partial(line) => format!("ended in the middle of a line: `{line}`"),
            WorkerFault::Garbage { line, why } => {
                format!("wrote a line that is no message ({why}): `{line}`")
            }
            WorkerFault::TooLong => format!("wrote a line of more than {} MiB", MAX_LINE >> 20),
            WorkerFault::Hang { seconds } => format!("did not answer within {seconds:.1} s"),
            WorkerFault::Late { seconds } => format!("did not say hello within {seconds:.1} s"),
            WorkerFault::NoHello => "answered before it said hello".into(),
            WorkerFault::SecondHello => "said hello twice".into(),
            WorkerFault::Version(theirs) => {
                format!("speaks version {theirs} of the protocol, not {PROTOCOL}")
            }
            WorkerFault::NoCapacity => "takes no jobs at all (its capacity is 0)".into(),
            WorkerFault::NoMachine(why) => format!("cannot measure: {why}"),
            WorkerFault::OtherMachine { theirs, ours } => {
                format!("measures on {theirs}, the others on {ours}: their times cannot be compared")
            }
            WorkerFault::WrongNumber(id) => format!("answered job {id}, which it never had"),
            WorkerFault::WrongOutcome => "gave an answer of another kind than its job".into(),
            WorkerFault::Flood => "gives answers without end to jobs that nobody waits for".into(),
            WorkerFault::Start(why) => format!("cannot be started: {why}"),
            WorkerFault::DeviceLost => "lost its device".into(),
            WorkerFault::Neighbour => "had to be stopped because of another of its jobs".into(),
            WorkerFault::Immortal => "cannot be killed".into(),
        }
    }

    /// What kind of error it is to a job of such a mode.
    fn kind(&self, mode: Mode, last_words: &str) -> ErrorKind {
        match self {
            WorkerFault::Ended(status) if mode == Mode::Compile && status.signal() == Some(SIGXCPU) => {
                ErrorKind::CompileTimeout
            }
            // How Rust and C++ say that the system refused memory, before they abort.
            WorkerFault::Ended(_)
                if last_words.contains("memory allocation of") || last_words.contains("bad_alloc") =>
            {
                ErrorKind::OutOfMemory
            }
            WorkerFault::Ended(_)
            | WorkerFault::Closed(_)
            | WorkerFault::Start(_)
            | WorkerFault::Neighbour => ErrorKind::WorkerDied,
            WorkerFault::Hang { .. } | WorkerFault::Immortal => match mode {
                Mode::Compile => ErrorKind::CompileTimeout,
                Mode::Screen | Mode::Finals(_) => ErrorKind::Hang,
            },
            WorkerFault::NoMachine(_) | WorkerFault::OtherMachine { .. } | WorkerFault::DeviceLost => {
                ErrorKind::DeviceLost
            }
            WorkerFault::Partial(_)
            | WorkerFault::Garbage { .. }
            | WorkerFault::TooLong
            | WorkerFault::Late { .. }
            | WorkerFault::NoHello
            | WorkerFault::SecondHello
            | WorkerFault::Version(_)
            | WorkerFault::NoCapacity
            | WorkerFault::WrongNumber(_)
            | WorkerFault::WrongOutcome
            | WorkerFault::Flood => ErrorKind::Protocol,
        }
    }

    /// What a job is told that the worker had.
    pub(super) fn error(&self, worker: &str, mode: Mode, last_words: &str) -> TrialError {
        let message = with_last_words(format!("worker `{worker}` {}", self.words()), last_words);
        TrialError { sticky: true, ..TrialError::new(mode.stage(), self.kind(mode, last_words), &message) }
    }
}

/// A message and what the worker wrote to its standard error last.
pub(super) fn with_last_words(message: String, last_words: &str) -> String {
    if last_words.is_empty() { message } else { format!("{message}; its last words: {last_words}") }
}

const SIGXCPU: i32 = 24;

/// How a process that owed an answer ended: `was killed by SIGSEGV (it touched memory that is not its own)`.
pub fn status_words(status: ExitStatus) -> String {
    let Some(signal) = status.signal() else {
        return match status.code() {
            Some(0) => "ended without an answer".into(),
            Some(127) => "ended with code 127 (a shell found no such command)".into(),
            code => format!("ended with code {} without an answer", code.unwrap_or(-1)),
        };
    };
    let (name, meaning) = match signal {
        1 => ("SIGHUP", "its terminal is gone"),
        2 => ("SIGINT", "interrupted"),
        4 => ("SIGILL", "an instruction that this processor does not have"),
        5 => ("SIGTRAP", "it stopped itself"),
        6 => ("SIGABRT", "it stopped itself"),
        7 => ("SIGBUS", "memory that is not there, or not aligned"),
        8 => ("SIGFPE", "a division by zero or the like"),
        9 => ("SIGKILL", "by another process, or by the system for want of memory"),
        11 => ("SIGSEGV", "it touched memory that is not its own"),
        13 => ("SIGPIPE", "nobody read what it wrote"),
        15 => ("SIGTERM", "by another process"),
        SIGXCPU => ("SIGXCPU", "its processor time was used up"),
        25 => ("SIGXFSZ", "a file grew too large"),
        31 => ("SIGSYS", "a system call that is not allowed"),
        _ => return format!("was killed by signal {signal}"),
    };
    format!("was killed by {name} ({meaning})")
}
