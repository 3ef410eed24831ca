//! Arithmetic on indices: proofs by a hand-written normal form, choices by egg.
//!
//! *Proving* (is this in range, equal, divisible) goes through [`Bounds`], which knows the range of each variable
//! and brings an index to a sum-of-products normal form. It is total, has no limits and no clock.
//! *Choosing* the cheapest form of an index to emit is [`cheapest`], which asks egg once per distinct index.
//!
//! The parts: `sum` is the data of the normal form, `normal` brings an index to it and `order` back, `bounds` knows
//! intervals, `linear` answers for plain sums at once, `prove` answers whether a sum can be negative, `less` simplifies
//! conditions; `rules` is what egg may do and `choose` asks it.

mod atoms;
mod bounds;
mod choose;
mod less;
mod linear;
mod normal;
mod order;
mod prove;
mod rules;
pub(crate) mod sum;

use std::sync::Arc;

pub use self::choose::{cheapest, cost};
use self::{
    bounds::{Known, Range, Vars},
    sum::{Atom, Sum},
};
use crate::{Func, Index, IndexKind, Less, Name};

/// What is known of variables: for each an extent, `0 <= var < extent`, in scope order (outer first).
///
/// Symbolic dimensions are variables with a lower bound of 1 and no upper bound. Divisors are taken to be positive.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    known: Vars,
    facts: Vec<Arc<Sum>>,
}

impl Bounds {
    /// Nothing known but that the symbolic dimensions of a function are at least 1.
    pub fn of_dims(func: &Func) -> Bounds {
        let mut out = Bounds::default();
        func.dims.iter().for_each(|it| out.insert_dim(it));
        out
    }

    /// Learns that a variable is a symbolic dimension, at least 1.
    pub fn insert_dim(&mut self, dim: &Name) {
        let range = Range { lo: Some(1), hi: None };
        self.learn_var(dim, Known { range, ..Known::default() });
    }

    /// Learns `0 <= var < extent`; the extent is over variables learnt earlier.
    pub fn insert(&mut self, var: &Name, extent: &Index) {
        if let Some(value) = extent.as_int() {
            let range = Range { lo: Some(0), hi: value.checked_sub(1) };
            self.learn_var(var, Known { extent: Some(extent.clone()), top: None, range });
            return;
        }
        let top = self.sum(extent).plus_constant(-1);
        let hi = top.as_ref().and_then(|it| self.greatest(it));
        let top = top.filter(|it| it.as_constant().is_none()).map(Arc::new);
        self.learn_var(var, Known { extent: Some(extent.clone()), top, range: Range { lo: Some(0), hi } });
    }

    /// Takes back that a variable was learnt, outside whose loop it means nothing. What was assumed is kept.
    pub fn forget(&mut self, var: &Name) {
        self.known.remove(var);
    }

    /// The innermost variable is the last one, whatever was known of another of its name.
    fn learn_var(&mut self, var: &Name, known: Known) {
        self.known.push(var, known);
    }

    /// Learns that a condition holds (a guard around what is asked next).
    pub fn assume(&mut self, fact: &Less) {
        if let Some(gap) = self.gap(fact) {
            self.learn(gap);
        }
    }

    /// Whether conditions were learnt.
    pub(crate) fn has_facts(&self) -> bool {
        !self.facts.is_empty()
    }

    /// The extent learnt for a variable.
    pub fn extent(&self, var: &Name) -> Option<&Index> {
        self.known.get(var)?.extent.as_ref()
    }

    /// The least and greatest value, where they are constants.
    pub fn interval(&self, index: &Index) -> (Option<i64>, Option<i64>) {
        match index.kind() {
            IndexKind::Int(value) => (Some(value), Some(value)),
            IndexKind::Var(name)
                if self.facts.is_empty() && self.known.get(name).is_none_or(|it| it.top.is_none()) =>
            {
                self.range_of_var(name).both()
            }
            _ => match self.linear_range(index) {
                Some(range) => range.both(),
                None => self.interval_of_sum(&self.sum(index)),
            },
        }
    }

