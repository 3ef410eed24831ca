//! Worker processes and their jobs. The parent of a tuning run loads no CUDA and runs no candidate: all that can
//! crash, hang or lie happens in the processes of a [`Pool`].
//!
//! A pool is a state machine without locks that [`Pool::wait`] drives: threads read and write the streams of the
//! processes, everything else happens there. Its promises:
//!
//! * Each submitted job gets exactly one [`PoolEvent::Done`], whatever its worker does.
//! * A fault of a worker costs the jobs that it had (one, unless its hello said that it takes more at a time) and its
//!   process. The next job of the worker starts a new one. Only of a supervisor, whose processes are not to blame, the jobs
//!   are given once more.
//! * A worker that fails three times without a success between is not used any more. When none of a role is left,
//!   [`PoolEvent::Dead`] says so, and jobs of that role fail at once.
//! * When the pool is dropped, every process group that it started is killed and every process is waited for. When the
//!   parent is killed, workers see the end of their input and kill their groups themselves.

mod fault;
mod guard;
mod messages;
mod once;
mod process;
mod ring;
mod watch;
mod worker_state;

use std::{
    collections::VecDeque,
    sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender},
    time::{Duration, Instant},
};

use codegen::device::MachineInfo;

pub use fault::status_words;
pub use guard::{Left, guarded};
pub use once::{Once, OnceError, once};

use self::{
    fault::Mode,
    process::{ProcessMessage, Starter},
    worker_state::{WorkerPhase, WorkerState},
};
use crate::{
    log::{ErrorKind, Happening, MeasuringDevice, TrialError},
    protocol::{Job, MAX_LINE, Outcome, Task},
};

/// What a worker is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Compiling. Any number of workers.
    Compile,
    /// Verifying and timing. One worker for a device.
    Measure,
}

/// A worker to start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkerSpec {
    /// Its name in messages and logs.
    pub name: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// What it is for.
    pub role: Role,
}

/// How long a pool waits, and how much it keeps. The deadline of a job comes with the job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlines {
    /// From the start of a process to its hello.
    pub hello: Duration,
    /// From the end of a process's output to its own end, before it is killed.
    pub grace: Duration,
    /// From the kill to the end of a process, before the worker is given up.
    pub kill: Duration,
    /// How many of the last bytes of standard error are kept.
    pub stderr_cap: usize,
}

/// Something that happened in a pool.
#[derive(Clone, PartialEq, Debug)]
pub enum PoolEvent {
    /// A job is done, one way or the other.
    Done {
        /// Its number.
        job: u64,
        /// The worker that had it; empty if none had.
        worker: String,
        /// The name of the device that it was measured on.
        device: Option<String>,
        /// What came out.
        outcome: Result<Outcome, TrialError>,
        /// How long it took, in milliseconds: by the worker's word, or from the sending of the job to a fault.
        ms: f64,
    },
    /// Something that the log should have.
    Happened {
        /// What.
        what: Happening,
        /// In words; the name of the worker comes first.
        detail: String,
        /// What a worker that was started measures on.
        device: Option<MeasuringDevice>,
    },
    /// No worker of this role is left.
    Dead {
        /// The role.
        role: Role,
    },
}

/// Why there is no pool.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PoolError {
    /// There is nothing to start.
    #[error("there are no workers to start")]
    NoWorkers,
    /// None of the workers of a role came up.
    #[error("no worker {} came up: worker {fault}", role.words())]
    NoneOf {
        /// The role.
        role: Role,
        /// The name of the first of them, and what it did.
        fault: String,
    },
}

ir::codes!(PoolError {
    NoWorkers = 4111,
    NoneOf = 4112,
});

