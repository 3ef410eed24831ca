//! Schedules with a step left out.
//!
//! A later step that then names a loop, a block or a buffer which is not there any more is left out with it, and so on:
//! without the `cache_read` of a buffer there is nothing to `compute_at`. Every other refusal stands: such a step is
//! needed, and what refuses says why. Nothing else of the schedule is changed.

use ir::{Code, Coded as _, Func, Target};
use schedule::Session;

use crate::{build::lower, plan::Plan};

/// A schedule without one of its steps.
pub(super) struct Without {
    /// The step, from 0.
    pub(super) at: usize,
    /// The steps that went with it.
    pub(super) with: Vec<usize>,
    /// The program, or why there is none.
    pub(super) program: Result<Func, Needed>,
}

/// Why a step cannot be left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Needed {
    /// The later step that refuses, from 0; without one the lowering does, or the compiler.
    pub(super) by: Option<usize>,
    pub(super) code: Code,
    pub(super) message: String,
}

/// Leaves out each step of a legal schedule in turn.
pub(super) fn without_each(plan: &Plan, target: &Target) -> Vec<Without> {
    (0..plan.steps.len()).map(|at| without(plan, target, at)).collect()
}

fn without(plan: &Plan, target: &Target, at: usize) -> Without {
    let mut session = Session::new(plan.func.clone(), Some(target.clone()));
    let mut with = vec![];
    for (n, step) in plan.steps.iter().enumerate().filter(|(n, _)| *n != at) {
        let Err(err) = session.apply(step) else { continue };
        let is_gone = err.names().iter().any(|it| !session.func().is_taken(it));
        if n > at && is_gone {
            with.push(n);
            continue;
        }
        let needed = Needed { by: Some(n), code: err.code(), message: err.to_string() };
        return Without { at, with, program: Err(needed) };
    }
    let func = session.func().clone();
    let program = match lower(&func, target) {
        Ok(_) => Ok(func),
        Err(err) => Err(Needed { by: None, code: err.code(), message: err.message().to_owned() }),
    };
    Without { at, with, program }
}
