//! Regions: which box of a buffer a block touches while some of the loops around it run.
//!
//! The loops whose iterations are taken together are called *inner*; the others are fixed and may appear in the
//! answer. A region is exact for sums of loop variables, steps included, and an over-approximation otherwise, never
//! smaller than what is touched; elements that a guard of the block keeps out may be inside.

mod cover;
mod digits;
mod fill;
mod limit;
mod nest;
mod start;
#[cfg(test)]
mod tests;

pub use cover::{Uncovered, fails_outside, runs, uncovered, writes_box};
pub use fill::{Write, any_covers, filled};
pub use limit::limit;
pub use nest::Nest;
pub use start::{reads_own_places, starts_anew};

use crate::{
    Access, Block, Buffer, Func, Index, IndexKind, Less, Loop, LoopKind, Name, Scope,
    arith::{Bounds, sum::Sum},
};

/// One dimension of a box: the elements from `min` on, `extent` of them, or those of them at regular steps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Range {
    /// The first element, over fixed loop variables and dimensions. May lie before the buffer (padding).
    pub min: Index,
    /// How far it is from the first element to the one after the last.
    pub extent: Index,
    /// Where only some of these elements are meant: the elements `min + Σ stride·x` with `0 <= x < count`, largest
    /// stride first, each stride more than all smaller steps together reach. Empty if all are meant.
    ///
    /// A thread that owns rows `ty`, `ty + 16`, `ty + 32`, … has one step of stride 16.
    pub steps: Vec<Step>,
}

/// `count` elements, each `stride` after the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the sentence above names them")]
pub struct Step {
    pub stride: i64,
    pub count: i64,
}

impl Range {
    /// All of `extent` elements from `min` on.
    pub fn new(min: Index, extent: Index) -> Range {
        Range { min, extent, steps: vec![] }
    }

    /// How many elements are meant.
    pub fn count(&self) -> Index {
        match self.steps.as_slice() {
            [] => self.extent.clone(),
            steps => Index::int(steps.iter().map(|it| it.count).product()),
        }
    }

    /// The number of an element among those meant, from 0: what packing them densely makes of a subscript.
    pub fn position(&self, index: &Index) -> Index {
        let mut rest = index - &self.min;
        if self.steps.is_empty() {
            return rest;
        }
        let mut dense: i64 = self.steps.iter().map(|it| it.count).product();
        let mut out = Index::int(0);
        for step in &self.steps {
            dense /= step.count;
            let stride = Index::int(step.stride);
            out = out + rest.floor_div(&stride) * dense;
            rest = rest.floor_mod(&stride);
        }
        out
    }
}

/// A box: one range for each dimension of the buffer.
pub type Region = Vec<Range>;

/// What is known of the dimensions of a function and of the variables of loops, outermost first.
pub fn bounds_of(func: &Func, loops: &[&Loop]) -> Bounds {
    let mut bounds = Bounds::of_dims(func);
    for it in loops {
        bounds.insert(&it.var, &it.extent);
    }
    bounds
}

/// Whether all iterations of a loop around a buffer's accesses count at once, wherever the loop stands: the threads
/// of a block see one shared buffer, those of a cluster its memory, and the lanes of a warp one fragment, so what matters is what all of them together
/// touch.
pub fn is_relaxed(buffer: &Buffer, it: &Loop) -> bool {
    match it.kind {
        LoopKind::Bound(axis) => buffer.scope != Scope::Global && buffer.scope.is_shared_along(axis),
        LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled => false,
    }
}

/// What a block reads or writes of a buffer in one iteration of its outermost `fixed` loops; reading a shared
/// buffer, what all threads of the block read there together.
///
/// Writes are never taken together: run serially, one iteration finds only what those before it have written.
pub fn touched_below(func: &Func, block: &Block, buffer: &Name, fixed: usize, access: Way) -> Region {
    Nest::of(func, block).touched_below(buffer, fixed, access)
}

/// Whether a block reads or writes a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the variants are the words")]
pub enum Way {
    Read,
    Write,
}

