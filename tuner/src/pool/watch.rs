//! What a pool does when a worker says something, says nothing, or is gone.

use std::{io, time::Instant};

use super::{
    POLL, Pool, PoolEvent, Role,
    fault::{WorkerFault, with_last_words},
    process::{Process, ProcessMessage, StreamEvent, is_no_room},
    ring::excerpt,
    worker_state::{Ending, Flight, MAX_FAILURES, WorkerPhase},
};
use crate::log::Happening;

/// How many of the last bytes of standard error go into a message.
const LAST_WORDS: usize = 1200;

/// How many workers make room where not all can be started.
const SPARE: usize = 2;

impl Pool {
    /// Starts a process for each worker. Where there is no room for all, a role makes do with those that it has.
    pub(super) fn start_all(&mut self) {
        for role in [Role::Measure, Role::Compile] {
            let all: Vec<usize> =
                (0..self.workers.len()).filter(|it| self.workers[*it].spec.role == role).collect();
            for (count, at) in all.iter().enumerate() {
                let Err(err) = self.try_start(*at) else { continue };
                if count > 0 && is_no_room(&err) {
                    self.make_do(role, &all, count, &err);
                    break;
                }
                self.cannot_start(*at, &err);
            }
        }
    }

    /// Leaves out the workers of a role from the one on that could not be started, and a few before it: the others, their
    /// compilers and this process itself need files and threads, too.
    fn make_do(&mut self, role: Role, all: &[usize], count: usize, err: &io::Error) {
        let kept = count.saturating_sub(SPARE).max(1);
        for at in &all[kept..] {
            self.workers[*at].life = WorkerPhase::Out;
        }
        let what = match role {
            Role::Compile => "compile",
            Role::Measure => "measure",
        };
        let all = all.len();
        let detail =
            format!("of {all} workers to {what} {kept} were started: there is no room for more: {err}");
        self.happened(Happening::Warning, detail);
    }

    /// Starts the process of a worker that has none.
    pub(super) fn start_process(&mut self, at: usize) {
        if let Err(err) = self.try_start(at) {
            self.cannot_start(at, &err);
        }
    }

    fn try_start(&mut self, at: usize) -> io::Result<()> {
        let state = &mut self.workers[at];
        state.generation += 1;
        state.answered.clear();
        state.strays = 0;
        let (argv, cap) = (&state.spec.argv, self.deadlines.stderr_cap);
        let process = Process::start(argv, at, state.generation, &self.said, &self.starter, cap)?;
        state.life = WorkerPhase::Starting(process, Instant::now());
        Ok(())
    }

    fn cannot_start(&mut self, at: usize, err: &io::Error) {
        self.workers[at].life = WorkerPhase::Down;
        let words = WorkerFault::Start(err.to_string()).words();
        self.failed(at, &words);
    }

    /// Gives waiting jobs to workers that take some, and starts processes for the rest.
    pub(super) fn dispatch(&mut self, now: Instant) {
        for role in [Role::Compile, Role::Measure] {
            while let Some(place) = self.queue.iter().position(|it| it.role == role) {
                let free = |it: &super::WorkerState| {
                    it.spec.role == role && matches!(it.life, WorkerPhase::Ready(_)) && it.room() > 0
                };
                let Some(state) = self.workers.iter_mut().find(|it| free(it)) else { break };
                let (Some(job), WorkerPhase::Ready(process)) = (self.queue.remove(place), &state.life) else {
                    break;
                };
                process.send(job.line.clone());
                let id = job.id;
                let flight = Flight::new(job, state.supervisor, now);
                state.flights.insert(id, flight);
            }
            let of_role = |it: &super::WorkerState| it.spec.role == role;
            let coming = |it: &super::WorkerState| {
                matches!(it.life, WorkerPhase::Starting(..) | WorkerPhase::Ending(_))
            };
            loop {
                let waiting = self.queue.iter().filter(|it| it.role == role).count();
                let soon: usize =
                    self.workers.iter().filter(|it| of_role(it) && coming(it)).map(|it| it.capacity).sum();
                let down =
                    self.workers.iter().position(|it| of_role(it) && matches!(it.life, WorkerPhase::Down));
                match down {
                    Some(at) if waiting > soon => self.start_process(at),
                    Some(_) | None => break,
                }
            }
        }
    }

    /// Takes in what a process said.
    pub(super) fn hear(&mut self, heard: ProcessMessage) {
        let (at, now) = (heard.worker, Instant::now());
        let state = &mut self.workers[at];
        let Some(process) = state.process().filter(|it| it.generation == heard.generation) else { return };
        match heard.said {
            StreamEvent::Line(line) => {
                if let Err(fault) = self.line(at, &line) {
                    self.workers[at].end(Some(fault), true, now);
                }
            }
            StreamEvent::TooLong => {
                process.silent = true;
                state.end(Some(WorkerFault::TooLong), true, now);
            }
            StreamEvent::Deaf => state.end(Some(WorkerFault::Closed("input")), false, now),
            StreamEvent::End(partial) => {
                process.silent = true;
                let fault = if partial.is_empty() {
                    WorkerFault::Closed("output")
                } else {
                    WorkerFault::Partial(excerpt(&partial))
                };
                match &mut state.life {
                    // That a worker first stopped reading says less than the line that it did not finish.
                    WorkerPhase::Ending(it) if it.fault == Some(WorkerFault::Closed("input")) => {
                        it.fault = Some(fault);
                    }
                    _ => state.end(Some(fault), false, now),
                }
            }
        }
    }

