//! Proofs that what a place reads has been written, all of it, by another.

use std::collections::{BTreeMap, BTreeSet};

use ir::{
    Func, Index, IndexKind, Less, Name,
    arith::Bounds,
    region::{self, Range, Region},
    solve,
};

use super::{separate::Terms, sites::Site};

/// Whether every existing element that `read` touches is among those that `write` touches, while the fixed
/// variables have the same values for both and all others run: by their boxes, or, where those do not tell, because
/// the solver finds no element that is missed.
pub(crate) fn covers(
    func: &Func,
    write: &Site<'_>,
    read: &Site<'_>,
    is_fixed: &dyn Fn(&Name) -> bool,
) -> bool {
    covers_box(func, write, read, is_fixed)
        || solve::covers(
            &func.dims,
            &func.buffers[read.buffer].shape,
            &write.place(),
            &read.place(),
            is_fixed,
        )
}

fn covers_box(func: &Func, write: &Site<'_>, read: &Site<'_>, is_fixed: &dyn Fn(&Name) -> bool) -> bool {
    let shape = &func.buffers[read.buffer].shape;
    let bounds = read.bounds(func);
    let is_inner = |name: &Name| !is_fixed(name) && bounds.extent(name).is_some();
    let Some(written) = written(func, write, &read.guards, is_fixed) else { return false };
    if !runs(func, write, read, is_fixed) {
        return false;
    }
    let dims = read.indices.iter().zip(shape);
    let part = dims.map(|(index, size)| region::range_of(index, &read.guards, size, &bounds, &is_inner));
    region::covers(&written, &part.collect(), shape, &bounds)
}

/// Whether the write happens wherever the read does, guards aside: each loop around it alone surely has an iteration, if
/// the box that it writes does not show how many there are; and an axis of a thread's own goes as far for it as for the read.
fn runs(func: &Func, write: &Site<'_>, read: &Site<'_>, is_fixed: &dyn Fn(&Name) -> bool) -> bool {
    let (bounds, own) = (read.bounds(func), write.bounds(func));
    let places: Vec<_> = write.indices.iter().map(|it| own.simplify(it)).collect();
    write.variables().skip(write.shared_loops(read)).all(|(name, extent)| {
        let least = if is_fixed(&name) { Index::var(&name) } else { Index::int(0) };
        let shows = || !is_fixed(&name) && places.iter().any(|it| it.any_var(&|var| *var == name));
        bounds.prove(&Less::new(least, extent)) == Some(true) || shows()
    })
}

/// The box of which `write` touches every element that exists, if it is one.
fn written(
    func: &Func,
    write: &Site<'_>,
    known: &[Less],
    is_fixed: &dyn Fn(&Name) -> bool,
) -> Option<Region> {
    let bounds = write.bounds(func);
    let is_inner = |name: &Name| !is_fixed(name) && bounds.extent(name).is_some();
    let shape = &func.buffers[write.buffer].shape;
    let indices: Vec<_> = write.indices.iter().map(|it| bounds.simplify(it)).collect();
    let mut dense =
        Dense { bounds: &bounds, guards: &write.guards, seen: BTreeSet::new(), chains: BTreeMap::new() };
    let ranges = indices.iter().map(|it| dense.range(it, &is_inner)).collect::<Option<Region>>();
    let mut ranges = ranges.filter(|_| dense.chains_are_whole())?;
    for guard in &write.guards {
        let harmless = bounds.prove(guard) == Some(true)
            || dense.chains.contains_key(&bounds.simplify(&guard.lhs))
            || region::fails_outside(guard, &indices, shape, &bounds)
            || (known.contains(guard) && !guard.lhs.any_var(&is_inner) && !guard.rhs.any_var(&is_inner));
        if !harmless {
            clip(guard, &indices, shape, &mut ranges, &bounds, &is_inner)?;
        }
    }
    Some(ranges)
}

