//! A session: steps applied one at a time, each checked, each undoable.

use ir::{Func, Name, Stmt, Target};

use crate::{
    ScheduleError, ScheduleState,
    check::{
        independent::check_parallel_loops, pipeline::check_pipelines, serpentine::check_serpentine_loops,
    },
    diff::diff,
    primitive::Step,
};

/// The most loops that steps put a block into, one in the other.
pub const MOST_LOOPS: usize = 128;

/// A program and the steps that brought it where it is.
#[derive(Clone, Debug)]
pub struct Session {
    state: ScheduleState,
    past: Vec<(ScheduleState, Step)>,
}

impl Session {
    /// Starts from an unscheduled program.
    pub fn new(func: Func, target: Option<Target>) -> Session {
        Session { state: ScheduleState { func, target }, past: Vec::new() }
    }

    /// Applies a step. A refused step leaves nothing behind.
    pub fn apply(&mut self, step: &Step) -> Result<(), ScheduleError> {
        let mut next = self.state.clone();
        step.get().apply(&mut next)?;
        expect_shallow(&self.state.func, &next.func)?;
        // What a checked step left as it was need not be checked again; that of the caller never was.
        let before = (!self.past.is_empty()).then_some(&self.state.func);
        let kept = before.map(|it| ir::unchanged_blocks(it, &next.func)).unwrap_or_default();
        if before.is_none() || step.get().moves_work() {
            check_parallel_loops(&next.func, before, &kept)?;
        }
        check_serpentine_loops(&next.func, before, &kept)?;
        check_pipelines(&next.func, before)?;
        if let Err(errors) = ir::verify_step(&next.func, &kept) {
            let message = errors.first().map(ToString::to_string).unwrap_or_default();
            return Err(ScheduleError::Unsound { step: step.name(), message });
        }

        self.past.push((std::mem::replace(&mut self.state, next), step.clone()));
        Ok(())
    }

    /// Applies a step that a method made, if it could be made.
    fn add(&mut self, _: &str, step: Result<Step, ScheduleError>) -> Result<&mut Session, ScheduleError> {
        self.apply(&step?)?;
        Ok(self)
    }

    /// Takes the last step back, and returns it.
    pub fn undo(&mut self) -> Option<Step> {
        let (state, step) = self.past.pop()?;
        self.state = state;
        Some(step)
    }

    /// The program as it is.
    pub fn func(&self) -> &Func {
        &self.state.func
    }

    /// The program as it was before the last step.
    pub fn before(&self) -> Option<&Func> {
        self.past.last().map(|(state, _)| &state.func)
    }

    /// What the last step changed, with that many unchanged lines around each change; empty before the first.
    pub fn last_diff(&self, context: usize) -> String {
        self.before().map(|before| diff(before, self.func(), context)).unwrap_or_default()
    }

    /// The steps applied, in order.
    pub fn trace(&self) -> impl Iterator<Item = &Step> {
        self.past.iter().map(|(_, step)| step)
    }
}

impl Session {
    step_methods! { ScheduleError }
}

/// No loop stands in more than [`MOST_LOOPS`] because of the step: many checks go through the loops around a block for
/// each of these loops.
fn expect_shallow(before: &Func, after: &Func) -> Result<(), ScheduleError> {
    let Some((depth, it)) = deepest(&after.body, 0).filter(|it| it.0 > MOST_LOOPS) else { return Ok(()) };
    if deepest(&before.body, 0).is_some_and(|it| it.0 >= depth) {
        return Ok(());
    }
    Err(ScheduleError::TooDeep { name: it.clone(), depth, limit: MOST_LOOPS })
}

/// The first loop that stands in the most others, with their number and its own.
fn deepest(stmt: &Stmt, around: usize) -> Option<(usize, &Name)> {
    match stmt {
        Stmt::Loop(it) => {
            let inner = deepest(&it.body, around + 1);
            Some(inner.unwrap_or((around + 1, &it.var)))
        }
        Stmt::Seq(stmts) => {
            let all = stmts.iter().filter_map(|it| deepest(it, around));
            all.reduce(|a, b| if b.0 > a.0 { b } else { a })
        }
        Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_) => None,
    }
}