/// The subscripts of an access in a block, over the variables of the loops around the block.
pub fn at_loops(block: &Block, access: &Access) -> Vec<Index> {
    let with = |var: &Name| block.find_iter(var).map(|it| it.binding.clone());
    access.indices.iter().map(|it| it.subst(&with)).collect()
}

/// The box that contains every place of `accesses` (all to one buffer of that shape) while the `inner` loops run.
///
/// `bounds` knows all loops around the block, fixed and inner.
pub fn touched(
    block: &Block,
    accesses: &[&Access],
    shape: &[Index],
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Region {
    let normal = accesses.iter().map(|access| normal_at_loops(block, access, bounds)).collect::<Vec<_>>();
    touched_normal(block, &normal.iter().map(Vec::as_slice).collect::<Vec<_>>(), shape, bounds, is_inner)
}

/// The subscripts of [`at_loops`] in their normal form.
fn normal_at_loops(block: &Block, access: &Access, bounds: &Bounds) -> Vec<Sum> {
    at_loops(block, access).iter().map(|it| bounds.sum(it)).collect()
}

/// As [`touched`], of subscripts in their normal form.
fn touched_normal(
    block: &Block,
    accesses: &[&[Sum]],
    shape: &[Index],
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Region {
    let boxes = accesses.iter().map(|dims| {
        let dims = dims.iter().zip(shape);
        dims.map(|(it, size)| range_of_sum(it, &block.guards, size, bounds, is_inner)).collect::<Region>()
    });
    boxes.reduce(|a, b| union(&a, &b, shape, bounds)).unwrap_or_default()
}

/// The values of an index while the `inner` loops run. The whole dimension where no tighter range is found.
pub fn range_of(
    index: &Index,
    guards: &[Less],
    size: &Index,
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Range {
    range_of_sum(&bounds.sum(index), guards, size, bounds, is_inner)
}

/// The same of a normal form.
fn range_of_sum(
    index: &Sum,
    guards: &[Less],
    size: &Index,
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Range {
    if guards.is_empty() && !index.any_var(is_inner) {
        return Range::new(bounds.index(index), Index::int(1));
    }
    let whole = || Range::new(Index::int(0), size.clone());
    let (inner, outer) = parted(index, is_inner);
    let Some(Ends { low, high, is_narrowed }) = ends(&inner, bounds, is_inner) else { return whole() };
    let limit = clipped(high.clone(), &inner, guards, bounds, is_inner);
    let contiguous = |it: &Vec<Step>| matches!(it.as_slice(), [] | [Step { stride: 1, .. }]);
    let steps = steps(&inner, bounds).filter(|it| !is_narrowed && !contiguous(it)).unwrap_or_default();
    let (limit, steps) = match steps.as_slice() {
        [] => (limit, steps),
        [one] if let Some(length) = bounds.simplify(&(&limit - &low)).as_int() => {
            let count = one.count.min(length.div_euclid(one.stride) + 1).max(0);
            (&low + one.stride * (count - 1), vec![Step { count, ..*one }])
        }
        _ => (high, steps),
    };
    let extent = bounds.simplify(&(&limit - &low + 1));
    let min = match low.as_int() {
        Some(low) => outer.clone().plus_constant(low).map(|it| bounds.index(&it)),
        None => None,
    };
    let min = min.unwrap_or_else(|| bounds.simplify(&(bounds.index(&outer) + low)));
    Range { min, extent, steps }
}

/// The least and the greatest value of a sum while the inner loops run.
struct Ends {
    low: Index,
    high: Index,
    /// Whether they are nearer than all values of the sum are: `(tile + x) floordiv 4` with `x < 1` is one value, however many `tile` has.
    is_narrowed: bool,
}

/// The ends of a sum of terms with inner variables. `None` where it has none that are known.
fn ends(sum: &Sum, bounds: &Bounds, is_inner: &dyn Fn(&Name) -> bool) -> Option<Ends> {
    let symbolic = || {
        let found = extremes(&bounds.index(sum), bounds, is_inner);
        found.filter(|(low, high)| !low.any_var(is_inner) && !high.any_var(is_inner))
    };
    let (Some(low), Some(high)) = bounds.interval_of_sum(sum) else {
        return symbolic().map(|(low, high)| Ends { low, high, is_narrowed: false });
    };
    let nearer = |(low_now, high_now): &(Index, Index)| {
        let length = bounds.simplify(&(high_now - low_now)).as_int();
        length.is_some_and(|it| it < high.saturating_sub(low))
    };
    let stays = sum.any_var(&|var| !is_inner(var));
    match stays.then(symbolic).flatten().filter(nearer) {
        Some((low, high)) => Some(Ends { low, high, is_narrowed: true }),
        None => Some(Ends { low: Index::int(low), high: Index::int(high), is_narrowed: false }),
    }
}

/// The terms of a sum with an inner variable, and the others with the constant.
fn parted(sum: &Sum, is_inner: &dyn Fn(&Name) -> bool) -> (Sum, Sum) {
    sum.partition(|it| it.atoms.iter().any(|it| it.any_var(is_inner)))
}

/// The values of a sum as steps, if they are a regular set: `16*x + y` with `y < 4` is 4 out of every 16. Steps that
/// touch or overlap are merged: `min(8*x, 12) + y` with `x < 3` and `y < 8` is 20 in a row. `None` where the sum is not of that form.
fn steps(sum: &Sum, bounds: &Bounds) -> Option<Vec<Step>> {
    let mut digits = digits::of_sum(sum, bounds)?;
    if !digits::are_independent(&digits, bounds) {
        return None;
    }
    digits.sort_unstable_by_key(|it| it.step.stride);
    let mut out: Vec<Step> = Vec::with_capacity(digits.len());
    for digits::Digit { step, most, .. } in digits {
        let below: i64 = out.iter().map(|it| it.stride * (it.count - 1)).sum();
        match out.last_mut() {
            Some(last)
                if step.stride % last.stride == 0
                    && most % last.stride == 0
                    && step.stride <= last.stride * last.count =>
            {
                last.count += most / last.stride;
            }
            Some(_) if step.stride <= below => return None,
            // The last of them is shifted back, and nothing smaller fills the gaps.
            Some(_) | None if most != step.stride * (step.count - 1) => return None,
            Some(_) | None => out.push(step),
        }
    }
    out.reverse();
    Some(out)
}

/// The greatest value of `inner`, lowered where a guard over inner variables alone says so.
///
/// A tile of 12 split by 8 runs 16 iterations of which the guard lets 12 through.
fn clipped(
    high: Index,
    inner: &Sum,
    guards: &[Less],
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Index {
    if guards.is_empty() {
        return high;
    }
    let (mut high, inner) = (high, &bounds.index(inner));
    for guard in guards.iter().filter(|it| it.lhs.any_var(is_inner) && !it.rhs.any_var(is_inner)) {
        let Some(limit) = limit(guard, inner, bounds, is_inner) else { continue };
        let limit = bounds.simplify(&(limit - 1));
        let fixed = !limit.any_var(&|var| bounds.extent(var).is_some());
        if fixed && bounds.prove(&Less::new(limit.clone(), high.clone())) == Some(true) {
            high = limit;
        }
    }
    high
}

/// Symbolic least and greatest values, for extents that are not constants. `None` where the form is not monotone.
fn extremes(index: &Index, bounds: &Bounds, is_inner: &dyn Fn(&Name) -> bool) -> Option<(Index, Index)> {
    let pair = |a: &Index, b: &Index| Some((extremes(a, bounds, is_inner)?, extremes(b, bounds, is_inner)?));
    match index.kind() {
        IndexKind::Int(_) => Some((index.clone(), index.clone())),
        IndexKind::Var(name) if !is_inner(name) => Some((index.clone(), index.clone())),
        IndexKind::Var(name) => {
            let (_, last) = extremes(&(bounds.extent(name)? - 1), bounds, is_inner)?;
            Some((Index::int(0), last))
        }
        IndexKind::Add(a, b) => {
            let (a, b) = pair(a, b)?;
            Some((a.0 + b.0, a.1 + b.1))
        }
        IndexKind::Mul(a, b) => {
            let (value, factor) = if a.any_var(is_inner) { (a, b) } else { (b, a) };
            let (low, high) = extremes(value, bounds, is_inner)?;
            let (low, high) = (&low * factor, &high * factor);
            match bounds.interval(factor) {
                (Some(least), _) if least >= 0 => Some((low, high)),
                (_, Some(most)) if most <= 0 => Some((high, low)),
                _ => None,
            }
        }
        IndexKind::FloorDiv(a, b) if !b.any_var(is_inner) => {
            let (low, high) = extremes(a, bounds, is_inner)?;
            Some((low.floor_div(b), high.floor_div(b)))
        }
        IndexKind::FloorMod(_, b) if !b.any_var(is_inner) => Some((Index::int(0), b - 1)),
        IndexKind::Xor(a, b) if !a.any_var(is_inner) && !b.any_var(is_inner) => {
            Some((index.clone(), index.clone()))
        }
        IndexKind::FloorDiv(..) | IndexKind::FloorMod(..) | IndexKind::Xor(..) => None,
        // A region begins nowhere that data decide.
        IndexKind::Element(_, _, below) => {
            let (_, high) = extremes(below, bounds, is_inner)?;
            Some((Index::int(0), high - 1))
        }
        IndexKind::Min(a, b) => pair(a, b).map(|(a, b)| (a.0.minimum(&b.0), a.1.minimum(&b.1))),
        IndexKind::Max(a, b) => pair(a, b).map(|(a, b)| (a.0.maximum(&b.0), a.1.maximum(&b.1))),
    }
}

/// The least box that contains both, or whole dimensions where the two cannot be compared.
pub fn union(a: &Region, b: &Region, shape: &[Index], bounds: &Bounds) -> Region {
    let dims = a.iter().zip(b).zip(shape);
    dims.map(|((a, b), size)| {
        let whole = || Range::new(Index::int(0), size.clone());
        if a == b {
            return a.clone();
        }
        let (end_a, end_b) = (&a.min + &a.extent, &b.min + &b.extent);
        let min = lesser(&a.min, &b.min, bounds);
        let end =
            lesser(&end_a, &end_b, bounds).map(|it| if it == end_a { end_b.clone() } else { end_a.clone() });
        match (min, end) {
            (Some(min), Some(end)) => Range::new(min.clone(), bounds.simplify(&(&end - &min))),
            _ => whole(),
        }
    })
    .collect()
}

/// The one of two that is never the greater, if that is provable.
fn lesser(a: &Index, b: &Index, bounds: &Bounds) -> Option<Index> {
    if bounds.at_most(a, b) {
        Some(a.clone())
    } else if bounds.at_most(b, a) {
        Some(b.clone())
    } else {
        None
    }
}

/// Whether every element of `part` that exists in a buffer of that shape is provably in `whole`.
pub fn covers(whole: &Region, part: &Region, shape: &[Index], bounds: &Bounds) -> bool {
    let dims = whole.iter().zip(part).zip(shape);
    let mut dims = dims.map(|((whole, part), size)| {
        if !whole.steps.is_empty() {
            return whole.steps == part.steps && bounds.equal(&whole.min, &part.min);
        }
        let from_start = bounds.at_most(&whole.min, &part.min) || bounds.at_most(&whole.min, &Index::int(0));
        let part_end = &part.min + &part.extent;
        let reaches = |extent: &Index| {
            let end = &whole.min + extent;
            bounds.at_most(&part_end, &end) || bounds.at_most(size, &end)
        };
        from_start && all_of_minimum(&whole.extent, &reaches)
    });
    dims.all(|it| it)
}

/// Whether something holds of each of those of which an index is the least.
fn all_of_minimum(index: &Index, holds: &dyn Fn(&Index) -> bool) -> bool {
    match index.kind() {
        IndexKind::Min(a, b) => all_of_minimum(a, holds) && all_of_minimum(b, holds),
        _ => holds(index),
    }
}

impl Bounds {
    /// Whether `a <= b` is provable.
    pub fn at_most(&self, a: &Index, b: &Index) -> bool {
        if let (Some(a), Some(b)) = (a.as_int(), b.as_int()) {
            return a <= b;
        }
        a == b || self.prove(&Less::new(a.clone(), b + 1)) == Some(true)
    }
}
