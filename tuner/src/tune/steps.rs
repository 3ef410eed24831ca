//! The winner step by step: each prefix of its schedule that can run is measured, so that a log tells what every
//! primitive was worth.

use std::time::Duration;

use codegen::device::Launch;
use schedule::Step;

use super::{
    Phase, Summary, Tuning,
    ask::Answered,
    candidate_source::{Candidate, checked},
    compiled::{Compiled, measurement, stray},
    finals::too_slow,
    stopped::Halt,
};
use crate::{
    log::{Entry, Measurement, Origin, Stage, StepResult, TrialError},
    pool::Role,
    protocol::{ProblemText, Screen, Task},
    sha256,
};

/// How long one call of a prefix may take, in seconds.
const CALL: f64 = 5.0;

/// The least time that an operation takes one thread: no thread of today's machines does more than these a second.
const OPERATIONS_PER_SECOND: f64 = 4e9;

impl Tuning<'_> {
    /// Measures every prefix of the schedule of a trial that the log does not have.
    pub(super) fn per_step(&mut self, n: u64, summary: &Summary) -> Result<(), Halt> {
        let trial = self.log.trials.get(&n);
        let Some(candidate) = trial.and_then(|it| self.candidate_of(it)) else { return Ok(()) };
        let text = ProblemText::of(self.problem);
        let mut before = self.log.steps.iter().rfind(|it| it.n == n).cloned();
        let first = before.as_ref().map_or(0, |it| it.steps + 1);
        for count in first..=candidate.steps.len() {
            let steps = &candidate.steps[..count];
            let result = self.step(&text, &candidate, steps, before.as_ref(), summary)?;
            self.write(&Entry::Step(result.clone()), summary)?;
            self.log.steps.push(result.clone());
            before = Some(result);
        }
        Ok(())
    }

    /// Measures one prefix.
    fn step(
        &mut self,
        text: &ProblemText,
        candidate: &Candidate,
        steps: &[Step],
        before: Option<&StepResult>,
        summary: &Summary,
    ) -> Result<StepResult, Halt> {
        let mut result = StepResult {
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
            Err((error, _)) => return Ok(StepResult { error: Some(error), ..result }),
        };
        result.src = sha256(&made.source);
        if let Some(before) = before.filter(|before| before.src == result.src) {
            let (measured, error) = (before.result.clone(), before.error.clone());
            return Ok(StepResult { result: measured, error, no_effect: true, ..result });
        }
        let least = self.least_seconds(&made.program.launches);
        if least > CALL {
            let words = format!("its threads would take {least:.0} s or more for one call");
            return Ok(StepResult { error: Some(too_slow(words)), ..result });
        }
        let prefix = Candidate {
            steps: steps.to_vec(),
            source: result.src.clone(),
            origin: Origin::Default,
            ..candidate.clone()
        };
        match self.measure_one(text, prefix, summary)? {
            Ok(measured) => result.result = Some(measured),
            Err(error) => result.error = Some(error),
        }
        Ok(result)
    }

    /// Compiles and screens one candidate.
    fn measure_one(
        &mut self,
        text: &ProblemText,
        candidate: Candidate,
        summary: &Summary,
    ) -> Result<Result<Measurement, TrialError>, Halt> {
        let what = format!("step {}", candidate.steps.len());
        let task = Task::Compile {
            problem: text.clone(),
            steps: candidate.steps.clone(),
            source_sha256: candidate.source.clone(),
        };
        let deadline = super::search_loop::COMPILE;
        let Answered { outcome, ms, .. } = self.ask_one(Role::Compile, task, deadline, &what, summary)?;
        let program = match Compiled::of(candidate, outcome, ms) {
            Ok(Compiled { program, .. }) => program,
            Err((_, error)) => return Ok(Err(error)),
        };
        let how = Screen { best: None, deadline: CALL, threads: self.plan.threads };
        let task = Task::Screen { problem: text.clone(), program, how };
        let timeout = self.measure_timeout(CALL, 4.0);
        let answer = self.ask_one(Role::Measure, task, timeout, &what, summary)?;
        Ok(answer.outcome.and_then(measurement))
    }

    fn ask_one(
        &mut self,
        role: Role,
        task: Task,
        deadline: Duration,
        what: &str,
        summary: &Summary,
    ) -> Result<Answered, Halt> {
        let mut answers = self.ask(role, vec![(task, deadline)], (Phase::Steps, what), summary)?;
        let none = || Answered { outcome: Err(stray(Stage::Run)), ms: 0.0, device: None };
        Ok(answers.pop().unwrap_or_else(none))
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