/// Worker processes and their jobs.
pub struct Pool {
    workers: Vec<WorkerState>,
    queue: VecDeque<Pending>,
    events: VecDeque<PoolEvent>,
    heard: Receiver<ProcessMessage>,
    said: SyncSender<ProcessMessage>,
    starter: Starter,
    deadlines: Deadlines,
    machine: Option<MachineInfo>,
    next_job: u64,
    /// Roles of which no worker is left.
    dead: Vec<Role>,
    /// When processes were last asked whether they live.
    looked: Instant,
}

/// A job that no worker has yet.
#[derive(Clone)]
struct Pending {
    id: u64,
    role: Role,
    mode: Mode,
    deadline: Duration,
    line: String,
    /// Whether a supervisor has failed while it had it.
    again: bool,
}

/// How many messages may wait to be looked at. It bounds what a worker that floods the pool can fill.
const WAITING: usize = 16;

/// How often processes are asked whether they live, and how often one that is about to end.
const POLL: Duration = Duration::from_millis(200);
const LOOK_CLOSELY: Duration = Duration::from_millis(2);

impl Role {
    /// What its workers are, after "worker".
    pub const fn words(self) -> &'static str {
        match self {
            Role::Compile => "that compiles",
            Role::Measure => "that measures",
        }
    }
}

impl WorkerSpec {
    /// A worker that is started by a command line, which the shell reads: `ssh host tilewright worker`.
    pub fn shell(name: &str, command: &str, role: Role) -> WorkerSpec {
        let argv = ["sh", "-c", command].map(str::to_owned).to_vec();
        WorkerSpec { name: name.to_owned(), argv, role }
    }
}

impl Default for Deadlines {
    /// A minute for the hello, half a second of grace, ten seconds to die, 64 KiB of last words.
    fn default() -> Deadlines {
        Deadlines {
            hello: Duration::from_mins(1),
            grace: Duration::from_millis(500),
            kill: Duration::from_secs(10),
            stderr_cap: 64 << 10,
        }
    }
}

impl Pool {
    /// Starts workers, and waits until one of each role has said hello. The others come up in their own time.
    pub fn start(workers: Vec<WorkerSpec>, deadlines: Deadlines) -> Result<Pool, PoolError> {
        if workers.is_empty() {
            return Err(PoolError::NoWorkers);
        }
        let (said, heard) = mpsc::sync_channel(WAITING);
        let mut pool = Pool {
            workers: workers.into_iter().map(WorkerState::new).collect(),
            queue: VecDeque::new(),
            events: VecDeque::new(),
            heard,
            said,
            starter: Starter::new(),
            deadlines,
            machine: None,
            next_job: 0,
            dead: vec![],
            looked: Instant::now(),
        };
        pool.start_all();
        loop {
            pool.look();
            let mut missing = false;
            for role in [Role::Compile, Role::Measure] {
                missing |= !pool.has_come_up(role)?;
            }
            if !missing {
                return Ok(pool);
            }
            // Whatever events there are already: the caller gets them later, and nothing here waits for them.
            pool.rest(POLL);
        }
    }

    /// Whether one of a role is ready, or there is no such role; an error once all of it have failed.
    fn has_come_up(&self, role: Role) -> Result<bool, PoolError> {
        let all = || self.workers.iter().filter(|it| it.spec.role == role);
        if all().next().is_none() || all().any(|it| matches!(it.life, WorkerPhase::Ready(_))) {
            return Ok(true);
        }
        if all().any(|it| matches!(it.life, WorkerPhase::Starting(..) | WorkerPhase::Ending(_))) {
            return Ok(false);
        }
        let fault = all().find_map(|it| it.last_fault.clone()).unwrap_or_default();
        Err(PoolError::NoneOf { role, fault })
    }

    /// The machine that measures, if a worker does.
    pub fn machine(&self) -> Option<&MachineInfo> {
        self.machine.as_ref()
    }

    /// How many more jobs of a role would be begun now, those that start a process included.
    pub fn idle(&self, role: Role) -> usize {
        let room: usize = self.workers.iter().filter(|it| it.spec.role == role).map(WorkerState::room).sum();
        let waiting = self.queue.iter().filter(|it| it.role == role).count();
        room.saturating_sub(waiting)
    }

