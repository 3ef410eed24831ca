//! From an index to its normal form: quotients and remainders are resolved where the bounds allow it.
//!
//! The laws used, for a positive divisor `c` (a constant or a product of symbolic dimensions):
//!
//! ```text
//! (c*q + r) floordiv c        =>  q + r floordiv c                 and  mod  =>  r mod c
//! r floordiv c                =>  0          where 0 <= r < c      and  mod  =>  r
//! (g*x + r) floordiv (g*d)    =>  x floordiv d   where 0 <= r < g  and  mod  =>  g*(x mod d) + r
//! (x floordiv a + k) floordiv c    =>  (x + a*k) floordiv (a*c)
//! (x mod (c*d)) floordiv c         =>  (x floordiv c) mod d
//! (x mod m) mod c                  =>  x mod c        where c divides m
//! (x floordiv c)*c + x mod c       =>  x
//! ((x floordiv a + y) mod c)*a + x mod a  =>  (x + a*y) mod (a*c)
//! min(g*x, g*y)               =>  g*min(x, y)                      and  max
//! ```

use std::sync::Arc;

use super::{
    Bounds,
    atoms::Atoms,
    sum::{Atom, Pair, Sum, Term, exact_multiples, gcd, multiples},
};
use crate::{Index, IndexKind};

/// Which of the two results of a division.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Quotient,
    Remainder,
}

impl Bounds {
    /// The normal form.
    pub(crate) fn sum(&self, index: &Index) -> Sum {
        let sum = self.flatten(index);
        self.recombine(sum)
    }

    /// The normal form but for what quotients and remainders that stand next to each other make together.
    fn flatten(&self, index: &Index) -> Sum {
        // Sums of multiples are most of what there is: their terms are collected and sorted once.
        if let Some(value) = index.as_int() {
            return Sum::constant(value);
        }
        if let Some(name) = index.as_var() {
            return Sum::atom(Atom::Var(name.clone()));
        }
        let (mut terms, mut constant) = (Vec::with_capacity(4), 0);
        let collected = self.collect(index, 1, &mut terms, &mut constant);
        let sum = collected.and_then(|()| Sum::of_terms(terms, constant));
        sum.unwrap_or_else(|| Sum::atom(Atom::Opaque(index.clone())))
    }

    /// Adds the terms of a multiple of an index. `None` where a coefficient overflows.
    fn collect(&self, index: &Index, scale: i64, terms: &mut Vec<Term>, constant: &mut i64) -> Option<()> {
        match index.kind() {
            IndexKind::Int(value) => *constant = constant.checked_add(value.checked_mul(scale)?)?,
            IndexKind::Var(name) => {
                terms.push(Term { atoms: Atoms::one(Atom::Var(name.clone())), coef: scale });
            }
            IndexKind::Add(a, b) => {
                self.collect(a, scale, terms, constant)?;
                self.collect(b, scale, terms, constant)?;
            }
            IndexKind::Mul(a, b) if b.as_int().is_some_and(|it| it != 0) => {
                self.collect(a, scale.checked_mul(b.as_int()?)?, terms, constant)?;
            }
            IndexKind::Mul(..)
            | IndexKind::FloorDiv(..)
            | IndexKind::FloorMod(..)
            | IndexKind::Min(..)
            | IndexKind::Max(..)
            | IndexKind::Xor(..)
            | IndexKind::Element(..) => {
                let sum = self.flatten_one(index);
                *constant = constant.checked_add(sum.constant.checked_mul(scale)?)?;
                for term in sum.terms {
                    terms.push(Term { coef: term.coef.checked_mul(scale)?, ..term });
                }
            }
        }
        Some(())
    }

