//! Measures of loop nests: in what steps a block walks through memory, and when it comes back.

use std::collections::BTreeSet;

use ir::{Access, Block, Func, Index, IterKind, Loop, LoopKind, Name, Role, Scope};

/// The largest distance in elements, over all accesses of a block to a buffer, that a turn of the innermost loop makes.
pub(super) fn stride(func: &Func, block: &Name, buffer: &Name) -> Option<i64> {
    let (block, loops) = (func.find_block(block)?, func.loops_of(block)?);
    let inner = &loops.last()?.var;
    let at = |place: &Index, turn: i64| place.eval(&|it| Some(if it == inner { turn } else { 0 }));
    let step = |it: &Index| Some((at(it, 1)? - at(it, 0)?).abs());
    let steps: Option<Vec<i64>> = places(func, block, buffer)?.iter().map(step).collect();
    steps?.into_iter().max()
}

/// The bytes of a buffer that a block reads from one use of an element to the next: those that the loops inside the
/// innermost loop go through over which the place does not change.
pub(super) fn reuse(func: &Func, block: &Name, buffer: &Name) -> Option<f64> {
    let (block, loops) = (func.find_block(block)?, func.loops_of(block)?);
    let bytes = func.buffers.get(buffer)?.dtype.bytes() as f64;
    let mut most: Option<f64> = None;
    for place in places(func, block, buffer)? {
        let vars: BTreeSet<Name> = place.vars();
        let again = loops.iter().rposition(|it| !vars.contains(&it.var) && it.extent.as_int() != Some(1));
        let inside = &loops[again.map_or(0, |it| it + 1)..];
        let elements: Option<f64> = inside
            .iter()
            .filter(|it| vars.contains(&it.var))
            .map(|it| it.extent.as_int().map(|it| it as f64))
            .product();
        most = Some(most.unwrap_or(0.0).max(bytes * elements?));
    }
    most
}

/// How often a block computes for each element that it reads, in one turn of the innermost loop that it reduces over. What
/// it reads several times in a turn counts once: it can stay in a register.
pub(super) fn intensity(func: &Func, block: &Name) -> Option<f64> {
    let (block, loops) = (func.find_block(block)?, func.loops_of(block)?);
    let reduced: BTreeSet<Name> = block
        .iters
        .iter()
        .filter(|it| it.kind == IterKind::Reduce)
        .flat_map(|it| it.binding.vars())
        .collect();
    let turn = loops.iter().rposition(|it| reduced.contains(&it.var))?;
    let extents = |of: &dyn Fn(&Name) -> bool| -> Option<f64> {
        let inside = loops[turn + 1..].iter().filter(|it| of(&it.var));
        inside.map(|it| it.extent.as_int().map(|it| it as f64)).product()
    };
    let written: BTreeSet<&Name> = block.writes().iter().map(|it| &it.buffer).collect();
    let read: BTreeSet<&Name> = block.reads().iter().map(|it| &it.buffer).collect();
    let mut elements = 0.0;
    for buffer in read.difference(&written) {
        let vars: BTreeSet<Name> = places(func, block, buffer)?.iter().flat_map(Index::vars).collect();
        elements += extents(&|it| vars.contains(it))?;
    }
    (elements > 0.0).then_some(extents(&|_| true)? / elements)
}

/// The lanes of the narrowest vectors that write a buffer.
pub(super) fn lanes(func: &Func, buffer: &Name) -> Option<f64> {
    let lanes = |it: &&Block| -> Option<i64> {
        let loops = func.loops_of(&it.name)?;
        loops.iter().filter(|it| it.kind == LoopKind::Vectorized).map(|it| it.extent.as_int()).product()
    };
    let all: Option<Vec<i64>> = func.writers(buffer).iter().map(lanes).collect();
    all?.into_iter().min().map(|it| it as f64)
}

/// Temporaries of a scope that are filled from a buffer within a loop that is also around their reader.
pub(super) fn copies(func: &Func, buffer: &Name, scope: Scope) -> usize {
    let is_copied = |temp: &Name| {
        let writers = func.writers(temp);
        let from = writers.iter().filter(|it| it.reads().iter().any(|it| it.buffer == *buffer));
        from.into_iter()
            .any(|writer| func.readers(temp).iter().any(|it| share_a_loop(func, &writer.name, &it.name)))
    };
    let temps = func.buffers.iter().filter(|(_, it)| it.role == Role::Temp && it.scope == scope);
    temps.filter(|(name, _)| is_copied(name)).count()
}

fn share_a_loop(func: &Func, one: &Name, other: &Name) -> bool {
    let outer = |it: &Name| -> Option<Name> { Some(func.loops_of(it)?.first()?.var.clone()) };
    let serial = |it: &&Loop| !matches!(it.kind, LoopKind::Bound(_));
    let (Some(ours), Some(theirs)) = (func.loops_of(one), func.loops_of(other)) else { return false };
    let shared = ours.iter().zip(&theirs).take_while(|(a, b)| a.var == b.var).map(|it| *it.0);
    outer(one) == outer(other) && shared.filter(|it| serial(it)).count() > 0
}

/// Where a block accesses a buffer, in elements from its beginning, over the loops around the block. `None` if it does not.
fn places(func: &Func, block: &Block, buffer: &Name) -> Option<Vec<Index>> {
    let shape = &func.buffers.get(buffer)?.shape;
    let flat = |access: &Access| {
        let parts = access.indices.iter().zip(shape);
        let place = parts.fold(Index::int(0), |sum, (index, size)| &(&sum * size) + index);
        place.subst(&|name| block.find_iter(name).map(|it| it.binding.clone()))
    };
    let all = block.reads().into_iter().chain(block.writes()).filter(|it| it.buffer == *buffer);
    let all: Vec<Index> = all.map(flat).collect();
    (!all.is_empty()).then_some(all)
}
