//! Whether the iterations of loops may run in another order, or at the same time.
//!
//! Each element has one value: blocks that do not read what they write may run again, in any order, and write the
//! same. What is left to check is that reductions keep every term once and start before their first term, and that
//! no block uses what another one leaves behind from another iteration.

use ir::{
    BinaryOp, Block, Func, IterKind, Loop, LoopKind, Name, Role, Scope, Stmt, Store, Value,
    arith::Bounds,
    region::{Way, bounds_of, covers, touched_in_one, writes_box},
};

use crate::{ScheduleError, ScheduleState, check::affine::tells_apart};

/// Refuses loops of one chain, outermost first, whose iterations may not run in another order.
pub(crate) fn expect_reorderable(state: &ScheduleState, chain: &[&Loop]) -> Result<(), ScheduleError> {
    let Some(last) = chain.last() else { return Ok(()) };
    for block in last.body.blocks() {
        if !accumulates(block)? {
            continue;
        }
        let bounds = bounds_around(&state.func, block);
        for it in chain.iter().filter(|it| it.extent.as_int() != Some(1)) {
            if !tells_apart(block, &it.var, &bounds, &|_| true) {
                return Err(ScheduleError::NotAffine { name: it.var.clone(), block: block.name.clone() });
            }
        }
    }
    let path = state.expect_path(&last.var)?;
    expect_self_contained(&state.func, &path, chain)
}

/// Refuses a loop whose iterations may not run at the same time, as `kind` would run them.
pub(crate) fn expect_independent(func: &Func, it: &Loop, kind: LoopKind) -> Result<(), ScheduleError> {
    for block in it.body.blocks() {
        for iter in block.iters.iter().filter(|iter| iter.binding.any_var(&|name| *name == it.var)) {
            if iter.kind == IterKind::Reduce {
                let (block, iter) = (block.name.clone(), iter.var.clone());
                return Err(ScheduleError::ReductionLoop { name: it.var.clone(), block, iter });
            }
        }
        if !accumulates(block)? || it.extent.as_int() == Some(1) {
            continue;
        }
        let private = block.writes().iter().all(|access| is_private(func, &access.buffer, kind));
        let spatial = |iter: &ir::Iter| iter.kind == IterKind::Spatial;
        if !private && !tells_apart(block, &it.var, &bounds_around(func, block), &spatial) {
            return Err(ScheduleError::NotAffine { name: it.var.clone(), block: block.name.clone() });
        }
    }
    let path = func.path_to_loop(&it.var).unwrap_or_default();
    expect_self_contained(func, &path, &[it])
}

/// Refuses where blocks under the last loop of `path` exchange data across iterations of `loops`, which are on the
/// path: what one of them reads or overwrites has to be written first in the same iteration.
fn expect_self_contained(func: &Func, path: &[&Loop], loops: &[&Loop]) -> Result<(), ScheduleError> {
    let Some(last) = path.last() else { return Ok(()) };
    let blocks = last.body.blocks();
    if blocks.len() < 2 {
        return Ok(());
    }
    for buffer in func.buffers.iter().filter(|(_, it)| it.role != Role::Input).map(|(name, _)| name) {
        let users: Vec<&Block> = blocks.iter().copied().filter(|it| uses(it, buffer)).collect();
        let [first, others @ ..] = users.as_slice() else { continue };
        let written = users.iter().any(|it| it.writes().iter().any(|access| access.buffer == *buffer));
        if others.is_empty() || !written {
            continue;
        }
        let partial = first.iters.iter().any(|iter| {
            iter.kind == IterKind::Reduce
                && iter.binding.any_var(&|name| loops.iter().any(|it| it.var == *name))
        });
        if let Some(other) = uncovered(func, path, first, others, buffer).or(partial.then(|| others[0])) {
            let (first, second, buffer) = (first.name.clone(), other.name.clone(), buffer.clone());
            return Err(ScheduleError::Carried { name: loops[0].var.clone(), first, second, buffer });
        }
    }
    Ok(())
}