    /// The normal form of one operation; where it overflows, it is kept as it stands.
    fn flatten_one(&self, index: &Index) -> Sum {
        let exact = match index.kind() {
            IndexKind::Int(value) => return Sum::constant(value),
            IndexKind::Var(name) => return Sum::atom(Atom::Var(name.clone())),
            IndexKind::Add(a, b) => {
                let (a, b) = (self.flatten(a), self.flatten(b));
                a.plus(&b).ok_or_else(|| self.index(&a) + self.index(&b))
            }
            IndexKind::Mul(a, b) => {
                let (a, b) = (self.flatten(a), self.flatten(b));
                a.times(&b).ok_or_else(|| self.index(&a) * self.index(&b))
            }
            IndexKind::FloorDiv(a, b) => {
                let (a, b) = (self.sum(a), self.sum(b));
                self.ratio(&a, &b, Part::Quotient).ok_or_else(|| self.index(&a).floor_div(&self.index(&b)))
            }
            IndexKind::FloorMod(a, b) => {
                let (a, b) = (self.sum(a), self.sum(b));
                self.ratio(&a, &b, Part::Remainder).ok_or_else(|| self.index(&a).floor_mod(&self.index(&b)))
            }
            IndexKind::Min(a, b) => {
                let (a, b) = (self.sum(a), self.sum(b));
                self.extreme(&a, &b, Atom::Min).ok_or_else(|| self.index(&a).minimum(&self.index(&b)))
            }
            IndexKind::Max(a, b) => {
                let (a, b) = (self.sum(a), self.sum(b));
                self.extreme(&a, &b, Atom::Max).ok_or_else(|| self.index(&a).maximum(&self.index(&b)))
            }
            IndexKind::Xor(a, b) => return exclusive_or(self.sum(a), self.sum(b)),
            IndexKind::Element(table, at, below) => {
                let index = Index::element(table, self.simplify(at), self.simplify(below));
                return Sum::atom(Atom::Opaque(index));
            }
        };
        exact.unwrap_or_else(|index| Sum::atom(Atom::Opaque(index)))
    }

    /// `a mod b`.
    pub(super) fn remainder(&self, a: &Sum, b: &Sum) -> Option<Sum> {
        self.ratio(a, b, Part::Remainder)
    }

    fn ratio(&self, a: &Sum, b: &Sum, part: Part) -> Option<Sum> {
        if b.as_constant().is_some_and(|it| it <= 0) {
            return None;
        }
        let Some(lead) = b.as_term() else { return self.ratio_by_sum(a, b, part) };
        let (quotient, rest) = multiples(a, &lead)?;
        if let Some((quotient, rest)) = self.whole(&quotient, &rest, b) {
            return Some(pick(part, quotient, rest));
        }
        let (quotient, rest) = self.keep_nonnegative(quotient, rest, a, b)?;
        let reduced = if let Some(merged) = self.recombined(&rest) {
            self.ratio(&merged, b, part)?
        } else if let Some(reduced) = self.ratio_by_factor(&rest, &lead, part) {
            reduced
        } else {
            self.ratio_of_ratio(rest, b, part)?
        };
        match part {
            Part::Quotient => quotient.plus(&reduced),
            Part::Remainder => Some(reduced),
        }
    }

    /// Undoes what may have made the numerator negative, because emitted code divides by truncation: adds periods
    /// of a constant divisor until the least value is at least 0, or else takes nothing out of `a` at all.
    fn keep_nonnegative(&self, quotient: Sum, rest: Sum, a: &Sum, b: &Sum) -> Option<(Sum, Sum)> {
        let least = self.range(&rest).lo;
        if least.is_some_and(|it| it >= 0) || (self.is_relational(&rest) && self.nonneg(&rest)) {
            return Some((quotient, rest));
        }
        let (Some(divisor), Some(least)) = (b.as_constant(), least) else {
            return Some((Sum::default(), a.clone()));
        };
        let periods = least.div_euclid(divisor);
        let rest = rest.plus_constant(periods.checked_mul(divisor)?.checked_neg()?)?;
        Some((quotient.plus_constant(periods)?, rest))
    }

    /// The division by a divisor of several terms: long division, kept only where nothing is left to divide.
    fn ratio_by_sum(&self, a: &Sum, b: &Sum, part: Part) -> Option<Sum> {
        let lead = b.terms.iter().max_by_key(|it| it.atoms.len())?;
        let (mut quotient, mut rest) = (Sum::default(), a.clone());
        for _ in 0..4 {
            if let Some((quotient, rest)) = self.whole(&quotient, &rest, b) {
                return Some(pick(part, quotient, rest));
            }
            let Some(next) = rest.terms.iter().find_map(|it| it.over(lead)) else { break };
            rest = rest.minus(&b.times_term(&next)?)?;
            quotient = quotient.plus_term(next)?;
        }
        Some(atom(part, a.clone(), b.clone()))
    }

    /// The quotient and remainder where `rest` is known to lie in one period of the divisor.
    fn whole(&self, quotient: &Sum, rest: &Sum, divisor: &Sum) -> Option<(Sum, Sum)> {
        let period = self.period(rest, divisor)?;
        let rest = match divisor.as_constant() {
            Some(it) => rest.clone().plus_constant(it.checked_mul(period)?.checked_neg()?)?,
            None => rest.minus(&divisor.scaled(period)?)?,
        };
        Some((quotient.clone().plus_constant(period)?, rest))
    }

