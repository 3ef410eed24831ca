//! Conditions over indices.

use crate::{Index, Name};

/// The condition `lhs < rhs`: the one form of a guard.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Less {
    /// The smaller side.
    pub lhs: Index,
    /// The larger side.
    pub rhs: Index,
}

impl Less {
    /// The condition `lhs < rhs`.
    pub fn new(lhs: Index, rhs: Index) -> Less {
        Less { lhs, rhs }
    }

    /// The condition with each variable replaced where `with` answers.
    #[must_use]
    pub fn subst(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Less {
        Less { lhs: self.lhs.subst(with), rhs: self.rhs.subst(with) }
    }

    /// Conditions with every index in them rewritten by `f`.
    pub(crate) fn map_all(all: &[Less], f: &mut dyn FnMut(&Index) -> Index) -> Vec<Less> {
        all.iter().map(|it| Less::new(f(&it.lhs), f(&it.rhs))).collect()
    }
}
