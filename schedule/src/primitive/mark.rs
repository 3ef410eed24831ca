//! What primitives that only ask something of a loop or a block have in common.

use std::sync::Arc;

use ir::{Block, BlockAttrs, Loop, LoopAttrs, LoopKind, Name, Stmt};

use crate::{ScheduleError, ScheduleState, check::independent::expect_independent};

/// Makes a plain loop one of a kind that runs its iterations at the same time.
pub(super) fn mark(state: &mut ScheduleState, target: &Name, kind: LoopKind) -> Result<(), ScheduleError> {
    let it = state.expect_unmarked_loop(target)?;
    expect_independent(&state.func, it, kind)?;

    state.func.replace_loop(target, |old| Stmt::Loop(Arc::new(Loop { kind, ..old })));
    Ok(())
}

/// Asks something of a loop that is not asked yet, by the key that it has in texts.
pub(super) fn annotate_loop(
    state: &mut ScheduleState,
    target: &Name,
    key: &str,
    ask: impl FnOnce(&mut LoopAttrs),
) -> Result<(), ScheduleError> {
    if state.expect_loop(target)?.attrs.entries().contains_key(key) {
        return Err(ScheduleError::Annotated { name: target.clone(), key: key.to_owned() });
    }

    state.func.replace_loop(target, |mut old: Loop| {
        ask(&mut old.attrs);
        Stmt::Loop(Arc::new(old))
    });
    Ok(())
}

/// Asks something of a block that is not asked yet, by the key that it has in texts.
pub(super) fn annotate_block(
    state: &mut ScheduleState,
    target: &Name,
    key: &str,
    ask: impl FnOnce(&mut BlockAttrs),
) -> Result<(), ScheduleError> {
    if state.expect_block(target)?.attrs.entries().contains_key(key) {
        return Err(ScheduleError::Annotated { name: target.clone(), key: key.to_owned() });
    }

    state.func.replace_block(target, |mut old: Block| {
        ask(&mut old.attrs);
        Stmt::Block(Arc::new(old))
    });
    Ok(())
}
