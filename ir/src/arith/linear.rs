//! Sums of multiples of different variables: what most indices are. Of these much is known without their normal form.

use super::{Bounds, bounds::Range};
use crate::{Index, IndexKind, Name};

/// Longer sums are left to the normal form.
const MOST_TERMS: usize = 8;

/// Multiples of variables, none of them twice and none by zero, and a constant.
pub(super) struct Linear<'a> {
    terms: [Option<(&'a Name, i64)>; MOST_TERMS],
    count: usize,
    constant: i64,
}

impl<'a> Linear<'a> {
    /// An index as such a sum, where it is one as it stands.
    pub(super) fn of(index: &'a Index) -> Option<Linear<'a>> {
        let mut out = Linear { terms: [None; MOST_TERMS], count: 0, constant: 0 };
        out.add(index)?;
        Some(out)
    }

    fn add(&mut self, index: &'a Index) -> Option<()> {
        match index.kind() {
            IndexKind::Int(value) => self.constant = self.constant.checked_add(value)?,
            IndexKind::Var(name) => self.add_term(name, 1)?,
            IndexKind::Add(a, b) => {
                self.add(a)?;
                self.add(b)?;
            }
            IndexKind::Mul(a, b) => self.add_term(a.as_var()?, b.as_int()?)?,
            IndexKind::FloorDiv(..)
            | IndexKind::FloorMod(..)
            | IndexKind::Min(..)
            | IndexKind::Max(..)
            | IndexKind::Xor(..)
            | IndexKind::Element(..) => return None,
        }
        Some(())
    }

    fn add_term(&mut self, name: &'a Name, coef: i64) -> Option<()> {
        if coef == 0 || self.terms().any(|it| it.0 == name) {
            return None;
        }
        *self.terms.get_mut(self.count)? = Some((name, coef));
        self.count += 1;
        Some(())
    }

    fn terms(&self) -> impl Iterator<Item = (&'a Name, i64)> {
        self.terms.iter().map_while(|it| *it)
    }
}

impl Bounds {
    /// The least and greatest value of an index of which intervals say all that is known; `None` where more is known, or
    /// it is no such sum.
    pub(super) fn linear_range(&self, index: &Index) -> Option<Range> {
        if !self.facts.is_empty() {
            return None;
        }
        let linear = Linear::of(index)?;
        linear.terms().try_fold(Range::exactly(linear.constant), |sum, (name, coef)| {
            let known = self.known.get(name);
            known.is_none_or(|it| it.top.is_none()).then(|| {
                let range = known.map(|it| it.range).unwrap_or_default();
                sum.plus(range.scaled(coef))
            })
        })
    }

    /// Whether an index is its own simplest form: positive multiples of different variables, the larger before the
    /// smaller and outer variables before inner ones, added up from the left, and a constant at the end.
    pub(super) fn is_simple(&self, index: &Index) -> bool {
        let terms = match index.kind() {
            IndexKind::Add(terms, last) if last.as_int().is_some() => terms,
            _ => index,
        };
        let (mut rest, mut after): (_, Option<(i64, usize)>) = (terms, None);
        loop {
            let (before, term) = match rest.kind() {
                IndexKind::Add(before, term) => (Some(before), term),
                _ => (None, rest),
            };
            let (name, coef) = match term.kind() {
                IndexKind::Var(name) => (name, 1),
                IndexKind::Mul(var, by) => match (var.as_var(), by.as_int()) {
                    (Some(name), Some(coef)) if coef > 1 => (name, coef),
                    _ => return false,
                },
                _ => return false,
            };
            let Some(level) = self.level(name) else { return false };
            if after.is_some_and(|(smaller, inner)| coef < smaller || coef == smaller && level >= inner) {
                return false;
            }
            match before {
                Some(before) => (rest, after) = (before, Some((coef, level))),
                None => return Linear::of(index).is_some(),
            }
        }
    }
}
