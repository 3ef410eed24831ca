//! Spaces of scripts: points, what is admitted, and streams over all of it.

#![expect(clippy::unwrap_used, reason = "a test may stop")]
#![expect(clippy::format_collect, reason = "short texts of scripts")]

use std::collections::BTreeSet;

use indexmap::IndexMap;
use proptest::prelude::*;
use schedule::{Choice, Decisions, Script, workload::Param};
use tilewright_tuner::{Refusal, Space, Stream};

fn script(knobs: &str, constraints: &str, steps: &str) -> Script {
    let text = format!(
        "schedule(workload: \"matmul\", knobs: {{{knobs}}}, constraints: [{constraints}], steps: [{steps}])"
    );
    Script::parse(&text).unwrap_or_else(|err| panic!("{err}: {text}"))
}

fn space(knobs: &str, constraints: &str, steps: &str) -> Space {
    let params =
        IndexMap::from([("m".to_owned(), Param::Int(64)), ("dtype".to_owned(), Param::Text("f32".into()))]);
    Space::of(&script(knobs, constraints, steps), &params).unwrap()
}

/// A step that uses each of some knobs.
fn uses(names: &[&str]) -> String {
    names.iter().map(|it| format!("split(loop: \"i\", into: {{\"a\": None, \"b\": \"{it}\"}}),")).collect()
}

fn decide(list: &[(&str, i64)]) -> Decisions {
    list.iter().map(|(name, value)| ((*name).into(), Choice::Int(*value))).collect()
}

#[test]
fn a_script_without_knobs_is_a_space_of_one() {
    let space = space("", "", "unroll(loop: \"i\")");
    assert_eq!((space.size(), space.admits(0), space.decisions(0)), (1, Ok(()), Decisions::new()));
    assert_eq!(Stream::new(&space, 7).collect::<Vec<_>>(), [0]);
    assert_eq!(space.steps(0).unwrap().len(), 1);
    assert!(space.pruning().is_exact());
}

#[test]
fn points_have_digits_and_decisions() {
    let tile = r#""t": perfect_tile(of: "m", parts: 3, innermost: 4), "x": powers_of_two(from: 3, to: 20), "w": boolean"#;
    let steps = r#"split(loop: "i", into: {"a": None, "b": "t[1] * x", "c": "t[2] + w"})"#;
    let space = space(tile, "", steps);
    assert_eq!(space.axes()["x"], [4, 8, 16].map(Choice::Int));
    assert_eq!(space.axes()["t"].len(), 7 + 6 + 5);
    assert_eq!(space.axes()["t"][0], Choice::Tile(vec![64, 1, 1]));
    let products = space.axes()["t"].iter().map(|it| match it {
        Choice::Tile(parts) => parts.iter().product::<i64>(),
        Choice::Int(_) => 0,
    });
    assert!(products.into_iter().all(|it| it == 64));
    for index in 0..space.size() {
        assert_eq!(space.index(&space.digits(index)), index);
        assert_eq!(space.index_of(&space.decisions(index)), Some(index));
    }
    let decisions =
        [("t".into(), Choice::parse("8x4x2").unwrap()), ("w".into(), 1.into())].into_iter().collect();
    let index = space.index_of(&decisions).unwrap();
    assert_eq!(
        space.steps(index).unwrap()[0].to_ron(),
        r#"split(loop: "i", into: {"a": None, "b": 16, "c": 3})"#
    );
    assert_eq!(space.index_of(&decide(&[("x", 5)])), None);
    assert_eq!(space.index_of(&decide(&[("y", 4)])), None);
}