    /// The same of a normal form.
    pub(crate) fn interval_of_sum(&self, sum: &Sum) -> (Option<i64>, Option<i64>) {
        if self.is_relational(sum) { (self.least(sum), self.greatest(sum)) } else { self.range(sum).both() }
    }

    fn greatest(&self, sum: &Sum) -> Option<i64> {
        self.least(&sum.scaled(-1)?)?.checked_neg()
    }

    /// The normal form as an index: sums flattened, like terms merged, div/mod resolved where bounds allow.
    #[must_use]
    pub fn simplify(&self, index: &Index) -> Index {
        if index.as_int().is_some() || index.as_var().is_some() || self.is_simple(index) {
            return index.clone();
        }
        self.index(&self.sum(index))
    }

    /// Whether the condition always holds (`Some(true)`), never holds (`Some(false)`), or neither is proved.
    pub fn prove(&self, less: &Less) -> Option<bool> {
        if less.lhs.has_element() || less.rhs.has_element() {
            return self.with_elements_of(less).prove_by_facts(less);
        }
        self.prove_by_facts(less)
    }

    /// The bounds, and of each element of an input in a condition that it is less than is assumed of it.
    fn with_elements_of(&self, less: &Less) -> Bounds {
        let mut out = self.clone();
        let mut learn = |index: &Index| {
            if let IndexKind::Element(_, _, below) = index.kind() {
                out.assume(&Less::new(index.clone(), below.clone()));
            }
        };
        for side in [&less.lhs, &less.rhs] {
            side.each_element(&mut learn);
        }
        out
    }

    fn prove_by_facts(&self, less: &Less) -> Option<bool> {
        let gap = self.gap(less)?;
        if self.nonneg(&gap) {
            return Some(true);
        }
        let opposite = gap.scaled(-1)?.plus_constant(-1)?;
        self.nonneg(&opposite).then_some(false)
    }

    /// The condition in its simplest form, common factors divided out: `4*x + y < 4*n` with `y < 4` is `x < n`.
    ///
    /// A condition that [`Bounds::prove`] decides is only simplified like any other.
    #[must_use]
    pub fn simplify_less(&self, less: &Less) -> Less {
        self.gap(less).and_then(|it| self.condition(&it)).unwrap_or_else(|| less.clone())
    }

    /// Whether the two are equal for all values of the variables. `false` means not proved.
    pub fn equal(&self, a: &Index, b: &Index) -> bool {
        if a == b {
            return true;
        }
        let Some(gap) = self.sum(a).minus(&self.sum(b)) else { return false };
        let gap = self.recombine(gap);
        gap == Sum::default() || (self.nonneg(&gap) && gap.scaled(-1).is_some_and(|it| self.nonneg(&it)))
    }

    /// Whether `factor` divides the index for all values of the variables. `false` means not proved.
    pub fn divides(&self, factor: i64, index: &Index) -> bool {
        let Some(factor) = factor.checked_abs() else { return false };
        let sum = self.sum(index);
        if factor == 0 {
            return sum == Sum::default();
        }
        self.remainder(&sum, &Sum::constant(factor)).is_some_and(|it| it == Sum::default())
    }

    /// Writes the index as `outer + inner`: every term without an `inner` variable is in `outer`.
    pub fn split(&self, index: &Index, is_inner: &dyn Fn(&Name) -> bool) -> (Index, Index) {
        let (inner, outer) = self.sum(index).partition(|it| it.atoms.iter().any(|it| it.any_var(is_inner)));
        (self.index(&outer), self.index(&inner))
    }

    /// `(c, rest)` with `index == c*var + rest`, `c` a constant and `rest` without `var`; `None` where the index
    /// is not of that form.
    pub fn linear_in(&self, index: &Index, var: &Name) -> Option<(i64, Index)> {
        let (of, rest) =
            self.sum(index).partition(|it| it.atoms.iter().any(|it| it.any_var(&|it| it == var)));
        match &of.terms[..] {
            [] => Some((0, self.index(&rest))),
            [term] if matches!(&term.atoms[..], [Atom::Var(_)]) => Some((term.coef, self.index(&rest))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
