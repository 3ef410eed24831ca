//! Region cover: whether what a block reads has been written in the same iteration.

use std::collections::BTreeSet;

use super::{Nest, Way, at_loops, covers, digits, fill::fills, parted, range_of, steps, union};
use crate::{
    Block, Func, Index, IndexKind, Less, Name, Stmt,
    arith::{Bounds, sum::Sum},
};

/// A read that its writers have not provided for: what [`uncovered`] finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uncovered {
    /// The block that reads.
    pub reader: Name,
    /// The block that writes too little, or too late.
    pub writer: Name,
    /// The buffer between them.
    pub buffer: Name,
}

/// Looks for a block that reads, in an iteration of the loops it shares with the writer, what the writer has not
/// written in that iteration: TVM's *region cover*. Several writers are taken together.
///
/// This is what makes moving a block under a loop safe: data never has to survive from another iteration. A buffer that
/// is used as in a program `before` of which this is known is not asked about.
pub fn uncovered(func: &Func, before: &Func) -> Option<Uncovered> {
    let (nests, old) = (Nest::all(func), Nest::all(before));
    for (buffer, info) in &func.buffers {
        if is_used_alike(&nests, &old, buffer) {
            continue;
        }
        let writers: Vec<&Nest<'_>> = nests.iter().filter(|it| it.reaches(buffer, Way::Write)).collect();
        let readers =
            nests.iter().filter(|it| it.reaches(buffer, Way::Read) && !it.reaches(buffer, Way::Write));
        for reader in readers {
            let exact = |it: &&&Nest<'_>| writes_box(it, reader.block, buffer, it.shared_loops(reader));
            let writer = writers.iter().find(|it| !exact(it)).or_else(|| {
                let written =
                    writers.iter().map(|it| it.touched_in_one(buffer, it.shared_loops(reader), Way::Write));
                let written = written.reduce(|a, b| union(&a, &b, &info.shape, reader.bounds()))?;
                let covered = |writer: &&&Nest<'_>| {
                    let read = reader.touched_in_one(buffer, reader.shared_loops(writer), Way::Read);
                    covers(&written, &read, &info.shape, reader.bounds())
                };
                writers.iter().find(|it| !covered(it))
            });
            let earlier = nests.iter().take_while(|it| it.block.name != reader.block.name);
            let mut earlier = earlier.filter(|it| it.reaches(buffer, Way::Write));
            if let Some(writer) = writer
                && !earlier.any(|it| fills(it, reader, buffer))
            {
                let (reader, writer) = (reader.block.name.clone(), writer.block.name.clone());
                return Some(Uncovered { reader, writer, buffer: buffer.clone() });
            }
        }
    }
    None
}

/// Whether the blocks that use a buffer are those that did, in the same order, each touching the same elements in the
/// same runs. Loops go by their names, so that the same are around several of them.
fn is_used_alike(nests: &[Nest<'_>], before: &[Nest<'_>], buffer: &Name) -> bool {
    let (mut now, mut then) =
        (nests.iter().filter(|it| it.uses(buffer)), before.iter().filter(|it| it.uses(buffer)));
    loop {
        match (now.next(), then.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a.block.name == b.block.name && a.uses_alike(b, buffer) => {}
            _ => return false,
        }
    }
}

/// Whether what a writer touches in one iteration of its outermost `fixed` loops is its whole box, as far as the
/// box exists in the buffer and the reader, under the same loops, runs at all.
///
/// A subscript that mixes fixed and inner loops must be a sum whose inner part runs through a regular set,
/// independently of the others. A subscript of inner loops alone is taken as the whole of what the workload
/// writes: primitives keep the values that a block's iterators run through.
pub fn writes_box(nest: &Nest<'_>, reader: &Block, buffer: &Name, fixed: usize) -> bool {
    let Nest { block: writer, loops, .. } = nest;
    let bounds = nest.bounds();
    let is_inner = |var: &Name| loops.iter().skip(fixed).any(|it| it.var == *var) || nest.is_inside(var);
    let is_fixed = |var: &Name| loops.iter().any(|it| it.var == *var) && !is_inner(var);
    let mixes = |it: &Sum| it.any_var(&is_fixed) && it.any_var(&is_inner);
    let is_regular = |dims: &[Sum]| {
        if !dims.iter().any(mixes) {
            return true;
        }
        let inner: Vec<Sum> = dims.iter().map(|it| parted(it, &is_inner).0).collect();
        let each = dims.iter().zip(&inner).all(|(it, inner)| !mixes(it) || steps(inner, bounds).is_some());
        each && (digits::of_sums_are_independent(inner, bounds) || !shares_inner(dims, &mixes, &is_inner))
    };
    let shape = nest.shape(buffer);
    let is_harmless = |guard: &Less, dims: &[Index]| {
        let shared =
            reader.guards.contains(guard) && !guard.lhs.any_var(&is_inner) && !guard.rhs.any_var(&is_inner);
        shared || is_accounted_for(guard, dims, shape, bounds, &is_inner)
    };
    let mut accesses = nest.normal_to(buffer, Way::Write);
    runs(nest, fixed)
        && accesses.all(|(access, dims)| {
            let subscripts = || at_loops(writer, access);
            is_regular(dims)
                && (writer.guards.is_empty() || writer.guards.iter().all(|it| is_harmless(it, &subscripts())))
        })
}

