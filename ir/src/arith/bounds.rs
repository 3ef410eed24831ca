//! What is known of variables, and the intervals that follow.

use std::sync::Arc;

use super::{
    Bounds,
    sum::{Atom, Sum, Term},
};
use crate::{Index, IndexKind, Name};

/// What is known of one variable.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The extent as it was learnt.
    pub(super) extent: Option<Index>,
    /// The greatest value over outer variables, where it is not a constant.
    pub(super) top: Option<Arc<Sum>>,
    /// The least and greatest value.
    pub(super) range: Range,
}

/// Variables in scope order. There are few of them, so that looking through them is faster than hashing names.
#[derive(Debug, Default)]
pub(super) struct Vars(Vec<(Name, Known)>);

// Who clones what is known mostly learns more.
impl Clone for Vars {
    fn clone(&self) -> Vars {
        let mut out = Vec::with_capacity(self.0.len() + 4);
        out.extend_from_slice(&self.0);
        Vars(out)
    }
}

impl Vars {
    /// What is known of a variable.
    pub(super) fn get(&self, name: &Name) -> Option<&Known> {
        self.0.iter().find(|it| it.0 == *name).map(|it| &it.1)
    }

    /// The place of a variable in scope order.
    fn position(&self, name: &Name) -> Option<usize> {
        self.0.iter().position(|it| it.0 == *name)
    }

    /// Makes a variable the last one, whatever was known of it.
    pub(super) fn push(&mut self, name: &Name, known: Known) {
        self.remove(name);
        if self.0.capacity() == 0 {
            self.0.reserve(16);
        }
        self.0.push((name.clone(), known));
    }

    /// Forgets a variable, most likely the last one.
    pub(super) fn remove(&mut self, name: &Name) {
        if let Some(at) = self.0.iter().rposition(|it| it.0 == *name) {
            self.0.remove(at);
        }
    }

