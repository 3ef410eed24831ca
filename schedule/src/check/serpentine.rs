//! Whether the loops that run in another order than they count still may: backwards in odd iterations of another, or in groups of rows.

use ir::{Func, Iter, IterKind, Loop, LoopKind, Stmt, pipeline::is_pipeline};

use crate::{ScheduleError, check::independent::expect_reorderable_in};

/// Refuses a program with a loop that an annotation lets run in another order, and that must not: as sessions do after each step,
/// for programs that come with their annotations.
///
/// # Errors
/// Why its iterations depend on each other.
pub fn check_serpentine(func: &Func) -> Result<(), ScheduleError> {
    check_serpentine_loops(func, None, &[])
}

/// Checks every loop with such an annotation, but for those that are the same in a checked program `before` of which the step
/// has `kept` everything ([`ir::unchanged_blocks()`]).
pub(crate) fn check_serpentine_loops(
    func: &Func,
    before: Option<&Func>,
    kept: &[bool],
) -> Result<(), ScheduleError> {
    let before = before.filter(|_| kept.iter().all(|it| *it));
    let is_new = |it: &Loop| {
        let was = before.and_then(|before| before.find_loop(&it.var));
        was.is_none_or(|was| was.attrs != it.attrs)
    };
    let mut turned = Vec::new();
    func.body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && (it.attrs.serpentine.is_some() || it.attrs.raster.is_some())
        {
            turned.push(&**it);
        }
    });
    turned.into_iter().filter(|it| is_new(it)).try_for_each(|it| match it.attrs.serpentine {
        Some(_) => expect_reversible(func, it),
        None => expect_groups(func, it),
    })
}

/// Refuses a loop whose iterations may not run in groups of rows. Tiles of one row, and of one column, come in their order still,
/// and the first tile comes first: so a sum starts where it did. Iterations that may run at the same time are judged for that.
fn expect_groups(func: &Func, it: &Loop) -> Result<(), ScheduleError> {
    match it.kind {
        LoopKind::Serial | LoopKind::Unrolled => expect_reorderable_in(func, &[it]),
        LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Bound(_) => Ok(()),
    }
}

/// Refuses a loop whose iterations may not run backwards: as for any other order, and the init of a reduction runs in the
/// first iteration; a pipeline is judged for iterations in their order.
fn expect_reversible(func: &Func, it: &Loop) -> Result<(), ScheduleError> {
    if is_pipeline(it) {
        return Err(ScheduleError::Reversed { name: it.var.clone() });
    }
    expect_reorderable_in(func, &[it])?;
    for block in it.body.blocks() {
        let reduces =
            |iter: &Iter| iter.kind == IterKind::Reduce && iter.binding.any_var(&|var| *var == it.var);
        if block.init.is_some() && block.iters.iter().any(reduces) {
            return Err(ScheduleError::StartsInside { name: it.var.clone(), block: block.name.clone() });
        }
    }
    Ok(())
}