    /// Ends what is late, and looks after what has ended.
    pub(super) fn watch(&mut self, now: Instant) {
        let look = now.saturating_duration_since(self.looked) >= POLL;
        if look {
            self.looked = now;
        }
        for at in 0..self.workers.len() {
            let state = &mut self.workers[at];
            if let Some(fault) = state.overdue(self.deadlines.hello, now) {
                state.end(Some(fault), true, now);
            }
            if let (true, WorkerPhase::Starting(process, _) | WorkerPhase::Ready(process)) =
                (look, &mut state.life)
            {
                // A child of it may hold its output open, so that no end of it is heard.
                if process.exited(now).is_some_and(|it| it >= POLL) {
                    state.end(Some(WorkerFault::Closed("output")), false, now);
                }
            }
            if let WorkerPhase::Ending(_) = state.life {
                self.watch_end(at, now);
            }
        }
    }

    /// Lets a process end, or makes it, and then tells its jobs.
    fn watch_end(&mut self, at: usize, now: Instant) {
        let state = &mut self.workers[at];
        let WorkerPhase::Ending(ending) = &mut state.life else { return };
        let waited = now.saturating_duration_since(ending.since);
        let Some(gone) = ending.process.exited(now) else {
            if !ending.killed && waited >= self.deadlines.grace {
                ending.process.kill();
                ending.killed = true;
            }
            if waited >= self.deadlines.grace + self.deadlines.kill {
                ending.fault = Some(WorkerFault::Immortal);
                state.failures = MAX_FAILURES;
                self.conclude(at, now);
            }
            return;
        };
        // A moment for its last words; a child of it may hold its standard error open for ever.
        let said_all = ending.process.stderr.is_done() && ending.process.silent;
        if !said_all && gone < POLL / 2 {
            return;
        }
        if let (Ok(status), false) = (ending.process.reap(), ending.killed)
            && let Some(WorkerFault::Closed(_)) = ending.fault
        {
            ending.fault = Some(WorkerFault::Ended(status));
        }
        self.conclude(at, now);
    }

    /// Tells the jobs of a process that is gone, and counts what it did.
    fn conclude(&mut self, at: usize, now: Instant) {
        let state = &mut self.workers[at];
        let WorkerPhase::Ending(ending) = std::mem::replace(&mut state.life, WorkerPhase::Down) else {
            return;
        };
        let Ending { process, fault, unborn, .. } = ending;
        let last_words = process.stderr.tail(LAST_WORDS);
        let worker = state.spec.name.clone();
        let mut again = vec![];
        for (id, flight) in std::mem::take(&mut state.flights) {
            if let Some(job) = flight.again {
                again.push(job);
                continue;
            }
            let in_time = now < flight.sent + flight.deadline;
            let fault = match &fault {
                Some(WorkerFault::Hang { .. }) if in_time => &WorkerFault::Neighbour,
                Some(fault) => fault,
                None => &WorkerFault::Neighbour,
            };
            let error = fault.error(&worker, flight.mode, &last_words);
            let ms = now.saturating_duration_since(flight.sent).as_secs_f64() * 1e3;
            self.events.push_back(PoolEvent::Done {
                job: id,
                worker: worker.clone(),
                device: None,
                outcome: Err(error),
                ms,
            });
        }
        again.into_iter().rev().for_each(|it| self.queue.push_front(it));
        let Some(fault) = fault else { return };
        let words = fault.words();
        // Before the hello the last words are all that there is to go by.
        self.failed(at, &if unborn { with_last_words(words, &last_words) } else { words });
    }

    /// Counts a failure of a worker, and gives the worker up after a few in a row.
    fn failed(&mut self, at: usize, words: &str) {
        let state = &mut self.workers[at];
        let name = &state.spec.name;
        state.failures += 1;
        state.last_fault = Some(format!("`{name}` {words}"));
        let what = if state.failures < MAX_FAILURES {
            Happening::WorkerReplaced
        } else {
            Happening::WorkerQuarantined
        };
        let detail = format!("{name}: it {words} (failure {} of {MAX_FAILURES} in a row)", state.failures);
        if state.failures >= MAX_FAILURES {
            state.life = WorkerPhase::Out;
        }
        let role = state.spec.role;
        self.happened(what, detail);
        let left = self.workers.iter().any(|it| it.spec.role == role && !matches!(it.life, WorkerPhase::Out));
        if !left && !self.dead.contains(&role) {
            self.bury(role);
        }
    }

    /// Fails the waiting jobs of a role of which no worker is left.
    fn bury(&mut self, role: Role) {
        self.dead.push(role);
        for it in std::mem::take(&mut self.queue) {
            if it.role == role {
                let error = super::nobody(role, it.mode);
                let worker = String::new();
                self.events.push_back(PoolEvent::Done {
                    job: it.id,
                    worker,
                    device: None,
                    outcome: Err(error),
                    ms: 0.0,
                });
            } else {
                self.queue.push_back(it);
            }
        }
        self.events.push_back(PoolEvent::Dead { role });
    }
}
