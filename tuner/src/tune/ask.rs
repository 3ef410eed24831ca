//! Submitting several tasks to the workers and waiting for all answers.

use std::{collections::HashMap, sync::atomic::Ordering, time::Duration};

use super::{Phase, Stopped, Summary, TuneError, TuneEvent, Tuning, stopped::Halt};
use crate::{
    log::{ErrorKind, Happening, MeasuringDevice, Stage, TrialError},
    pool::{Pool, PoolEvent, Role},
    protocol::{Outcome, Task},
};

/// The answer to a task.
#[derive(Clone)]
pub(crate) struct Answered {
    /// What came out.
    pub(crate) outcome: Result<Outcome, TrialError>,
    /// How long it took, in milliseconds.
    pub(crate) ms: f64,
    /// The name of the device that it was measured on.
    pub(crate) device: Option<String>,
}

/// What happened to the workers meanwhile: what, in words, and what a worker that was started measures on.
pub(crate) type Happened = (Happening, String, Option<MeasuringDevice>);

/// Submits tasks to the workers of a role and waits for the answers, which are returned in the order of the tasks. `going` is
/// called every now and then, with what happened to the workers; if it returns false, the answers are given up and `None` is
/// returned.
pub(crate) fn ask<E>(
    pool: &mut Pool,
    role: Role,
    tasks: Vec<(Task, Duration)>,
    going: &mut dyn FnMut(Option<Happened>) -> Result<bool, E>,
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
            Some(PoolEvent::Done { job, outcome, ms, device, worker: _ }) => {
                if let Some(at) = asked.remove(&job) {
                    answers[at] = Some(Answered { outcome, ms, device });
                }
            }
            Some(PoolEvent::Happened { what, detail, device }) => {
                going(Some((what, detail, device)))?;
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
        for it in happened {
            self.happened_to(it, summary)?;
        }
        answers.ok_or(Halt::Stopped(Stopped::User(phase)))
    }
}

fn nobody(role: Role) -> Answered {
    let message = format!("no worker {} is left", role.words());
    let error = TrialError { stage: Stage::Run, kind: ErrorKind::WorkerDied, message, sticky: false };
    Answered { outcome: Err(error), ms: 0.0, device: None }
}