/// Whether every loop inside the outermost `fixed` ones is known to run, those in the block's body too.
pub fn runs(nest: &Nest<'_>, fixed: usize) -> bool {
    let runs = |extent: &Index, loops: usize| {
        let some = Less::new(Index::int(0), extent.clone());
        extent.as_int().is_some_and(|it| it > 0) || nest.bounds_outside(loops).prove(&some) == Some(true)
    };
    let binding = |name: &Name| nest.block.find_iter(name).map(|it| it.binding.clone());
    let mut all = (fixed..nest.loops.len()).all(|at| runs(&nest.loops[at].extent, at));
    nest.block.body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt {
            all &= runs(&it.extent.subst(&binding), nest.loops.len());
        }
    });
    all
}

/// Whether a mixed subscript has an inner variable that another subscript has too.
fn shares_inner(dims: &[Sum], mixes: &dyn Fn(&Sum) -> bool, is_inner: &dyn Fn(&Name) -> bool) -> bool {
    let elsewhere = |n: usize, var: &Name| {
        dims.iter().enumerate().any(|(m, other)| m != n && other.any_var(&|it| it == var))
    };
    let mut both = dims.iter().enumerate().filter(|(_, it)| mixes(it));
    both.any(|(n, it)| it.any_var(&|var| is_inner(var) && elsewhere(n, var)))
}

/// Whether a guard keeps out nothing that is in the box of these subscripts and exists in the buffer.
fn is_accounted_for(
    guard: &Less,
    dims: &[Index],
    shape: &[Index],
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> bool {
    // The range of a subscript ends where the guard says.
    let clips = |it: &Index, size: &Index| {
        let range = |guards: &[Less]| range_of(it, guards, size, bounds, is_inner);
        range(std::slice::from_ref(guard)) != range(&[])
    };
    // It is about inner loops that move no subscript, and lets their first iteration through.
    let first = |var: &Name| is_inner(var).then(|| Index::int(0));
    let uses = |var: &Name| guard.lhs.any_var(&|it| it == var) || guard.rhs.any_var(&|it| it == var);
    let fixed = |it: &Index| it.any_var(&|var| !is_inner(var) && bounds.extent(var).is_some());
    let elsewhere = !fixed(&guard.lhs) && !fixed(&guard.rhs) && !dims.iter().any(|it| it.any_var(&uses));
    let elsewhere = elsewhere && bounds.prove(&guard.subst(&first)) == Some(true);
    let mut pairs = dims.iter().zip(shape);
    elsewhere || fails_outside(guard, dims, shape, bounds) || pairs.any(|(it, size)| clips(it, size))
}

/// Whether a subscript is outside the buffer wherever the guard fails.
///
/// A guard that is about whole tiles fails by whole tiles: where `128*x < m` does not hold, `x` is at least
/// `ceil(m / 128)`, and with it the subscript past a buffer of so many tiles.
pub fn fails_outside(guard: &Less, dims: &[Index], shape: &[Index], bounds: &Bounds) -> bool {
    let mut failing = bounds.clone();
    failing.assume(&Less::new(guard.rhs.clone(), &guard.lhs + 1));
    for by in shape.iter().flat_map(divisors).collect::<BTreeSet<_>>() {
        if bounds.divides(by, &guard.lhs) {
            let by = Index::int(by);
            let least = bounds.simplify(&guard.rhs.ceil_div(&by));
            failing.assume(&Less::new(least, bounds.simplify(&guard.lhs.floor_div(&by)) + 1));
        }
    }
    let outside = |it: &Index, size: &Index| {
        failing.at_most(size, it) || failing.prove(&Less::new(it.clone(), Index::int(0))) == Some(true)
    };
    dims.iter().zip(shape).any(|(it, size)| outside(it, size))
}

/// The constants by which an index divides.
fn divisors(index: &Index) -> Vec<i64> {
    match index.kind() {
        IndexKind::FloorDiv(a, by) => {
            divisors(a).into_iter().chain(by.as_int().filter(|it| *it > 1)).collect()
        }
        IndexKind::Add(a, b) | IndexKind::Mul(a, b) => [divisors(a), divisors(b)].concat(),
        IndexKind::Int(_)
        | IndexKind::Var(_)
        | IndexKind::FloorMod(..)
        | IndexKind::Min(..)
        | IndexKind::Max(..)
        | IndexKind::Xor(..)
        | IndexKind::Element(..) => vec![],
    }
}
