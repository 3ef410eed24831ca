//! Where an assignment writes a given element.

use std::collections::BTreeMap;

use super::digits::{is_ratio, recombined};
use crate::{
    Index, Less, Name,
    arith::{
        Bounds,
        sum::{Atom, Pair, Sum, Term},
    },
};

/// So many equations are made of others, at most.
const MOST_EQUATIONS: usize = 16;

/// Values of all loops, which are given with their extents, for which the subscripts have the wanted values. They are a
/// guess, which may be wrong and has to be tried.
///
/// A subscript that is a sum of loops is a number in mixed radix, of which the loops are digits: the largest is what is
/// left of the value divided by its factor, the next one the same of the rest. Where a fused loop is taken apart by
/// several subscripts, these are first brought together ([`recombined`]). Quotients and remainders may be digits, too.
/// Sums whose digits reach over each other say less, and are read when there is no other.
pub(crate) fn point_of(
    loops: &[(Name, Index)],
    conditions: &[Less],
    indices: &[Index],
    wanted: &[Index],
) -> BTreeMap<Name, Index> {
    let mut point = Point::new(loops, conditions);
    let mut equations: Vec<_> = indices.iter().cloned().zip(wanted.iter().cloned()).collect();
    loop {
        point.recombine(&mut equations);
        if point.read_all(&equations, false) {
            continue;
        }
        let digits = equations.iter().find_map(|(place, value)| {
            let mut digits = point.digits_apart(place, value)?;
            digits.retain(|it| !equations.contains(it));
            (!digits.is_empty()).then_some(digits)
        });
        if let Some(digits) = digits.filter(|it| equations.len() + it.len() <= MOST_EQUATIONS) {
            equations.extend(digits);
            continue;
        }
        if point.read_all(&equations, true) {
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
    /// What is known besides where the assignment happens.
    inside: Bounds,
    values: BTreeMap<Name, Index>,
}

/// Something that counts from zero, times a factor, in a sum.
struct Digit {
    factor: i64,
    index: Index,
    /// The greatest value that it has, if that is a constant.
    most: Option<i64>,
    /// What comes in the place of the product where it is smaller.
    limit: Option<Index>,
}

/// Whether the smaller digits, which come last, reach over one of them.
fn overlap(digits: &[Digit]) -> bool {
    (0..digits.len()).any(|at| reaches_over(&digits[at..]))
}

/// Whether the others, as far as is known, reach over the first.
fn reaches_over(digits: &[Digit]) -> bool {
    let Some((first, others)) = digits.split_first() else { return false };
    let reach = others.iter().try_fold(0_i64, |all, it| {
        let most = it.most?.checked_mul(it.factor)?;
        let limit = it.limit.as_ref().and_then(Index::as_int);
        limit.map_or(most, |limit| most.min(limit)).checked_add(all)
    });
    reach.is_some_and(|it| it >= first.factor)
}

impl Point<'_> {
    fn new<'a>(loops: &'a [(Name, Index)], conditions: &[Less]) -> Point<'a> {
        let mut bounds = Bounds::default();
        for (name, extent) in loops {
            bounds.insert(name, extent);
        }
        let mut inside = bounds.clone();
        for it in conditions {
            inside.assume(it);
        }
        // A loop of one iteration is at its beginning.
        let unit = loops.iter().filter(|it| it.1.as_int() == Some(1));
        let values = unit.map(|it| (it.0.clone(), Index::int(0))).collect();
        Point { loops, bounds, inside, values }
    }

    /// Adds the sums of two equations in which a quotient and a remainder come together.
    fn recombine(&self, equations: &mut Vec<(Index, Index)>) {
        // The normal forms of those that were tried.
        let mut sums = Vec::new();
        while sums.len() < equations.len() {
            let tried = sums.len();
            sums.push(self.bounds.sum(&equations[tried].0));
            for other in 0..tried {
                for (high, low) in [(tried, other), (other, tried)] {
                    if !(self.has_unknown_ratio(&sums[high]) && self.has_unknown_ratio(&sums[low])) {
                        continue;
                    }
                    let sum = recombined(&sums[high], &sums[low], &self.bounds);
                    let (high_value, low_value) = (&equations[high].1, &equations[low].1);
                    let sum = sum.map(|(factor, sum)| (sum, low_value.clone() + high_value.clone() * factor));
                    let is_new = |it: &(Index, Index)| equations.iter().all(|known| known.0 != it.0);
                    let sum = sum.filter(|it| is_new(it) && equations.len() < MOST_EQUATIONS);
                    equations.extend(sum);
                }
            }
        }
    }

    /// Whether there is a quotient or remainder of what is looked for: others stand on both sides of an equation.
    fn has_unknown_ratio(&self, sum: &Sum) -> bool {
        let is_loop = |name: &Name| self.loops.iter().any(|it| it.0 == *name);
        sum.terms.iter().any(|it| is_ratio(it) && it.atoms.iter().any(|it| it.any_var(&is_loop)))
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

    /// The digits of a subscript that is a sum of such, the largest factor first, and their value.
    fn digits(&self, place: &Index, value: &Index) -> Option<(Vec<Digit>, Index)> {
        let (unknown, value) = self.unknown(place, value);
        let (mut loops, mut others, mut limited) = (Vec::new(), Vec::new(), Vec::new());
        for Term { coef, atoms } in &unknown.terms {
            match &atoms[..] {
                [Atom::Var(name)] if *coef > 0 => loops.push((*coef, name.clone())),
                [Atom::Min(pair)] if *coef > 0 => {
                    let (factor, name, limit) = self.limited(pair)?;
                    limited.push((coef.checked_mul(factor)?, name, limit * *coef));
                }
                [Atom::Div(pair) | Atom::Mod(pair)] if *coef > 0 => {
                    let is_quotient = matches!(&atoms[..], [Atom::Div(_)]);
                    others.push((*coef, self.bounds.index(&pair.0), pair.1.as_constant()?, is_quotient));
                }
                _ => return None,
            }
        }
        let most = |index: &Index| self.inside.interval(index).1;
        let ratio = |(factor, mut of, by, is_quotient): (i64, Index, i64, bool)| {
            if is_quotient {
                // Multiples that simplifying has taken out of the quotient.
                let (own, rest) = std::mem::take(&mut loops)
                    .into_iter()
                    .partition(|(coef, name)| coef % factor == 0 && of.any_var(&|it| it == name));
                loops = rest;
                let own: Vec<(i64, Name)> = own;
                for (coef, name) in own {
                    of = of + Index::var(&name) * (coef / factor).checked_mul(by)?;
                }
                let most = most(&of).map(|it| it.div_euclid(by));
                Some(Digit { factor, index: of.floor_div(&Index::int(by)), most, limit: None })
            } else {
                Some(Digit { factor, index: of.floor_mod(&Index::int(by)), most: Some(by - 1), limit: None })
            }
        };
        let mut out = others.into_iter().map(ratio).collect::<Option<Vec<_>>>()?;
        let digit = |(factor, name, limit): (i64, Name, Option<Index>)| {
            let index = Index::var(&name);
            Digit { factor, most: most(&index), index, limit }
        };
        out.extend(loops.into_iter().map(|(factor, name)| digit((factor, name, None))));
        out.extend(limited.into_iter().map(|(factor, name, limit)| digit((factor, name, Some(limit)))));
        out.sort_by_key(|it| std::cmp::Reverse(it.factor));
        Some((out, value))
    }

    /// The factor, the loop and the limit of a minimum of a multiple of a loop that is still unknown and of what is known.
    fn limited(&self, pair: &Pair) -> Option<(i64, Name, Index)> {
        let is_unknown = |name: &Name| self.is_unknown(name);
        let of = |multiple: &Sum, limit: &Sum| {
            let ([term], 0) = (&multiple.terms[..], multiple.constant) else { return None };
            let [Atom::Var(name)] = &term.atoms[..] else { return None };
            let is_known = !limit.any_var(&is_unknown);
            (term.coef > 0 && is_known).then(|| (term.coef, name.clone(), self.bounds.index(limit)))
        };
        of(&pair.0, &pair.1).or_else(|| of(&pair.1, &pair.0))
    }

    /// The values of digits that have one together.
    fn values_of(&self, digits: &[Digit], mut value: Index) -> Vec<(Index, Index)> {
        let mut out = Vec::new();
        for at in 0..digits.len() {
            let Digit { factor, index, most, limit } = &digits[at];
            let mut digit = value.floor_div(&Index::int(*factor));
            // Where the smaller digits reach over this one, the last elements have no larger one.
            if let (Some(most), true) = (most, reaches_over(&digits[at..])) {
                digit = digit.minimum(&Index::int(*most));
            }
            let digit = self.bounds.simplify(&digit);
            let product = digit.clone() * *factor;
            let product = limit.as_ref().map_or(product.clone(), |it| product.minimum(it));
            value = self.bounds.simplify(&(&value - &product));
            out.push((index.clone(), digit));
        }
        out
    }

    /// Finds the loops of subscripts that are sums of them, and whether there were any. Sums in which digits reach over
    /// each other are taken one at a time.
    fn read_all(&mut self, equations: &[(Index, Index)], overlapping: bool) -> bool {
        let known = self.values.len();
        for (place, value) in equations.iter().rev() {
            let Some((digits, value)) = self.digits(place, value) else { continue };
            if digits.iter().any(|it| it.index.as_var().is_none()) || overlap(&digits) && !overlapping {
                continue;
            }
            for (index, digit) in self.values_of(&digits, value) {
                self.values.extend(index.as_var().map(|name| (name.clone(), digit)));
            }
        }
        self.values.len() > known
    }

    /// The equations of the digits of a subscript, where some are quotients or remainders and none reaches over another.
    fn digits_apart(&self, place: &Index, value: &Index) -> Option<Vec<(Index, Index)>> {
        let (digits, value) = self.digits(place, value)?;
        let is_loop = |it: &Digit| it.index.as_var().is_some();
        if digits.len() < 2 || digits.iter().all(is_loop) || overlap(&digits) {
            return None;
        }
        Some(self.values_of(&digits, value))
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
