//! Whether a block runs once for each of its points.
//!
//! Workloads and primitives make blocks that do, but the text of a program may say otherwise: iterators that skip values
//! (`v = k*2`), that have one value in several iterations (`v = k floordiv 2`), or guards that leave values out. A step that
//! makes loops of its own for a block, one an iterator, then runs it for other points, or another number of times.

use ir::{
    Access, Block, Func, Index, Iter, IterKind, Less, Loop, Name,
    access::{AccessRelation, Conflict, Iteration, covers},
    region::{self, Nest, Range, filled},
};

use super::{
    affine::{is_spatial, tells_apart},
    independent::accumulates,
};
use crate::{BlockError, ScheduleError};

/// Whether the iterators for which `counts` holds are digits that determine the value of loop `var` while the outermost
/// `fixed` loops around the block stand still: what several of their iterations do alike is then no matter.
///
/// In whatever order loops with such digits run, a point whose reduction iterators are zero comes before those that differ
/// from it in these alone.
pub(crate) fn are_digits_in_one(
    nest: &Nest<'_>,
    var: &Name,
    fixed: usize,
    counts: &dyn Fn(&Iter) -> bool,
) -> bool {
    let (block, bounds) = (nest.block, nest.bounds());
    if tells_apart(block, var, bounds, counts) {
        return true;
    }
    let varies = |name: &Name| nest.loops[fixed..].iter().any(|it| it.var == *name);
    let without = |iter: &Iter| Iter { binding: bounds.split(&iter.binding, &varies).1, ..iter.clone() };
    let inner = Block { iters: block.iters.iter().map(without).collect(), ..block.clone() };
    tells_apart(&inner, var, bounds, counts)
}

/// Whether the solver finds no two iterations of loop `var` with the same values of those iterators, while the outermost
/// `fixed` loops stand still.
pub(crate) fn never_alike(
    func: &Func,
    nest: &Nest<'_>,
    var: &Name,
    fixed: usize,
    counts: &dyn Fn(&Iter) -> bool,
) -> bool {
    let bindings = nest.block.iters.iter().filter(|it| counts(it)).map(|it| it.binding.clone());
    let place = nest.relation(bindings.collect());
    let when = |name: &Name| Iteration::same_if(nest.loops[..fixed].iter().any(|it| it.var == *name));
    Conflict { first: &place, second: &place, dims: &func.dims, when: &when }.has_same(var)
}

/// Under how many of the loops around a block its reductions start anew ([`region::starts_anew`]): none if that is not clear.
pub(crate) fn starts_anew(nest: &Nest<'_>) -> usize {
    region::starts_anew(nest).unwrap_or(0)
}

/// Whether a block has an init, and its first iteration of the loops that it reduces over runs it.
fn starts(nest: &Nest<'_>) -> bool {
    let block = nest.block;
    let reduced =
        |name: &Name| nest.loops.iter().any(|it| it.var == *name && drives(block, it, IterKind::Reduce));
    let first = |name: &Name| reduced(name).then(|| Index::int(0));
    let mut reductions = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    let is_whole = |guard: &Less| {
        let first = guard.subst(&first);
        first == *guard || nest.bounds().prove(&first) == Some(true)
    };
    block.init.is_some()
        && reductions.all(|it| nest.bounds().simplify(&it.binding.subst(&first)).as_int() == Some(0))
        && block.guards.iter().all(is_whole)
}

fn drives(block: &Block, it: &Loop, kind: IterKind) -> bool {
    let mut iters = block.iters.iter().filter(|iter| iter.kind == kind);
    iters.any(|iter| iter.binding.any_var(&|name| *name == it.var))
}

fn is_mixed(block: &Block, it: &Loop) -> bool {
    drives(block, it, IterKind::Reduce) && drives(block, it, IterKind::Spatial)
}

/// Refuses a block that reduces or updates, and runs some of its points twice before it starts anew.
pub(crate) fn expect_no_point_twice(func: &Func, block: &Block) -> Result<(), ScheduleError> {
    if !accumulates(block)? {
        return Ok(());
    }
    let nest = Nest::of(func, block);
    expect_told_apart(func, &nest, starts_anew(&nest))
}

/// Refuses a block that does not tell the loops inside the outermost `fixed` ones apart.
pub(crate) fn expect_told_apart(func: &Func, nest: &Nest<'_>, fixed: usize) -> Result<(), ScheduleError> {
    // Where loops drive both kinds, their digits say as well that the init comes first.
    let in_order = nest.block.init.is_none() || !nest.loops.iter().any(|it| is_mixed(nest.block, it));
    let tells_apart = |var: &Name, level: usize| {
        are_digits_in_one(nest, var, fixed, &|_| true)
            || is_spatial(nest.block, var, nest.bounds())
            // Two iterations differ first in some loop.
            || in_order && never_alike(func, nest, var, level, &|_| true)
    };
    let repeats =
        |(level, it): &(usize, &&Loop)| it.extent.as_int() != Some(1) && !tells_apart(&it.var, *level);
    match nest.loops.iter().enumerate().skip(fixed).find(repeats) {
        Some((_, it)) => {
            Err(ScheduleError::NotAffine { name: it.var.clone(), block: nest.block.name.clone() })
        }
        None => Ok(()),
    }
}

