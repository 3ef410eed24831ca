//! Every rule of egg on random values, and what the search chooses for the indices of real schedules.

use std::{cell::Cell, collections::BTreeMap, fmt::Write};

use egg::RecExpr;
use proptest::{prelude::*, test_runner::TestRunner};

use super::{bounds, read, show};
use crate::arith::{
    bounds::Range,
    cheapest, cost,
    rules::{Node, RULES, Rule, VarNumber},
};

/// The value of a pattern, its operands read from `values` by their letters.
fn value(pattern: &str, values: &BTreeMap<char, i64>) -> Option<i64> {
    let mut text = pattern.to_string();
    for letter in values.keys() {
        text = text.replace(&format!("?{letter}"), &format!("v{}", u32::from(*letter)));
    }
    let expr: RecExpr<Node> = text.parse().unwrap();
    let mut out: Vec<i64> = Vec::new();
    for node in &expr {
        let both = |[a, b]: [egg::Id; 2]| (out[usize::from(a)], out[usize::from(b)]);
        let value = match *node {
            Node::Int(value) => value,
            Node::Var(VarNumber(letter)) => values[&char::from_u32(letter).unwrap()],
            Node::Add(it) => both(it).0.checked_add(both(it).1)?,
            Node::Mul(it) => both(it).0.checked_mul(both(it).1)?,
            Node::Div(it) if both(it).1 > 0 => both(it).0.div_euclid(both(it).1),
            Node::Mod(it) if both(it).1 > 0 => both(it).0.rem_euclid(both(it).1),
            Node::Div(_) | Node::Mod(_) => return None,
            Node::Min(it) => both(it).0.min(both(it).1),
            Node::Max(it) => both(it).0.max(both(it).1),
            Node::Xor(it) => both(it).0 ^ both(it).1,
        };
        out.push(value);
    }
    out.pop()
}

/// An operand: an interval and a value in it. Often a constant, often one that divides others.
fn operand() -> impl Strategy<Value = (Range, i64)> {
    let numbers = proptest::sample::select(vec![1, 2, 3, 4, 6, 8, 12, 16, 32, 36, 64, -1, -8, 0, 1 << 62]);
    let constant = numbers.prop_map(|it| (Range::exactly(it), it));
    let ranged = (-40..40_i64, 0..40_i64, 0..=1000_i64).prop_map(|(lo, size, at)| {
        let value = lo + size * at / 1000;
        (Range { lo: Some(lo), hi: Some(lo + size) }, value)
    });
    let positive = (0..8_i64, 0..=1000_i64).prop_map(|(size, at)| {
        let value = size * at / 1000;
        (Range { lo: Some(0), hi: Some(size) }, value)
    });
    let free = (-1000..1000_i64).prop_map(|it| (Range::default(), it));
    prop_oneof![3 => constant, 1 => ranged, 1 => positive, 1 => free]
}

fn holds(rule: &Rule) {
    let letters: Vec<char> = rule.from.split('?').skip(1).filter_map(|it| it.chars().next()).collect();
    let tried = Cell::new(0);
    let operands = proptest::collection::vec(operand(), 26);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) };
    let run = TestRunner::new(config).run(&operands, |operands| {
        let of = |letter: char| operands[letter as usize - 'a' as usize];
        let Some(made) = (rule.given)(&|letter| of(letter).0) else { return Ok(()) };
        let mut values: BTreeMap<char, i64> = letters.iter().map(|it| (*it, of(*it).1)).collect();
        values.insert('K', made);
        if let Some(from) = value(rule.from, &values) {
            tried.set(tried.get() + 1);
            // What is equal may still overflow on the way; egg's numbers are exact.
            let to = value(rule.to, &values);
            prop_assert!(to.is_none_or(|to| to == from), "{values:?}: {from} became {to:?}");
        }
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{}: {error}", rule.name));
    assert!(tried.get() >= 50, "{}: its condition held only {} times", rule.name, tried.get());
}

#[test]
fn every_rule_holds_where_its_condition_does() {
    RULES.iter().for_each(holds);
}

#[test]
fn rules_have_names_of_their_own() {
    let mut names: Vec<&str> = RULES.iter().map(|it| it.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
}

/// The indices that schedules of matrix multiplication and convolution make.
const INDICES: &[(&str, &str, &str)] = &[
    ("shifted", "i: 64; v: 4", "(i + 1) + (v - 1)"),
    ("fuse then split", "i: 262144", "i/512*512 + i%512"),
    ("cooperative fetch, row", "t: 256; v: 4; p: 8", "(p*1024 + t*4 + v)/32"),
    (
        "cooperative fetch into pitched shared memory",
        "t: 256; v: 4; p: 8",
        "(p*1024 + t*4 + v)/32*36 + (p*1024 + t*4 + v)%32",
    ),
    (
        "address in a tiled matrix",
        "by: 16; ko: 128; t: 256; v: 4",
        "(by*64 + (t*4 + v)/8%64)*1024 + ko*8 + (t*4 + v)%8",
    ),
    ("pipelined buffer slot", "ko: 128; ty: 16; i: 4; k: 8", "(ko + 1)%3*512 + (ty*4 + i)*8 + k"),
    ("lane map of a matrix instruction", "t: 32; r: 4", "(t/4 + r/2*8)*72 + t%4*2 + r%2"),
    ("triple fuse", "f: 4096", "f/256*256 + f%256/16*16 + f%16"),
    ("pitch over 24", "t: 240", "t/24*28 + t%24"),
    ("pitch over 24, tail", "b: 7; t: 240", "t/24*28 + t%24 + b*512 + t/6"),
    ("im2col 3x3", "f: 576; y: 56; x: 56", "(y + f/3%3)*58*64 + (x + f%3)*64 + f/9"),
    ("quotient and remainder", "t: 300", "t/24 + t%24"),
    ("strided remainder", "t: 300; b: 4", "b*9 + t/24*100 + t%24*4"),
    ("symbolic matrix", "n; m; i: n; j: m", "i*m + j"),
    ("symbolic batch", "p; n; m; i: p; j: n; k: m", "i*n*m + j*m + k"),
    ("symbolic fuse then split", "n; m; f: n*m", "f/m*m + f%m"),
    ("symbolic fuse of three", "n; m; f: n*m*32", "f/32/m*(m*32) + f/32%m*32 + f%32"),
    ("convolution", "p: 56; q: 56; r: 3; s: 3; c: 64", "((p + r)*58 + (q + s))*64 + c"),
    ("tail of a split", "n; io: (n + 31)/32; ii: min(32, n - io*32)", "(io*32 + ii)%32 + io"),
];

#[test]
fn cheapest_forms() {
    let mut out = String::new();
    for (title, known, index) in INDICES {
        let (bounds, index) = (bounds(known), read(index));
        let (normal, best) = (bounds.simplify(&index), cheapest(&index, &bounds));
        let line = |it| format!("{:4}  {}", cost(it), show(it));
        writeln!(out, "{title}  [{known}]").unwrap();
        writeln!(out, "  raw      {}", line(&index)).unwrap();
        writeln!(out, "  normal   {}", line(&normal)).unwrap();
        writeln!(out, "  cheapest {}\n", line(&best)).unwrap();
        assert!(bounds.equal(&index, &best), "{title}");
    }
    insta::assert_snapshot!(out);
}