#[test]
fn knobs_that_decide_nothing_have_one_value() {
    let steps = r#"
        split(loop: "i", into: {"a": None, "b": "x"}),
        choose(knob: "c", one_of: [
            [],
            [split(loop: "j", into: {"d": None, "e": "y"}), choose(knob: "f", one_of: [[], [split(loop: "k", into: {"g": None, "h": "z"})]])],
        ]),"#;
    let space = space(r#""x": [1, 2], "y": [3, 4, 5], "z": [6, 7], "unused": [8, 9]"#, "", steps);
    assert_eq!(space.size(), 2 * 3 * 2 * 2 * 2 * 2);
    let admitted: Vec<_> = (0..space.size()).filter(|it| space.admits(*it).is_ok()).collect();
    // x, and without c nothing else; with c also y, and f, which opens z.
    assert_eq!(admitted.len(), 2 * (1 + 3 * (1 + 2)));
    let steps: BTreeSet<_> = admitted.iter().map(|it| format!("{:?}", space.steps(*it).unwrap())).collect();
    assert_eq!(steps.len(), admitted.len());
    let index = space.index_of(&decide(&[("x", 2), ("y", 4)])).unwrap();
    assert_eq!(space.admits(index), Err(Refusal::Inactive("y".into())));
    assert_eq!(space.decisions(index), decide(&[("x", 2), ("c", 0)]));
    assert_eq!(space.pruning().admitted, 20);
    assert_eq!(space.pruning().inactive, space.size() - 20);
}

#[test]
fn constraints_refuse_and_are_counted() {
    let knobs = r#""x": [1, 2, 3, 4], "y": [0, 1, 2, 3]"#;
    let space = space(knobs, r#""x * y <= 6", "m % x == 0", "8 / y >= 1""#, &uses(&["x", "y"]));
    let at = |x, y| space.index_of(&decide(&[("x", x), ("y", y)])).unwrap();
    assert_eq!(space.admits(at(4, 2)), Err(Refusal::Constraint(0)));
    assert_eq!(space.admits(at(3, 1)), Err(Refusal::Constraint(1)));
    assert_eq!(space.admits(at(1, 0)), Err(Refusal::Constraint(2)));
    assert_eq!(space.words(&Refusal::Constraint(2)), "the constraint `8 / y >= 1` does not hold");
    let pruning = space.pruning();
    let counts: Vec<_> = pruning.constraints.iter().map(|it| (it.alone, it.only)).collect();
    assert_eq!(counts, [(3, 2), (4, 2), (4, 3)]);
    assert_eq!(pruning.admitted, (0..16).filter(|it| space.admits(*it).is_ok()).count() as u128);
}

#[test]
fn huge_spaces_are_drawn_from_and_searched() {
    let names: Vec<String> = (0..10).map(|it| format!("k{it}")).collect();
    let choices = (1..=1000).map(|it| it.to_string()).collect::<Vec<_>>().join(", ");
    let knobs: String = names.iter().map(|it| format!("\"{it}\": [{choices}],")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wide = space(&knobs, "\"k0 <= k1\"", &uses(&names));
    assert_eq!(wide.size(), 10u128.pow(30));
    let drawn: Vec<_> = Stream::new(&wide, 1).take(1000).collect();
    assert_eq!(drawn.iter().collect::<BTreeSet<_>>().len(), 1000);
    assert!(drawn.iter().all(|it| wide.admits(*it).is_ok()));
    assert_eq!(drawn, Stream::new(&wide, 1).take(1000).collect::<Vec<_>>());
    assert_ne!(drawn, Stream::new(&wide, 2).take(1000).collect::<Vec<_>>());
    let share = wide.pruning().admitted as f64 / 1e30;
    assert!((0.48..0.52).contains(&share) && !wide.pruning().is_exact(), "{share}");

    // Nine equal knobs that divide 360: 24 points of 10^30.
    let equal: String = (1..9).map(|it| format!("\"k{} == k{it}\",", it - 1)).collect();
    let narrow = space(&knobs, &format!("{equal} \"k8 * k9 == 360\""), &uses(&names));
    let found: Vec<_> = Stream::new(&narrow, 1).collect();
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 24);
    assert_eq!(found.len(), 24);
    assert!(found.iter().all(|it| narrow.admits(*it).is_ok()) && !found.is_sorted());

    // Too many for a list, and far too few to draw.
    let equal: String = (1..6).map(|it| format!("\"k{} == k{it}\",", it - 1)).collect();
    let choices = (1..=100).map(|it| it.to_string()).collect::<Vec<_>>().join(", ");
    let fewer: String = names.iter().map(|it| format!("\"{it}\": [{choices}],")).collect();
    let middle = space(&fewer, &equal, &uses(&names));
    let found: Vec<_> = Stream::new(&middle, 1).take(2000).collect();
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 2000);
    assert!(found.iter().all(|it| middle.admits(*it).is_ok()));
    let first: BTreeSet<_> = found.iter().take(100).map(|it| middle.digits(*it)[0]).collect();
    assert!(first.len() > 90, "{} ways to decide the first knob", first.len());

    let nothing = space(&knobs, "\"k0 * k1 == 1000003\", \"k2 > k3\"", &uses(&names));
    assert_eq!(Stream::new(&nothing, 1).next(), None);
}

#[test]
fn a_space_may_be_too_large() {
    let knobs: String = (0..50).map(|it| format!("\"k{it}\": powers_of_two(from: 1, to: 128),")).collect();
    let err = Space::of(&script(&knobs, "", ""), &IndexMap::new()).unwrap_err();
    assert_eq!(err.message, "the space has more than 2^127 points");
}

/// Knobs `x0`, `x1`… of some sizes, used under a `choose` or not.
fn random() -> impl Strategy<Value = Space> {
    let constraint =
        (0..4usize, 0..4usize, prop::sample::select(vec!["+", "*", "-", "/", "%"]), 0..3usize, 0..12i64);
    let knobs = prop::collection::vec(1..6usize, 4);
    let under = prop::collection::vec(any::<bool>(), 4);
    (knobs, under, prop::collection::vec(constraint, 0..4)).prop_map(|(sizes, under, constraints)| {
        let list = |size: usize| (0..size).map(|it| (it * 2).to_string()).collect::<Vec<_>>().join(", ");
        let knobs: String =
            sizes.iter().enumerate().map(|(at, it)| format!("\"x{at}\": [{}],", list(*it))).collect();
        let text = |(a, b, op, compare, value): &(usize, usize, &str, usize, i64)| {
            format!("\"x{a} {op} x{b} {} {value}\",", ["<=", "==", "!="][*compare])
        };
        let constraints: String = constraints.iter().map(text).collect();
        let of = |wanted: bool| -> String {
            let names = under.iter().enumerate().filter(|it| *it.1 == wanted).map(|it| format!("x{}", it.0));
            let names: Vec<_> = names.collect();
            uses(&names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let steps = format!("choose(knob: \"c\", one_of: [[{}], []]), {}", of(true), of(false));
        space(&knobs, &constraints, &steps)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn streams_give_every_admitted_point_once(space in random(), seed in any::<u64>()) {
        let wanted: Vec<_> = (0..space.size()).filter(|it| space.admits(*it).is_ok()).collect();
        let mut found: Vec<_> = Stream::new(&space, seed).collect();
        found.sort_unstable();
        prop_assert_eq!(&found, &wanted);
        prop_assert_eq!(space.pruning().admitted, wanted.len() as u128);
        for index in wanted {
            prop_assert_eq!(space.index_of(&space.decisions(index)), Some(index));
        }
    }
}
