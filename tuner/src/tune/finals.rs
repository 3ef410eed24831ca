//! The finals: the best of the search, a schedule that they have to beat, and the vendor's library, timed against each
//! other in one process, and so on one device. The search itself times candidates minutes apart, which is worth a few per cent of error.

use super::{
    Phase, Stopped, Summary, TuneError, Tuning,
    candidate_source::Candidate,
    compiled::{Compiled, stray},
    stopped::Halt,
};
use crate::{
    bench,
    build::generate,
    log::{Entry, ErrorKind, Finals, Happening, Incumbent, Origin, Stage, Trial, TrialError},
    pool::Role,
    protocol::{Final, Outcome, ProblemText, Task},
    sha256,
};

impl Tuning<'_> {
    /// Holds the finals, unless there is nobody to take part.
    pub(super) fn finals(&mut self, summary: &Summary) -> Result<Option<Finals>, Halt> {
        let mut candidates = self.best_trials();
        candidates.extend(self.incumbents()?);
        if candidates.is_empty() || self.plan.finalists == 0 {
            return Ok(None);
        }
        let text = ProblemText::of(self.problem);
        let compiled = self.compile_finalists(&text, candidates, summary)?;
        let slowest = self.log.trials.values().filter_map(Trial::seconds).fold(0.001, f64::max);
        let how = Final {
            regime: self.plan.regime,
            rounds: self.plan.rounds,
            baseline: self.plan.baseline,
            threads: self.plan.threads,
        };
        let programs = compiled.iter().map(|it| it.program.clone()).collect();
        let task = Task::Finals { problem: text, programs, how };
        let samples = (self.plan.rounds * (compiled.len() + 2)) as f64;
        let timeout = self.measure_timeout(slowest.min(5.0) + 0.3, 2.0 * samples);
        let mut answers =
            self.ask(Role::Measure, vec![(task, timeout)], (Phase::Finals, "finals"), summary)?;
        let (outcome, device) = answers.pop().map(|it| (it.outcome, it.device)).unzip();
        match outcome {
            Some(Ok(Outcome::Finals(finals))) => {
                let finals = Finals { device: device.flatten(), ..finals };
                Ok(Some(self.conclude(finals, &compiled, summary)?))
            }
            Some(Ok(Outcome::Program { .. } | Outcome::Measured(_))) | None => Err(failed(stray(Stage::Run))),
            Some(Err(error)) => Err(failed(error)),
        }
    }

    /// Names the finalists, ranks them, and writes the finals down.
    fn conclude(
        &mut self,
        mut finals: Finals,
        compiled: &[Compiled],
        summary: &Summary,
    ) -> Result<Finals, TuneError> {
        for (finalist, it) in finals.finalists.iter_mut().zip(compiled) {
            let number = it.candidate.n;
            finalist.n = (number < INCUMBENTS).then_some(number);
            let incumbents = (INCUMBENTS..).zip(&self.plan.incumbents);
            finalist.name = incumbents.filter(|it| it.0 == number).map(|it| it.1.name.clone()).next();
            finalist.id.clone_from(&it.candidate.id);
        }
        // Of two that cannot be told apart the one with fewer registers and less shared memory is the better kernel.
        bench::rank(&mut finals, |finalist| {
            let it = compiled.iter().find(|it| it.candidate.id == finalist.id);
            let registers = it.map_or(0, |it| it.resources.iter().map(|it| it.registers).max().unwrap_or(0));
            let shared =
                it.map_or(0, |it| it.program.launches.iter().map(|it| it.shared_bytes).max().unwrap_or(0));
            (registers, shared)
        });
        finals.run.clone_from(&self.head.run);
        finals.time = (self.now)();
        self.write(&Entry::Finals(finals.clone()), summary)?;
        Ok(finals)
    }

    /// The best trials of the search as candidates, the best first.
    fn best_trials(&self) -> Vec<Candidate> {
        let mut trials: Vec<(f64, &Trial)> =
            self.log.trials.values().filter_map(|it| Some((it.seconds()?, it))).collect();
        trials.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.n.cmp(&b.1.n)));
        trials.iter().take(self.plan.finalists).filter_map(|(_, it)| self.candidate_of(it)).collect()
    }

    /// A trial of the log as a candidate again.
    pub(super) fn candidate_of(&self, trial: &Trial) -> Option<Candidate> {
        let index = self.space.index_of(&trial.decisions)?;
        let steps = self.space.steps(index).ok()?;
        Some(Candidate {
            n: trial.n,
            index,
            decisions: trial.decisions.clone(),
            origin: trial.origin.clone(),
            id: trial.id.clone(),
            steps,
            source: trial.src.clone(),
            milliseconds: trial.t.generate,
        })
    }

    /// The schedules to beat as candidates. It is asked for before the first trial as well, to refuse what makes no program.
    pub(super) fn incumbents(&self) -> Result<Vec<Candidate>, TuneError> {
        (INCUMBENTS..).zip(&self.plan.incumbents).map(|(n, it)| self.incumbent(n, it)).collect()
    }

    fn incumbent(&self, n: u64, it: &Incumbent) -> Result<Candidate, TuneError> {
        let made = generate(self.problem, &it.steps)
            .map_err(|source| TuneError::Incumbent { name: it.name.clone(), source: Box::new(source) })?;
        Ok(Candidate {
            n,
            index: 0,
            decisions: schedule::Decisions::new(),
            origin: Origin::Default,
            id: self.problem.candidate_id(&self.problem.workload_id(), &it.steps),
            steps: it.steps.clone(),
            source: sha256(&made.source),
            milliseconds: made.milliseconds,
        })
    }

    /// Compiles candidates again; the log has no machine code. At least one comes back.
    fn compile_finalists(
        &mut self,
        text: &ProblemText,
        candidates: Vec<Candidate>,
        summary: &Summary,
    ) -> Result<Vec<Compiled>, Halt> {
        let task = |it: &Candidate| Task::Compile {
            problem: text.clone(),
            steps: it.steps.clone(),
            source_sha256: it.source.clone(),
        };
        let tasks = candidates.iter().map(|it| (task(it), super::search_loop::COMPILE)).collect();
        let what = (Phase::Finals, "compiling the finalists");
        let answers = self.ask(Role::Compile, tasks, what, summary)?;
        let (mut compiled, mut first) = (vec![], None);
        for (candidate, answer) in candidates.into_iter().zip(answers) {
            match Compiled::of(candidate, answer.outcome, answer.ms) {
                Ok(it) => compiled.push(it),
                Err((it, error)) => {
                    let name = self.name_of(it.candidate.n);
                    let words =
                        format!("{name} is not in the finals, because it did not compile again: {error}");
                    self.happened(Happening::Other, words, summary)?;
                    first.get_or_insert(error);
                }
            }
        }
        match first {
            Some(error) if compiled.is_empty() => Err(failed(error)),
            Some(_) | None => Ok(compiled),
        }
    }

    /// What a finalist is called.
    fn name_of(&self, number: u64) -> String {
        let incumbents = (INCUMBENTS..).zip(&self.plan.incumbents);
        let name = incumbents.filter(|it| it.0 == number).map(|it| it.1.name.clone()).next();
        name.unwrap_or_else(|| format!("trial {number}"))
    }
}

fn failed(error: TrialError) -> Halt {
    Halt::Stopped(Stopped::Finals(error))
}

/// The numbers of finalists that are no trials begin here.
const INCUMBENTS: u64 = 1 << 63;

/// The error of a part of a run that is not carried out because it would take too long.
pub(super) fn too_slow(message: String) -> TrialError {
    TrialError { stage: Stage::Run, kind: ErrorKind::Cancelled, message, sticky: false }
}
