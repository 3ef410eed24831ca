//! Laws that hold for every expression under every bounds, tried on random ones.
//!
//! The variables are two dimensions `n` and `m` and four loops `i`, `j`, `k`, `l` around each other, whose extents
//! may mention what is further out. Every value that the bounds allow is tried, up to a limit.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{bounds, eval};
use crate::{
    Index, IndexKind, Less, Name,
    arith::{Bounds, cheapest, cost},
};

const VARS: [&str; 6] = ["n", "m", "i", "j", "k", "l"];

/// The values of the variables, dimensions first.
type Values = BTreeMap<Name, i64>;

fn var() -> impl Strategy<Value = Index> {
    proptest::sample::select(&VARS[..]).prop_map(|it| Index::var(&Name::new(it)))
}

fn constant() -> impl Strategy<Value = Index> {
    prop_oneof![4 => -9..=40_i64, 1 => proptest::sample::select(vec![64, 100, -64, 1 << 20])]
        .prop_map(Index::int)
}

fn divisor() -> impl Strategy<Value = Index> {
    let constants =
        proptest::sample::select(vec![1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 64]).prop_map(Index::int);
    let symbolic = proptest::sample::select(vec!["n", "m", "n*m", "m*4", "n + 1", "(n + 3) floordiv 4"]);
    prop_oneof![3 => constants, 1 => symbolic.prop_map(|it| it.parse().unwrap())]
}

/// Random expressions, and often such as schedules make: `i*8 + j` and its quotients and remainders.
fn index() -> impl Strategy<Value = Index> {
    let affine = (var(), divisor(), var()).prop_map(|(a, c, b)| a * c + b);
    let leaf = prop_oneof![4 => var(), 2 => constant(), 2 => affine];
    leaf.prop_recursive(4, 24, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            4 => two.clone().prop_map(|(a, b)| a + b),
            1 => two.clone().prop_map(|(a, b)| a - b),
            1 => two.clone().prop_map(|(a, b)| a * b),
            3 => (inner.clone(), divisor()).prop_map(|(a, b)| a.floor_div(&b)),
            3 => (inner.clone(), divisor()).prop_map(|(a, b)| a.floor_mod(&b)),
            2 => (inner.clone(), divisor()).prop_map(|(a, c)| a.floor_div(&c) * c.clone() + a.floor_mod(&c)),
            1 => (inner, divisor(), constant()).prop_map(|(a, c, m)| a.floor_div(&c) * m + a.floor_mod(&c)),
            1 => two.clone().prop_map(|(a, b)| a.minimum(&b)),
            1 => two.clone().prop_map(|(a, b)| a.maximum(&b)),
            1 => two.prop_map(|(a, b)| a.xor(&b)),
        ]
    })
}