/// Refuses a reduction that may never come to its init.
pub(crate) fn expect_start(func: &Func, block: &Block) -> Result<(), BlockError> {
    if starts(&Nest::of(func, block)) {
        return Ok(());
    }
    Err(BlockError::PartOfDomain { block: block.name.clone() })
}

/// Refuses a block that, where it runs at all, leaves out values of its reduction iterators.
pub(crate) fn expect_all_terms(func: &Func, block: &Block) -> Result<(), BlockError> {
    let nest = Nest::of(func, block);
    let reduces = |it: &Iter| it.kind == IterKind::Reduce;
    let moves = |it: &Loop, iter: &Iter| iter.binding.any_var(&|name| *name == it.var);
    let mixed = nest.loops.iter().any(|it| is_mixed(block, it));
    let iters: Vec<&Iter> = block.iters.iter().filter(|it| mixed || reduces(it)).collect();
    let inner = nest.loops.iter().copied().filter(|it| iters.iter().any(|iter| moves(it, iter)));
    let points = Points { func, nest: &nest, inner: inner.collect(), iters, known: &block.guards };
    points.expect_all(&reduces)
}

/// Refuses a block that leaves out values of its iterators.
pub(crate) fn expect_all_points(func: &Func, block: &Block) -> Result<(), BlockError> {
    let nest = Nest::of(func, block);
    let (inner, iters) = (nest.loops.clone(), block.iters.iter().collect());
    Points { func, nest: &nest, inner, iters, known: &[] }.expect_all(&|_| true)
}

/// Whether it changes nothing if a block runs for more of the values of its iterators: it alone writes what it writes, each
/// element at one of its points. What it did not write, nothing reads; and of an output it wrote everything.
pub(crate) fn may_run_more(func: &Func, block: &Block) -> Result<bool, ScheduleError> {
    let tells = |access: &Access| {
        let found = |iter: &Iter| access.indices.iter().any(|it| it.as_var() == Some(&iter.var));
        block.iters.iter().all(|iter| iter.extent.as_int() == Some(1) || found(iter))
    };
    let alone = |access: &&Access| func.writers(&access.buffer).len() == 1 && tells(access);
    Ok(!accumulates(block)? && block.writes().iter().all(alone))
}

/// The points of some iterators of a block that some loops run through.
struct Points<'a> {
    func: &'a Func,
    nest: &'a Nest<'a>,
    inner: Vec<&'a Loop>,
    iters: Vec<&'a Iter>,
    /// Guards that hold as far as they are not about the loops.
    known: &'a [Less],
}

impl Points<'_> {
    /// Refuses where iterators for which `counts` holds do not have all values whatever those of the others are.
    fn expect_all(&self, counts: &dyn Fn(&Iter) -> bool) -> Result<(), BlockError> {
        if self.is_box(counts) || self.none_is_missed(counts) {
            return Ok(());
        }
        Err(BlockError::PartOfDomain { block: self.nest.block.name.clone() })
    }

    fn is_box(&self, counts: &dyn Fn(&Iter) -> bool) -> bool {
        let (bounds, guards) = (self.nest.bounds(), &self.nest.block.guards);
        let runs = |it: &&Loop| bounds.prove(&Less::new(Index::int(0), it.extent.clone())) == Some(true);
        let is_inner = |name: &Name| self.inner.iter().any(|it| it.var == *name);
        let bindings: Vec<Index> = self.iters.iter().map(|it| it.binding.clone()).collect();
        let shape: Vec<Index> = self.iters.iter().map(|it| it.extent.clone()).collect();
        let Some(filled) = filled(&bindings, guards, self.known, &shape, bounds, &is_inner) else {
            return false;
        };
        let mut dims = self.iters.iter().zip(filled);
        self.inner.iter().all(runs)
            && dims.all(|(iter, range)| {
                let (whole, size) = (Range::new(Index::int(0), iter.extent.clone()), &iter.extent);
                !counts(iter)
                    || region::covers(&vec![range], &vec![whole], std::slice::from_ref(size), bounds)
            })
    }

    /// Whether the solver finds no value that is left out.
    fn none_is_missed(&self, counts: &dyn Fn(&Iter) -> bool) -> bool {
        // No program has a name with a dot.
        let values: Vec<Name> = (0..self.iters.len()).map(|n| Name::new(format!("value.{n}"))).collect();
        let write = self.nest.relation(self.iters.iter().map(|it| it.binding.clone()).collect());
        let is_inner = |name: &Name| self.inner.iter().any(|it| it.var == *name);
        let outer = write.vars.iter().filter(|it| !is_inner(&it.0)).cloned();
        let all = values.iter().cloned().zip(self.iters.iter().map(|it| it.extent.clone()));
        let known = self.known.iter().filter(|it| !it.lhs.any_var(&is_inner) && !it.rhs.any_var(&is_inner));
        let every = AccessRelation {
            indices: values.iter().map(Index::var).collect(),
            vars: outer.chain(all).collect(),
            conditions: known.cloned().collect(),
        };
        let shape: Vec<_> = self.iters.iter().map(|it| it.extent.clone()).collect();
        self.iters.iter().all(|it| counts(it))
            && covers(&self.func.dims, &shape, &write, &every, &|name| !is_inner(name))
    }
}
