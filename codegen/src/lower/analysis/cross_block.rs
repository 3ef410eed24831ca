//! Loops over blocks of threads that reduce: where a block waits for its turn, and what it adds atomically.
//!
//! `check_races` finds out which buffers the blocks of such a loop meet in. With a semaphore, what touches those is
//! between the beginning and the end of the block's turn, and nothing else has to be; what stands before the loop in its
//! kernel is for the first block, what stands behind it for the last. With atomics, the reductions into those
//! buffers become atomic additions, and nothing else of the kernel may touch them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use indexmap::IndexMap;
use ir::{
    Access, Block, Buffer, Buffers, CrossBlock, DType, Func, Index, Instr, IterKind, Less, Loop, LoopKind,
    Name, Op, Scope, Semaphore, SemaphoreKind, Stmt, ThreadAxis, Value, access::FuncAccess, axis_var,
};

/// For each loop over blocks that reduces, the buffers that its blocks meet in.
pub(crate) type CrossBlockConflicts = BTreeMap<Name, BTreeSet<Name>>;

/// Where the blocks of a program's loops meet, as `check_races` left it.
pub(crate) fn conflicts(func: &Func) -> CrossBlockConflicts {
    let met = func.loops().into_iter().filter(|it| !it.attrs.exchanged.is_empty());
    met.map(|it| (it.var.clone(), it.attrs.exchanged.iter().cloned().collect())).collect()
}

/// The loop by which blocks that meet in these places take turns or add atomically, if there is one.
pub(crate) fn settled<'a>(
    write: &'a FuncAccess<'_>,
    other: &'a FuncAccess<'_>,
    axis: ThreadAxis,
    buffers: &Buffers,
) -> Option<&'a Loop> {
    let (a, b) = (write.bound(axis), other.bound(axis));
    let around = a.or(b)?;
    let is_settled = match around.attrs.cross_block? {
        CrossBlock::Atomic => {
            let both = matches!((a, b), (Some(a), Some(b)) if a.var == b.var);
            both && [write, other].into_iter().all(|it| adds(it, around, buffers))
        }
        CrossBlock::Semaphore => match (a, b) {
            (Some(a), Some(b)) => a.var == b.var,
            // Behind the loop the last block goes on alone; before it, the first one does what all can see.
            (Some(_), None) => other.order > write.order || writes_global(other, buffers),
            (None, Some(_)) => true,
            (None, None) => false,
        },
    };
    is_settled.then_some(around)
}

/// Whether a place is only added to by a block that reduces over the loop.
fn adds(access: &FuncAccess<'_>, around: &Loop, buffers: &Buffers) -> bool {
    let Some(block) = access.block().filter(|it| reduces_over(it, |var| *var == around.var)) else {
        return false;
    };
    let mut all = block.init.is_none() && CrossBlock::can_add(buffers[access.buffer].dtype);
    block.body.each_store(&mut |store| all &= ir::added(store).is_some());
    all
}

/// Whether a reduction iterator of a block is driven by some of these loops.
pub(crate) fn reduces_over(block: &Block, is_one: impl Fn(&Name) -> bool) -> bool {
    let mut reduced = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    reduced.any(|it| it.binding.any_var(&is_one))
}

fn writes_global(access: &FuncAccess<'_>, buffers: &Buffers) -> bool {
    let is_global = |it: &&Access| buffers.get(&it.buffer).is_some_and(|it| it.scope == Scope::Global);
    access.block().is_some_and(|it| it.writes().iter().all(is_global))
}

/// A loop around one whose blocks take turns that would have them come round again, before the last one is through.
pub(crate) fn repeats<'a>(access: &'a FuncAccess<'_>, around: &Loop) -> Option<&'a Loop> {
    let outside = access.loops.iter().take_while(|it| it.var != around.var);
    let mut plain =
        outside.filter(|it| !matches!(it.kind, LoopKind::Bound(_)) && it.extent.as_int() != Some(1));
    plain.next().copied()
}

