//! Boxes of subscripts in which the last part of a loop is shifted back, against all their values.

use std::collections::BTreeSet;

use super::{Range, filled, range_of, steps};
use crate::{Index, Name, access::AccessRelation, access::never_missed, arith::Bounds, solve::Problem};

/// `min(part*q, length - part)*scale` and what moves within a part, in the words of a schedule.
fn subscripts(parts: i64, part: i64, length: i64) -> Vec<Index> {
    let var = |name: &str| Index::var(&Name::new(name));
    let [q, c, f] = ["q", "c", "f"].map(var);
    let start = |q: &Index, scale: i64| (q * (part * scale)).minimum(&Index::int((length - part) * scale));
    let mut out = vec![
        start(&q, 1) + c.clone(),
        start(&q, 1),
        start(&q, 3) + &c * 3,
        start(&q, 2) + c.clone(),
        &start(&q, 1) * 2 + c.clone(),
        start(&q, 1) + &c * 2,
        start(&q, 1) + &var("o") * length + c.clone(),
        // The order of the loops does not matter, nor whether they are one.
        start(&f.floor_mod(&Index::int(parts)), 1) + f.floor_div(&Index::int(parts)),
        start(&f.floor_div(&Index::int(part)), 1) + f.floor_mod(&Index::int(part)),
        start(&f.floor_div(&Index::int(part)), 1) + c.clone(),
    ];
    if part % 2 == 0 {
        let two = Index::int(2);
        out.push(start(&q, 1) + &c.floor_div(&two) * 2 + c.floor_mod(&two));
        out.push(start(&q, 1) + c.floor_div(&two) + &c.floor_mod(&two) * (part / 2));
    }
    out
}

/// All values of an index while the other loops run, from that of the first iteration of `o` on.
fn values(index: &Index, loops: &[(Name, i64)]) -> BTreeSet<i64> {
    let mut points: Vec<Vec<i64>> = vec![vec![]];
    for (_, extent) in loops {
        points = points.iter().flat_map(|it| (0..*extent).map(|n| [&it[..], &[n]].concat())).collect();
    }
    let at = |point: &Vec<i64>| {
        let value = |name: &Name| {
            let at = loops.iter().position(|it| it.0 == *name);
            Some(at.map_or(0, |at| point[at]))
        };
        index.eval(&value).expect("small numbers")
    };
    points.iter().map(at).collect()
}

/// The values that a range stands for, in the first iteration of `o`.
fn meant(range: &Range) -> BTreeSet<i64> {
    let first = range.min.eval(&|_| Some(0)).expect("small numbers");
    let mut out = BTreeSet::from([first]);
    let whole = super::Step { stride: 1, count: range.extent.as_int().expect("a constant") };
    let all = if range.steps.is_empty() { std::slice::from_ref(&whole) } else { &range.steps };
    for step in all {
        out = out.iter().flat_map(|it| (0..step.count).map(move |n| it + n * step.stride)).collect();
    }
    out
}

#[test]
fn shifted_parts_have_the_values_that_regions_say() {
    for part in 1..=6 {
        for length in part..=20 {
            let parts = (length + part - 1) / part;
            let loops = [("q", parts), ("c", part), ("f", parts * part)];
            let loops = loops.map(|(name, extent)| (Name::new(name), extent));
            let mut bounds = Bounds::default();
            bounds.insert(&Name::new("o"), &Index::int(3));
            for (name, extent) in &loops {
                bounds.insert(name, &Index::int(*extent));
            }
            for (n, index) in subscripts(parts, part, length).into_iter().enumerate() {
                let is_inner = |name: &Name| name.as_str() != "o";
                let values = values(&index, &loops);
                let case = format!("{index} with {length} by {part}: {values:?}");
                let size = Index::int(1000);
                let range = range_of(&index, &[], &size, &bounds, &is_inner);
                assert!(meant(&range).is_superset(&values), "{case} is more than {range:?}");
                let inner = super::parted(&bounds.sum(&index), &is_inner).0;
                let is_regular = steps(&inner, &bounds).is_some();
                assert!(!is_regular || meant(&range) == values, "{case} is not {range:?}");
                let dense = filled(std::slice::from_ref(&index), &[], &[], &[size], &bounds, &is_inner);
                if let Some([it]) = dense.as_deref() {
                    assert_eq!(meant(it), values, "{case} is not {it:?}");
                }
                let solved = is_filled(&index, &loops, &values);
                // What a split makes has no holes, and each of them finds it.
                assert!(n > 0 || is_regular && dense.is_some() && solved, "{case}");
            }
        }
    }
}

/// Whether the solver finds that the subscript has all values below their end.
fn is_filled(index: &Index, loops: &[(Name, i64)], values: &BTreeSet<i64>) -> bool {
    let end = values.last().map_or(0, |it| it + 1);
    let element = Name::new("element");
    let mut points = Problem::new();
    points.index(&element, &Index::int(end));
    let vars = loops.iter().map(|(name, extent)| (name.clone(), Index::int(*extent))).collect();
    let write = AccessRelation {
        indices: vec![index.subst(&|name| (name.as_str() == "o").then(|| Index::int(0)))],
        vars,
        conditions: vec![],
    };
    let found = never_missed(&points, &[write.misses(&[Index::var(&element)])]);
    assert!(!found || (0..end).all(|it| values.contains(&it)), "{index} does not have all of {values:?}");
    found
}

#[test]
fn quotients_of_what_stays_are_no_wider_than_what_moves() {
    let [tile, x, four] = [Index::var(&Name::new("tile")), Index::var(&Name::new("x")), Index::int(4)];
    let range = |extent: i64| {
        let mut bounds = Bounds::default();
        bounds.insert(&Name::new("tile"), &Index::int(64));
        bounds.insert(&Name::new("x"), &Index::int(extent));
        let index = (&tile + &x).floor_div(&four);
        range_of(&index, &[], &Index::int(100), &bounds, &|name| name.as_str() == "x")
    };
    // One head of keys belongs to each group of four heads of queries, whichever of 64 a block has.
    assert_eq!(range(1), Range::new(tile.floor_div(&four), Index::int(1)));
    // Which of two quotients the last is depends on the block.
    assert_eq!(range(2), Range::new(Index::int(0), Index::int(17)));
}
