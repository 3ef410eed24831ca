//! Equations in which quotients and remainders of one sum stand apart, brought together.

use crate::{
    Index,
    arith::{
        Bounds,
        sum::{Atom, Sum, Term},
    },
};

/// So many equations are made of others, at most.
const MOST_EQUATIONS: usize = 16;

/// Equations in their simplest form, and whatever sums of two of them there are in which quotients and remainders come
/// together on both sides, sums of sums included. The factor by which one is multiplied has to be the same on both sides, so
/// `is_common` says of one that looks the same whether it is.
pub(crate) fn all_simplified_and_recombined(
    equal: &[(&Index, &Index)],
    bounds: &Bounds,
    is_common: &dyn Fn(&Index) -> bool,
) -> Vec<(Index, Index)> {
    let sums: Vec<_> = equal.iter().map(|(a, b)| both_sums(a, b, bounds)).collect();
    let both = |(a, b): &(Sum, Sum)| {
        let simple = bounds.index(a);
        (simple.clone(), if a == b { simple } else { bounds.index(b) })
    };
    let mut out = sums.iter().map(both).collect();
    recombine(&mut out, sums, bounds, is_common);
    out
}

/// The same of equations as they stand.
pub(crate) fn all_recombined(
    mut equal: Vec<(Index, Index)>,
    bounds: &Bounds,
    is_common: &dyn Fn(&Index) -> bool,
) -> Vec<(Index, Index)> {
    let sums = equal.iter().map(|(a, b)| both_sums(a, b, bounds)).collect();
    recombine(&mut equal, sums, bounds, is_common);
    equal
}

fn both_sums(a: &Index, b: &Index, bounds: &Bounds) -> (Sum, Sum) {
    let sum = bounds.sum(a);
    (sum.clone(), if a == b { sum } else { bounds.sum(b) })
}

/// Adds to equations, whose normal forms are given, what they make together.
fn recombine(
    equal: &mut Vec<(Index, Index)>,
    mut sums: Vec<(Sum, Sum)>,
    bounds: &Bounds,
    is_common: &dyn Fn(&Index) -> bool,
) {
    let mut tried = 0;
    while tried < equal.len() && equal.len() < MOST_EQUATIONS {
        if tried == sums.len() {
            let (a, b) = &equal[tried];
            sums.push(both_sums(a, b, bounds));
        }
        for other in 0..tried {
            for (high, low) in [(tried, other), (other, tried)] {
                let ((high_a, high_b), (low_a, low_b)) = (&sums[high], &sums[low]);
                let sum = recombined(high_a, low_a, bounds).and_then(|(factor, a)| {
                    if (high_a, low_a) == (high_b, low_b) {
                        return is_common(&factor).then(|| (a.clone(), a));
                    }
                    let (same, b) = recombined(high_b, low_b, bounds)?;
                    (factor == same && is_common(&factor)).then_some((a, b))
                });
                equal.extend(sum.filter(|it| !equal.contains(it)));
            }
        }
        tried += 1;
    }
}

/// By what `high` is to be multiplied for a remainder in `low` to meet the quotient in `high` that belongs to it, and
/// the sum `low + high * factor`, in which there are fewer quotients and remainders than in both.
///
/// `e mod 5` and `e floordiv 5` make `e`; `e mod 3` and `(e floordiv 3) mod 6` make `e mod 18`; and other terms may stand
/// beside them. Thus are the digits of a mixed-radix number, as a fused loop leaves them, one number again.
pub(super) fn recombined(high: &Sum, low: &Sum, bounds: &Bounds) -> Option<(Index, Index)> {
    low.terms.iter().filter_map(|it| Some((it.coef, modulus(it)?))).find_map(|(coef, modulus)| {
        high.terms.iter().filter(|it| is_ratio(it)).find_map(|it| {
            let (factor, sum) = if let Some(modulus) = modulus.as_constant() {
                let factor = divided(coef.checked_mul(modulus)?, it.coef)?;
                (Index::int(factor), low.plus(&high.scaled(factor)?)?)
            } else {
                let factor = bounds.index(modulus) * divided(coef, it.coef)?;
                let sum = bounds.sum(&(bounds.index(low) + bounds.index(high) * factor.clone()));
                (factor, sum)
            };
            let sum = bounds.recombine(sum);
            (sum.ratios() < high.ratios() + low.ratios()).then(|| (factor, bounds.index(&sum)))
        })
    })
}

/// The quotient where nothing is left.
fn divided(a: i64, by: i64) -> Option<i64> {
    (a.checked_rem(by)? == 0).then(|| a.checked_div(by))?
}

fn modulus(term: &Term) -> Option<&Sum> {
    match &term.atoms[..] {
        [Atom::Mod(pair)] => Some(&pair.1),
        _ => None,
    }
}

/// Whether a term is a quotient or a remainder, or a multiple of one.
pub(super) fn is_ratio(term: &Term) -> bool {
    matches!(&term.atoms[..], [Atom::Div(_) | Atom::Mod(_)])
}
