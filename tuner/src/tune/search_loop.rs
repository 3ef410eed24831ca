//! The search loop: it sends candidates to the workers, and takes their results.

use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    Ended, Exhausted, Phase, Stopped, Summary, TuneError, TuneEvent, Tuning,
    ask::Happened,
    candidate_source::{Candidate, CandidateSource, NextCandidate},
    compiled::{Compiled, measurement},
    history::History,
    load::Lack,
    stopped::Halt,
};
use crate::{
    filter,
    log::{Entry, Event, Happening, Stage, Times, Trial, TrialError},
    pool::{PoolEvent, Role},
    protocol::{Outcome, ProblemText, Screen, Task},
    search,
};

/// Where a trial came to its end.
struct Place {
    /// The worker that had it last.
    worker: String,
    /// The device, if it was measured.
    device: Option<String>,
    /// How long measuring took, in milliseconds, if it came to that.
    ms: Option<f64>,
}

/// How long a compiler may take.
pub(super) const COMPILE: Duration = Duration::from_mins(1);
/// How long to wait for a worker before the limits are checked again.
const POLL: Duration = Duration::from_millis(100);

/// A search that is running.
struct SearchLoop<'a, 'b> {
    tuning: &'b mut Tuning<'a>,
    source: CandidateSource<'a>,
    history: History,
    summary: Summary,
    text: ProblemText,
    /// The candidates with a compiler, by job.
    compiling: HashMap<u64, Candidate>,
    /// The candidates that wait for a device.
    ready: VecDeque<Compiled>,
    /// The candidates on a device, by job.
    measuring: HashMap<u64, Compiled>,
    /// What there is nothing more of, besides trials that were asked for.
    exhausted: Option<Exhausted>,
    began: Instant,
    /// Until when the load has been counted.
    counted: Instant,
    /// Whether the strategy has nothing to propose before it knows more results.
    awaits_results: bool,
    /// Why the search ends early.
    stopped: Option<Stopped>,
}

impl Tuning<'_> {
    /// Searches, holds the finals, measures the steps.
    ///
    /// # Errors
    /// Where the log cannot be written, is not of this stream of candidates, or names an incumbent that makes no program.
    /// All other failures are entries of the log.
    pub fn run(mut self) -> Result<Ended, TuneError> {
        self.incumbents()?;
        let mut ended = self.search()?;
        if ended.stopped.is_none() {
            match self.after_search(&ended.summary) {
                Ok(()) => {}
                Err(Halt::Stopped(why)) => ended.stopped = Some(why),
                Err(Halt::Error(err)) => return Err(err),
            }
        }
        let (what, detail) = match &ended.stopped {
            Some(why) => (Happening::Stopped, why.to_string()),
            None => (Happening::Finished, format!("{} trials", ended.summary.trials)),
        };
        self.happened(what, detail, &ended.summary)?;
        ended.finals = self.log.finals.pop();
        let winner = match (&ended.finals, &ended.stopped) {
            (Some(finals), _) => finals.finalists.first().and_then(|it| it.n),
            (None, None) => ended.summary.best.as_ref().map(|it| it.n),
            (None, Some(_)) => None,
        };
        ended.winner = winner.and_then(|n| self.log.trials.remove(&n));
        let of = self.log.steps.last().map(|it| it.n);
        ended.steps = self.log.steps.into_iter().filter(|it| Some(it.n) == of).collect();
        Ok(ended)
    }

    /// The finals, unless the log has them, and the steps of the winner, those that the log lacks.
    fn after_search(&mut self, summary: &Summary) -> Result<(), Halt> {
        if self.log.finals.is_empty() {
            let finals = self.finals(summary)?;
            self.log.finals.extend(finals);
        }
        if self.plan.per_step {
            let first = self.log.finals.last().and_then(|it| it.finalists.first()?.n);
            // Where the incumbent stays ahead, the best trial is still worth a look.
            if let Some(n) = first.or(summary.best.as_ref().map(|it| it.n)) {
                self.per_step(n, summary)?;
            }
        }
        Ok(())
    }

    fn search(&mut self) -> Result<Ended, TuneError> {
        let strategy = search::strategy(self.head, self.problem, self.space);
        let mut summary = Summary::default();
        self.log.trials.values().for_each(|it| summary.add(it));
        let mut search = SearchLoop {
            source: CandidateSource::new(self.problem, self.space, strategy),
            history: History::of(&self.log.trials),
            summary,
            text: ProblemText::of(self.problem),
            compiling: HashMap::new(),
            ready: VecDeque::new(),
            measuring: HashMap::new(),
            exhausted: None,
            began: Instant::now(),
            counted: Instant::now(),
            awaits_results: false,
            stopped: None,
            tuning: self,
        };
        search.run()?;
        let SearchLoop { summary, exhausted, stopped, .. } = search;
        let exhausted = exhausted.unwrap_or_default();
        Ok(Ended { summary, exhausted, stopped, finals: None, winner: None, steps: vec![] })
    }

    /// Writes an entry, and tells of it once it is on the disk.
    pub(super) fn write(&mut self, entry: &Entry, summary: &Summary) -> Result<(), TuneError> {
        self.writer.append(entry)?;
        (self.on_event)(TuneEvent::Entry(entry, summary));
        Ok(())
    }

    pub(super) fn happened(
        &mut self,
        what: Happening,
        detail: String,
        summary: &Summary,
    ) -> Result<(), TuneError> {
        self.happened_to((what, detail, None), summary)
    }

    /// Writes down what happened to a worker.
    pub(super) fn happened_to(
        &mut self,
        (what, detail, device): Happened,
        summary: &Summary,
    ) -> Result<(), TuneError> {
        let rejected = summary.rejected.iter().map(|(reason, it)| (reason.clone(), it.count)).collect();
        let (run, time) = (self.head.run.clone(), (self.now)());
        let event = Event { run, what, detail, rejected, device, time, other: indexmap::IndexMap::new() };
        self.write(&Entry::Event(event), summary)
    }

    /// How long a measurement may take before its worker is killed: what it needs to draw inputs and evaluate the
    /// reference, and what the candidate needs if it is just bearable.
    pub(super) fn measure_timeout(&self, call: f64, calls: f64) -> Duration {
        let set_up = 15.0 + self.problem.case.work.bytes / 50e6;
        Duration::from_secs_f64((set_up + call * calls).min(3600.0))
    }
}

