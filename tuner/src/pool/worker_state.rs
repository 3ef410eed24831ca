//! The state of a worker across its processes, from its first start to its quarantine.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use indexmap::IndexMap;

use super::{
    Pending, WorkerSpec,
    fault::{Mode, WorkerFault},
    process::Process,
};

/// How many failures in a row, without an answer between, a worker is allowed.
pub(super) const MAX_FAILURES: u32 = 3;

/// How many answers nobody asked for a process is allowed.
const STRAYS: usize = 100;

/// The state of a worker.
pub(super) struct WorkerState {
    pub(super) spec: WorkerSpec,
    pub(super) life: WorkerPhase,
    /// The jobs that it has, in the order they were sent.
    pub(super) flights: IndexMap<u64, Flight>,
    /// How many jobs it takes at a time, as its last hello said.
    pub(super) capacity: usize,
    /// Whether its last hello said that it is a supervisor.
    pub(super) supervisor: bool,
    /// The name of the device that it measures on, where it has one.
    pub(super) device: Option<String>,
    /// Failures since the last success.
    pub(super) failures: u32,
    /// How many processes it has had.
    pub(super) generation: u64,
    /// What the present process has answered.
    pub(super) answered: BTreeSet<u64>,
    pub(super) strays: usize,
    /// Why the last process failed, if it did.
    pub(super) last_fault: Option<String>,
}

/// What the process of a worker is doing.
pub(super) enum WorkerPhase {
    /// There is none; the next job starts one.
    Down,
    /// It has not said hello.
    Starting(Process, Instant),
    /// It takes jobs.
    Ready(Process),
    /// It is about to be gone.
    Ending(Ending),
    /// The worker is not used any more.
    Out,
}

/// A process that is about to be gone.
pub(super) struct Ending {
    pub(super) process: Process,
    /// Why; none if it is replaced as planned.
    pub(super) fault: Option<WorkerFault>,
    pub(super) since: Instant,
    pub(super) killed: bool,
    /// Whether it never said hello.
    pub(super) unborn: bool,
}

/// A job that a worker has.
pub(super) struct Flight {
    pub(super) mode: Mode,
    pub(super) sent: Instant,
    pub(super) deadline: Duration,
    /// The job itself, where it is given once more if this worker fails.
    pub(super) again: Option<Pending>,
}

/// What a number in an answer means.
pub(super) enum AnswerKind {
    /// A job that it has.
    Due(Flight),
    /// A job that it has already answered.
    Again,
    /// Too many of those.
    Flood,
    /// None of its jobs.
    Strange,
}

/// How much longer a supervisor has for a job than three processes that it gives the job to. The bridge to Ray needs 3 min
/// more for each of them, to start it (2 min) and to find out that its host is gone (1 min), and waits 5 min for a place for
/// the next one: 14 min, and one to spare.
const SUPERVISION: Duration = Duration::from_mins(15);

impl Flight {
    /// A job that was sent now.
    pub(super) fn new(job: Pending, to_supervisor: bool, now: Instant) -> Flight {
        let Pending { mode, deadline, .. } = job;
        let deadline = if to_supervisor { 3 * deadline + SUPERVISION } else { deadline };
        let again = (to_supervisor && !job.again).then_some(Pending { again: true, ..job });
        Flight { mode, sent: now, deadline, again }
    }
}

impl WorkerState {
    pub(super) fn new(spec: WorkerSpec) -> WorkerState {
        WorkerState {
            spec,
            life: WorkerPhase::Down,
            flights: IndexMap::new(),
            capacity: 1,
            supervisor: false,
            device: None,
            failures: 0,
            generation: 0,
            answered: BTreeSet::new(),
            strays: 0,
            last_fault: None,
        }
    }

    /// How many jobs it could have now or after a start.
    pub(super) fn room(&self) -> usize {
        match self.life {
            WorkerPhase::Down | WorkerPhase::Starting(..) | WorkerPhase::Ending(_) => self.capacity,
            WorkerPhase::Ready(_) => self.capacity.saturating_sub(self.flights.len()),
            WorkerPhase::Out => 0,
        }
    }

    /// The process that speaks, if it is the present one.
    pub(super) fn process(&mut self) -> Option<&mut Process> {
        match &mut self.life {
            WorkerPhase::Starting(process, _) | WorkerPhase::Ready(process) => Some(process),
            WorkerPhase::Ending(ending) => Some(&mut ending.process),
            WorkerPhase::Down | WorkerPhase::Out => None,
        }
    }

    /// Begins the end of its process, at once or by itself.
    pub(super) fn end(&mut self, fault: Option<WorkerFault>, at_once: bool, now: Instant) {
        let (process, unborn) = match std::mem::replace(&mut self.life, WorkerPhase::Down) {
            WorkerPhase::Starting(process, _) => (process, true),
            WorkerPhase::Ready(process) => (process, false),
            other @ (WorkerPhase::Down | WorkerPhase::Ending(_) | WorkerPhase::Out) => {
                self.life = other;
                return;
            }
        };
        if at_once {
            process.kill();
        }
        // A supervisor may have said last that it takes none. The next process takes one at least, or no job would start it.
        self.capacity = self.capacity.max(1);
        self.life = WorkerPhase::Ending(Ending { process, fault, since: now, killed: at_once, unborn });
    }

    /// Whose answer has this number.
    pub(super) fn number(&mut self, id: u64) -> AnswerKind {
        if let Some(flight) = self.flights.shift_remove(&id) {
            self.answered.insert(id);
            return AnswerKind::Due(flight);
        }
        if !self.answered.contains(&id) {
            return AnswerKind::Strange;
        }
        self.strays += 1;
        if self.strays > STRAYS { AnswerKind::Flood } else { AnswerKind::Again }
    }

    /// The next time at which it has to have done something.
    pub(super) fn next_deadline(&self, hello: Duration) -> Option<Instant> {
        match &self.life {
            WorkerPhase::Starting(_, since) => Some(*since + hello),
            WorkerPhase::Ready(_) => self.flights.values().map(|it| it.sent + it.deadline).min(),
            WorkerPhase::Down | WorkerPhase::Ending(_) | WorkerPhase::Out => None,
        }
    }

    /// The fault of being too late, if it is.
    pub(super) fn overdue(&self, hello: Duration, now: Instant) -> Option<WorkerFault> {
        match &self.life {
            WorkerPhase::Starting(_, since) => {
                (now >= *since + hello).then_some(WorkerFault::Late { seconds: hello.as_secs_f64() })
            }
            WorkerPhase::Ready(_) => {
                let late = self.flights.values().find(|it| now >= it.sent + it.deadline)?;
                Some(WorkerFault::Hang { seconds: late.deadline.as_secs_f64() })
            }
            WorkerPhase::Down | WorkerPhase::Ending(_) | WorkerPhase::Out => None,
        }
    }
}
