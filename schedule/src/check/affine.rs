//! Which loops the bindings of a block tell apart.
//!
//! A binding is read as a number written in mixed radix: a sum of digits `scale * ((var floordiv lower) mod extent)`
//! in which no two digits overlap. Then the values of the iterators determine every digit, and a loop whose digits
//! are all there is told apart: no two of its iterations run the block with the same iterator values.

use indexmap::IndexSet;
use ir::{
    Block, Index, IndexKind, Iter, IterKind, Name,
    access::{AccessRelation, Conflict, Iteration},
    arith::Bounds,
};

/// A part of a loop variable: `(var floordiv lower) mod extent`, without the `mod` where `extent` is `None`.
struct Digit {
    var: Name,
    lower: Index,
    extent: Option<Index>,
}

/// Whether the spatial iterators of a block determine the value of loop `var`, which no other iterator speaks of: wherever
/// they have the same values, so has it. The solver is asked, which considers the guards of the block as well.
///
/// `bounds` knows the loops around the block. `false` means not proved.
pub(crate) fn is_spatial(block: &Block, var: &Name, bounds: &Bounds) -> bool {
    let (spatial, others): (Vec<_>, Vec<_>) = block.iters.iter().partition(|it| it.kind == IterKind::Spatial);
    if others.iter().any(|it| it.binding.any_var(&|name| name == var)) {
        return false;
    }
    let indices: Vec<_> = spatial.iter().map(|it| it.binding.clone()).collect();
    if !indices.iter().any(|it| it.any_var(&|name| name == var)) {
        return false;
    }
    let conditions = block.guards.clone();
    let mut names: IndexSet<Name> = indices.iter().flat_map(Index::vars).collect();
    names.extend(conditions.iter().flat_map(|it| [it.lhs.vars(), it.rhs.vars()]).flatten());
    // Extents speak of variables further outside.
    let mut at = 0;
    while let Some(name) = names.get_index(at) {
        let of_extent = bounds.extent(name).map(Index::vars).unwrap_or_default();
        names.extend(of_extent);
        at += 1;
    }
    let extent = |name: &Name| Some((name.clone(), bounds.extent(name)?.clone()));
    let vars = names.iter().filter_map(extent).collect();
    let dims: Vec<_> = names.iter().filter(|it| bounds.extent(it).is_none()).cloned().collect();
    if dims.iter().any(|it| bounds.interval(&Index::var(it)).0.is_none_or(|least| least < 1)) {
        return false; // Of what is neither loop nor dimension nothing is known.
    }
    let place = AccessRelation { indices, vars, conditions };
    Conflict { first: &place, second: &place, dims: &dims, when: &|_| Iteration::Any }.has_same(var)
}

/// Whether the iterators for which `counts` holds determine the value of loop `var` as digits of numbers.
///
/// `bounds` knows the loops around the block. `false` means not proved.
pub(crate) fn tells_apart(
    block: &Block,
    var: &Name,
    bounds: &Bounds,
    counts: &dyn Fn(&Iter) -> bool,
) -> bool {
    let mut digits = Vec::new();
    for iter in block.iters.iter().filter(|it| counts(it) && it.binding.any_var(&|name| name == var)) {
        match digits_of(&iter.binding, bounds) {
            Some(it) => digits.extend(it.into_iter().filter(|digit| digit.var == *var)),
            None => return false,
        }
    }
    covers(&digits, bounds.extent(var), bounds)
}

/// Whether digits of one variable make up all of it.
fn covers(digits: &[Digit], extent: Option<&Index>, bounds: &Bounds) -> bool {
    let Some(extent) = extent else { return false };
    let mut reached = Index::int(1);
    for _ in 0..=digits.len() {
        if bounds.at_most(extent, &reached) {
            return true;
        }
        let Some(next) = digits.iter().find(|it| bounds.equal(&it.lower, &reached)) else { return false };
        match &next.extent {
            Some(step) => reached = bounds.simplify(&(&reached * step)),
            None => return true,
        }
    }
    false
}

