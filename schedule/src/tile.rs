//! Blocks of tiles: a block whose body holds the loops over the elements of one tile, and whose iterators count tiles.
//!
//! `blockize` makes one of the loops around a block, and `tensorize` begins with one. What is known afterwards: the
//! iterator `v` of a tile of `T` elements appears in the body as `v*T + x`, where `x` is a sum of loops of the body
//! that takes each value of `0..T` exactly once.

use ir::{
    Block, Func, Index, Iter, IterKind, Loop, LoopKind, Name, Stmt,
    arith::Bounds,
    region::{Range, Step, bounds_of},
};

use crate::{ScheduleError, ScheduleState, TileError, check::independent::accumulates, state::kind_word};

/// The block that a loop and the loops in it, a chain around one block, come to be: they move into its body, and its
/// iterators count tiles.
///
/// An iterator `outer + x`, where the loops that move make `x` run through `0..T`, becomes `outer floordiv T` and is
/// replaced by `v*T + x` in the body. The init gets loops of its own, named `{loop}_init`, of those that move
/// iterators that are not reduced over.
pub(crate) fn blockized(state: &ScheduleState, target: &Name) -> Result<Block, ScheduleError> {
    let path = state.expect_path(target)?;
    let at = path.len() - 1;
    let (inner, block) = chain(path[at])?;
    let func = &state.func;
    if block.init.is_some() {
        accumulates(block)?;
    }
    let around: Vec<&Loop> = path[..at].iter().chain(&inner).copied().collect();
    let bounds = bounds_of(func, &around);
    expect_plain(block, &inner)?;
    for it in &inner {
        if it.extent.as_int().is_none() {
            return Err(ScheduleError::UnknownExtent { name: it.var.clone() });
        }
    }

    let is_inner = |name: &Name| inner.iter().any(|it| it.var == *name);
    let tiles = block.iters.iter().map(|iter| Tile::of(block, iter, target, &bounds, &is_inner));
    let tiles = tiles.collect::<Result<Vec<_>, _>>()?;
    for it in &inner {
        let users = tiles.iter().filter(|tile| tile.inside.any_var(&|var| *var == it.var)).count();
        if users != 1 && it.extent.as_int() != Some(1) {
            return Err(ScheduleError::NotAffine { name: it.var.clone(), block: block.name.clone() });
        }
    }
    Ok(assembled(func, block, &inner, &tiles, &bounds))
}

/// The loops from `outer` down to the one block in them.
fn chain(outer: &Loop) -> Result<(Vec<&Loop>, &Block), TileError> {
    let mut loops = vec![outer];
    let mut stmt = &outer.body;
    loop {
        match stmt {
            Stmt::Loop(it) => {
                loops.push(it);
                stmt = &it.body;
            }
            Stmt::Block(it) => return Ok((loops, it)),
            Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {
                let loop_name = loops[loops.len() - 1].var.clone();
                return Err(TileError::NotOneBlock { loop_name });
            }
        }
    }
}

/// The loops can stand in a block, and no guard of the block is about them.
fn expect_plain(block: &Block, inner: &[&Loop]) -> Result<(), TileError> {
    for it in inner {
        let kind = match it.kind {
            LoopKind::Serial | LoopKind::Unrolled if it.attrs.is_empty() => continue,
            LoopKind::Serial | LoopKind::Unrolled => "annotated",
            kind @ (LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Bound(_)) => kind_word(kind),
        };
        return Err(TileError::MarkedInside { block: block.name.clone(), loop_name: it.var.clone(), kind });
    }
    for guard in &block.guards {
        let about = |it: &&&Loop| {
            let is_it = |name: &Name| *name == it.var;
            guard.lhs.any_var(&is_it) || guard.rhs.any_var(&is_it)
        };
        if let Some(it) = inner.iter().find(about) {
            let (block, loop_name) = (block.name.clone(), it.var.clone());
            let guard = format!("{} < {}", guard.lhs, guard.rhs);
            return Err(TileError::GuardInside { block, loop_name, guard });
        }
    }
    Ok(())
}

/// An iterator as a count of tiles and a place in its tile.
struct Tile {
    /// The iterator that counts tiles.
    iter: Iter,
    /// How many elements a tile has.
    size: i64,
    /// The place in it, over the loops that move.
    inside: Index,
}

impl Tile {
    fn of(
        block: &Block,
        iter: &Iter,
        target: &Name,
        bounds: &Bounds,
        is_inner: &dyn Fn(&Name) -> bool,
    ) -> Result<Tile, TileError> {
        let (outer, inside) = bounds.split(&iter.binding, is_inner);
        let inside = bounds.simplify(&inside);
        let Some(size) = radix(&inside, bounds) else {
            return Err(TileError::NotATile {
                block: block.name.clone(),
                iter: iter.var.clone(),
                binding: iter.binding.clone(),
                loop_name: target.clone(),
            });
        };
        if size == 1 {
            // Loops of one iteration are at zero.
            let binding = iter.binding.subst(&|name| is_inner(name).then(|| Index::int(0)));
            return Ok(Tile { iter: Iter { binding, ..iter.clone() }, size, inside });
        }
        let by = Index::int(size);
        let whole = |what, of: &Index| {
            let (block, iter) = (block.name.clone(), iter.var.clone());
            let error = || TileError::NotWhole { block, iter, tile: size, what, of: of.clone() };
            if bounds.divides(size, of) { Ok(bounds.simplify(&of.floor_div(&by))) } else { Err(error()) }
        };
        let extent = whole("the extent", &iter.extent)?;
        let binding = whole("the start", &outer)?;
        Ok(Tile { iter: Iter { extent, binding, ..iter.clone() }, size, inside })
    }

