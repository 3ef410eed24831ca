//! What a guard says of a subscript.
//!
//! Guards lose factors and small terms when they are simplified: `16*x + y < 32` with `y < 16` becomes `x < 2`. A guard
//! that speaks of `x` alone therefore still limits the subscript `16*x + y`, and just as much.

use std::collections::BTreeSet;

use crate::{Index, IndexKind, Less, Name, arith::Bounds};

/// The `limit` such that `index < limit` just where the guard holds, over variables that are not inner. `None` where
/// none is found.
pub fn limit(
    guard: &Less,
    index: &Index,
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Option<Index> {
    let alone = Alone::all(&guard.lhs, index, bounds, is_inner);
    let mut near = ratios(index, &guard.lhs).into_iter().filter(|it| !Alone::keep_apart(&alone, *it));
    let found = near.find_map(|it| limit_by(it, guard, index, bounds, is_inner));
    found.filter(|it| !it.any_var(is_inner))
}

/// The limit that shows when the guard is multiplied by `c` and the index by `d`.
fn limit_by(
    (c, d): (i64, i64),
    guard: &Less,
    index: &Index,
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Option<Index> {
    // c*lhs = d*index + base + rest, with low <= rest <= high.
    let (base, low, high) = difference(&times(&guard.lhs, c), &times(index, d), bounds, is_inner)?;
    let room = &guard.rhs * c - base;
    let divisor = Index::int(d);
    // The greatest index that a passing guard allows, and the least that a failing one does.
    let passing = bounds.simplify(&(room.clone() - c - low).floor_div(&divisor));
    let failing = bounds.simplify(&(room - high + (d - 1)).floor_div(&divisor));
    bounds.equal(&(passing + 1), &failing).then_some(failing)
}

/// An inner variable that a guard and an index speak of in multiples alone.
struct Alone {
    of_guard: i64,
    of_index: i64,
    /// Its greatest value.
    most: i64,
}

impl Alone {
    /// Those that there are; none where more is known of variables than how far each of them goes.
    fn all(lhs: &Index, index: &Index, bounds: &Bounds, is_inner: &dyn Fn(&Name) -> bool) -> Vec<Alone> {
        let is_dependent = |name: &Name| bounds.extent(name).is_some_and(|it| it.as_int().is_none());
        if bounds.has_facts() || lhs.any_var(&is_dependent) || index.any_var(&is_dependent) {
            return vec![];
        }
        let sides = [terms(lhs), terms(index)];
        let all = || sides.iter().flatten();
        let names: BTreeSet<&Name> = all().filter_map(|it| it.1.as_var()).filter(|it| is_inner(it)).collect();
        let is_elsewhere =
            |name: &Name| all().any(|it| it.1.as_var().is_none() && it.1.any_var(&|it| it == name));
        let factor = |side: &[(i64, Index)], name: &Name| {
            let mut own = side.iter().filter(|it| it.1.as_var() == Some(name));
            own.try_fold(0_i64, |sum, it| sum.checked_add(it.0))
        };
        let one = |name: &Name| {
            let most = bounds.extent(name)?.as_int()?.checked_sub(1)?.max(0);
            Some(Alone { of_guard: factor(&sides[0], name)?, of_index: factor(&sides[1], name)?, most })
        };
        names.into_iter().filter(|it| !is_elsewhere(it)).filter_map(one).collect()
    }

    /// Whether `c*lhs` and `d*index` differ by too many values for the guard to say anything of the index: the greatest
    /// index that it allows and the least that it does not are then more than one apart.
    fn keep_apart(all: &[Alone], (c, d): (i64, i64)) -> bool {
        let (c, d) = (i128::from(c), i128::from(d));
        let values = all.iter().map(|it| {
            let slope = c * i128::from(it.of_guard) - d * i128::from(it.of_index);
            slope.saturating_abs().saturating_mul(it.most.into())
        });
        values.fold(0, i128::saturating_add) > c + d - 2
    }
}

/// Numbers by which the guard and the index may be multiplied to become nearly the same.
fn ratios(index: &Index, lhs: &Index) -> BTreeSet<(i64, i64)> {
    let divisor = |it: &(i64, Index)| quotient(&it.1).map(|it| it.1);
    let divisors: BTreeSet<_> =
        terms(index).iter().chain(&terms(lhs)).filter_map(divisor).chain([1]).collect();
    let (index, lhs) = (slopes(index), slopes(lhs));
    let pairs = index
        .iter()
        .flat_map(|a| lhs.iter().filter_map(move |b| Some((a.0.checked_mul(b.1)?, b.0.checked_mul(a.1)?))));
    let pairs = pairs.filter(|(a, b)| *a != 0 && *b != 0 && (*a > 0) == (*b > 0));
    let reduced = pairs.map(|(a, b)| (a / gcd(a, b), b / gcd(a, b))).map(|(a, b)| (a.abs(), b.abs()));
    let scaled = reduced.chain([(1, 1)]).flat_map(|(c, d)| {
        let scaled = divisors.iter().map(move |by| (c.checked_mul(*by), d.checked_mul(*by)));
        scaled.filter_map(|(c, d)| Some((c?, d?)))
    });
    scaled.collect()
}

/// By how much the index grows with each of its parts: `2*x + y floordiv 3` by 2 and by 1 for every 3.
fn slopes(index: &Index) -> BTreeSet<(i64, i64)> {
    let mut out = BTreeSet::new();
    for (factor, atom) in terms(index) {
        out.insert((factor, 1));
        if let Some((e, by)) = quotient(&atom) {
            out.extend(terms(e).iter().filter_map(|it| Some((it.0.checked_mul(factor)?, by))));
        }
    }
    out
}

/// `e` and `c` of `e floordiv c`.
pub(super) fn quotient(atom: &Index) -> Option<(&Index, i64)> {
    match atom.kind() {
        IndexKind::FloorDiv(e, by) => Some((e, by.as_int().filter(|it| *it > 0)?)),
        _ => None,
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

/// `a - b` as what is the same for all inner variables, and the bounds of the rest.
fn difference(
    a: &Index,
    b: &Index,
    bounds: &Bounds,
    is_inner: &dyn Fn(&Name) -> bool,
) -> Option<(Index, i64, i64)> {
    let (base, rest) = bounds.split(&bounds.simplify(&(a - b)), is_inner);
    let (low, high) = bounds.interval(&bounds.simplify(&rest));
    Some((base, low?, high?))
}

/// The index times a number, with `e - e mod c` for `(e floordiv c) * c`.
fn times(index: &Index, by: i64) -> Index {
    terms(index).into_iter().fold(Index::int(0), |sum, (factor, atom)| {
        let product = match quotient(&atom) {
            Some((e, c)) if by % c == 0 => (e - &e.floor_mod(&Index::int(c))) * (by / c),
            _ => &atom * by,
        };
        sum + product * factor
    })
}

/// The summands with their constant factors; the constant is a factor of one.
pub(super) fn terms(index: &Index) -> Vec<(i64, Index)> {
    let of = |index: &Index, factor: i64| {
        let scaled = |(inner, atom): (i64, Index)| Some((inner.checked_mul(factor)?, atom));
        terms(index).into_iter().map(scaled).collect::<Option<Vec<_>>>()
    };
    let parts = match index.kind() {
        IndexKind::Add(a, b) => Some([terms(a), terms(b)].concat()),
        IndexKind::Mul(a, b) => match (a.as_int(), b.as_int()) {
            (Some(factor), _) => of(b, factor),
            (_, Some(factor)) => of(a, factor),
            (None, None) => None,
        },
        IndexKind::Int(_)
        | IndexKind::Var(_)
        | IndexKind::FloorDiv(..)
        | IndexKind::FloorMod(..)
        | IndexKind::Min(..)
        | IndexKind::Max(..)
        | IndexKind::Xor(..)
        | IndexKind::Element(..) => None,
    };
    parts.unwrap_or_else(|| vec![(1, index.clone())])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every guard over these parts against every subscript: where there is a limit, it says what the guard says.
    #[test]
    fn a_limit_says_what_the_guard_says() {
        let extents = [("o", 3), ("x", 4), ("y", 6)].map(|(name, extent)| (Name::new(name), extent));
        let mut bounds = Bounds::default();
        for (name, extent) in &extents {
            bounds.insert(name, &Index::int(*extent));
        }
        let [o, x, y] = extents.each_ref().map(|it| Index::var(&it.0));
        let fused = &x * 6 + y.clone();
        let three = Index::int(3);
        let parts = [
            x.clone(),
            y.clone(),
            fused.clone(),
            fused.floor_div(&three),
            y.floor_div(&three),
            y.floor_mod(&three),
        ];
        let mut all = Vec::new();
        for part in &parts {
            for (scale, shift) in [(1, 0), (2, 0), (4, 12), (-1, 2)] {
                all.push(bounds.simplify(&(part * scale + &o * shift)));
                all.push(bounds.simplify(&(part * scale + &o * 8 + &x * 2 - 3)));
            }
        }
        let mut found = 0;
        for index in &all {
            for lhs in &all {
                let is_inner = |name: &Name| name.as_str() != "o";
                let alone = Alone::all(lhs, index, &bounds, &is_inner);
                for rhs in [-2, 0, 1, 5, 6, 9, 12, 20] {
                    let guard = Less::new(lhs.clone(), Index::int(rhs));
                    let mut far = ratios(index, lhs).into_iter().filter(|it| Alone::keep_apart(&alone, *it));
                    let lost = far.find_map(|it| limit_by(it, &guard, index, &bounds, &is_inner));
                    assert_eq!(lost, None, "{lhs} < {rhs} limits {index}");
                    let Some(limit) = limit(&guard, index, &bounds, &is_inner) else { continue };
                    found += 1;
                    for point in 0..3 * 4 * 6 {
                        let value = |name: &Name| match name.as_str() {
                            "o" => Some(point / 24),
                            "x" => Some(point / 6 % 4),
                            _ => Some(point % 6),
                        };
                        let of = |it: &Index| it.eval(&value).expect("small numbers");
                        let (passes, below) = (of(lhs) < rhs, of(index) < of(&limit));
                        assert_eq!(passes, below, "{lhs} < {rhs} and {index} < {limit} at {point}");
                    }
                }
            }
        }
        assert!(found > 1000, "{found}");
    }
}