/// The digits of a binding that is a mixed-radix number, or `None`.
fn digits_of(binding: &Index, bounds: &Bounds) -> Option<Vec<Digit>> {
    let mut terms = Vec::new();
    flatten(&bounds.simplify(binding), 1, &mut terms)?;
    // A digit of one value, such as the variable of a unit loop, takes no place.
    terms.retain(|(_, digit)| !count(digit, bounds).is_some_and(|it| bounds.at_most(&it, &Index::int(1))));
    terms.sort_by_key(|(scale, _)| *scale);
    // The sum of all smaller digits stays below the scale of the next one.
    let mut below = Index::int(1);
    for (scale, digit) in &terms {
        if *scale < 1 || !bounds.at_most(&below, &Index::int(*scale)) {
            return None;
        }
        below = bounds.simplify(&(count(digit, bounds)? * *scale));
    }
    Some(terms.into_iter().map(|(_, digit)| digit).collect())
}

/// How many values a digit takes, at most.
fn count(digit: &Digit, bounds: &Bounds) -> Option<Index> {
    let steps = bounds.simplify(&bounds.extent(&digit.var)?.ceil_div(&digit.lower));
    match &digit.extent {
        Some(extent) if bounds.at_most(&steps, extent) => Some(steps),
        Some(extent) => Some(extent.clone()),
        None => Some(steps),
    }
}

/// The terms of a sum as scaled digits; constants are left out, for they tell nothing apart.
fn flatten(index: &Index, scale: i64, out: &mut Vec<(i64, Digit)>) -> Option<()> {
    match index.kind() {
        IndexKind::Int(_) => Some(()),
        IndexKind::Add(a, b) => {
            flatten(a, scale, out)?;
            flatten(b, scale, out)
        }
        IndexKind::Mul(a, b) => match (a.as_int(), b.as_int()) {
            (Some(factor), _) => flatten(b, scale.checked_mul(factor)?, out),
            (_, Some(factor)) => flatten(a, scale.checked_mul(factor)?, out),
            (None, None) => None,
        },
        IndexKind::Var(_) | IndexKind::FloorDiv(..) | IndexKind::FloorMod(..) => {
            out.push((scale, digit(index)?));
            Some(())
        }
        IndexKind::Min(..) | IndexKind::Max(..) | IndexKind::Xor(..) | IndexKind::Element(..) => None,
    }
}

fn digit(index: &Index) -> Option<Digit> {
    let whole = |var: &Name| Digit { var: var.clone(), lower: Index::int(1), extent: None };
    match index.kind() {
        IndexKind::Var(var) => Some(whole(var)),
        IndexKind::FloorDiv(a, by) => match a.kind() {
            IndexKind::Var(var) => Some(Digit { lower: by.clone(), ..whole(var) }),
            // (v mod m) floordiv d with d dividing m is (v floordiv d) mod (m/d).
            IndexKind::FloorMod(b, modulus) => {
                let (modulus, by) = (modulus.as_int()?, by.as_int()?);
                let extent = (modulus % by == 0).then(|| Index::int(modulus / by));
                Some(Digit { lower: Index::int(by), extent: Some(extent?), ..whole(b.as_var()?) })
            }
            IndexKind::Int(_)
            | IndexKind::Add(..)
            | IndexKind::Mul(..)
            | IndexKind::FloorDiv(..)
            | IndexKind::Min(..)
            | IndexKind::Max(..)
            | IndexKind::Xor(..)
            | IndexKind::Element(..) => None,
        },
        IndexKind::FloorMod(a, modulus) => {
            let inner = digit(a).filter(|it| it.extent.is_none())?;
            Some(Digit { extent: Some(modulus.clone()), ..inner })
        }
        IndexKind::Int(_)
        | IndexKind::Add(..)
        | IndexKind::Mul(..)
        | IndexKind::Min(..)
        | IndexKind::Max(..)
        | IndexKind::Xor(..)
        | IndexKind::Element(..) => None,
    }
}
