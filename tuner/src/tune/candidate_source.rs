//! The source of candidates: it makes numbered trials of the proposals of a strategy.
//!
//! Each proposal is scheduled, lowered and printed here, and refused if that fails, if it cannot run on the target, or if
//! an earlier trial has the same source. What is left gets the next number. All of it depends only on the seed and on the
//! results that the strategy was told.

use std::{
    collections::{HashMap, hash_map::Entry},
    panic::{AssertUnwindSafe, catch_unwind},
};

use schedule::{Decisions, Step};

use super::{Summary, TuneError, history::History};
use crate::{
    Space,
    build::{BuildError, Generated, Problem, generate},
    filter,
    log::{ErrorKind, Origin, Stage, TrialError},
    search::{Evaluation, Next, Proposal, Strategy},
    sha256,
};

/// A candidate that has become a trial.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Its number.
    pub(super) n: u64,
    /// Its place in the space.
    pub(super) index: u128,
    /// The decisions of the knobs.
    pub(super) decisions: Decisions,
    /// Where it comes from.
    pub(super) origin: Origin,
    /// The hash that identifies its workload and steps.
    pub(super) id: String,
    /// Its steps.
    pub(super) steps: Vec<Step>,
    /// SHA-256 of its source.
    pub(super) source: String,
    /// How long scheduling, lowering and printing took, in milliseconds.
    pub(super) milliseconds: f64,
}

/// The answer to a request for a candidate.
pub(super) enum NextCandidate {
    /// One to try.
    New(Box<Candidate>),
    /// One whose result is in the log already.
    Known,
    /// A proposal that was refused and is no trial; ask again.
    Rejected,
    /// None until more results are in.
    Wait,
    /// None ever again: the space is exhausted.
    Done,
}

/// Makes candidates of proposals.
pub(super) struct CandidateSource<'a> {
    problem: &'a Problem,
    space: &'a Space,
    strategy: Box<dyn Strategy + 'a>,
    workload: String,
    /// The trial of each source, by its SHA-256.
    sources: HashMap<String, u64>,
    /// The number of the next trial.
    next: u64,
}

impl<'a> CandidateSource<'a> {
    pub(super) fn new(
        problem: &'a Problem,
        space: &'a Space,
        strategy: Box<dyn Strategy + 'a>,
    ) -> CandidateSource<'a> {
        let workload = problem.workload_id();
        CandidateSource { problem, space, strategy, workload, sources: HashMap::new(), next: 0 }
    }

    /// How many trials it has made.
    pub(super) fn trials(&self) -> u64 {
        self.next
    }

    /// Takes one proposal of the strategy and makes a candidate of it.
    pub(super) fn next(
        &mut self,
        history: &History,
        summary: &mut Summary,
    ) -> Result<NextCandidate, TuneError> {
        let proposal = match self.strategy.next() {
            Next::Try(it) => it,
            Next::Wait => return Ok(NextCandidate::Wait),
            Next::Done => return Ok(NextCandidate::Done),
        };
        let steps = self.space.steps(proposal.index);
        let steps = steps.map_err(|err| (error(ErrorKind::Schedule, err.to_string()), None));
        let candidate = match steps.and_then(|steps| self.candidate(&proposal, steps, history)) {
            Ok(it) => it,
            Err((error, place)) => {
                summary.reject(&error, place);
                self.strategy.tell(Evaluation { index: proposal.index, n: None, seconds: None });
                return Ok(NextCandidate::Rejected);
            }
        };
        let n = candidate.n;
        self.next += 1;
        let Some(known) = history.trial(n) else { return Ok(NextCandidate::New(Box::new(candidate))) };
        if known.id != candidate.id {
            return Err(TuneError::Diverged { n });
        }
        self.tell(candidate.index, n, known.seconds);
        Ok(NextCandidate::Known)
    }

    /// Tells the strategy what became of a trial: seconds per call, or nothing if it failed.
    pub(super) fn tell(&mut self, index: u128, n: u64, seconds: Option<f64>) {
        self.strategy.tell(Evaluation { index, n: Some(n), seconds });
    }

    fn candidate(
        &mut self,
        proposal: &Proposal,
        steps: Vec<Step>,
        history: &History,
    ) -> Result<Candidate, (TrialError, Option<&'static str>)> {
        let n = self.next;
        let id = self.problem.candidate_id(&self.workload, &steps);
        // What a run of the same stream has let through need not be made again.
        let known = history.trial(n).filter(|it| it.id == id);
        let (source, milliseconds) = if let Some(known) = known {
            (known.source.clone(), 0.0)
        } else {
            let made = checked(self.problem, &steps)?;
            let fits = filter::before_compiling(&made, &self.problem.target, &filter::Limits::default());
            fits.map_err(|it| (it.error(Stage::Generate), Some(it.reason())))?;
            (sha256(&made.source), made.milliseconds)
        };
        match self.sources.entry(source.clone()) {
            Entry::Vacant(slot) => slot.insert(n),
            Entry::Occupied(slot) => {
                let words = format!("its source is that of trial {}", slot.get());
                return Err((error(ErrorKind::Duplicate, words), None));
            }
        };
        let decisions = self.space.decisions(proposal.index);
        let (index, origin) = (proposal.index, proposal.origin.clone());
        Ok(Candidate { n, index, decisions, origin, id, steps, source, milliseconds })
    }
}

/// Schedules, lowers and prints. With an error comes the step or the part of the compiler that refused.
pub(super) fn checked(
    problem: &Problem,
    steps: &[Step],
) -> Result<Generated, (TrialError, Option<&'static str>)> {
    // A fault of the compiler costs a candidate and not the run. Nothing that it leaves half done is used again.
    let made = catch_unwind(AssertUnwindSafe(|| generate(problem, steps)));
    let made = made.map_err(|_| {
        (error(ErrorKind::Internal, "tilewright itself failed; it should not".to_owned()), None)
    })?;
    made.map_err(|err| {
        let words = err.to_string();
        match err {
            BuildError::Schedule { step, .. } => (error(ErrorKind::Schedule, words), Some(step)),
            BuildError::Lower(_) => (error(ErrorKind::Codegen, words), Some("lowering")),
            BuildError::Emit(_) => (error(ErrorKind::Codegen, words), Some("printing")),
            BuildError::Launch(_) => (error(ErrorKind::Launch, words), None),
            BuildError::Compile(_) => (error(ErrorKind::Compile, words), None),
        }
    })
}

fn error(kind: ErrorKind, message: String) -> TrialError {
    TrialError { stage: Stage::Generate, kind, message, sticky: false }
}
