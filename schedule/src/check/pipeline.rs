//! When the pipelines of a program are judged. What is judged is [`ir::pipeline`]'s.

use std::cell::LazyCell;

use ir::{Func, Loop, pipeline};

use crate::ScheduleError;

/// Checks every loop with both annotations, but for those that were judged in the same way in a checked program `before`.
pub(crate) fn check_pipelines(func: &Func, before: Option<&Func>) -> Result<(), ScheduleError> {
    // Most programs have no pipeline to ask this for.
    let before = LazyCell::new(|| before.filter(|it| pipeline::are_alike(it, func)));
    let is_new = |it: &Loop| {
        let was = before.and_then(|before| before.find_loop(&it.var));
        was.is_none_or(|was| !pipeline::is_judged_alike(was, it))
    };
    Ok(pipeline::check(func, &is_new)?)
}
