//! The protocol as a worker speaks it.

use std::{
    any::Any,
    io::{self, BufRead, BufReader, Read, Write},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;

use super::process::leave;
use crate::{
    log::{ErrorKind, Stage, TrialError},
    protocol::{Answer, FromWorker, Hello, Job, MAX_LINE, Outcome, Task},
};

/// Does the jobs of a worker.
pub trait JobHandler {
    /// Gets ready, and says what this worker is and what it can do.
    fn hello(&mut self) -> Hello;

    /// Does a job. If it panics, [`serve`] answers with an error.
    fn perform(&mut self, task: &Task) -> Result<Outcome, TrialError>;
}

/// Why a worker stops before its input ends.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A line is no job, and has no number to answer to.
    #[error("line {line} of the input is no job: {why}")]
    NoJob {
        /// Which, from 1.
        line: usize,
        /// Why.
        why: String,
    },
    /// Nobody takes the answers, or they cannot be written down.
    #[error("an answer cannot be written: {0}")]
    Output(#[from] io::Error),
    /// The system has no room for the thread that reads jobs.
    #[error("no thread can be started: {0}")]
    NoThread(io::Error),
}

/// The number in a line whose task is of no known kind.
#[derive(Deserialize)]
struct JobNumber {
    id: u64,
}

/// A line of the input.
enum InputLine {
    Job(Box<Job>),
    /// A job that cannot be understood.
    NotUnderstood(u64, String),
    /// No job at all.
    Invalid(ServeError),
}

/// How long this process may take to end by itself once it has nothing to do.
const FAREWELL: Duration = Duration::from_secs(2);

/// Says hello, and answers jobs until the input ends.
///
/// When it ends while there is something to do, the process is killed at once, and with it (where a pool started it)
/// all that it started. When there is nothing to do, this returns, and the process has two seconds to end by itself.
///
/// # Errors
/// [`ServeError`]; the process should end then.
pub fn serve(
    input: impl Read + Send + 'static,
    output: &mut dyn Write,
    handler: &mut dyn JobHandler,
) -> Result<(), ServeError> {
    let busy = Arc::new(AtomicUsize::new(0));
    let (sender, lines) = mpsc::channel();
    let pending = Arc::clone(&busy);
    let reader = move || {
        // What is wrong with a line is worth a word before the end.
        let has_ended = read(input, &sender, &pending);
        if has_ended && pending.load(Ordering::SeqCst) > 0 {
            leave();
        }
        drop(sender);
        thread::sleep(FAREWELL);
        leave();
    };
    thread::Builder::new().spawn(reader).map_err(ServeError::NoThread)?;
    let hello = handler.hello();
    say(output, &FromWorker::Hello(hello))?;
    for line in lines {
        let begin = Instant::now();
        let (id, outcome) = match line {
            InputLine::Job(job) => (job.id, perform(handler, &job.task)),
            InputLine::NotUnderstood(id, why) => {
                let words = format!("this worker does not understand the job: {why}");
                (id, Err(TrialError::new(Stage::Run, ErrorKind::Protocol, &words)))
            }
            InputLine::Invalid(err) => return Err(err),
        };
        let ms = begin.elapsed().as_secs_f64() * 1e3;
        // Whoever has the answer may end the input at once: by then there is nothing to do any more.
        busy.fetch_sub(1, Ordering::SeqCst);
        say(output, &FromWorker::Answer(Answer { id, ms, outcome, device: None }))?;
    }
    Ok(())
}

/// Reads jobs until the input ends (true) or a line is no job (false). A last line without a line break was cut off
/// when its writer ended: it is no job.
fn read(input: impl Read, lines: &Sender<InputLine>, busy: &AtomicUsize) -> bool {
    let mut input = BufReader::with_capacity(1 << 16, input);
    for number in 1.. {
        let mut line = Vec::new();
        let most = (MAX_LINE + 1) as u64;
        let read = input.by_ref().take(most).read_until(b'\n', &mut line);
        let too_long = line.len() > MAX_LINE;
        if read.is_err() || (line.last() != Some(&b'\n') && !too_long) {
            return true;
        }
        let message = if too_long {
            InputLine::Invalid(ServeError::NoJob { line: number, why: "it is too long".into() })
        } else {
            line_of(number, &line)
        };
        let is_invalid = matches!(message, InputLine::Invalid(_));
        busy.fetch_add(1, Ordering::SeqCst);
        if lines.send(message).is_err() || is_invalid {
            return !is_invalid;
        }
    }
    true
}

fn line_of(number: usize, line: &[u8]) -> InputLine {
    let err = match serde_json::from_slice::<Job>(line) {
        Ok(job) => return InputLine::Job(Box::new(job)),
        Err(err) => err.to_string(),
    };
    match serde_json::from_slice::<JobNumber>(line) {
        Ok(JobNumber { id }) => InputLine::NotUnderstood(id, err),
        Err(_) => InputLine::Invalid(ServeError::NoJob { line: number, why: err }),
    }
}

/// Does a job. After a panic the process is worth no trust, and is to be replaced.
fn perform(handler: &mut dyn JobHandler, task: &Task) -> Result<Outcome, TrialError> {
    let res = catch_unwind(AssertUnwindSafe(|| handler.perform(task)));
    res.unwrap_or_else(|payload| Err(panicked(task, &*payload)))
}

/// The error of a job that panicked.
fn panicked(task: &Task, payload: &(dyn Any + Send)) -> TrialError {
    let words = payload.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no words");
    let stage = match task {
        Task::Compile { .. } => Stage::Generate,
        Task::Screen { .. } | Task::Finals { .. } => Stage::Run,
    };
    let message = format!("tilewright panicked: {words}");
    TrialError { sticky: true, ..TrialError::new(stage, ErrorKind::Internal, &message) }
}

fn say(output: &mut dyn Write, message: &FromWorker) -> Result<(), ServeError> {
    let mut line = serde_json::to_string(message).map_err(io::Error::from)?;
    line.push('\n');
    output.write_all(line.as_bytes())?;
    Ok(output.flush()?)
}