    /// The `m` with `m*divisor <= sum < (m + 1)*divisor` for all values, where there is one.
    pub(super) fn period(&self, sum: &Sum, divisor: &Sum) -> Option<i64> {
        if let (Some(divisor), (Some(lo), Some(hi))) = (divisor.as_constant(), self.range(sum).both()) {
            let period = lo.div_euclid(divisor);
            if hi.div_euclid(divisor) == period {
                return Some(period);
            }
        }
        if divisor.as_constant().is_some() && !self.is_relational(sum) {
            return None;
        }
        let below = divisor.minus(sum)?.plus_constant(-1)?;
        (self.nonneg(sum) && self.nonneg(&below)).then_some(0)
    }

    /// The law of the common factor `g`; `None` where it does not apply.
    fn ratio_by_factor(&self, a: &Sum, lead: &Term, part: Part) -> Option<Sum> {
        let mut factors: Vec<Term> = Vec::new();
        for term in &a.terms {
            let factor = term.common(lead)?;
            if (factor.coef != 1 || !factor.atoms.is_empty()) && !factors.contains(&factor) {
                factors.push(factor);
            }
        }
        factors.sort_unstable_by(|x, y| {
            (y.atoms.len(), y.coef, &x.atoms).cmp(&(x.atoms.len(), x.coef, &y.atoms))
        });
        for factor in factors {
            let (x, rest) = exact_multiples(a, &factor)?;
            let Some((x, rest)) = self.whole(&x, &rest, &factor.clone().into_sum()) else { continue };
            let reduced = self.ratio(&x, &lead.over(&factor)?.into_sum(), part)?;
            return match part {
                Part::Quotient => Some(reduced),
                Part::Remainder => reduced.times_term(&factor)?.plus(&rest),
            };
        }
        None
    }

    /// The laws of quotients of quotients and remainders; the atom where none applies.
    fn ratio_of_ratio(&self, a: Sum, b: &Sum, part: Part) -> Option<Sum> {
        match (part, a.as_atom(), b.as_constant()) {
            (Part::Quotient, Some((Atom::Div(inner), k)), _) => {
                let x = inner.0.plus(&inner.1.scaled(k)?)?;
                return self.ratio(&x, &b.times(&inner.1)?, part);
            }
            (Part::Quotient, Some((Atom::Mod(inner), 0)), Some(c)) => {
                if let Some(m) = inner.1.as_constant().filter(|m| m % c == 0) {
                    let x = self.ratio(&inner.0, b, Part::Quotient)?;
                    return self.ratio(&x, &Sum::constant(m / c), Part::Remainder);
                }
            }
            (Part::Remainder, _, Some(c)) => {
                if let Some(opened) = open_remainders(&a, c)?.filter(|it| self.nonneg(it)) {
                    return self.ratio(&opened, b, part);
                }
            }
            _ => {}
        }
        Some(atom(part, a, b.clone()))
    }

    /// The smaller or larger of two, whichever `make` makes; what they share is taken out, factors too: `min(64*x, 80)` is
    /// `16*min(4*x, 5)`.
    fn extreme(&self, a: &Sum, b: &Sum, make: fn(Arc<Pair>) -> Atom) -> Option<Sum> {
        let is_min = matches!(make(Arc::new(Pair::default())), Atom::Min(_));
        let gap = b.minus(a)?;
        if self.nonneg(&gap) {
            return Some(if is_min { a.clone() } else { b.clone() });
        }
        if self.nonneg(&gap.scaled(-1)?) {
            return Some(if is_min { b.clone() } else { a.clone() });
        }
        let (shared, _) = a.partition(|it| b.coef(&it.atoms) == it.coef);
        let (a, b) = (a.minus(&shared)?, b.minus(&shared)?);
        let factor = gcd(a.content()?, b.content()?)?;
        let (a, b) = (a.over(factor), b.over(factor));
        let pair = if a <= b { Pair(a, b) } else { Pair(b, a) };
        shared.plus(&Sum::atom(make(Arc::new(pair))).scaled(factor)?)
    }

    /// Merges quotients with the remainders that belong to them until none is left to merge.
    pub(crate) fn recombine(&self, mut sum: Sum) -> Sum {
        while let Some(better) = self.recombined(&sum) {
            sum = better;
        }
        sum
    }