/// The first of `others` that touches elements of a buffer which `first` does not write in the same iteration of
/// the loops on `path`.
pub(crate) fn uncovered<'a>(
    func: &Func,
    path: &[&Loop],
    first: &Block,
    others: &[&'a Block],
    buffer: &Name,
) -> Option<&'a Block> {
    let shape = &func.buffers.get(buffer)?.shape;
    if first.writes().iter().all(|it| it.buffer != *buffer) {
        return others.first().copied();
    }
    let (fixed, bounds) = (path.len(), bounds_of(func, path));
    let whole = touched_in_one(func, first, buffer, fixed, Way::Write);
    let covered = |it: &Block, way: Way| {
        let accesses = match way {
            Way::Read => it.reads(),
            Way::Write => it.writes(),
        };
        accesses.iter().all(|it| it.buffer != *buffer)
            || covers(&whole, &touched_in_one(func, it, buffer, fixed, way), shape, &bounds)
    };
    others.iter().copied().find(|it| {
        !writes_box(func, first, it, buffer, fixed) || !covered(it, Way::Read) || !covered(it, Way::Write)
    })
}

/// Whether a block reads what it writes, or reduces: then it must run once for each of its points.
///
/// Refuses blocks that do so in a way that is neither a reduction nor an update in place.
pub(crate) fn accumulates(block: &Block) -> Result<bool, ScheduleError> {
    let reduces = block.iters.iter().any(|it| it.kind == IterKind::Reduce);
    let writes = block.writes();
    let mut reads_own = false;
    let mut refused = None;
    block.body.each_store(&mut |store| {
        let mut own = false;
        store.value.each_load(&mut |access| {
            own |= *access == store.place;
            if *access != store.place && writes.iter().any(|it| it.buffer == access.buffer) {
                refused = Some(access.buffer.clone());
            }
        });
        if reduces && !is_reduction(store) {
            refused = Some(store.place.buffer.clone());
        }
        reads_own |= own;
    });
    match refused {
        Some(buffer) => Err(ScheduleError::NotAReduction { block: block.name.clone(), buffer }),
        None => Ok(reduces || reads_own),
    }
}

/// Whether a store is `place = place op term`, with `op` associative and commutative but for rounding.
fn is_reduction(store: &Store) -> bool {
    let Value::Binary(op, a, b) = &store.value else { return false };
    let is_place = |value: &Value| matches!(value, Value::Load(it) if *it == store.place);
    let avoids = |value: &Value| {
        let mut free = true;
        value.each_load(&mut |it| free &= it.buffer != store.place.buffer);
        free
    };
    match op {
        BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max => {
            is_place(a) && avoids(b) || is_place(b) && avoids(a)
        }
        BinaryOp::Sub | BinaryOp::Div => false,
    }
}

/// Whether iterations of a loop of that kind each have their own copy of a buffer.
fn is_private(func: &Func, buffer: &Name, kind: LoopKind) -> bool {
    let Some(buffer) = func.buffers.get(buffer) else { return false };
    match (kind, buffer.scope) {
        (LoopKind::Bound(_), Scope::Local) => true,
        (LoopKind::Bound(axis), Scope::Shared) => !axis.is_thread(),
        (LoopKind::Bound(_), Scope::Global)
        | (LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled, _) => false,
    }
}

pub(crate) fn uses(block: &Block, buffer: &Name) -> bool {
    [block.reads(), block.writes()].concat().iter().any(|it| it.buffer == *buffer)
}

fn bounds_around(func: &Func, block: &Block) -> Bounds {
    bounds_of(func, &func.loops_of(&block.name).unwrap_or_default())
}

/// Checks again every loop that is run in parallel, for a step may have changed what is inside it.
pub(crate) fn check_parallel_loops(func: &Func) -> Result<(), ScheduleError> {
    let mut loops = Vec::new();
    func.body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt {
            loops.push(&**it);
        }
    });
    for it in loops {
        match it.kind {
            LoopKind::Serial | LoopKind::Unrolled => {}
            LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Bound(_) => {
                expect_independent(func, it, it.kind)?;
            }
        }
    }
    Ok(())
}
