//! Proofs that a sum is never negative, by eliminating what it is made of, innermost first.
//!
//! A variable with a positive coefficient is replaced by its least value and one with a negative coefficient by its
//! greatest, `extent - 1`, which may mention outer variables; what cancels on the way is what intervals cannot see.
//! Quotients are replaced by `q*c <= x` and `q*c >= x - c + 1`, remainders by `0 <= r <= c - 1`. A fact `f >= 0`
//! is used by proving `d - f >= 0` instead of `d >= 0`. Each step proves something stronger, so that a proof is
//! sound; the number of steps is limited, so that the search ends.

use std::sync::Arc;

use super::{
    Bounds,
    sum::{Atom, Pair, Sum, exact_multiples},
};

/// How many steps one proof may take.
const STEPS: u32 = 96;

/// A search for a lower bound.
struct Search<'a> {
    bounds: &'a Bounds,
    facts: Vec<Arc<Sum>>,
    steps: u32,
    /// Whether the question is only `>= 0`, so that a sum may be multiplied and an answer ends the search.
    sign_only: bool,
}

impl Bounds {
    /// Whether the sum is proved to be at least 0 for all values.
    pub(super) fn nonneg(&self, sum: &Sum) -> bool {
        let range = self.range(sum);
        if range.lo.is_some_and(|it| it >= 0) {
            return true;
        }
        if sum.terms.is_empty() || range.hi.is_some_and(|it| it < 0) {
            return false;
        }
        self.search(sum, self.facts.clone(), true) || {
            let facts = self.with_extents();
            facts.len() > self.facts.len() && self.search(sum, facts, true)
        }
    }

    /// The least value that is proved by elimination or by intervals, whichever is better.
    pub(super) fn least(&self, sum: &Sum) -> Option<i64> {
        let plain = self.range(sum).lo;
        if !self.is_relational(sum) {
            return plain;
        }
        let facts = self.facts.clone();
        let found = Search { bounds: self, facts, steps: STEPS, sign_only: false }.lower(sum, 0);
        plain.max(found)
    }

    fn search(&self, sum: &Sum, facts: Vec<Arc<Sum>>, sign_only: bool) -> bool {
        let mut search = Search { bounds: self, facts, steps: STEPS, sign_only };
        search.lower(sum, 0).is_some_and(|it| it >= 0)
    }

    /// The facts, and `var < extent` for extents that are neither constants nor a dimension alone.
    fn with_extents(&self) -> Vec<Arc<Sum>> {
        let mut facts = self.facts.clone();
        for (name, known) in self.known.iter() {
            let Some(top) = &known.top else { continue };
            let var = Sum::atom(Atom::Var(name.clone()));
            facts.extend(top.minus(&var).map(Arc::new));
        }
        facts
    }
}

