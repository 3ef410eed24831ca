//! The data of the normal form: sums of products of atoms with integer coefficients.
//!
//! Every operation is checked: `None` means that a coefficient would overflow (or that a product would have too
//! many terms), and the caller then leaves the expression as it stands.

use std::{cmp::Ordering, sync::Arc};

use super::atoms::Atoms;
use crate::{Index, Name};

/// What a product is made of.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Atom {
    /// The floor of `pair.0 / pair.1`; the divisor is positive.
    Div(Arc<Pair>),
    /// The remainder of `pair.0` by `pair.1`; the divisor is positive.
    Mod(Arc<Pair>),
    /// The smaller of two.
    Min(Arc<Pair>),
    /// The larger of two.
    Max(Arc<Pair>),
    /// The bitwise exclusive or of two.
    Xor(Arc<Pair>),
    /// A variable.
    Var(Name),
    /// An expression that cannot be brought to the normal form: it overflows or divides by what is not positive.
    Opaque(Index),
}

/// The operands of a compound atom.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Pair(pub(crate) Sum, pub(crate) Sum);

/// A product: sorted atoms, repeats allowed, with a coefficient other than zero.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Term {
    /// The factors.
    pub(crate) atoms: Atoms,
    /// The coefficient.
    pub(crate) coef: i64,
}

/// A sum of products, sorted by their atoms, none of them twice, and a constant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Sum {
    /// The products.
    pub(crate) terms: Vec<Term>,
    /// The constant.
    pub(crate) constant: i64,
}

/// Above this many products a multiplication is not carried out.
const MOST_TERMS: usize = 64;

impl Atom {
    /// Whether this is a quotient or a remainder.
    pub(super) fn is_ratio(&self) -> bool {
        match self {
            Atom::Div(_) | Atom::Mod(_) => true,
            Atom::Min(_) | Atom::Max(_) | Atom::Xor(_) | Atom::Var(_) | Atom::Opaque(_) => false,
        }
    }

    /// How many quotients and remainders there are in it, itself included.
    pub(super) fn ratios(&self) -> usize {
        match self {
            Atom::Div(it) | Atom::Mod(it) => 1 + it.0.ratios() + it.1.ratios(),
            Atom::Min(it) | Atom::Max(it) | Atom::Xor(it) => it.0.ratios() + it.1.ratios(),
            Atom::Var(_) | Atom::Opaque(_) => 0,
        }
    }

    /// Whether any variable that occurs satisfies `pred`.
    pub(crate) fn any_var(&self, pred: &dyn Fn(&Name) -> bool) -> bool {
        match self {
            Atom::Div(it) | Atom::Mod(it) | Atom::Min(it) | Atom::Max(it) | Atom::Xor(it) => {
                it.0.any_var(pred) || it.1.any_var(pred)
            }
            Atom::Var(name) => pred(name),
            Atom::Opaque(index) => index.any_var(pred),
        }
    }
}

impl Term {
    /// A constant as a product of nothing.
    pub(super) fn constant(coef: i64) -> Term {
        Term { atoms: Atoms::NONE, coef }
    }

    /// The product of two.
    pub(super) fn times(&self, other: &Term) -> Option<Term> {
        let coef = self.coef.checked_mul(other.coef)?;
        Some(Term { atoms: self.atoms.merged(&other.atoms), coef })
    }

    /// The factors without those of `other`, which must all be among them.
    pub(super) fn without(&self, other: &[Atom]) -> Option<Atoms> {
        let mut atoms = self.atoms.clone();
        for atom in other {
            atoms.take(atom)?;
        }
        Some(atoms)
    }

    /// The quotient where `other` divides this exactly.
    pub(super) fn over(&self, other: &Term) -> Option<Term> {
        if self.coef.checked_rem(other.coef)? != 0 {
            return None;
        }
        Some(Term { atoms: self.without(&other.atoms)?, coef: self.coef / other.coef })
    }

    /// The largest product that divides both, with a positive coefficient.
    pub(super) fn common(&self, other: &Term) -> Option<Term> {
        let mut left = other.atoms.clone();
        let mut atoms = Atoms::NONE;
        for atom in &self.atoms {
            if let Some(same) = left.take(atom) {
                atoms.push(same);
            }
        }
        Some(Term { atoms, coef: gcd(self.coef, other.coef)? })
    }

    /// This one product as a sum.
    pub(super) fn into_sum(self) -> Sum {
        match (self.coef, self.atoms.is_empty()) {
            (0, _) => Sum::default(),
            (coef, true) => Sum::constant(coef),
            (_, false) => Sum { terms: vec![self], constant: 0 },
        }
    }
}

