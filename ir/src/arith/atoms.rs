//! The factors of a product: mostly one, and then kept in place.

use std::{
    cmp::Ordering,
    ops::{Deref, DerefMut},
};

use super::sum::Atom;

/// A list of atoms that asks for memory of its own only from two on.
#[derive(Clone, Debug)]
pub(crate) enum Atoms {
    /// At most one.
    Few(Option<Atom>),
    /// Any number.
    Many(Vec<Atom>),
}

impl Atoms {
    /// No atom.
    pub(super) const NONE: Atoms = Atoms::Few(None);

    /// One atom.
    pub(super) const fn one(atom: Atom) -> Atoms {
        Atoms::Few(Some(atom))
    }

    /// Adds an atom at the end.
    pub(super) fn push(&mut self, atom: Atom) {
        match self {
            Atoms::Few(none @ None) => *none = Some(atom),
            Atoms::Few(first @ Some(_)) => {
                *self = Atoms::Many(first.take().into_iter().chain([atom]).collect());
            }
            Atoms::Many(all) => all.push(atom),
        }
    }

    /// Takes out the first atom that is equal to this one; `None` where there is none.
    pub(super) fn take(&mut self, atom: &Atom) -> Option<Atom> {
        let at = self.iter().position(|it| it == atom)?;
        match self {
            Atoms::Few(one) => one.take(),
            Atoms::Many(all) => Some(all.remove(at)),
        }
    }

    /// The sorted factors of the product of two.
    pub(super) fn merged(&self, other: &Atoms) -> Atoms {
        match (self.is_empty(), other.is_empty()) {
            (true, _) => other.clone(),
            (_, true) => self.clone(),
            (false, false) => {
                let mut all = [&self[..], &other[..]].concat();
                all.sort_unstable();
                Atoms::Many(all)
            }
        }
    }
}

impl Deref for Atoms {
    type Target = [Atom];

    fn deref(&self) -> &[Atom] {
        match self {
            Atoms::Few(it) => it.as_slice(),
            Atoms::Many(it) => it,
        }
    }
}

impl DerefMut for Atoms {
    fn deref_mut(&mut self) -> &mut [Atom] {
        match self {
            Atoms::Few(it) => it.as_mut_slice(),
            Atoms::Many(it) => it,
        }
    }
}

// Where the atoms are kept makes no difference.
impl PartialEq for Atoms {
    fn eq(&self, other: &Atoms) -> bool {
        self[..] == other[..]
    }
}

impl Eq for Atoms {}

impl Ord for Atoms {
    fn cmp(&self, other: &Atoms) -> Ordering {
        self[..].cmp(&other[..])
    }
}

impl PartialOrd for Atoms {
    fn partial_cmp(&self, other: &Atoms) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> IntoIterator for &'a Atoms {
    type Item = &'a Atom;
    type IntoIter = std::slice::Iter<'a, Atom>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
