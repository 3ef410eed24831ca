//! Tests of the solver.

mod cases;
mod properties;

use super::{Answer, Problem};
use crate::{Index, Less, Name};

/// Reads an index; `/` and `%` stand for `floordiv` and `mod` to keep tables narrow.
pub(crate) fn read(text: &str) -> Index {
    text.replace('/', " floordiv ").replace('%', " mod ").parse().expect("an index")
}

/// A problem as text: `i: 0..7, n: 1..2^31 | i*8 == n; i < n`, ranges with both ends.
fn problem(text: &str) -> Problem {
    let number = |it: &str| match it.trim().split_once('^') {
        Some((base, power)) => base.parse::<i64>().expect("a base").pow(power.parse().expect("a power")),
        None => it.trim().parse().expect("a number"),
    };
    let mut out = Problem::new();
    let (vars, conditions) = text.split_once('|').expect("variables | conditions");
    for var in vars.split(',') {
        let (names, range) = var.split_once(':').expect("a range");
        let (low, high) = range.split_once("..").expect("two ends");
        for name in names.split_whitespace() {
            out.var(&Name::new(name), number(low), number(high));
        }
    }
    for it in conditions.split(';').filter(|it| !it.trim().is_empty()) {
        if let Some((a, b)) = it.split_once("==") {
            out.equal(&read(a), &read(b));
        } else {
            let (a, b) = it.split_once('<').expect("a condition");
            out.less(&Less::new(read(a), read(b)));
        }
    }
    out
}

/// The answer in a word; a point is evaluated here too.
fn answer(problem: &Problem) -> &'static str {
    match problem.solve() {
        Answer::Never => "never",
        Answer::Unknown => "unknown",
        Answer::Point(point) => {
            let value = |name: &Name| point.get(name).copied();
            for (a, b) in &problem.equal {
                assert!(a.eval(&value).is_some());
                assert_eq!(a.eval(&value), b.eval(&value), "{point:?}");
            }
            for it in &problem.less {
                assert!(it.lhs.eval(&value).expect("a value") < it.rhs.eval(&value).expect("a value"));
            }
            for (name, low, high) in &problem.vars {
                assert!((*low..=*high).contains(&point[name]), "{name} at {point:?}");
            }
            "point"
        }
    }
}