impl Sum {
    /// A constant.
    pub(super) fn constant(constant: i64) -> Sum {
        Sum { terms: Vec::new(), constant }
    }

    /// One atom.
    pub(super) fn atom(atom: Atom) -> Sum {
        Sum { terms: vec![Term { atoms: Atoms::one(atom), coef: 1 }], constant: 0 }
    }

    /// The sum of products in any order, none with the coefficient zero. `None` where a coefficient overflows.
    pub(super) fn of_terms(mut terms: Vec<Term>, constant: i64) -> Option<Sum> {
        if !terms.is_sorted_by(|a, b| a.atoms < b.atoms) {
            terms.sort_by(|a, b| a.atoms.cmp(&b.atoms));
            let mut overflow = false;
            terms.dedup_by(|next, kept| {
                let same = next.atoms == kept.atoms;
                if same {
                    match kept.coef.checked_add(next.coef) {
                        Some(coef) => kept.coef = coef,
                        None => overflow = true,
                    }
                }
                same
            });
            terms.retain(|it| it.coef != 0);
            if overflow {
                return None;
            }
        }
        Some(Sum { terms, constant })
    }

    /// The value, if this is a constant.
    pub(crate) fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The one product that this is, where it is.
    pub(super) fn as_term(&self) -> Option<Term> {
        match (&self.terms[..], self.constant) {
            ([], constant) => Some(Term::constant(constant)),
            ([term], 0) => Some(term.clone()),
            _ => None,
        }
    }

    /// The one atom that this is, plus a constant, where it is that.
    pub(crate) fn as_atom(&self) -> Option<(&Atom, i64)> {
        match &self.terms[..] {
            [Term { atoms, coef: 1 }] if atoms.len() == 1 => Some((&atoms[0], self.constant)),
            _ => None,
        }
    }

    /// The sum of two.
    pub(crate) fn plus(&self, other: &Sum) -> Option<Sum> {
        if other.terms.is_empty() {
            return self.clone().plus_constant(other.constant);
        }
        let constant = self.constant.checked_add(other.constant)?;
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            match x.atoms.cmp(&y.atoms) {
                Ordering::Less => terms.extend(a.next().cloned()),
                Ordering::Greater => terms.extend(b.next().cloned()),
                Ordering::Equal => {
                    let coef = x.coef.checked_add(y.coef)?;
                    if coef != 0 {
                        terms.push(Term { atoms: x.atoms.clone(), coef });
                    }
                    a.next();
                    b.next();
                }
            }
        }
        terms.extend(a.chain(b).cloned());
        Some(Sum { terms, constant })
    }

    /// The sum with a constant.
    pub(crate) fn plus_constant(mut self, constant: i64) -> Option<Sum> {
        self.constant = self.constant.checked_add(constant)?;
        Some(self)
    }

    /// The sum with one more product.
    pub(super) fn plus_term(&self, term: Term) -> Option<Sum> {
        self.plus(&term.into_sum())
    }

    /// The difference of two.
    pub(super) fn minus(&self, other: &Sum) -> Option<Sum> {
        self.plus(&other.scaled(-1)?)
    }

    /// The product with a constant.
    pub(crate) fn scaled(&self, by: i64) -> Option<Sum> {
        if by == 0 {
            return Some(Sum::default());
        }
        let mut out = self.clone();
        out.constant = out.constant.checked_mul(by)?;
        for term in &mut out.terms {
            term.coef = term.coef.checked_mul(by)?;
        }
        Some(out)
    }

    /// The greatest constant that divides all coefficients and the constant; 0 for a sum of nothing.
    pub(super) fn content(&self) -> Option<i64> {
        self.terms.iter().try_fold(self.constant.checked_abs()?, |all, it| gcd(all, it.coef))
    }

    /// The quotient by a constant that divides all of it ([`Sum::content`]).
    pub(super) fn over(mut self, by: i64) -> Sum {
        self.constant /= by;
        self.terms.iter_mut().for_each(|it| it.coef /= by);
        self
    }

    /// The product of two.
    pub(super) fn times(&self, other: &Sum) -> Option<Sum> {
        if let Some(by) = other.as_constant() {
            return self.scaled(by);
        }
        if let Some(by) = self.as_constant() {
            return other.scaled(by);
        }
        if self.terms.len() * other.terms.len() > MOST_TERMS {
            return None;
        }
        let mut out = self.scaled(other.constant)?;
        for term in &other.terms {
            out = out.plus(&self.times_term(term)?)?;
        }
        Some(out)
    }

    /// The product with one product.
    pub(super) fn times_term(&self, by: &Term) -> Option<Sum> {
        if by.atoms.is_empty() {
            return self.scaled(by.coef);
        }
        let mut terms = Vec::with_capacity(self.terms.len() + 1);
        for term in &self.terms {
            terms.push(term.times(by)?);
        }
        if self.constant != 0 {
            terms.push(Term { atoms: by.atoms.clone(), coef: by.coef.checked_mul(self.constant)? });
        }
        terms.sort_unstable();
        Some(Sum { terms, constant: 0 })
    }

    /// `(of, rest)`: the products that satisfy `pred`, and the others with the constant.
    pub(crate) fn partition(&self, pred: impl Fn(&Term) -> bool) -> (Sum, Sum) {
        let with_room = |constant| Sum { terms: Vec::with_capacity(self.terms.len()), constant };
        let (mut of, mut rest) = (with_room(0), with_room(self.constant));
        for term in &self.terms {
            let to = if pred(term) { &mut of } else { &mut rest };
            to.terms.push(term.clone());
        }
        (of, rest)
    }

    /// The coefficient of a product of atoms; zero where it does not occur.
    pub(super) fn coef(&self, atoms: &[Atom]) -> i64 {
        self.terms.iter().find(|it| it.atoms[..] == *atoms).map_or(0, |it| it.coef)
    }

    /// `(c, rest)` with `self == c*atom + rest`, where only what stands inside other atoms is not looked at.
    pub(super) fn linear(&self, atom: &Atom) -> (Sum, Sum) {
        let (of, rest) = self.partition(|it| it.atoms.contains(atom));
        let mut out = Sum::default();
        for mut term in of.terms {
            term.atoms.take(atom);
            if term.atoms.is_empty() {
                out.constant = term.coef;
            } else {
                out.terms.push(term);
            }
        }
        out.terms.sort_unstable();
        (out, rest)
    }

    /// How many quotients and remainders there are in it.
    pub(crate) fn ratios(&self) -> usize {
        self.terms.iter().flat_map(|it| &it.atoms).map(Atom::ratios).sum()
    }

    /// Whether any variable that occurs satisfies `pred`.
    pub(crate) fn any_var(&self, pred: &dyn Fn(&Name) -> bool) -> bool {
        self.terms.iter().flat_map(|it| &it.atoms).any(|it| it.any_var(pred))
    }
}

