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

/// What does the jobs of a worker.
pub trait Hands {
    /// Gets ready, and says what for.
    fn hello(&mut self) -> Hello;

    /// Does a job. A panic is answered for it.
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
struct Number {
    id: u64,
}

/// A line of the input.
enum Order {
    Job(Box<Job>),
    /// A job that cannot be understood.
    Strange(u64, String),
    /// No job at all.
    Bad(ServeError),
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
    hands: &mut dyn Hands,
) -> Result<(), ServeError> {
    let busy = Arc::new(AtomicUsize::new(0));
    let (sender, orders) = mpsc::channel();
    let seen = Arc::clone(&busy);
    let reader = move || {
        // What is wrong with a line is worth a word before the end.
        let has_ended = read(input, &sender, &seen);
        if has_ended && seen.load(Ordering::SeqCst) > 0 {
            leave();
        }
        drop(sender);
        thread::sleep(FAREWELL);
        leave();
    };
    thread::Builder::new().spawn(reader).map_err(ServeError::NoThread)?;
    let hello = hands.hello();
    say(output, &FromWorker::Hello(hello))?;
    for order in orders {
        let begin = Instant::now();
        let (id, outcome) = match order {
            Order::Job(job) => (job.id, perform(hands, &job.task)),
            Order::Strange(id, why) => {
                let words = format!("this worker does not understand the job: {why}");
                (id, Err(TrialError::new(Stage::Run, ErrorKind::Protocol, &words)))
            }
            Order::Bad(err) => return Err(err),
        };
        let ms = begin.elapsed().as_secs_f64() * 1e3;
        // Whoever has the answer may end the input at once: by then there is nothing to do any more.
        busy.fetch_sub(1, Ordering::SeqCst);
        say(output, &FromWorker::Answer(Answer { id, ms, outcome }))?;
    }
    Ok(())
}

/// Reads jobs until the input ends, or until a line is none, and says which. A last line without an end was cut off
/// with its writer: it is no job.
fn read(input: impl Read, orders: &Sender<Order>, busy: &AtomicUsize) -> bool {
    let mut input = BufReader::with_capacity(1 << 16, input);
    for number in 1.. {
        let mut line = Vec::new();
        let most = u64::try_from(MAX_LINE + 1).unwrap_or(u64::MAX);
        let read = input.by_ref().take(most).read_until(b'\n', &mut line);
        let too_long = line.len() > MAX_LINE;
        if read.is_err() || (line.last() != Some(&b'\n') && !too_long) {
            return true;
        }
        let order = if too_long {
            Order::Bad(ServeError::NoJob { line: number, why: "it is too long".into() })
        } else {
            order(number, &line)
        };
        let is_bad = matches!(order, Order::Bad(_));
        busy.fetch_add(1, Ordering::SeqCst);
        if orders.send(order).is_err() || is_bad {
            return !is_bad;
        }
    }
    true
}

fn order(number: usize, line: &[u8]) -> Order {
    let err = match serde_json::from_slice::<Job>(line) {
        Ok(job) => return Order::Job(Box::new(job)),
        Err(err) => err.to_string(),
    };
    match serde_json::from_slice::<Number>(line) {
        Ok(Number { id }) => Order::Strange(id, err),
        Err(_) => Order::Bad(ServeError::NoJob { line: number, why: err }),
    }
}

/// Does a job. After a panic the process is worth no trust, and is to be replaced.
fn perform(hands: &mut dyn Hands, task: &Task) -> Result<Outcome, TrialError> {
    let res = catch_unwind(AssertUnwindSafe(|| hands.perform(task)));
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