    /// How many jobs of a role its workers can have at once.
    pub fn size(&self, role: Role) -> usize {
        let living =
            self.workers.iter().filter(|it| it.spec.role == role && !matches!(it.life, WorkerPhase::Out));
        living.map(|it| it.capacity).sum()
    }

    /// How many jobs have been submitted and not been answered.
    pub fn outstanding(&self) -> usize {
        self.queue.len() + self.workers.iter().map(|it| it.flights.len()).sum::<usize>()
    }

    /// Gives a job to the next free worker of a role, and gives its number. The deadline counts from when a worker has
    /// it; a worker that is late is killed.
    pub fn submit(&mut self, role: Role, task: Task, deadline: Duration) -> u64 {
        let (id, mode) = (self.next_job, Mode::of(&task));
        self.next_job += 1;
        let refusal = match serde_json::to_string(&Job { id, task, seconds: Some(deadline.as_secs_f64()) }) {
            Ok(line) if line.len() < MAX_LINE => {
                if !self.dead.contains(&role) && self.workers.iter().any(|it| it.spec.role == role) {
                    let line = line + "\n";
                    self.queue.push_back(Pending { id, role, mode, deadline, line, again: false });
                    self.dispatch(Instant::now());
                    return id;
                }
                nobody(role, mode)
            }
            Ok(line) => {
                let words = format!("a job of {} bytes is longer than a line may be", line.len());
                TrialError::new(mode.stage(), ErrorKind::Protocol, &words)
            }
            Err(err) => TrialError::new(mode.stage(), ErrorKind::Internal, &format!("no message: {err}")),
        };
        self.events.push_back(PoolEvent::Done {
            job: id,
            worker: String::new(),
            device: None,
            outcome: Err(refusal),
            ms: 0.0,
        });
        id
    }

    /// The next event, if there is one within a time.
    pub fn wait(&mut self, timeout: Duration) -> Option<PoolEvent> {
        let end = Instant::now() + timeout;
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let left = end.saturating_duration_since(Instant::now());
            self.look();
            if self.events.is_empty() {
                self.rest(left);
            }
            if left.is_zero() {
                return self.events.pop_front();
            }
        }
    }

    /// Looks at what was said meanwhile, at the deadlines and at the processes.
    fn look(&mut self) {
        // Words before deadlines: an answer that lay here while the caller did something else is in time.
        while let Ok(it) = self.heard.try_recv() {
            self.hear(it);
        }
        let now = Instant::now();
        self.watch(now);
        self.dispatch(now);
    }

    /// Waits for the next word, deadline or look at the processes, but not longer than told.
    fn rest(&mut self, most: Duration) {
        let now = Instant::now();
        let ending = self.workers.iter().any(|it| matches!(it.life, WorkerPhase::Ending(_)));
        let next = self.workers.iter().filter_map(|it| it.next_deadline(self.deadlines.hello)).min();
        let next = next.map_or(POLL, |it| it.saturating_duration_since(now));
        let pause = most.min(next).min(if ending { LOOK_CLOSELY } else { POLL });
        match self.heard.recv_timeout(pause) {
            Ok(it) => self.hear(it),
            // The pool has a sender itself, so that the channel is never closed.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }

    fn happened(&mut self, what: Happening, detail: String) {
        self.events.push_back(PoolEvent::Happened { what, detail, device: None });
    }
}

/// What a job is told that no worker can have.
fn nobody(role: Role, mode: Mode) -> TrialError {
    let words = format!("no worker {} is left", role.words());
    TrialError::new(mode.stage(), ErrorKind::WorkerDied, &words)
}

impl Drop for Pool {
    fn drop(&mut self) {
        // All are killed before the first is waited for, so that they end side by side.
        for state in &mut self.workers {
            if let Some(process) = state.process() {
                process.kill();
            }
        }
        self.workers.clear();
    }
}