/// The loops in a statement whose blocks take turns, and the axes that they are bound to.
pub(crate) fn turning<'a>(stmt: &'a Stmt, conflicts: &CrossBlockConflicts) -> Vec<(&'a Loop, ThreadAxis)> {
    let mut out = Vec::new();
    stmt.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && let LoopKind::Bound(axis) = it.kind
            && conflicts.contains_key(&it.var)
            && it.attrs.cross_block == Some(CrossBlock::Semaphore)
        {
            out.push((&**it, axis));
        }
    });
    out
}

/// The counters of turns of a kernel: one for each loop whose blocks take turns, an element for each block of the
/// other axes.
pub(crate) fn counters(
    stmt: &Stmt,
    launch: &IndexMap<ThreadAxis, Index>,
    conflicts: &CrossBlockConflicts,
    is_taken: impl Fn(&Name) -> bool,
) -> IndexMap<Name, (Name, Buffer)> {
    let counter = |(it, axis): (&Loop, ThreadAxis)| {
        let name = Name::fresh(&format!("{}_turns", it.var), &is_taken);
        let shape = others(launch, axis).map(|it| launch[&it].clone()).collect();
        (it.var.clone(), (name, Buffer::temp(DType::I32, shape, Scope::Global)))
    };
    turning(stmt, conflicts).into_iter().map(counter).collect()
}

/// The axes of a launch whose blocks have turns of their own.
fn others(launch: &IndexMap<ThreadAxis, Index>, axis: ThreadAxis) -> impl Iterator<Item = ThreadAxis> {
    launch.keys().copied().filter(move |it| !it.is_thread() && *it != axis)
}

/// Puts a turn around what touches the buffers.
pub(crate) fn in_turn(
    mut body: Vec<Op>,
    buffers: &BTreeSet<Name>,
    counter: &Name,
    (axis, count): (ThreadAxis, &Index),
    launch: &IndexMap<ThreadAxis, Index>,
) -> Vec<Op> {
    let touches = |op: &Op| {
        let mut found = false;
        op.each_access(&mut |access, _| found |= buffers.contains(&access.buffer));
        found
    };
    let (Some(first), Some(last)) = (body.iter().position(touches), body.iter().rposition(touches)) else {
        return body;
    };
    let origin = body[first].first_origin().cloned().unwrap_or_default();
    let indices = others(launch, axis).map(|it| Index::var(&axis_var(it))).collect();
    let counter = Access::new(counter, indices);
    let turn = |kind| {
        let (counter, turn, count) = (counter.clone(), Index::var(&axis_var(axis)), count.clone());
        Op::Instr(Instr::Semaphore(Semaphore { kind, counter, turn, count }), origin.clone())
    };
    body.insert(last + 1, turn(SemaphoreKind::Release));
    body.insert(first, turn(SemaphoreKind::Acquire));
    body
}

/// ```text
/// if blockIdx_z < 1          ->   C[i] = select(blockIdx_z < 1, 0, C[i]) + T[0]
///   C[i] = 0
/// C[i] = C[i] + T[0]
/// ```
///
/// The first block then stores what it has, without a round through memory.
pub(crate) fn started(ops: Vec<Op>) -> Vec<Op> {
    if let [Op::If(first, init), Op::Instr(Instr::Store(place, Value::Binary(op, sum, term)), origin)] =
        ops.as_slice()
        && let [Op::Instr(Instr::Store(start, value), _)] = init.as_slice()
        && start == place
        && **sum == Value::Load(place.clone())
    {
        let sum = Value::Select(first.clone(), Arc::new(value.clone()), sum.clone());
        let store = Instr::Store(place.clone(), Value::binary(*op, sum, Value::clone(term)));
        return vec![Op::Instr(store, origin.clone())];
    }
    ops
}

/// The condition under which a block has the last turn.
pub(crate) fn is_last(it: &Loop, axis: ThreadAxis) -> Less {
    Less::new(&it.extent - 2, Index::var(&axis_var(axis)))
}
