//! Submitting several tasks to the workers and waiting for all answers.

use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use super::{Phase, Stopped, Summary, TuneError, TuneEvent, Tuning, stopped::Halt};
use crate::{
    log::{ErrorKind, Happening, Stage, TrialError},
    pool::{Pool, PoolEvent, Role},
    protocol::{Outcome, Task},
};

/// The answer to a task, and the milliseconds that it took.
pub(crate) type Answered = (Result<Outcome, TrialError>, f64);

/// Submits tasks to the workers of a role and waits for the answers, which are returned in the order of the tasks. `going` is
/// called every now and then, with what happened to the workers; if it returns false, the answers are given up and `None` is
/// returned.
pub(crate) fn ask<E>(
    pool: &mut Pool,
    role: Role,
    tasks: Vec<(Task, Duration)>,
    going: &mut dyn FnMut(Option<(Happening, String)>) -> Result<bool, E>,
) -> Result<Option<Vec<Answered>>, E> {
    let mut answers: Vec<Option<Answered>> = vec![None; tasks.len()];
    let mut waiting = tasks.into_iter().enumerate();
    let mut asked = HashMap::new();
    while answers.iter().any(Option::is_none) {
        if !going(None)? {
            return Ok(None);
        }
        while pool.idle(role) > 0
            && let Some((at, (task, deadline))) = waiting.next()
        {
            asked.insert(pool.submit(role, task, deadline), at);
        }
        match pool.wait(Duration::from_millis(100)) {
            Some(PoolEvent::Done { job, outcome, ms, worker: _ }) => {
                if let Some(at) = asked.remove(&job) {
                    answers[at] = Some((outcome, ms));
                }
            }
            Some(PoolEvent::Happened { what, detail }) => {
                going(Some((what, detail)))?;
            }
            Some(PoolEvent::Dead { role: dead }) if dead == role => {
                answers.iter_mut().filter(|it| it.is_none()).for_each(|it| *it = Some(nobody(role)));
            }
            Some(PoolEvent::Dead { .. }) | None => {}
        }
    }
    Ok(Some(answers.into_iter().flatten().collect()))
}

impl Tuning<'_> {
    /// As [`ask`], and writes what happens to the log and the progress line. If the user wants the run to end, it stops in this
    /// phase of it.
    pub(super) fn ask(
        &mut self,
        role: Role,
        tasks: Vec<(Task, Duration)>,
        (phase, what): (Phase, &str),
        summary: &Summary,
    ) -> Result<Vec<Answered>, Halt> {
        // The pool is lent out, so what happens is kept until it is back.
        let mut happened = vec![];
        let (stop, on_event, writer) = (self.stop, &mut *self.on_event, &*self.writer);
        let answers = ask::<TuneError>(&mut self.pool, role, tasks, &mut |event| {
            happened.extend(event);
            writer.expect_whole()?;
            on_event(TuneEvent::Progress(what, summary));
            Ok(!stop.load(Ordering::Relaxed))
        })?;
        for (what, detail) in happened {
            self.happened(what, detail, summary)?;
        }
        answers.ok_or(Halt::Stopped(Stopped::User(phase)))
    }
}

fn nobody(role: Role) -> Answered {
    let message = format!("no worker {} is left", role.words());
    (Err(TrialError { stage: Stage::Run, kind: ErrorKind::WorkerDied, message, sticky: false }), 0.0)
}