/// `(q, r)` with `sum == lead*q + r` and no coefficient of a multiple of `lead` as large as that of `lead`.
pub(super) fn multiples(sum: &Sum, lead: &Term) -> Option<(Sum, Sum)> {
    split_multiples(sum, lead, false)
}

/// `(q, r)` with `sum == lead*q + r` where only terms that `lead` divides go to `q`.
pub(super) fn exact_multiples(sum: &Sum, lead: &Term) -> Option<(Sum, Sum)> {
    split_multiples(sum, lead, true)
}

fn split_multiples(sum: &Sum, lead: &Term, exact: bool) -> Option<(Sum, Sum)> {
    let (mut quotient, mut rest) = (Sum::default(), Sum::default());
    rest.terms.reserve_exact(sum.terms.len());
    quotient.terms.reserve_exact(sum.terms.len());
    for term in &sum.terms {
        let times = term.coef.checked_div(lead.coef)?;
        let left = term.coef.checked_rem(lead.coef)?;
        match term.without(&lead.atoms) {
            Some(atoms) if times != 0 && (left == 0 || !exact) => {
                let term_of_quotient = Term { atoms, coef: times };
                if lead.atoms.is_empty() {
                    // The order is that of the sum.
                    quotient.terms.push(term_of_quotient);
                } else {
                    quotient = quotient.plus_term(term_of_quotient)?;
                }
                if left != 0 {
                    rest.terms.push(Term { atoms: term.atoms.clone(), coef: left });
                }
            }
            _ => rest.terms.push(term.clone()),
        }
    }
    if lead.atoms.is_empty() {
        quotient = quotient.plus_constant(sum.constant.div_euclid(lead.coef))?;
        rest.constant = sum.constant.rem_euclid(lead.coef);
    } else {
        rest.constant = sum.constant;
    }
    Some((quotient, rest))
}

/// The greatest common divisor, never negative; `None` on overflow.
pub(super) fn gcd(a: i64, b: i64) -> Option<i64> {
    let (mut a, mut b) = (a.checked_abs()?, b.checked_abs()?);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    Some(a)
}
