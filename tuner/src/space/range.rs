//! Bounds of an expression while some of its variables are open, to leave a branch of a search early.

use schedule::{Op, Tree};

/// The least and the greatest value, or none if there is no value at all.
pub(super) type Range = Option<(i64, i64)>;

/// Bounds of the values that an expression has where its variables lie between bounds. Values that it does not have
/// may lie between them; a value that it has never lies outside.
pub(super) fn range<V>(tree: &Tree<V>, of: &impl Fn(&V) -> (i64, i64)) -> Range {
    match tree {
        Tree::Int(it) => Some((*it, *it)),
        Tree::Var(it) => Some(of(it)),
        Tree::Neg(it) => {
            let (low, high) = range(it, of)?;
            fit(-i128::from(high), -i128::from(low))
        }
        Tree::Not(it) => {
            let (yes, no) = truth(range(it, of));
            known(no, yes)
        }
        Tree::Binary(op, both) => {
            let left = range(&both[0], of);
            match op {
                Op::And | Op::Or => either(*op, left, range(&both[1], of)),
                _ => binary(*op, left?, range(&both[1], of)?),
            }
        }
        Tree::Select(all) => {
            let (yes, no) = truth(range(&all[0], of));
            let first = if yes { range(&all[1], of) } else { None };
            let second = if no { range(&all[2], of) } else { None };
            match (first, second) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                (a, b) => a.or(b),
            }
        }
    }
}

/// Whether an expression of some bounds may be true, and whether it may be false.
pub(super) fn truth(it: Range) -> (bool, bool) {
    it.map_or((false, false), |(low, high)| ((low, high) != (0, 0), low <= 0 && 0 <= high))
}

/// The bounds of something that may be true and may be false.
fn known(yes: bool, no: bool) -> Range {
    (yes || no).then_some((i64::from(!no), i64::from(yes)))
}

/// `&&` and `||`, whose second operand may have no value where the first decides.
fn either(op: Op, left: Range, right: Range) -> Range {
    let ((yes, no), (then_yes, then_no)) = (truth(left), truth(right));
    if op == Op::And {
        known(yes && then_yes, no || (yes && then_no))
    } else {
        known(yes || (no && then_yes), no && then_no)
    }
}

fn binary(op: Op, a: (i64, i64), b: (i64, i64)) -> Range {
    if a.0 == a.1 && b.0 == b.1 {
        return op.apply(a.0, b.0).ok().map(|it| (it, it));
    }
    let wide = |it: i64| i128::from(it);
    match op {
        Op::Add => fit(wide(a.0) + wide(b.0), wide(a.1) + wide(b.1)),
        Op::Sub => fit(wide(a.0) - wide(b.1), wide(a.1) - wide(b.0)),
        Op::Mul => corners(a, b, |x, y| x * y),
        Op::Div => divided(a, b, i128::div_euclid),
        Op::CeilDiv => divided(a, b, |x, y| -(-x).div_euclid(y)),
        Op::Rem => remainder(a, b),
        Op::Min => Some((a.0.min(b.0), a.1.min(b.1))),
        Op::Max => Some((a.0.max(b.0), a.1.max(b.1))),
        Op::Less => known(a.0 < b.1, a.1 >= b.0),
        Op::LessEqual => known(a.0 <= b.1, a.1 > b.0),
        Op::Greater => known(a.1 > b.0, a.0 <= b.1),
        Op::GreaterEqual => known(a.1 >= b.0, a.0 < b.1),
        Op::Equal => known(a.0 <= b.1 && b.0 <= a.1, true),
        Op::NotEqual => known(true, a.0 <= b.1 && b.0 <= a.1),
        Op::And | Op::Or => known(true, true),
    }
}

/// What of the bounds fits in 64 bits: the rest has no value.
fn fit(low: i128, high: i128) -> Range {
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let clamp = |it: i128| i64::try_from(it.clamp(least, most)).ok();
    (low <= most && high >= least).then_some(())?;
    Some((clamp(low)?, clamp(high)?))
}

