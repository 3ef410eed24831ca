//! Proofs that an access touches a whole box, and that one reads only what another has written.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Nest, Range, Region, Way, covers, fails_outside, limit,
    limit::{quotient, terms},
    range_of,
};
use crate::{
    Index, IndexKind, Less, Name,
    access::{self, AccessRelation},
    arith::Bounds,
};

/// Whether every existing element of a buffer that a block reads is among those that an earlier one writes in the same
/// iteration of the loops around both.
pub(super) fn fills(writer: &Nest<'_>, reader: &Nest<'_>, buffer: &Name) -> bool {
    let shared = &writer.loops[..writer.shared_loops(reader)];
    let is_common = |name: &Name| shared.iter().any(|it| it.var == *name);
    let (dims, shape) = (reader.dims(), reader.shape(buffer));
    let of = |place| Write { place, bounds: writer.bounds(), is_common: &is_common };
    let wrote: Vec<_> = writer.places(buffer, Way::Write).into_iter().map(of).collect();
    let reads = reader.places(buffer, Way::Read);
    reads.iter().all(|read| any_covers(dims, shape, &wrote, (read, reader.bounds())))
}

/// A write of elements that are read later.
pub struct Write<'a> {
    /// The elements.
    pub place: AccessRelation,
    /// What is known of its variables.
    pub bounds: &'a Bounds,
    /// The variables that have the same value where the elements are read; all others run.
    pub is_common: &'a dyn Fn(&Name) -> bool,
}

