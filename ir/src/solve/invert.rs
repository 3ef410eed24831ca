//! Where an assignment writes a given element.

use std::collections::BTreeMap;

use super::digits::recombined;
use crate::{
    Index, Name,
    arith::{
        Bounds,
        sum::{Atom, Sum, Term},
    },
};

/// So many equations are made of others, at most.
const MOST_EQUATIONS: usize = 16;

/// Values of all loops, which are given with their extents, for which the subscripts have the wanted values. They are a
/// guess, which may be wrong and has to be tried.
///
/// A subscript that is a sum of loops is a number in mixed radix, of which the loops are digits: the largest is what is
/// left of the value divided by its factor, the next one the same of the rest. Where a fused loop is taken apart by
/// several subscripts, these are first brought together ([`recombined`]).
pub(super) fn point_of(
    loops: &[(Name, Index)],
    indices: &[Index],
    wanted: &[Index],
) -> BTreeMap<Name, Index> {
    let mut bounds = Bounds::default();
    for (name, extent) in loops {
        bounds.insert(name, extent);
    }
    let mut point = Point { loops, bounds, values: BTreeMap::new() };
    let mut equations: Vec<_> = indices.iter().cloned().zip(wanted.iter().cloned()).collect();
    loop {
        point.recombine(&mut equations);
        let known = point.values.len();
        equations.iter().rev().for_each(|(place, value)| point.read_digits(place, value));
        if point.values.len() > known {
            continue;
        }
        let inner = equations.iter().find_map(|(place, value)| point.without_ratio(place, value));
        match inner.filter(|it| !equations.contains(it) && equations.len() < MOST_EQUATIONS) {
            Some(it) => equations.push(it),
            None => break,
        }
    }
    // A loop that does not matter may as well be at its beginning.
    for (name, _) in loops {
        point.values.entry(name.clone()).or_insert_with(|| Index::int(0));
    }
    point.values
}

struct Point<'a> {
    loops: &'a [(Name, Index)],
    bounds: Bounds,
    values: BTreeMap<Name, Index>,
}

impl Point<'_> {
    /// Adds the sums of two equations in which a quotient and a remainder come together.
    fn recombine(&self, equations: &mut Vec<(Index, Index)>) {
        let mut tried = 0;
        while tried < equations.len() {
            for other in 0..tried {
                for (high, low) in [(tried, other), (other, tried)] {
                    let ((high, high_value), (low, low_value)) = (&equations[high], &equations[low]);
                    let sum = recombined(high, low, &self.bounds);
                    let sum = sum.map(|(factor, sum)| (sum, low_value.clone() + high_value.clone() * factor));
                    let is_new = |it: &(Index, Index)| equations.iter().all(|known| known.0 != it.0);
                    let sum = sum.filter(|it| is_new(it) && equations.len() < MOST_EQUATIONS);
                    equations.extend(sum);
                }
            }
            tried += 1;
        }
    }

    fn is_unknown(&self, name: &Name) -> bool {
        !self.values.contains_key(name) && self.loops.iter().any(|it| it.0 == *name)
    }

    /// The terms of a subscript that speak of loops still unknown, and what they add up to.
    fn unknown(&self, place: &Index, value: &Index) -> (Sum, Index) {
        let place = place.subst(&|name| self.values.get(name).cloned());
        let is_unknown = |name: &Name| self.is_unknown(name);
        let (unknown, rest) =
            self.bounds.sum(&place).partition(|it| it.atoms.iter().any(|it| it.any_var(&is_unknown)));
        (unknown, self.bounds.simplify(&(value - &self.bounds.index(&rest))))
    }

    /// Finds the loops that a subscript is a sum of.
    fn read_digits(&mut self, place: &Index, value: &Index) {
        let (unknown, mut value) = self.unknown(place, value);
        let digit = |it: &Term| match &it.atoms[..] {
            [Atom::Var(name)] if it.coef > 0 => Some((it.coef, name.clone())),
            _ => None,
        };
        let Some(mut digits) = unknown.terms.iter().map(digit).collect::<Option<Vec<_>>>() else { return };
        digits.sort_by_key(|it| std::cmp::Reverse(it.0));
        for (at, (factor, name)) in digits.iter().enumerate() {
            let span = |(factor, name): &(i64, Name)| {
                self.bounds.interval(&Index::var(name)).1?.checked_mul(*factor)
            };
            let rest = digits[at + 1..].iter().map(span).sum::<Option<i64>>();
            let mut digit = value.floor_div(&Index::int(*factor));
            // Where the smaller digits reach over this one, the last elements have no larger one.
            if let (Some(most), true) =
                (self.bounds.interval(&Index::var(name)).1, rest.is_some_and(|it| it >= *factor))
            {
                digit = digit.minimum(&Index::int(most));
            }
            let digit = self.bounds.simplify(&digit);
            value = self.bounds.simplify(&(&value - &(digit.clone() * *factor)));
            self.values.insert(name.clone(), digit);
        }
    }

    /// What a subscript says that is a single quotient or remainder and has nothing that it comes together with.
    fn without_ratio(&self, place: &Index, value: &Index) -> Option<(Index, Index)> {
        let (unknown, value) = self.unknown(place, value);
        let [term] = &unknown.terms[..] else { return None };
        match &term.atoms[..] {
            [Atom::Div(pair)] if term.coef == 1 => {
                Some((self.bounds.index(&pair.0), value * self.bounds.index(&pair.1)))
            }
            [Atom::Mod(pair)] if term.coef == 1 => Some((self.bounds.index(&pair.0), value)),
            _ => None,
        }
    }
}
