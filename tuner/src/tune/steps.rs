//! The winner step by step: each prefix of its schedule that can run is measured, so that a log tells what every
//! primitive was worth.

use std::time::Duration;

use codegen::device::Launch;
use schedule::Step;

use super::{
    Summary, TuneError, Tuning,
    candidates::{Candidates, Compiled},
    feed::{Candidate, checked},
    finals::too_slow,
};
use crate::{
    log::{Entry, Measurement, Origin, StepResult, TrialError},
    pool::Role,
    protocol::{ProblemText, Screen, Task},
    sha256,
};

/// How long one call of a prefix may take, in seconds.
const CALL: f64 = 5.0;

/// The least time that an operation takes one thread: no thread of today's machines does more than these a second.
const OPERATIONS_PER_SECOND: f64 = 4e9;

impl Tuning<'_> {
    /// Measures every prefix of the schedule of a trial.
    pub(super) fn per_step(&mut self, n: u64, summary: &Summary) -> Result<(), TuneError> {
        let trial = self.log.trials.get(&n);
        let Some(candidate) = trial.and_then(|it| self.candidate_of(it)) else { return Ok(()) };
        let text = ProblemText::of(self.problem);
        let mut before: Option<StepResult> = None;
        for count in 0..=candidate.steps.len() {
            let steps = &candidate.steps[..count];
            let Some(it) = self.step(&text, &candidate, steps, before.as_ref(), summary)? else {
                return Ok(());
            };
            self.write(&Entry::Step(it.clone()), summary)?;
            self.log.steps.push(it.clone());
            before = Some(it);
        }
        Ok(())
    }

    /// Measures one prefix; nothing if the run is to end before.
    fn step(
        &mut self,
        text: &ProblemText,
        candidate: &Candidate,
        steps: &[Step],
        before: Option<&StepResult>,
        summary: &Summary,
    ) -> Result<Option<StepResult>, TuneError> {
        let mut it = StepResult {
            run: self.head.run.clone(),
            n: candidate.n,
            steps: steps.len(),
            step: steps.last().map(Step::to_ron).unwrap_or_default(),
            src: String::new(),
            result: None,
            error: None,
            no_effect: false,
            time: (self.now)(),
        };
        let made = match checked(self.problem, steps) {
            Ok(it) => it,
            Err((error, _)) => return Ok(Some(StepResult { error: Some(error), ..it })),
        };
        it.src = sha256(&made.source);
        if let Some(before) = before.filter(|before| before.src == it.src) {
            let (result, error) = (before.result.clone(), before.error.clone());
            return Ok(Some(StepResult { result, error, no_effect: true, ..it }));
        }
        let least = self.least_seconds(&made.program.launches);
        if least > CALL {
            let words = format!("its threads would take {least:.0} s or more for one call");
            return Ok(Some(StepResult { error: Some(too_slow(words)), ..it }));
        }
        let prefix = Candidate {
            steps: steps.to_vec(),
            source: it.src.clone(),
            origin: Origin::Default,
            ..candidate.clone()
        };
        let Some(outcome) = self.measure_one(text, prefix, summary)? else { return Ok(None) };
        match outcome {
            Ok(result) => it.result = Some(result),
            Err(error) => it.error = Some(error),
        }
        Ok(Some(it))
    }

    /// Compiles and screens one candidate; nothing if the run is to end before.
    fn measure_one(
        &mut self,
        text: &ProblemText,
        candidate: Candidate,
        summary: &Summary,
    ) -> Result<Option<Result<Measurement, TrialError>>, TuneError> {
        let what = format!("step {}", candidate.steps.len());
        let task = Task::Compile {
            problem: text.clone(),
            steps: candidate.steps.clone(),
            source_sha256: candidate.source.clone(),
        };
        let deadline = super::drive::COMPILE;
        let Some((outcome, ms)) = self.ask_one(Role::Compile, task, deadline, &what, summary)? else {
            return Ok(None);
        };
        let program = match Candidates::compiled(candidate, outcome, ms) {
            Ok(Compiled { program, .. }) => program,
            Err((_, error)) => return Ok(Some(Err(error))),
        };
        let how = Screen { best: None, deadline: CALL, threads: self.plan.threads };
        let task = Task::Screen { problem: text.clone(), program, how };
        let patience = self.patience(CALL, 4.0);
        let answer = self.ask_one(Role::Measure, task, patience, &what, summary)?;
        Ok(answer.map(|(outcome, _)| outcome.and_then(Candidates::measurement)))
    }

    fn ask_one(
        &mut self,
        role: Role,
        task: Task,
        deadline: Duration,
        what: &str,
        summary: &Summary,
    ) -> Result<Option<super::ask::Answered>, TuneError> {
        let answers = self.ask(role, vec![(task, deadline)], what, summary)?;
        Ok(answers.and_then(|mut it| it.pop()))
    }

    /// A time that a call cannot beat, whatever the kernel: a GPU may not be stopped, so a kernel of one thread is
    /// better not started.
    fn least_seconds(&self, launches: &[Launch]) -> f64 {
        let product = |it: &[u32; 3]| it.iter().map(|it| f64::from(*it)).product::<f64>();
        let threads = launches.iter().map(|it| product(&it.grid) * product(&it.block)).fold(1.0, f64::max);
        let is_gpu = self.problem.target != ir::Target::Cpu;
        if is_gpu { self.problem.case.work.flops / threads / OPERATIONS_PER_SECOND } else { 0.0 }
    }
}
