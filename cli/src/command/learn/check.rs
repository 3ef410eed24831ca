//! Whether an exercise is solved: every step legal, the numbers right on the virtual GPU in several orders, and every
//! goal met. Nothing here depends on a clock or on a machine.

use std::path::Path;

use schedule::script::ScriptTarget;

use super::{course::Exercise, measure::PreparedSchedule};
use crate::{
    build::lower, diagnostic::Diagnostic, plan::Plan, term::shell::Shell, usage_error::UsageError,
    virtual_gpu,
};

/// The result of checking an exercise.
pub(super) struct CheckResult {
    /// A schedule that is refused, or computes something else.
    pub(super) refused: Option<Diagnostic>,
    /// One for each goal, if it is not refused.
    pub(super) results: Vec<GoalResult>,
}

/// What was measured for a goal, and whether it meets the goal.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct GoalResult {
    /// The value, if the program has what is asked about.
    pub(super) value: Option<f64>,
    pub(super) holds: bool,
}

impl CheckResult {
    pub(super) fn is_solved(&self) -> bool {
        self.refused.is_none() && self.results.iter().all(|it| it.holds)
    }
}

/// Checks a text in the place of an exercise.
pub(super) fn check(exercise: &Exercise, path: &Path, text: &str, shell: &mut Shell<'_>) -> CheckResult {
    match prepare(exercise, path, text, true, shell) {
        Err(refused) => CheckResult { refused: Some(refused), results: vec![] },
        Ok(prepared) => {
            let found = exercise.lesson.goals.iter().map(|goal| {
                let value = goal.what.of(&prepared);
                GoalResult { value, holds: value.is_some_and(|it| goal.holds(it)) }
            });
            CheckResult { refused: None, results: found.collect() }
        }
    }
}

/// What the first goal measures in the exercise as it is handed out, if that is a program at all.
pub(super) fn start_value(exercise: &Exercise, shell: &mut Shell<'_>) -> Option<f64> {
    let path = format!("{}.ron", exercise.name);
    let prepared = prepare(exercise, Path::new(&path), &exercise.start, false, shell).ok()?;
    exercise.lesson.goals.first()?.what.of(&prepared)
}

/// Schedules, lowers and runs a text. Wrong numbers are an error; without `verify` it is run once and not verified.
fn prepare(
    exercise: &Exercise,
    path: &Path,
    text: &str,
    verify: bool,
    shell: &mut Shell<'_>,
) -> Result<PreparedSchedule, Diagnostic> {
    let plan = Plan::parse(path, text, &[])?;
    same_task(exercise, &plan)?;
    let target = plan.target(None, None);
    let func = plan.schedule(&target, None)?.func().clone();
    let (module, _) = lower(&func, &target)?;
    let small = Plan::parse(path, text, &exercise.lesson.check())?;
    let (small_module, _) = lower(small.schedule(&target, None)?.func(), &target)?;
    let counters = virtual_gpu::trial(&small, &exercise.name, small_module, verify, shell)?;
    Ok(PreparedSchedule { func, module, counters })
}

/// Refuses a schedule of another program: at other sizes or in another type the goals mean nothing.
fn same_task(exercise: &Exercise, plan: &Plan) -> Result<(), Diagnostic> {
    let asked = Plan::parse(Path::new("solution.ron"), &exercise.solution, &[])?;
    let target = |it: &Plan| match it.script.target.as_ref().map(|it| &it.value) {
        None | Some(ScriptTarget::Cpu) => "cpu",
        Some(ScriptTarget::Cuda(_)) => "cuda",
    };
    let words = |it: &Plan| format!("{} {} for {}", it.script.workload.value, it.sizes(), target(it));
    let is_same = asked.func == plan.func && target(&asked) == target(plan);
    if is_same {
        return Ok(());
    }
    let title = format!("the exercise is about {}, and this is {}", words(&asked), words(plan));
    Err(Diagnostic::failed(UsageError::Altered, title).at_script(&plan.text, &plan.script.params.span).help(
        format!("leave them as they are; `tilewright learn diff {}` shows what you changed", exercise.name),
    ))
}