    /// What stands for the iterator in the body.
    fn value(&self) -> Option<Index> {
        (self.size > 1).then(|| Index::var(&self.iter.var) * self.size + self.inside.clone())
    }
}

/// How many values a sum of loop variables takes, if these are the numbers from 0 on, each exactly once: a number
/// written in mixed radix, such as `x*8 + y` with `y < 8`.
fn radix(index: &Index, bounds: &Bounds) -> Option<i64> {
    let mut digits = Vec::new();
    let mut rest = index.clone();
    for var in index.vars() {
        let (scale, other) = bounds.linear_in(&rest, &var)?;
        digits.push((scale, bounds.extent(&var)?.as_int()?));
        rest = other;
    }
    if rest.as_int() != Some(0) {
        return None;
    }
    digits.sort_unstable();
    let next = |reached: i64, (scale, extent): (i64, i64)| {
        (scale == reached).then(|| reached.checked_mul(extent)).flatten()
    };
    digits.into_iter().try_fold(1, next)
}

fn assembled(func: &Func, block: &Block, inner: &[&Loop], tiles: &[Tile], bounds: &Bounds) -> Block {
    let value = |name: &Name| tiles.iter().find(|it| it.iter.var == *name).and_then(Tile::value);
    let mut inside = bounds.clone();
    for Tile { iter, .. } in tiles {
        inside.insert(&iter.var, &iter.extent);
    }
    let wrapped = |stmt: &Stmt, loops: &[(&Loop, Name)]| {
        let renamed = |name: &Name| loops.iter().find(|it| it.0.var == *name).map(|it| Index::var(&it.1));
        let mut inside = inside.clone();
        for (it, name) in loops {
            inside.insert(name, &it.extent);
        }
        let moved = |index: &Index| index.any_var(&|var| value(var).is_some());
        let body = stmt.map_indices(&mut |index| {
            if moved(index) { inside.simplify(&index.subst(&value).subst(&renamed)) } else { index.clone() }
        });
        let loops = loops.iter().rev();
        loops.fold(body, |body, (it, name)| Stmt::serial(name, it.extent.clone(), body))
    };
    let kept: Vec<(&Loop, Name)> = inner.iter().map(|it| (*it, it.var.clone())).collect();
    let init = block.init.as_ref().map(|init| wrapped(init, &spatial_loops(func, inner, tiles)));
    Block {
        iters: tiles.iter().map(|it| it.iter.clone()).collect(),
        init,
        body: wrapped(&block.body, &kept),
        ..block.clone()
    }
}

/// The loops that no reduction iterator uses, with their names in an init.
fn spatial_loops<'a>(func: &Func, inner: &[&'a Loop], tiles: &[Tile]) -> Vec<(&'a Loop, Name)> {
    let mut out: Vec<(&Loop, Name)> = Vec::new();
    for it in inner {
        let mut spatial = tiles.iter().filter(|tile| tile.iter.kind == IterKind::Spatial);
        if spatial.any(|tile| tile.inside.any_var(&|var| *var == it.var)) {
            let taken = |name: &Name| func.is_taken(name) || out.iter().any(|(_, other)| other == name);
            let name = Name::nth(&format!("{}_init", it.var), taken);
            out.push((it, name));
        }
    }
    out
}

/// The range of an iterator whose tiles together make up a range of a dimension, where the dimension is indexed by
/// that iterator, or by `iter*T + x` with `x` within `0..T`. `None` where that is not so, or the range begins or ends
/// within a tile.
pub(crate) fn range_of_tiles(
    block: &Block,
    iter: &Name,
    index: &Index,
    range: &Range,
    bounds: &Bounds,
) -> Option<Range> {
    if index.as_var() == Some(iter) {
        return Some(range.clone());
    }
    let mut inside = bounds.clone();
    block.iters.iter().for_each(|it| inside.insert(&it.var, &it.extent));
    for stmt in block.init.iter().chain([&block.body]) {
        stmt.walk(&mut |stmt| {
            if let Stmt::Loop(it) = stmt {
                inside.insert(&it.var, &it.extent);
            }
        });
    }
    let (size, rest) = inside.linear_in(index, iter)?;
    let of_block = |name: &Name| block.find_iter(name).is_some();
    let fits = matches!(inside.interval(&rest), (Some(0..), Some(most)) if most < size);
    if size < 1 || rest.any_var(&of_block) || !fits || !bounds.divides(size, &range.min) {
        return None;
    }
    let by = Index::int(size);
    let min = bounds.simplify(&range.min.floor_div(&by));
    let extent = bounds.simplify(&range.extent.ceil_div(&by));
    Some(Range { min, extent, steps: steps_of_tiles(&range.steps, size)? })
}

/// Steps in units of tiles, where each step is over whole tiles.
fn steps_of_tiles(steps: &[Step], size: i64) -> Option<Vec<Step>> {
    let mut out = Vec::new();
    for step in steps {
        match step {
            Step { stride, count } if stride % size == 0 => {
                out.push(Step { stride: stride / size, count: *count });
            }
            Step { stride: 1, count } if count % size == 0 => {
                out.push(Step { stride: 1, count: count / size });
            }
            Step { .. } => return None,
        }
    }
    out.retain(|it| it.count > 1);
    Some(if matches!(out.as_slice(), [Step { stride: 1, .. }]) { vec![] } else { out })
}