    /// What is known of a variable, to learn more; an unknown one becomes the last.
    fn entry(&mut self, name: &Name) -> &mut Known {
        let at = self.position(name).unwrap_or_else(|| {
            self.0.push((name.clone(), Known::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// All of them, outer first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Name, &Known)> {
        self.0.iter().map(|(name, known)| (name, known))
    }
}

/// Least and greatest value; `None` is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Range {
    /// The least.
    pub(super) lo: Option<i64>,
    /// The greatest.
    pub(super) hi: Option<i64>,
}

impl Range {
    /// Exactly one value.
    pub(super) fn exactly(value: i64) -> Range {
        Range { lo: Some(value), hi: Some(value) }
    }

    /// The value where there is exactly one.
    pub(super) fn constant(self) -> Option<i64> {
        self.lo.filter(|it| self.hi == Some(*it))
    }

    /// Whether all values are more than `-limit` and less than `limit`.
    fn is_within(self, limit: i64) -> bool {
        self.lo.is_some_and(|it| it > -limit) && self.hi.is_some_and(|it| it < limit)
    }

    /// Both limits, to match on.
    pub(super) fn both(self) -> (Option<i64>, Option<i64>) {
        (self.lo, self.hi)
    }

    /// The values of the sum.
    pub(super) fn plus(self, other: Range) -> Range {
        let add = |a: Option<i64>, b: Option<i64>| a?.checked_add(b?);
        Range { lo: add(self.lo, other.lo), hi: add(self.hi, other.hi) }
    }

    /// The values of the product with a constant.
    pub(super) fn scaled(self, by: i64) -> Range {
        let times = |it: Option<i64>| it?.checked_mul(by);
        match by {
            0 => Range::exactly(0),
            1.. => Range { lo: times(self.lo), hi: times(self.hi) },
            _ => Range { lo: times(self.hi), hi: times(self.lo) },
        }
    }

    /// The values of the product.
    pub(super) fn times(self, other: Range) -> Range {
        if let Some(by) = self.constant() {
            return other.scaled(by);
        }
        if let Some(by) = other.constant() {
            return self.scaled(by);
        }
        let corner = |a: Option<i64>, b: Option<i64>| a?.checked_mul(b?);
        if self.lo.is_some_and(|it| it >= 0) && other.lo.is_some_and(|it| it >= 0) {
            return Range { lo: corner(self.lo, other.lo).or(Some(0)), hi: corner(self.hi, other.hi) };
        }
        let corners = [(self.lo, other.lo), (self.lo, other.hi), (self.hi, other.lo), (self.hi, other.hi)];
        let corners: Option<Vec<i64>> = corners.into_iter().map(|(a, b)| corner(a, b)).collect();
        let Some(corners) = corners else { return Range::default() };
        Range { lo: corners.iter().copied().min(), hi: corners.into_iter().max() }
    }

    /// The values of the quotient by a divisor that is at least 1.
    pub(super) fn over(self, divisor: Range) -> Range {
        let least = divisor.lo.unwrap_or(1).max(1);
        let most = divisor.hi.map(|it| it.max(1));
        // A quotient grows towards zero as the divisor grows; without a greatest divisor it ends at 0 or -1.
        let small = |value: i64| most.map_or(if value < 0 { -1 } else { 0 }, |it| value.div_euclid(it));
        let lo = self.lo.map(|it| if it >= 0 { small(it) } else { it.div_euclid(least) });
        let hi = self.hi.map(|it| if it >= 0 { it.div_euclid(least) } else { small(it) });
        Range { lo, hi }
    }

    /// The values of the remainder by a divisor that is at least 1.
    pub(super) fn modulo(self, divisor: Range) -> Range {
        if let ((Some(lo), Some(hi)), Some(a)) = (self.both(), divisor.constant())
            && a > 0
            && lo.div_euclid(a) == hi.div_euclid(a)
        {
            return Range { lo: Some(lo.rem_euclid(a)), hi: Some(hi.rem_euclid(a)) };
        }
        let below = divisor.hi.map(|it| it.max(1) - 1);
        let itself = self.hi.filter(|_| self.lo.is_some_and(|it| it >= 0));
        let hi = match (below, itself) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Range { lo: Some(0), hi }
    }

    /// The values of the smaller of two.
    pub(super) fn minimum(self, other: Range) -> Range {
        let lo = self.lo.zip(other.lo).map(|(a, b)| a.min(b));
        let hi = match (self.hi, other.hi) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Range { lo, hi }
    }

    /// The values of the larger of two.
    pub(super) fn maximum(self, other: Range) -> Range {
        let lo = match (self.lo, other.lo) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        let hi = self.hi.zip(other.hi).map(|(a, b)| a.max(b));
        Range { lo, hi }
    }

    /// The values of the exclusive or: below the power of two that neither reaches, if neither is negative.
    pub(super) fn xor(self, other: Range) -> Range {
        let (Some(0..), Some(0..)) = (self.lo, other.lo) else { return Range::default() };
        // Neither is negative, so that the bits of both together are a number as long as the longer one. Where a loop
        // has no iterations, a greatest value may be negative all the same.
        let ones = |it: i64| i64::MAX.checked_shr(it.leading_zeros() - 1).unwrap_or(0);
        Range { lo: Some(0), hi: self.hi.zip(other.hi).map(|(a, b)| ones((a | b).max(0))) }
    }

    /// The values in both.
    pub(super) fn meet(self, other: Range) -> Range {
        let lo = match (self.lo, other.lo) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
        let hi = match (self.hi, other.hi) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Range { lo, hi }
    }
}

impl Bounds {
    /// The place of a variable in scope order.
    pub(super) fn level(&self, name: &Name) -> Option<usize> {
        self.known.position(name)
    }

    /// Whether this is a symbolic dimension.
    pub(super) fn is_dim(&self, name: &Name) -> bool {
        self.known.get(name).is_some_and(|it| it.extent.is_none() && it.range.lo.is_some_and(|it| it >= 1))
    }

    /// The values of a sum, term by term.
    pub(super) fn range(&self, sum: &Sum) -> Range {
        let start = Range::exactly(sum.constant);
        sum.terms.iter().fold(start, |out, it| out.plus(self.range_of_term(it)))
    }

    fn range_of_term(&self, term: &Term) -> Range {
        let start = Range::exactly(1);
        term.atoms.iter().fold(start, |out, it| out.times(self.range_of_atom(it))).scaled(term.coef)
    }

    pub(super) fn range_of_atom(&self, atom: &Atom) -> Range {
        match atom {
            Atom::Div(it) => self.range(&it.0).over(self.range(&it.1)),
            Atom::Mod(it) => self.range(&it.0).modulo(self.range(&it.1)),
            Atom::Min(it) => self.range(&it.0).minimum(self.range(&it.1)),
            Atom::Max(it) => self.range(&it.0).maximum(self.range(&it.1)),
            Atom::Xor(it) => self.range(&it.0).xor(self.range(&it.1)),
            Atom::Var(name) => self.range_of_var(name),
            Atom::Opaque(index) => self.range_of_leaf(index),
        }
    }

    /// The values of a variable, or of an element of an input; of anything else any.
    pub(super) fn range_of_leaf(&self, index: &Index) -> Range {
        match index.kind() {
            IndexKind::Var(name) => self.range_of_var(name),
            IndexKind::Element(_, _, below) => {
                let hi = self.range(&self.sum(below)).hi.and_then(|it| it.checked_sub(1));
                Range { lo: Some(0), hi }
            }
            _ => Range::default(),
        }
    }

    /// The values of a variable.
    pub(super) fn range_of_var(&self, name: &Name) -> Range {
        self.known.get(name).map(|it| it.range).unwrap_or_default()
    }

    /// Whether an index and every part of it is proved to be more than `-limit` and less than `limit`.
    pub fn is_within(&self, index: &Index, limit: i64) -> bool {
        self.range_within(index, limit).is_some() || self.is_proved_within(index, limit)
    }

    /// The values of an index, of each operation by those of its operands; `None` where it or a part of it may be beyond
    /// the limit. This is what most indices need, and none has to be brought to its normal form for it.
    fn range_within(&self, index: &Index, limit: i64) -> Option<Range> {
        let of = |it: &Index| self.range_within(it, limit);
        let range = match index.kind() {
            IndexKind::Int(value) => Range::exactly(value),
            IndexKind::Var(name) => self.range_of_var(name),
            IndexKind::Add(a, b) => of(a)?.plus(of(b)?),
            IndexKind::Mul(a, b) => of(a)?.times(of(b)?),
            IndexKind::FloorDiv(a, b) => of(a)?.over(of(b)?),
            IndexKind::FloorMod(a, b) => of(a)?.modulo(of(b)?),
            IndexKind::Min(a, b) => of(a)?.minimum(of(b)?),
            IndexKind::Max(a, b) => of(a)?.maximum(of(b)?),
            IndexKind::Xor(a, b) => of(a)?.xor(of(b)?),
            IndexKind::Element(_, at, _) => {
                of(at)?;
                self.range_of_leaf(index)
            }
        };
        range.is_within(limit).then_some(range)
    }

    /// The same by the normal forms of the index and of its parts.
    fn is_proved_within(&self, index: &Index, limit: i64) -> bool {
        let parts = match index.kind() {
            IndexKind::Int(_) | IndexKind::Var(_) => true,
            IndexKind::Add(a, b)
            | IndexKind::Mul(a, b)
            | IndexKind::FloorDiv(a, b)
            | IndexKind::FloorMod(a, b)
            | IndexKind::Min(a, b)
            | IndexKind::Max(a, b)
            | IndexKind::Xor(a, b) => self.is_within(a, limit) && self.is_within(b, limit),
            IndexKind::Element(_, at, _) => self.is_within(at, limit),
        };
        let (lo, hi) = self.interval(index);
        parts && Range { lo, hi }.is_within(limit)
    }

    /// Whether more is known of the sum than intervals say: facts, or extents over other variables.
    pub(super) fn is_relational(&self, sum: &Sum) -> bool {
        if sum.terms.is_empty() {
            return false;
        }
        !self.facts.is_empty() || sum.any_var(&|name| self.known.get(name).is_some_and(|it| it.top.is_some()))
    }

    /// Learns that a sum is not negative: kept as a fact, and as an interval of each variable alone in a term.
    pub(super) fn learn(&mut self, fact: Sum) {
        if fact.as_constant().is_some() || self.facts.iter().any(|it| **it == fact) {
            return;
        }
        for (at, term) in fact.terms.iter().enumerate() {
            let [Atom::Var(name)] = &term.atoms[..] else { continue };
            let mut rest = fact.clone();
            rest.terms.remove(at);
            // c*x + rest >= 0 where rest <= most: c*x >= -most.
            let Some(least) = self.range(&rest).hi.and_then(i64::checked_neg) else { continue };
            let Some(size) = term.coef.checked_abs() else { continue };
            let range = if term.coef > 0 {
                Range { lo: least.checked_add(size - 1).map(|it| it.div_euclid(size)), hi: None }
            } else {
                Range { lo: None, hi: least.checked_neg().map(|it| it.div_euclid(size)) }
            };
            let known = self.known.entry(name);
            known.range = known.range.meet(range);
        }
        self.facts.push(Arc::new(fact));
    }
}
