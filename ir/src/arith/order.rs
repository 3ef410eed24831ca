//! From the normal form back to an index: the order in which things are printed.
//!
//! Quotients and remainders of one numerator stand next to each other at the front, where the rules of
//! [`super::rules`] look for them. Other terms follow with large strides first, as people write addresses.
//! In a product, variables come before symbolic dimensions, so that strides stand on the right.

use std::{
    borrow::Cow,
    cmp::{Ordering, Reverse},
};

use super::{
    Bounds,
    sum::{Atom, Pair, Sum, Term},
};
use crate::Index;

impl Bounds {
    /// The sum as an index.
    pub(crate) fn index(&self, sum: &Sum) -> Index {
        match &sum.terms[..] {
            [] => return Index::int(sum.constant),
            [term] if sum.constant == 0 => return self.product(&self.in_order(term)),
            _ => {}
        }
        let mut terms: Vec<Cow<'_, Term>> = sum.terms.iter().map(|it| self.in_order(it)).collect();
        terms.sort_by(|a, b| self.compare(a, b));
        let constant = Index::int(sum.constant);
        let constant_first = sum.constant > 0 && terms.iter().all(|it| it.coef < 0);
        let start = if constant_first { constant.clone() } else { Index::int(0) };
        let out = terms.iter().fold(start, |out, it| out + self.product(it));
        if constant_first { out } else { out + constant }
    }

    fn product(&self, term: &Term) -> Index {
        if let Some(extreme) = self.scaled_extreme(term) {
            return extreme;
        }
        let start = Index::int(1);
        let out = term.atoms.iter().fold(start, |out, it| out * self.atom(it));
        out * term.coef
    }

    /// A multiple of a minimum or maximum with the factor inside, where everything in it that is no constant is multiplied
    /// anyway: so it costs nothing there.
    fn scaled_extreme(&self, term: &Term) -> Option<Index> {
        let ([Atom::Min(pair) | Atom::Max(pair)], 2..) = (&term.atoms[..], term.coef) else { return None };
        let is_multiplied = |it: &Sum| it.terms.iter().all(|it| it.coef.unsigned_abs() > 1);
        if !is_multiplied(&pair.0) || !is_multiplied(&pair.1) {
            return None;
        }
        let (a, b) = (self.index(&pair.0.scaled(term.coef)?), self.index(&pair.1.scaled(term.coef)?));
        let is_min = matches!(&term.atoms[..], [Atom::Min(_)]);
        Some(if is_min { a.minimum(&b) } else { a.maximum(&b) })
    }

    fn atom(&self, atom: &Atom) -> Index {
        match atom {
            Atom::Div(it) => self.index(&it.0).floor_div(&self.index(&it.1)),
            Atom::Mod(it) => self.index(&it.0).floor_mod(&self.index(&it.1)),
            Atom::Min(it) => self.index(&it.0).minimum(&self.index(&it.1)),
            Atom::Max(it) => self.index(&it.0).maximum(&self.index(&it.1)),
            Atom::Xor(it) => self.index(&it.0).xor(&self.index(&it.1)),
            Atom::Var(name) => Index::var(name),
            Atom::Opaque(index) => index.clone(),
        }
    }

    /// The product with its atoms in the order of printing.
    fn in_order<'a>(&self, term: &'a Term) -> Cow<'a, Term> {
        let mut term = Cow::Borrowed(term);
        if term.atoms.len() > 1 {
            term.to_mut().atoms.sort_by_cached_key(|it| (self.class(it), self.position(it)));
        }
        term
    }

    fn class(&self, atom: &Atom) -> u8 {
        match atom {
            Atom::Div(_) | Atom::Mod(_) => 0,
            Atom::Min(_) | Atom::Max(_) | Atom::Xor(_) | Atom::Opaque(_) => 1,
            Atom::Var(name) if self.is_dim(name) => 3,
            Atom::Var(_) => 2,
        }
    }

    /// Where a variable stands in scope order; others come after all of them.
    fn position(&self, atom: &Atom) -> usize {
        match atom {
            Atom::Var(name) => self.level(name).unwrap_or(usize::MAX),
            Atom::Div(_) | Atom::Mod(_) | Atom::Min(_) | Atom::Max(_) | Atom::Xor(_) | Atom::Opaque(_) => {
                usize::MAX
            }
        }
    }

    fn compare(&self, a: &Term, b: &Term) -> Ordering {
        match (ratio(a), ratio(b)) {
            (Some(x), Some(y)) => x.cmp(&y).then_with(|| a.cmp(b)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.by_size(a).cmp(&self.by_size(b)).then_with(|| {
                let (x, y) = (a.atoms.iter(), b.atoms.iter());
                let by_position = x.map(|it| self.position(it)).cmp(y.map(|it| self.position(it)));
                by_position.then_with(|| a.cmp(b))
            }),
        }
    }

    #[expect(clippy::unused_self, reason = "stands with its siblings")]
    fn by_size(&self, term: &Term) -> impl Ord + use<> {
        (term.coef < 0, Reverse(term.atoms.len()), Reverse(term.coef.unsigned_abs()))
    }
}

/// What is divided by what in the first quotient or remainder of a product, and whether that is a remainder.
fn ratio(term: &Term) -> Option<(&Pair, bool)> {
    term.atoms.iter().find_map(|it| match it {
        Atom::Div(pair) => Some((&**pair, false)),
        Atom::Mod(pair) => Some((&**pair, true)),
        Atom::Min(_) | Atom::Max(_) | Atom::Xor(_) | Atom::Var(_) | Atom::Opaque(_) => None,
    })
}