impl SearchLoop<'_, '_> {
    fn run(&mut self) -> Result<(), TuneError> {
        while !self.is_over() {
            self.check_limits();
            let made = self.submit_next()?;
            self.count_load(made);
            self.dispatch();
            // Where there may be more to submit, the workers' answers are taken without waiting for them.
            let wait = if made { Duration::ZERO } else { POLL };
            let mut event = self.tuning.pool.wait(wait);
            self.count_load(false);
            while let Some(current) = event {
                self.handle(current)?;
                event = self.tuning.pool.wait(Duration::ZERO);
            }
            if !made {
                // Hours of a search that nobody will find in a log are not worth going on with.
                self.tuning.writer.expect_whole()?;
                (self.tuning.on_event)(TuneEvent::Progress("searching", &self.summary));
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        let idle = self.compiling.is_empty() && self.measuring.is_empty();
        if self.stopped.is_some() {
            self.measuring.is_empty()
        } else {
            idle && self.ready.is_empty() && self.has_made_all()
        }
    }

    /// Whether no candidate will be made any more.
    fn has_made_all(&self) -> bool {
        self.exhausted.is_some() || self.source.trials() >= self.tuning.plan.trials
    }

    fn check_limits(&mut self) {
        if self.stopped.is_some() {
            return;
        }
        if self.tuning.stop.load(Ordering::Relaxed) {
            self.stopped = Some(Stopped::User(Phase::Search));
        } else if self.tuning.plan.seconds.is_some_and(|it| self.began.elapsed().as_secs_f64() >= it) {
            // What is under way comes to its end, so that the numbers of trials have no gaps.
            self.exhausted.get_or_insert(Exhausted::Time);
        }
    }

    /// Submits one candidate to a compile worker if one is free. Returns whether to call this again at once.
    fn submit_next(&mut self) -> Result<bool, TuneError> {
        let ahead = self.compiling.len() + self.ready.len();
        let busy = self.tuning.plan.exclusive && !self.measuring.is_empty();
        let is_full = self.tuning.pool.idle(Role::Compile) == 0 || ahead >= self.most_ahead();
        if self.stopped.is_some() || self.exhausted.is_some() || busy || is_full {
            return Ok(false);
        }
        if self.source.trials() >= self.tuning.plan.trials {
            return Ok(false);
        }
        self.awaits_results = false;
        let candidate = match self.source.next(&self.history, &mut self.summary)? {
            NextCandidate::New(it) => *it,
            NextCandidate::Known | NextCandidate::Rejected => return Ok(true),
            NextCandidate::Wait => {
                self.awaits_results = true;
                return Ok(false);
            }
            NextCandidate::Done => {
                self.exhausted = Some(Exhausted::Space);
                return Ok(false);
            }
        };
        let task = Task::Compile {
            problem: self.text.clone(),
            steps: candidate.steps.clone(),
            source_sha256: candidate.source.clone(),
        };
        let job = self.tuning.pool.submit(Role::Compile, task, COMPILE);
        self.compiling.insert(job, candidate);
        Ok(true)
    }

    /// How many candidates may be on their way to a device: so many that neither all compilers nor all devices run out of them
    /// while others take longer.
    fn most_ahead(&self) -> usize {
        let pool = &self.tuning.pool;
        2 * pool.size(Role::Compile).max(pool.size(Role::Measure)).max(2)
    }

    /// Counts what the devices did since the last time, in which a candidate was made, or this process waited.
    fn count_load(&mut self, made: bool) {
        let now = Instant::now();
        let time = now.saturating_duration_since(self.counted);
        self.counted = now;
        let pool = &self.tuning.pool;
        let nothing_ahead = self.compiling.is_empty() && self.ready.is_empty();
        let lack = if nothing_ahead && self.has_made_all() {
            // Other devices measure the last candidates.
            Lack::Nothing
        } else if self.awaits_results && self.compiling.is_empty() {
            Lack::Results
        } else if made && 2 * self.compiling.len() < pool.size(Role::Compile) {
            // Compilers wait for candidates as well, and those are made one by one.
            Lack::Candidates
        } else {
            Lack::Compilers
        };
        let devices = pool.size(Role::Measure);
        self.summary.load.count(time, self.measuring.len(), devices, lack);
    }

    /// Gives compiled candidates to idle devices.
    fn dispatch(&mut self) {
        let resting = !self.tuning.plan.exclusive || self.compiling.is_empty();
        while self.stopped.is_none() && resting && self.tuning.pool.idle(Role::Measure) > 0 {
            let Some(compiled) = self.ready.pop_front() else { return };
            let best = self.summary.best.as_ref().map(|it| it.seconds);
            let deadline = best.map_or(60.0, |it| (50.0 * it).clamp(2.0, 60.0));
            let how = Screen { best, deadline, threads: self.tuning.plan.threads };
            let task = Task::Screen { problem: self.text.clone(), program: compiled.program.clone(), how };
            let timeout = self.tuning.measure_timeout(deadline, 4.0);
            let job = self.tuning.pool.submit(Role::Measure, task, timeout);
            self.measuring.insert(job, compiled);
        }
    }

    fn handle(&mut self, event: PoolEvent) -> Result<(), TuneError> {
        match event {
            PoolEvent::Done { job, worker, device, outcome, ms } => {
                if let Some(candidate) = self.compiling.remove(&job) {
                    self.compiled(candidate, outcome, &worker, ms)?;
                } else if let Some(compiled) = self.measuring.remove(&job) {
                    let place = Place { worker, device, ms: Some(ms) };
                    self.conclude(compiled, outcome.and_then(measurement), place)?;
                }
                Ok(())
            }
            PoolEvent::Happened { what, detail, device } => {
                self.tuning.happened_to((what, detail, device), &self.summary)
            }
            PoolEvent::Dead { role } => {
                self.stopped = Some(Stopped::NoWorker(role));
                self.compiling.clear();
                self.measuring.clear();
                Ok(())
            }
        }
    }

    fn compiled(
        &mut self,
        candidate: Candidate,
        outcome: Result<Outcome, TrialError>,
        worker: &str,
        ms: f64,
    ) -> Result<(), TuneError> {
        let place = Place { worker: worker.to_owned(), device: None, ms: None };
        let compiled = match Compiled::of(candidate, outcome, ms) {
            Ok(compiled) => compiled,
            Err((compiled, error)) => return self.conclude(*compiled, Err(error), place),
        };
        let (launches, limits) = (&compiled.program.launches, filter::Limits::default());
        match filter::after_compiling(launches, &compiled.resources, &self.tuning.problem.target, &limits) {
            Ok(()) => {
                self.ready.push_back(compiled);
                Ok(())
            }
            Err(it) => self.conclude(compiled, Err(it.error(Stage::Compile)), place),
        }
    }

    /// Writes the trial to the log and tells the strategy its result.
    fn conclude(
        &mut self,
        compiled: Compiled,
        result: Result<crate::log::Measurement, TrialError>,
        place: Place,
    ) -> Result<(), TuneError> {
        let Compiled { candidate, program, resources, binary, compile } = compiled;
        let (result, error) = match result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        let trial = Trial {
            run: self.tuning.head.run.clone(),
            n: candidate.n,
            id: candidate.id,
            decisions: candidate.decisions,
            origin: candidate.origin,
            src: candidate.source,
            bin: binary,
            launches: program.launches,
            res: resources,
            t: Times { generate: candidate.milliseconds, compile, measure: place.ms.unwrap_or(0.0) },
            result,
            error,
            worker: place.worker,
            device: place.device,
            time: (self.tuning.now)(),
            other: indexmap::IndexMap::new(),
        };
        self.summary.add(&trial);
        let seconds = trial.seconds();
        self.tuning.log.trials.insert(trial.n, trial.clone());
        self.tuning.write(&Entry::Trial(trial), &self.summary)?;
        self.source.tell(candidate.index, candidate.n, seconds);
        Ok(())
    }
}