/// The extents of `i`, `j`, `k` and `l`, as text.
fn extents() -> impl Strategy<Value = [&'static str; 4]> {
    let pick = |from: &[&'static str]| proptest::sample::select(from.to_vec());
    let i = pick(&["1", "4", "8", "16", "n", "n*m", "(n + 3) floordiv 4", "n floordiv 2"]);
    let j = pick(&["1", "3", "4", "m", "8", "min(4, n - i)", "i + 1"]);
    let k = pick(&["2", "4", "n", "m*4", "min(4, n - i*4)", "6"]);
    let l = pick(&["2", "3", "4", "m", "5"]);
    (i, j, k, l).prop_map(|(i, j, k, l)| [i, j, k, l])
}

fn facts() -> impl Strategy<Value = Vec<Less>> {
    let affine = (var(), -8..=8_i64, var(), -3..=3_i64).prop_map(|(a, c, b, d)| a * c + b + d);
    let fact = (prop_oneof![affine, index()], prop_oneof![var(), constant()]);
    let fact = fact.prop_map(|(lhs, rhs)| Less::new(lhs, rhs));
    prop_oneof![2 => Just(vec![]), 1 => proptest::collection::vec(fact, 1..3)]
}

fn known(extents: &[&str; 4], facts: &[Less]) -> Bounds {
    let [i, j, k, l] = extents;
    let mut out = bounds(&format!("n; m; i: {i}; j: {j}; k: {k}; l: {l}"));
    for fact in facts {
        out.assume(fact);
    }
    out
}

fn holds(less: &Less, values: &Values) -> Option<bool> {
    Some(eval(&less.lhs, values)? < eval(&less.rhs, values)?)
}

/// Some 200 of the assignments that the bounds allow, the corners of each loop among them.
fn assignments(extents: &[&str; 4], facts: &[Less]) -> Vec<Values> {
    let extents: Vec<Index> = extents.iter().map(|it| it.parse().unwrap()).collect();
    let mut out = Vec::new();
    for (n, m) in [(1, 1), (1, 3), (2, 5), (3, 2), (4, 4), (5, 1), (8, 3), (13, 7)] {
        let start = Values::from([(Name::new("n"), n), (Name::new("m"), m)]);
        let mut partial = vec![start];
        for (var, extent) in VARS[2..].iter().zip(&extents) {
            let wider = partial.iter().flat_map(|values| {
                let extent = eval(extent, values).unwrap();
                let mut picks = vec![0, 1, extent / 2, extent - 2, extent - 1];
                picks.retain(|it| (0..extent).contains(it));
                picks.sort_unstable();
                picks.dedup();
                picks.into_iter().map(|it| {
                    let mut values = values.clone();
                    values.insert(Name::new(*var), it);
                    values
                })
            });
            let wider: Vec<Values> = wider.collect();
            let step = wider.len().div_ceil(50).max(1);
            partial = wider.into_iter().step_by(step).collect();
        }
        out.extend(partial.into_iter().filter(|it| facts.iter().all(|fact| holds(fact, it) == Some(true))));
    }
    out
}

/// Whether nothing negative is divided, so that the machine's division, towards zero, is the same.
fn divides_nonnegative(index: &Index, values: &Values) -> bool {
    let both = |a: &Index, b: &Index| divides_nonnegative(a, values) && divides_nonnegative(b, values);
    match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => true,
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b)
        | IndexKind::Element(_, a, b) => both(a, b),
        IndexKind::FloorDiv(a, b) | IndexKind::FloorMod(a, b) => {
            both(a, b) && eval(a, values).is_none_or(|it| it >= 0)
        }
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn simplify_keeps_the_value(extents in extents(), facts in facts(), index in index()) {
        let known = known(&extents, &facts);
        let simple = known.simplify(&index);
        prop_assert_eq!(known.simplify(&simple), simple.clone(), "not idempotent");
        let cheap = cheapest(&index, &known);
        prop_assert_eq!(cheapest(&index, &known), cheap.clone(), "not deterministic");
        prop_assert!(cost(&cheap) <= cost(&simple).min(cost(&index)));
        let (lo, hi) = known.interval(&index);
        let assignments = assignments(&extents, &facts);
        let is_clean = |it: &Index| assignments.iter().all(|at| divides_nonnegative(it, at));
        prop_assert!(!is_clean(&index) || is_clean(&simple), "{simple} divides what is negative");
        prop_assert!(!is_clean(&index) || is_clean(&cheap), "{cheap} divides what is negative");
        for values in assignments {
            if let Some(value) = eval(&index, &values) {
                prop_assert_eq!(eval(&simple, &values), Some(value), "{} at {:?}", simple, values);
                prop_assert_eq!(eval(&cheap, &values), Some(value), "{} at {:?}", cheap, values);
                prop_assert!(lo.is_none_or(|it| it <= value), "{value} below {lo:?} at {values:?}");
                prop_assert!(hi.is_none_or(|it| it >= value), "{value} above {hi:?} at {values:?}");
            }
        }
    }

    #[test]
    fn plain_sums_are_what_their_normal_form_says(
        extents in extents(),
        terms in proptest::collection::vec((var(), -2..=9_i64), 1..6),
        constant in -3..=9_i64,
    ) {
        let known = known(&extents, &[]);
        let index = terms.into_iter().fold(Index::int(0), |sum, (var, coef)| sum + var * coef) + constant;
        let sum = known.sum(&index);
        prop_assert_eq!(known.simplify(&index), known.index(&sum));
        prop_assert_eq!(known.interval(&index), known.interval_of_sum(&sum));
    }

    #[test]
    fn proofs_hold(extents in extents(), facts in facts(), lhs in index(), rhs in index()) {
        let known = known(&extents, &facts);
        let less = Less::new(lhs, rhs);
        let proved = known.prove(&less);
        let simple = known.simplify_less(&less);
        let equal = known.equal(&less.lhs, &less.rhs);
        for values in assignments(&extents, &facts) {
            let Some(truth) = holds(&less, &values) else { continue };
            prop_assert!(proved.is_none_or(|it| it == truth), "proved {proved:?} at {values:?}");
            prop_assert_eq!(holds(&simple, &values), Some(truth), "{} at {:?}", simple, values);
            prop_assert!(!equal || eval(&less.lhs, &values) == eval(&less.rhs, &values), "not equal at {values:?}");
        }
    }

    #[test]
    fn parts_add_up(extents in extents(), index in index(), factor in 1..9_i64) {
        let known = known(&extents, &[]);
        let is_inner = |it: &Name| *it == "k" || *it == "l";
        let (outer, inner) = known.split(&index, &is_inner);
        prop_assert!(!outer.any_var(&is_inner));
        let k = Name::new("k");
        let linear = known.linear_in(&index, &k);
        if let Some((_, rest)) = &linear {
            prop_assert!(!rest.any_var(&|it| *it == k));
        }
        let divided = known.divides(factor, &index);
        for values in assignments(&extents, &[]) {
            let Some(value) = eval(&index, &values) else { continue };
            prop_assert_eq!(eval(&(&outer + &inner), &values), Some(value));
            if let Some((c, rest)) = &linear {
                prop_assert_eq!(eval(&(Index::var(&k) * *c + rest.clone()), &values), Some(value));
            }
            prop_assert!(!divided || value % factor == 0);
        }
    }
}