impl Search<'_> {
    /// A lower bound of the sum, the best found; `used` are the facts that may not be used again.
    fn lower(&mut self, sum: &Sum, used: u64) -> Option<i64> {
        let range = self.bounds.range(sum);
        let mut best = range.lo;
        if self.is_enough(best) || self.steps == 0 || sum.terms.is_empty() {
            return best;
        }
        self.steps -= 1;
        if range.hi.is_some_and(|it| self.sign_only && it < 0) {
            return best;
        }
        for at in 0..self.facts.len().min(64) {
            if used & (1 << at) == 0 {
                for weaker in self.less_fact(sum, at) {
                    best = best.max(self.lower(&weaker, used | (1 << at)));
                    if self.is_enough(best) {
                        return best;
                    }
                }
            }
        }
        best.max(self.eliminate(sum, used))
    }

    fn is_enough(&self, best: Option<i64>) -> bool {
        self.sign_only && best.is_some_and(|it| it >= 0)
    }

    /// `sum - m*fact` for each `m > 0` that cancels a term.
    fn less_fact(&self, sum: &Sum, at: usize) -> Vec<Sum> {
        let fact = &self.facts[at];
        let cancel = |term: &super::sum::Term| {
            let (have, take) = (term.coef, fact.coef(&term.atoms));
            if take == 0 || (have > 0) != (take > 0) {
                return None;
            }
            if have % take == 0 {
                return sum.minus(&fact.scaled(have / take)?);
            }
            if !self.sign_only {
                return None;
            }
            let (have, take) = (have.checked_abs()?, take.checked_abs()?);
            multiply(sum, &Sum::constant(take))?.minus(&fact.scaled(have)?)
        };
        sum.terms.iter().filter_map(cancel).collect()
    }

    /// Replaces the innermost thing that has a bound.
    fn eliminate(&mut self, sum: &Sum, used: u64) -> Option<i64> {
        for atom in self.innermost_first(sum) {
            let (factor, rest) = sum.linear(&atom);
            let range = self.bounds.range(&factor);
            let up = match range.both() {
                (Some(lo), _) if lo >= 0 => false,
                (_, Some(hi)) if hi <= 0 => true,
                _ => continue,
            };
            let cases = match &atom {
                Atom::Min(it) if !up => Some(it),
                Atom::Max(it) if up => Some(it),
                _ => None,
            };
            if let Some(pair) = cases {
                let (a, b) = (put(&factor, &pair.0, &rest)?, put(&factor, &pair.1, &rest)?);
                let (a, b) = (self.lower(&a, used)?, self.lower(&b, used)?);
                return Some(a.min(b));
            }
            let weaker = self.weaker(&atom, up, &factor, &rest);
            if weaker.is_empty() {
                continue;
            }
            let mut best = None;
            for sum in weaker {
                best = best.max(self.lower(&sum, used));
                if self.is_enough(best) {
                    break;
                }
            }
            return best;
        }
        None
    }

    /// The atoms that stand in the sum, those with the innermost variables first, compound ones before variables.
    fn innermost_first(&self, sum: &Sum) -> Vec<Atom> {
        let mut atoms: Vec<(usize, bool, &Atom)> = Vec::new();
        for atom in sum.terms.iter().flat_map(|it| &it.atoms) {
            if !atoms.iter().any(|it| it.2 == atom) {
                atoms.push((self.depth(atom), !matches!(atom, Atom::Var(_)), atom));
            }
        }
        atoms.sort_by(|a, b| b.cmp(a));
        atoms.into_iter().map(|it| it.2.clone()).collect()
    }

    /// One more than the level of the innermost variable in an atom.
    fn depth(&self, atom: &Atom) -> usize {
        let deepest = std::cell::Cell::new(0);
        atom.any_var(&|name| {
            let level = self.bounds.level(name).map_or(0, |it| it + 1);
            deepest.set(deepest.get().max(level));
            false
        });
        deepest.get()
    }

    /// Sums that are not larger than `factor*atom + rest`, with the atom replaced by its upper bounds (where
    /// `up`, that is where the factor is not positive) or its lower bounds.
    fn weaker(&self, atom: &Atom, up: bool, factor: &Sum, rest: &Sum) -> Vec<Sum> {
        let mut out = Vec::new();
        let mut bound = |it: &Sum| out.extend(put(factor, it, rest));
        match atom {
            Atom::Var(name) => {
                if let Some(top) = self.bounds.known.get(name).and_then(|it| it.top.as_ref())
                    && up
                {
                    bound(top);
                }
            }
            Atom::Mod(it) if up => {
                it.1.clone().plus_constant(-1).iter().for_each(&mut bound);
                if self.bounds.range(&it.0).lo.is_some_and(|lo| lo >= 0) {
                    bound(&it.0);
                }
            }
            Atom::Min(it) | Atom::Max(it) => {
                bound(&it.0);
                bound(&it.1);
            }
            Atom::Div(it) => {
                let most = self.greatest_quotient(it).filter(|_| up);
                most.iter().for_each(&mut bound);
                out.extend(self.without_quotient(it, up, factor, rest));
            }
            Atom::Mod(_) | Atom::Xor(_) | Atom::Opaque(_) => {}
        }
        let range = self.bounds.range_of_atom(atom);
        let constant = if up { range.hi } else { range.lo };
        out.extend(constant.and_then(|it| put(factor, &Sum::constant(it), rest)));
        out
    }

    /// The greatest value of `x floordiv c`, where that of `x` is a multiple of `c` and a constant: `q - 1` of `x floordiv 16` with `x < 16*q`, of which `x/16` says no more than that it
    /// is less than `q`.
    fn greatest_quotient(&self, Pair(x, c): &Pair) -> Option<Sum> {
        let mut greatest = x.clone();
        for atom in self.innermost_first(x) {
            let Atom::Var(name) = &atom else { continue };
            let Some(top) = self.bounds.known.get(name).and_then(|it| it.top.as_ref()) else { continue };
            let (factor, rest) = greatest.linear(&atom);
            greatest = match self.bounds.range(&factor).both() {
                (Some(lo), _) if lo >= 0 => put(&factor, top, &rest)?,
                (_, Some(hi)) if hi <= 0 => rest,
                _ => return None,
            };
        }
        let (quotient, rest) = exact_multiples(&greatest, &c.as_term()?)?;
        // The divisor is at least one.
        let rest = match (rest.as_constant()?, c.as_constant()) {
            (rest, Some(c)) => rest.div_euclid(c),
            (rest, None) => rest.max(-1),
        };
        quotient.plus_constant(rest)
    }

    /// `factor*(x floordiv c) + rest` with the quotient bounded by `x/c` or `(x - c + 1)/c`, all multiplied by `c`
    /// where `c` does not divide the factor.
    fn without_quotient(&self, pair: &Pair, up: bool, factor: &Sum, rest: &Sum) -> Option<Sum> {
        let Pair(x, c) = pair;
        let x = if up { x.clone() } else { x.minus(c)?.plus_constant(1)? };
        let over = c.as_term().and_then(|c| {
            let mut out = Sum::default();
            for term in &factor.terms {
                out = out.plus_term(term.over(&c)?)?;
            }
            let constant = super::sum::Term::constant(factor.constant);
            if factor.constant == 0 { Some(out) } else { out.plus_term(constant.over(&c)?) }
        });
        match over {
            Some(factor) => put(&factor, &x, rest),
            None if self.sign_only => put(factor, &x, &multiply(rest, c)?),
            None => None,
        }
    }
}

/// `factor*atom + rest`.
fn put(factor: &Sum, atom: &Sum, rest: &Sum) -> Option<Sum> {
    factor.times(atom)?.plus(rest)
}

/// A sum that is at least 0 exactly where the given one is: for integers, `d > -1` is `d*by + by - 1 >= 0`.
fn multiply(sum: &Sum, by: &Sum) -> Option<Sum> {
    sum.times(by)?.plus(by)?.plus_constant(-1)
}
