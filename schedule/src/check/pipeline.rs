//! When the pipelines of a program are judged. What is judged is [`ir::pipeline`]'s.

use std::cell::LazyCell;

use ir::{Func, Loop, pipeline};

use crate::ScheduleError;

/// Checks every loop with both annotations, but for those that are the same in a checked program `before` of which the
/// step has `kept` everything ([`ir::unchanged_blocks()`]).
pub(crate) fn check_pipelines(
    func: &Func,
    before: Option<&Func>,
    kept: &[bool],
) -> Result<(), ScheduleError> {
    // Most programs have no pipeline to ask this for.
    let before = LazyCell::new(|| before.filter(|it| kept.iter().all(|it| *it) && are_same_blocks(it, func)));
    let is_new = |it: &Loop| {
        let was = before.and_then(|before| before.find_loop(&it.var));
        was.is_none_or(|was| was.attrs != it.attrs || was.kind != it.kind)
    };
    Ok(pipeline::check(func, &is_new)?)
}

/// Whether blocks of the same names stand in the same order.
fn are_same_blocks(a: &Func, b: &Func) -> bool {
    a.body.blocks().iter().map(|it| &it.name).eq(b.body.blocks().iter().map(|it| &it.name))
}
