//! The simplest form of a condition.

use super::{
    Bounds,
    sum::{Atom, Sum, Term},
};
use crate::Less;

impl Bounds {
    /// `rhs - lhs - 1`, which is at least 0 where the condition holds.
    pub(super) fn gap(&self, less: &Less) -> Option<Sum> {
        let gap = self.sum(&less.rhs).minus(&self.sum(&less.lhs))?.plus_constant(-1)?;
        Some(self.recombine(gap))
    }

    /// The condition `gap >= 0` in its simplest form.
    pub(super) fn condition(&self, gap: &Sum) -> Option<Less> {
        let mut gap = gap.clone();
        // Each law leaves fewer or smaller terms; the limit is a belt over the braces.
        for _ in 0..8 {
            match self.divided(&gap).or_else(|| without_quotient(&gap)) {
                Some(simpler) => gap = self.recombine(simpler),
                None => break,
            }
        }
        let (above, below) = gap.plus_constant(1)?.partition(|it| it.coef > 0);
        let (mut lhs, mut rhs) = (Sum { constant: 0, ..below.scaled(-1)? }, above);
        // A constant stands where it is positive: `x + 1 < n` rather than `x < n - 1`.
        if below.constant < 0 {
            lhs.constant = below.constant.checked_neg()?;
        } else {
            rhs.constant = below.constant;
        }
        Some(Less::new(self.index(&lhs), self.index(&rhs)))
    }

    /// `g*x + r >= 0` is `x + m >= 0` where `r` stays between `m*g` and `m*g + g - 1`.
    fn divided(&self, gap: &Sum) -> Option<Sum> {
        let mut factors: Vec<Term> = Vec::new();
        for (at, a) in gap.terms.iter().enumerate() {
            let own = Term::constant(a.coef.checked_abs()?);
            let shared = gap.terms[at..].iter().map(|b| a.common(b));
            for factor in shared.chain([Some(own)]) {
                let factor = factor?;
                if (factor.coef != 1 || !factor.atoms.is_empty()) && !factors.contains(&factor) {
                    factors.push(factor);
                }
            }
        }
        factors.sort_unstable_by(|x, y| {
            (y.atoms.len(), y.coef, &x.atoms).cmp(&(x.atoms.len(), x.coef, &y.atoms))
        });
        factors.iter().find_map(|factor| self.divided_by(gap, factor))
    }

    fn divided_by(&self, gap: &Sum, factor: &Term) -> Option<Sum> {
        if factor.atoms.iter().any(|it| self.range_of_atom(it).lo.is_none_or(|lo| lo < 1)) {
            return None;
        }
        let (mut of, mut rest) = (Sum::default(), Sum::constant(gap.constant));
        for term in &gap.terms {
            match term.over(factor) {
                Some(it) => of = of.plus_term(it)?,
                None => rest = rest.plus_term(term.clone())?,
            }
        }
        let divisor = factor.clone().into_sum();
        let period = self.period(&rest, &divisor).or_else(|| {
            // A symbolic divisor is only asked for one period; here the one below zero is as common.
            let next = rest.plus(&divisor)?;
            Some(self.period(&next, &divisor)? - 1)
        })?;
        of.plus_constant(period)
    }
}

/// `x floordiv c < y` as `x < c*y`, and `y < x floordiv c` as `c*(y + 1) <= x`, for the only quotient there is.
fn without_quotient(gap: &Sum) -> Option<Sum> {
    if gap.ratios() != 1 {
        return None;
    }
    gap.terms.iter().find_map(|term| {
        let [Atom::Div(pair)] = &term.atoms[..] else { return None };
        let rest = gap.minus(&term.clone().into_sum())?;
        match term.coef {
            // y - q >= 0, that is q < y + 1, that is x < c*(y + 1).
            -1 => rest.plus_constant(1)?.times(&pair.1)?.minus(&pair.0)?.plus_constant(-1),
            // q + y >= 0, that is q >= -y, that is x >= -c*y.
            1 => pair.0.plus(&rest.times(&pair.1)?),
            _ => None,
        }
    })
}