    fn recombined(&self, sum: &Sum) -> Option<Sum> {
        let is_mod = |it: &Term| it.atoms.iter().any(|it| matches!(it, Atom::Mod(_)));
        if sum.terms.len() < 2 || !sum.terms.iter().any(is_mod) {
            return None;
        }
        sum.terms.iter().find_map(|term| {
            term.atoms.iter().find_map(|atom| match atom {
                Atom::Div(pair) => {
                    let by = units(term, atom, &pair.1)?;
                    let remainder = self.remainder(&pair.0, &pair.1)?;
                    replace(sum, term, &by, &remainder, &pair.0)
                }
                Atom::Mod(pair) => self.recombined_mod(sum, term, atom, pair),
                Atom::Min(_) | Atom::Max(_) | Atom::Xor(_) | Atom::Var(_) | Atom::Opaque(_) => None,
            })
        })
    }

    /// `((x floordiv a + y) mod c)*a + x mod a => (x + a*y) mod (a*c)`.
    fn recombined_mod(&self, sum: &Sum, term: &Term, atom: &Atom, pair: &Pair) -> Option<Sum> {
        pair.0.terms.iter().find_map(|inner| {
            let [Atom::Div(ratio)] = &inner.atoms[..] else { return None };
            if inner.coef != 1 {
                return None;
            }
            let by = units(term, atom, &ratio.1)?;
            let remainder = self.remainder(&ratio.0, &ratio.1)?;
            if !has_all(sum, &remainder.times_term(&by)?) {
                return None;
            }
            let y = pair.0.minus(&inner.clone().into_sum())?;
            let whole = ratio.0.plus(&ratio.1.times(&y)?)?;
            let whole = self.remainder(&whole, &ratio.1.times(&pair.1)?)?;
            replace(sum, term, &by, &remainder, &whole)
        })
    }
}

/// The exclusive or of two: a constant where both are, and otherwise an atom with its operands in order.
fn exclusive_or(a: Sum, b: Sum) -> Sum {
    match (a.as_constant(), b.as_constant()) {
        (Some(a), Some(b)) => Sum::constant(a ^ b),
        (Some(0), None) => b,
        (None, Some(0)) => a,
        _ if a == b => Sum::default(),
        _ => Sum::atom(Atom::Xor(Arc::new(if a <= b { Pair(a, b) } else { Pair(b, a) }))),
    }
}

/// The `k` of a term that is `k*unit*atom`.
fn units(term: &Term, atom: &Atom, unit: &Sum) -> Option<Term> {
    let cofactor = Term { atoms: term.without(std::slice::from_ref(atom))?, coef: term.coef };
    cofactor.over(&unit.as_term()?)
}

/// Whether a sum has all quotients and remainders of another, with their coefficients.
fn has_all(sum: &Sum, other: &Sum) -> bool {
    let mut ratios = other.terms.iter().filter(|it| it.atoms.iter().any(Atom::is_ratio));
    ratios.all(|it| sum.coef(&it.atoms) == it.coef)
}

/// Replaces `k*unit*atom + k*remainder` in a sum, where `term` is the first of them and `by` is `k`, by `k*whole`.
///
/// Only where all of `k*remainder` is there, so that the result has fewer quotients and remainders.
fn replace(sum: &Sum, term: &Term, by: &Term, remainder: &Sum, whole: &Sum) -> Option<Sum> {
    let gone = remainder.times_term(by)?;
    if !has_all(sum, &gone) {
        return None;
    }
    let rest = sum.minus(&term.clone().into_sum())?.minus(&gone)?;
    let out = rest.plus(&whole.times_term(by)?)?;
    (out.ratios() < sum.ratios()).then_some(out)
}

/// The sum with `k*(x mod m)` as `k*x` wherever `c` divides `k*m`; `Some(None)` where there is none.
#[expect(clippy::option_option, reason = "the outer one is overflow, the inner one is the answer")]
fn open_remainders(sum: &Sum, c: i64) -> Option<Option<Sum>> {
    for term in &sum.terms {
        if let [Atom::Mod(inner)] = &term.atoms[..]
            && let Some(m) = inner.1.as_constant()
            && term.coef.checked_mul(m)? % c == 0
        {
            let rest = sum.minus(&term.clone().into_sum())?;
            return Some(Some(rest.plus(&inner.0.scaled(term.coef)?)?));
        }
    }
    Some(None)
}

fn pick(part: Part, quotient: Sum, remainder: Sum) -> Sum {
    match part {
        Part::Quotient => quotient,
        Part::Remainder => remainder,
    }
}

fn atom(part: Part, a: Sum, b: Sum) -> Sum {
    let pair = Arc::new(Pair(a, b));
    Sum::atom(match part {
        Part::Quotient => Atom::Div(pair),
        Part::Remainder => Atom::Mod(pair),
    })
}