/// Bounds of something that is monotone in each operand, and so greatest and least at corners.
fn corners(a: (i64, i64), b: (i64, i64), of: fn(i128, i128) -> i128) -> Range {
    let all = [a.0, a.1].into_iter().flat_map(|x| [b.0, b.1].map(|y| of(i128::from(x), i128::from(y))));
    let (low, high) = all.fold((i128::MAX, i128::MIN), |(low, high), it| (low.min(it), high.max(it)));
    fit(low, high)
}

/// A division by what lies between bounds and is not zero. `positive` divides by positive numbers.
fn divided(a: (i64, i64), b: (i64, i64), positive: fn(i128, i128) -> i128) -> Range {
    let over = (b.1 > 0).then(|| corners(a, (b.0.max(1), b.1), positive)).flatten();
    let under = (b.0 < 0).then(|| {
        // x / -y is -x / y.
        let negative = (-i128::from(a.1), -i128::from(a.0));
        let divisor = (-i128::from(b.1.min(-1)), -i128::from(b.0));
        let all =
            [negative.0, negative.1].into_iter().flat_map(|x| [divisor.0, divisor.1].map(|y| positive(x, y)));
        let (low, high) = all.fold((i128::MAX, i128::MIN), |(low, high), it| (low.min(it), high.max(it)));
        fit(low, high)
    });
    match (over, under.flatten()) {
        (Some(x), Some(y)) => Some((x.0.min(y.0), x.1.max(y.1))),
        (x, y) => x.or(y),
    }
}

/// A remainder has the sign of what is divided by, and is closer to zero.
fn remainder(a: (i64, i64), b: (i64, i64)) -> Range {
    if b == (0, 0) {
        return None;
    }
    let unchanged = 0 <= a.0 && b.0 > 0 && a.1 < b.0;
    if unchanged { Some(a) } else { Some(((b.0.min(-1) + 1).min(0), (b.1.max(1) - 1).max(0))) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tree() -> impl Strategy<Value = Tree<usize>> {
        let number = prop_oneof![-4..9i64, Just(i64::MAX), Just(i64::MIN), Just(1 << 40)];
        let leaf = prop_oneof![number.prop_map(Tree::Int), (0..3usize).prop_map(Tree::Var)];
        let ops = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::Div,
            Op::Rem,
            Op::CeilDiv,
            Op::Min,
            Op::Max,
            Op::Less,
            Op::LessEqual,
            Op::Greater,
            Op::GreaterEqual,
            Op::Equal,
            Op::NotEqual,
            Op::And,
            Op::Or,
        ];
        leaf.prop_recursive(5, 24, 3, move |inner| {
            let two = (prop::sample::select(ops.to_vec()), inner.clone(), inner.clone());
            prop_oneof![
                8 => two.prop_map(|(op, a, b)| Tree::Binary(op, Box::new([a, b]))),
                1 => inner.clone().prop_map(|it| Tree::Neg(Box::new(it))),
                1 => inner.clone().prop_map(|it| Tree::Not(Box::new(it))),
                1 => (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| Tree::Select(Box::new([a, b, c]))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn values_lie_within_bounds(tree in tree(), low in prop::array::uniform3(-6..9i64), len in prop::array::uniform3(0..4i64)) {
            let bounds = range(&tree, &|it: &usize| (low[*it], low[*it] + len[*it]));
            for (x, y, z) in (0..=len[0]).flat_map(|x| (0..=len[1]).flat_map(move |y| (0..=len[2]).map(move |z| (x, y, z)))) {
                let at = [low[0] + x, low[1] + y, low[2] + z];
                let value = tree.eval(&|it: &usize| Ok::<_, schedule::EvalError>(at[*it]));
                if let Ok(value) = value {
                    let (least, most) = bounds.expect("it has a value");
                    prop_assert!(least <= value && value <= most, "{value} of {least}..={most}");
                }
            }
        }
    }
}
