//! Affine forms over loop variables, ordered so that what is known farther out comes first.

use super::super::span::Span;

/// `constant + Σ factor * slot`, with each slot once and no factor of zero.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Form {
    pub(super) constant: i64,
    /// Ascending.
    pub(super) terms: Vec<Term>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Term {
    /// The scope whose turns change the slot; scopes are counted from the outside.
    pub(super) scope: usize,
    pub(super) slot: u32,
    pub(super) factor: i64,
}

impl Form {
    pub(super) fn constant(constant: i64) -> Form {
        Form { constant, terms: vec![] }
    }

    pub(super) fn slot(scope: usize, slot: u32) -> Form {
        Form { constant: 0, terms: vec![Term { scope, slot, factor: 1 }] }
    }

    /// The innermost scope that it depends on; the outermost one, if it is constant.
    pub(super) fn scope(&self) -> usize {
        self.terms.last().map_or(0, |it| it.scope)
    }

    /// Adds `factor * other`; `None` where a number of the sum overflows.
    pub(super) fn plus(mut self, factor: i64, other: &Form) -> Option<Form> {
        self.constant = self.constant.checked_add(factor.checked_mul(other.constant)?)?;
        for it in &other.terms {
            let added = it.factor.checked_mul(factor)?;
            match self.terms.binary_search_by_key(&(it.scope, it.slot), |it| (it.scope, it.slot)) {
                Ok(at) => self.terms[at].factor = self.terms[at].factor.checked_add(added)?,
                Err(at) => self.terms.insert(at, Term { factor: added, ..*it }),
            }
        }
        self.terms.retain(|it| it.factor != 0);
        Some(self)
    }

    /// An interval that holds its values; `None` where a sum of its first terms may overflow.
    pub(super) fn span(&self, spans: &[Span]) -> Option<Span> {
        self.terms.iter().try_fold([self.constant; 2], |[low, high], it| {
            let [a, b] = spans[it.slot as usize];
            let (a, b) = (it.factor.checked_mul(a)?, it.factor.checked_mul(b)?);
            Some([low.checked_add(a.min(b))?, high.checked_add(a.max(b))?])
        })
    }
}