/// Whether each existing element that `read` touches is among those of one of the writes: by their boxes, or, where those of
/// none of them tell, because the solver finds no element that is missed. What is known of the variables of the read stands
/// beside it.
///
/// This is *region cover* of two accesses: allocation scopes, races and moved blocks rest on it.
pub fn any_covers(
    dims: &[Name],
    shape: &[Index],
    writes: &[Write<'_>],
    read: (&AccessRelation, &Bounds),
) -> bool {
    let exactly = |it: &Write<'_>| access::covers(dims, shape, &it.place, read.0, it.is_common);
    writes.iter().any(|it| covers_box(shape, (&it.place, it.bounds), read, it.is_common))
        || writes.iter().any(exactly)
}

/// Whether the box that is written has all of the box that is read.
fn covers_box(
    shape: &[Index],
    (write, written): (&AccessRelation, &Bounds),
    (read, bounds): (&AccessRelation, &Bounds),
    is_common: &dyn Fn(&Name) -> bool,
) -> bool {
    let is_inner = |name: &Name| !is_common(name) && written.extent(name).is_some();
    let whole = filled(&write.indices, &write.conditions, &read.conditions, shape, written, &is_inner);
    let Some(whole) = whole.filter(|_| runs((write, written), (read, bounds), is_common)) else {
        return false;
    };
    let is_inner = |name: &Name| !is_common(name) && bounds.extent(name).is_some();
    let dims = read.indices.iter().zip(shape);
    let part = dims.map(|(index, size)| range_of(index, &read.conditions, size, bounds, &is_inner));
    covers(&whole, &part.collect(), shape, bounds)
}

/// Whether the write happens wherever the read does, guards aside: each loop around it alone surely has an iteration, if
/// the box that it writes does not show how many there are; and an axis of a thread's own goes as far for it as for the read.
fn runs(
    (write, written): (&AccessRelation, &Bounds),
    (read, bounds): (&AccessRelation, &Bounds),
    is_common: &dyn Fn(&Name) -> bool,
) -> bool {
    let places: Vec<_> = write.indices.iter().map(|it| written.simplify(it)).collect();
    let shared = write.vars.iter().zip(&read.vars).take_while(|(a, b)| a == b).count();
    write.vars[shared..].iter().all(|(name, extent)| {
        let least = if is_common(name) { Index::var(name) } else { Index::int(0) };
        let shows = || !is_common(name) && places.iter().any(|it| it.any_var(&|var| var == name));
        bounds.prove(&Less::new(least, extent.clone())) == Some(true) || shows()
    })
}

/// The box of which an access touches every element that exists in a buffer of that shape, if it is one, while the
/// inner loops run.
///
/// `guards` are around the access, and of those in `known` it is clear that they hold where they are about fixed loops
/// alone. That the inner loops run at all is not asked.
pub fn filled(
    indices: &[Index],
    guards: &[Less],
    known: &[Less],
    shape: &[Index],
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Option<Region> {
    // A loop of one iteration is at zero, wherever it stands.
    let unit = |name: &Name| (bounds.extent(name)?.as_int() == Some(1)).then(|| Index::int(0));
    let guards: &[Less] = &guards.iter().map(|it| it.subst(&unit)).collect::<Vec<_>>();
    let known: &[Less] = &known.iter().map(|it| it.subst(&unit)).collect::<Vec<_>>();
    let indices: Vec<_> = indices.iter().map(|it| bounds.simplify(&it.subst(&unit))).collect();
    let indices = recombined(&indices, bounds);
    let mut dense = Dense { bounds, guards, is_inner, seen: BTreeSet::new(), chains: BTreeMap::new() };
    let ranges = indices.iter().map(|it| dense.range(it)).collect::<Option<Region>>();
    let mut ranges = ranges.filter(|_| dense.chains_are_whole())?;
    for guard in guards {
        let harmless = bounds.prove(guard) == Some(true)
            || dense.chains.keys().any(|base| dense.limit_of(guard, base).is_some())
            || fails_outside(guard, &indices, shape, bounds)
            || (known.contains(guard) && !guard.lhs.any_var(is_inner) && !guard.rhs.any_var(is_inner));
        if !harmless {
            clip(guard, &indices, shape, &mut ranges, bounds, is_inner)?;
        }
    }
    Some(ranges)
}

/// The subscripts with quotients and remainders of the same again, where simplifying has taken multiples out of them: of
/// `(2*x + y) floordiv 3 + 2*x` and `(2*x + y) mod 3` it makes `(8*x + y) floordiv 3` and `(8*x + y) mod 3`.
fn recombined(indices: &[Index], bounds: &Bounds) -> Vec<Index> {
    let mut whole: Vec<Index> = Vec::new();
    let sum = |terms: Vec<(i64, Index)>| {
        terms.into_iter().fold(Index::int(0), |sum, (factor, atom)| sum + atom * factor)
    };
    let with_quotients: Vec<Vec<(i64, Index)>> = indices
        .iter()
        .map(|it| {
            let mut terms = terms(it);
            let Some(at) = terms.iter().position(|(_, it)| quotient(it).is_some()) else { return terms };
            let (factor, atom) = terms.remove(at);
            let Some((of, by)) = quotient(&atom) else { return terms };
            let is_taken_out = |(scale, it): &(i64, Index)| {
                let var = it.as_var();
                var.is_some_and(|var| scale % factor == 0 && of.any_var(&|name| name == var))
            };
            let (taken_out, mut terms): (Vec<_>, Vec<_>) = terms.into_iter().partition(is_taken_out);
            let all =
                taken_out.into_iter().fold(of.clone(), |all, (scale, it)| all + it * (scale / factor * by));
            let all = bounds.simplify(&all);
            terms.push((factor, all.floor_div(&Index::int(by))));
            whole.push(all);
            terms
        })
        .collect();
    let of_whole = |of: &Index, period: i64| {
        let found = whole.iter().find(|all| bounds.divides(period, &(*all - of)));
        found.cloned().unwrap_or_else(|| of.clone())
    };
    let remainder = |atom: Index| match atom.kind() {
        IndexKind::FloorMod(of, by) => match (by.as_int(), quotient(of)) {
            (Some(by), Some((of, over))) => {
                let all = of_whole(of, by.saturating_mul(over));
                all.floor_div(&Index::int(over)).floor_mod(&Index::int(by))
            }
            (Some(by), None) => of_whole(of, by).floor_mod(&Index::int(by)),
            (None, _) => atom.clone(),
        },
        _ => atom,
    };
    let each = with_quotients
        .into_iter()
        .map(|terms| sum(terms.into_iter().map(|(factor, it)| (factor, remainder(it))).collect()));
    each.collect()
}

/// Takes from a range what a guard keeps from being touched. `None` where that is not clear.
fn clip(
    guard: &Less,
    indices: &[Index],
    shape: &[Index],
    ranges: &mut Region,
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Option<()> {
    let limits = indices.iter().map(|it| limit(guard, it, bounds, is_inner)).collect::<Vec<_>>();
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
        // What another guard has left of it stays the most.
        range.extent = bounds.simplify(&(&limit - &range.min).minimum(&range.extent));
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
    let limit = limit(&mirrored, &(index * -1), bounds, is_inner)?;
    Some(bounds.simplify(&(Index::int(1) - limit)))
}

/// Recognises subscripts that run through their ranges without holes, independently of each other.
struct Dense<'a> {
    bounds: &'a Bounds,
    guards: &'a [Less],
    is_inner: &'a dyn Fn(&Name) -> bool,
    seen: BTreeSet<Name>,
    /// For each `e`, the `(c, m)` of the terms `e floordiv c mod m`; `m` is missing on the topmost.
    chains: BTreeMap<Index, Vec<(i64, Option<i64>)>>,
}

impl Dense<'_> {
    /// The range of a subscript.
    fn range(&mut self, index: &Index) -> Option<Range> {
        let (inner, outer): (Vec<_>, Vec<_>) =
            terms(index).into_iter().partition(|it| it.1.any_var(self.is_inner));
        let min = outer.into_iter().fold(Index::int(0), |sum, (factor, atom)| sum + atom * factor);
        let spans = inner.into_iter().map(|(factor, atom)| match self.limited(&atom) {
            Some((step, most)) => Some((factor.checked_mul(step)?, most * factor)),
            None => Some((factor, (self.span(&atom)? - 1) * factor)),
        });
        let spans = spans.collect::<Option<Vec<_>>>()?;
        if let Some(extent) = contiguous(spans) {
            return Some(Range::new(self.bounds.simplify(&min), self.bounds.simplify(&extent)));
        }
        let range = range_of(index, &[], &Index::int(0), self.bounds, self.is_inner);
        Some(range).filter(|it| !it.steps.is_empty())
    }

    /// The step and the greatest value of `min(step*x, most)`, where `x` goes as far. It takes every value of `step*x` below.
    fn limited(&mut self, atom: &Index) -> Option<(i64, Index)> {
        let IndexKind::Min(a, b) = atom.kind() else { return None };
        let (of, most) = if a.any_var(self.is_inner) { (a, b) } else { (b, a) };
        let &[(step, ref of)] = &terms(of)[..] else { return None };
        if step < 1 || most.any_var(self.is_inner) || !self.bounds.at_most(&Index::int(0), most) {
            return None;
        }
        let last = (self.span(of)? - 1) * step;
        self.bounds.at_most(most, &last).then(|| (step, most.clone()))
    }

    /// How many values an atom takes, from zero on, each independently of the other atoms.
    fn span(&mut self, atom: &Index) -> Option<Index> {
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
            // Of a loop that runs as often as another one says, not all iterations are always there.
            let is_constant = |name: &Name| self.bounds.extent(name).is_some_and(|it| it.as_int().is_some());
            if base.any_var(&|name| !is_constant(name)) {
                return None;
            }
            let range = self.range(base)?;
            if range.min.as_int() != Some(0) || !range.steps.is_empty() {
                return None;
            }
        }
        self.chains.entry(base.clone()).or_default().push((by, modulo));
        let all = self.extent_of(base)?;
        Some(Index::int(modulo.unwrap_or(all / by)))
    }

    /// The extent of a base that starts at zero, or what guards leave of it.
    fn extent_of(&self, base: &Index) -> Option<i64> {
        let own = self.bounds.interval(base).1? + 1;
        let limits = self.guards.iter().filter_map(|it| self.limit_of(it, base));
        limits.chain([own]).min()
    }

    /// What a guard leaves of a base that starts at zero, if it is about just that.
    fn limit_of(&self, guard: &Less, base: &Index) -> Option<i64> {
        limit(guard, base, self.bounds, self.is_inner)?.as_int().filter(|it| *it > 0)
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

/// The number of values of a sum of what goes from zero by steps, each at most so large, to a greatest value, if it has no holes.
/// Only the last of them may be symbolic.
fn contiguous(mut spans: Vec<(i64, Index)>) -> Option<Index> {
    spans.sort_by_key(|it| it.0);
    let mut reach = Index::int(1);
    for (step, most) in spans {
        if step < 1 || step > reach.as_int()? {
            return None;
        }
        reach = reach + most;
    }
    Some(reach)
}