/// Takes from a range what a guard keeps from being written. `None` where that is not clear.
fn clip(
    guard: &Less,
    indices: &[Index],
    shape: &[Index],
    ranges: &mut Region,
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Option<()> {
    let limits = indices.iter().map(|it| region::limit(guard, it, bounds, is_inner)).collect::<Vec<_>>();
    for (((index, size), range), limit) in indices.iter().zip(shape).zip(&*ranges).zip(&limits) {
        let harmless = match limit {
            Some(limit) => {
                bounds.at_most(size, limit) || bounds.at_most(&(&range.min + &range.extent), limit)
            }
            None => lower_limit(guard, index, bounds, is_inner)
                .is_some_and(|it| bounds.at_most(&it, &Index::int(0)) || bounds.at_most(&it, &range.min)),
        };
        if harmless {
            return Some(());
        }
    }
    let mut found = indices.iter().zip(ranges).zip(limits);
    found.find_map(|((index, range), limit)| {
        let limit = limit.filter(|_| index.any_var(is_inner) && range.steps.is_empty())?;
        range.extent = bounds.simplify(&(&limit - &range.min));
        Some(())
    })
}

/// The least value of a subscript for which a guard holds, if it holds for all above.
fn lower_limit(
    guard: &Less,
    index: &Index,
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Option<Index> {
    let mirrored = Less::new(&guard.rhs * -1, &guard.lhs * -1);
    let limit = region::limit(&mirrored, &(index * -1), bounds, is_inner)?;
    Some(bounds.simplify(&(Index::int(1) - limit)))
}

/// Recognises subscripts that run through their ranges without holes, independently of each other.
struct Dense<'a> {
    bounds: &'a Bounds,
    guards: &'a [Less],
    seen: BTreeSet<Name>,
    /// For each `e`, the `(c, m)` of the terms `e floordiv c mod m`; `m` is missing on the topmost.
    chains: BTreeMap<Index, Vec<(i64, Option<i64>)>>,
}

impl Dense<'_> {
    /// The range of a subscript.
    fn range(&mut self, index: &Index, is_inner: &dyn Fn(&Name) -> bool) -> Option<Range> {
        let terms = Terms::of(index);
        let (inner, outer): (Vec<_>, Vec<_>) = terms.terms.into_iter().partition(|it| it.1.any_var(is_inner));
        let min =
            outer.into_iter().fold(Index::int(terms.constant), |sum, (factor, atom)| sum + atom * factor);
        let spans = inner.into_iter().map(|(factor, atom)| Some((factor, self.span(&atom, is_inner)?)));
        let spans = spans.collect::<Option<Vec<_>>>()?;
        if let Some(extent) = contiguous(spans) {
            return Some(Range::new(self.bounds.simplify(&min), self.bounds.simplify(&extent)));
        }
        let range = region::range_of(index, &[], &Index::int(0), self.bounds, is_inner);
        Some(range).filter(|it| !it.steps.is_empty())
    }

    /// How many values an atom takes, from zero on, each independently of the other atoms.
    fn span(&mut self, atom: &Index, is_inner: &dyn Fn(&Name) -> bool) -> Option<Index> {
        if let Some(name) = atom.as_var() {
            return if self.seen.insert(name.clone()) { self.bounds.extent(name).cloned() } else { None };
        }
        let (base, by, modulo) = match atom.kind() {
            IndexKind::FloorDiv(e, by) => (e, by.as_int()?, None),
            IndexKind::FloorMod(e, m) => match e.kind() {
                IndexKind::FloorDiv(e, by) => (e, by.as_int()?, Some(m.as_int()?)),
                _ => (e, 1, Some(m.as_int()?)),
            },
            _ => return None,
        };
        if !self.chains.contains_key(base) {
            let range = self.range(base, is_inner)?;
            if range.min.as_int() != Some(0) || !range.steps.is_empty() {
                return None;
            }
        }
        self.chains.entry(base.clone()).or_default().push((by, modulo));
        let all = self.extent_of(base)?;
        Some(Index::int(modulo.unwrap_or(all / by)))
    }

    /// The extent of a base that starts at zero, or what a guard leaves of it. None if its loops are not of constant length:
    /// then it may end before the greatest value that it can have.
    fn extent_of(&self, base: &Index) -> Option<i64> {
        let varies = |name: &Name| self.bounds.extent(name).is_none_or(|it| it.as_int().is_none());
        if base.any_var(&varies) {
            return None;
        }
        let own = self.bounds.interval(base).1? + 1;
        let limits = self.guards.iter().filter(|it| self.bounds.simplify(&it.lhs) == *base);
        limits.filter_map(|it| it.rhs.as_int()).chain([own]).min()
    }

    /// Whether the terms over each base are all its digits, each once, so that they vary independently.
    fn chains_are_whole(&self) -> bool {
        self.chains.iter().all(|(base, digits)| {
            let mut digits = digits.clone();
            digits.sort_unstable();
            let Some(all) = self.extent_of(base) else { return false };
            let mut expected = Some(1);
            for (by, modulo) in digits {
                if expected != Some(by) || all % by != 0 {
                    return false;
                }
                expected = modulo.map(|it| by * it);
            }
            expected.is_none_or(|it| it == all)
        })
    }
}

/// The number of values of a sum of factors times spans, if it has no holes. Only the last span may be symbolic.
fn contiguous(mut spans: Vec<(i64, Index)>) -> Option<Index> {
    spans.sort_by_key(|it| it.0);
    let mut reach = Index::int(1);
    for (factor, span) in spans {
        if factor < 1 || factor > reach.as_int()? {
            return None;
        }
        reach = reach + (span - 1) * factor;
    }
    Some(reach)
}
