//! Sums taken apart into digits: the parts of loop variables that move independently of each other.
//!
//! A fused and split loop `f < 128` that fills a tile of rows of 16 indexes it by `f floordiv 16` and `f mod 16`: two
//! digits of one variable, of which every combination occurs. This is the part of TVM's iterator maps
//! (`IterSplitExpr`) that regions need.

use super::Step;
use crate::{Index, IndexKind, Name, arith::Bounds};

/// The part `var floordiv lower mod (upper / lower)` of a variable, and the values it contributes to a sum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Digit {
    var: Name,
    lower: i64,
    upper: i64,
    pub(super) step: Step,
}

/// The digits of a sum of multiples of `x`, `x floordiv c`, `x mod c` and `x floordiv c mod d`, those that stay at zero
/// left out. `None` where the sum is not of that form, an extent is not a constant, or a multiple is negative.
pub(super) fn of_sum(sum: &Index, bounds: &Bounds) -> Option<Vec<Digit>> {
    let mut out = Vec::new();
    collect(sum, 1, bounds, &mut out)?;
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

fn collect(index: &Index, scale: i64, bounds: &Bounds, out: &mut Vec<Digit>) -> Option<()> {
    match index.kind() {
        IndexKind::Int(_) => Some(()),
        IndexKind::Add(a, b) => {
            collect(a, scale, bounds, out)?;
            collect(b, scale, bounds, out)
        }
        IndexKind::Mul(a, b) => match (a.as_int(), b.as_int()) {
            (_, Some(factor)) => collect(a, scale.checked_mul(factor)?, bounds, out),
            (Some(factor), None) => collect(b, scale.checked_mul(factor)?, bounds, out),
            (None, None) => None,
        },
        IndexKind::Var(_) | IndexKind::FloorDiv(..) | IndexKind::FloorMod(..) => {
            let (var, lower, upper) = part(index, bounds)?;
            let count = (upper - 1).div_euclid(lower) + 1;
            if scale < 0 {
                return None;
            }
            if scale > 0 && count > 1 {
                out.push(Digit { var, lower, upper, step: Step { stride: scale, count } });
            }
            Some(())
        }
        IndexKind::Min(..) | IndexKind::Max(..) => None,
    }
}

/// The variable of a digit, where the digit begins and where it ends.
fn part(index: &Index, bounds: &Bounds) -> Option<(Name, i64, i64)> {
    let (var, lower, upper) = match index.kind() {
        IndexKind::Var(name) => (name.clone(), 1, i64::MAX),
        IndexKind::FloorDiv(a, c) => (a.as_var()?.clone(), c.as_int()?, i64::MAX),
        IndexKind::FloorMod(a, d) => {
            let (var, lower, _) = part(a, bounds)?;
            (var, lower, lower.checked_mul(d.as_int()?)?)
        }
        IndexKind::Int(_)
        | IndexKind::Add(..)
        | IndexKind::Mul(..)
        | IndexKind::Min(..)
        | IndexKind::Max(..) => {
            return None;
        }
    };
    let extent = bounds.extent(&var)?.as_int()?;
    (lower >= 1).then(|| (var, lower, upper.min(extent)))
}
