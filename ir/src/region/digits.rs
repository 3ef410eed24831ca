//! Sums taken apart into digits: the parts of loop variables that move independently of each other.
//!
//! A fused and split loop `f < 128` that fills a tile of rows of 16 indexes it by `f floordiv 16` and `f mod 16`: two
//! digits of one variable, of which every combination occurs. This is the part of TVM's iterator maps
//! (`IterSplitExpr`) that regions need.

use super::Step;
use crate::{
    Index, Name,
    arith::{
        Bounds,
        sum::{Atom, Sum},
    },
};

/// The part `var floordiv lower mod (upper / lower)` of a variable, and the values it contributes to a sum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Digit {
    var: Name,
    lower: i64,
    upper: i64,
    pub(super) step: Step,
    /// The greatest value: that of the last step, or what comes in its place where a minimum shifts it back.
    pub(super) most: i64,
}

/// The digits of a sum of multiples of `x`, `x floordiv c`, `x mod c`, `x floordiv c mod d` and of the minimum of such a multiple
/// and a constant, those that stay at zero left out. `None` where the sum is not of that form, an extent is not a constant, or
/// a multiple is negative.
pub(super) fn of_sum(sum: &Sum, bounds: &Bounds) -> Option<Vec<Digit>> {
    let mut out = Vec::with_capacity(sum.terms.len());
    for term in &sum.terms {
        let [atom] = &term.atoms[..] else { return None };
        let limited = limited(atom);
        let (factor, atom) = limited.map_or((1, atom), |it| (it.0, it.1));
        let (var, lower, upper) = part(atom, bounds)?;
        let count = (upper - 1).div_euclid(lower) + 1;
        if term.coef < 0 || limited.is_some_and(|it| it.2 < 0) {
            return None;
        }
        if count > 1 {
            let step = Step { stride: term.coef.checked_mul(factor)?, count };
            let last = step.stride.checked_mul(count - 1)?;
            let most = match limited {
                Some((_, _, limit)) => term.coef.checked_mul(limit)?.min(last),
                None => last,
            };
            out.push(Digit { var: var.clone(), lower, upper, step, most });
        }
    }
    Some(out)
}

/// Whether every combination of the digits occurs: those of one variable do not overlap and are each complete.
pub(super) fn are_independent(digits: &[Digit], bounds: &Bounds) -> bool {
    digits.iter().enumerate().all(|(n, it)| {
        let mut others = digits.iter().enumerate().filter(|(m, other)| *m != n && other.var == it.var);
        let extent = bounds.extent(&it.var).and_then(Index::as_int);
        others.all(|(_, other)| {
            let apart = it.upper <= other.lower || other.upper <= it.lower;
            let complete = |it: &Digit| {
                extent.is_some_and(|extent| extent % it.lower == 0 && extent % it.upper.min(extent) == 0)
            };
            apart && complete(it) && complete(other)
        })
    })
}

/// Whether the subscripts of one access are sums of digits of which every combination occurs.
///
/// A variable that stands alone in one term of them all is such a digit, however often its loop runs.
pub(super) fn of_sums_are_independent(mut sums: Vec<Sum>, bounds: &Bounds) -> bool {
    let runs_alone = |name: &Name| {
        let extent = bounds.extent(name);
        extent.is_some_and(|it| !it.any_var(&|it| bounds.extent(it).is_some()))
    };
    let mut alone = vec![];
    for (n, sum) in sums.iter().enumerate() {
        for (m, term) in sum.terms.iter().enumerate() {
            let [Atom::Var(name)] = &term.atoms[..] else { continue };
            let mut terms = sums
                .iter()
                .enumerate()
                .flat_map(|(n, it)| it.terms.iter().enumerate().map(move |(m, it)| ((n, m), it)));
            let elsewhere =
                terms.any(|(at, it)| at != (n, m) && it.atoms.iter().any(|it| it.any_var(&|it| it == name)));
            if !elsewhere && runs_alone(name) {
                alone.push((n, m));
            }
        }
    }
    for (n, m) in alone.into_iter().rev() {
        sums[n].terms.remove(m);
    }
    let all: Option<Vec<_>> = sums.iter().map(|it| of_sum(it, bounds)).collect();
    all.is_some_and(|all| are_independent(&all.concat(), bounds))
}

/// The factor, the atom and the constant of `min(factor*atom, constant)`.
fn limited(atom: &Atom) -> Option<(i64, &Atom, i64)> {
    let Atom::Min(pair) = atom else { return None };
    let (multiple, limit) = match (pair.0.as_constant(), pair.1.as_constant()) {
        (None, Some(limit)) => (&pair.0, limit),
        (Some(limit), None) => (&pair.1, limit),
        (None, None) | (Some(_), Some(_)) => return None,
    };
    let ([term], 0) = (&multiple.terms[..], multiple.constant) else { return None };
    let [atom] = &term.atoms[..] else { return None };
    (term.coef > 0).then_some((term.coef, atom, limit))
}

/// The variable of a digit, where the digit begins and where it ends.
fn part<'a>(atom: &'a Atom, bounds: &Bounds) -> Option<(&'a Name, i64, i64)> {
    let (var, lower, upper) = match atom {
        Atom::Var(name) => (name, 1, i64::MAX),
        Atom::Div(pair) => match pair.0.as_atom()? {
            (Atom::Var(name), 0) => (name, pair.1.as_constant()?, i64::MAX),
            _ => return None,
        },
        Atom::Mod(pair) => {
            let (inner, 0) = pair.0.as_atom()? else { return None };
            let (var, lower, _) = part(inner, bounds)?;
            (var, lower, lower.checked_mul(pair.1.as_constant()?)?)
        }
        Atom::Min(_) | Atom::Max(_) | Atom::Xor(_) | Atom::Opaque(_) => return None,
    };
    let extent = bounds.extent(var)?.as_int()?;
    (lower >= 1).then(|| (var, lower, upper.min(extent)))
}
