//! Asking workers for several things and waiting for all answers.

use std::{
    collections::HashMap,
    sync::atomic::Ordering,
    time::Duration,
};

use super::{Seen, Summary, TuneError, Tuning};
use crate::{
    log::{ErrorKind, Stage, TrialError},
    pool::{PoolEvent, Role},
    protocol::{Outcome, Task},
};

/// The answer to a task, and the milliseconds that it took.
pub(super) type Answered = (Result<Outcome, TrialError>, f64);

impl Tuning<'_> {
    /// Has tasks done, in any order; the answers are in the order of the tasks. Nothing if the run is to end before.
    pub(super) fn ask(
        &mut self,
        role: Role,
        tasks: Vec<(Task, Duration)>,
        what: &str,
        summary: &Summary,
    ) -> Result<Option<Vec<Answered>>, TuneError> {
        let mut answers: Vec<Option<Answered>> = vec![None; tasks.len()];
        let mut waiting = tasks.into_iter().enumerate();
        let mut asked = HashMap::new();
        while answers.iter().any(Option::is_none) {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            while self.pool.idle(role) > 0
                && let Some((at, (task, deadline))) = waiting.next()
            {
                asked.insert(self.pool.submit(role, task, deadline), at);
            }
            (self.seen)(Seen::Doing(what, summary));
            match self.pool.wait(Duration::from_millis(100)) {
                Some(PoolEvent::Done { job, outcome, ms, worker: _ }) => {
                    if let Some(at) = asked.remove(&job) {
                        answers[at] = Some((outcome, ms));
                    }
                }
                Some(PoolEvent::Happened { what, detail }) => self.happened(what, detail, summary)?,
                Some(PoolEvent::Dead { role: dead }) if dead == role => {
                    answers.iter_mut().filter(|it| it.is_none()).for_each(|it| *it = Some(nobody(role)));
                }
                Some(PoolEvent::Dead { .. }) | None => {}
            }
        }
        Ok(Some(answers.into_iter().flatten().collect()))
    }
}

fn nobody(role: Role) -> Answered {
    let message = format!("no {} is left", role.words());
    (Err(TrialError { stage: Stage::Run, kind: ErrorKind::WorkerDied, message, sticky: false }), 0.0)
}
