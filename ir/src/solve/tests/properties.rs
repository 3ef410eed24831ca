//! Answers to random questions, against all points.

use std::{cell::Cell, collections::BTreeMap};

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    Index, Less, Name,
    solve::{Answer, Problem},
};

const VARS: [&str; 5] = ["t", "u", "i", "j", "n"];
/// No box has more points.
const MOST_POINTS: i64 = 20_000;

fn var() -> impl Strategy<Value = Index> {
    proptest::sample::select(&VARS[..]).prop_map(|it| Index::var(&Name::new(it)))
}

fn divisor() -> impl Strategy<Value = Index> {
    let constants = proptest::sample::select(vec![1, 2, 3, 4, 5, 6, 8, 12, 16]).prop_map(Index::int);
    prop_oneof![8 => constants, 1 => Just(Index::var(&Name::new("n")))]
}

/// Sums of variables with coefficients, such as subscripts are.
fn affine() -> impl Strategy<Value = Index> {
    let coef = prop_oneof![3 => -3..=9_i64, 1 => proptest::sample::select(vec![16, 17, 32, 33, 64])];
    let terms = proptest::collection::vec((coef, var()), 1..4);
    (terms, -9..=20_i64).prop_map(|(terms, constant)| {
        terms.into_iter().fold(Index::int(constant), |out, (coef, var)| out + var * coef)
    })
}

/// Random expressions, mostly such as schedules make.
fn index() -> impl Strategy<Value = Index> {
    let leaf = prop_oneof![3 => var(), 4 => affine(), 1 => (-9..=40_i64).prop_map(Index::int)];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            4 => two.clone().prop_map(|(a, b)| a + b),
            1 => two.clone().prop_map(|(a, b)| a - b),
            1 => two.clone().prop_map(|(a, b)| a * b),
            3 => (inner.clone(), divisor()).prop_map(|(a, b)| a.floor_div(&b)),
            3 => (inner.clone(), divisor()).prop_map(|(a, b)| a.floor_mod(&b)),
            2 => (inner.clone(), divisor()).prop_map(|(a, c)| a.floor_div(&c) * c.clone() * 2 + a.floor_mod(&c)),
            1 => two.clone().prop_map(|(a, b)| a.minimum(&b)),
            1 => two.prop_map(|(a, b)| a.maximum(&b)),
        ]
    })
}

/// The same expression twice, the second time of other threads and iterations: a question of dependences.
fn question() -> impl Strategy<Value = (Index, Index)> {
    (index(), 0..3_i64).prop_map(|(it, later)| {
        let other = it.subst(&|name| match name.as_str() {
            "t" => Some(Index::var(&Name::new("u"))),
            "u" => Some(Index::var(&Name::new("t"))),
            "i" => Some(Index::var(&Name::new("i")) + later),
            _ => None,
        });
        (it, other)
    })
}

fn problems() -> impl Strategy<Value = Problem> {
    let range = (prop_oneof![3 => Just(0_i64), 1 => -6..=6_i64], 0..=24_i64);
    let ranges = proptest::collection::vec(range, VARS.len());
    let equal = proptest::collection::vec(prop_oneof![(index(), index()), question()], 0..3);
    let less = proptest::collection::vec((index(), index()), 0..3);
    (ranges, equal, less).prop_map(|(ranges, equal, less)| {
        let mut out = Problem::new();
        let mut points = 1;
        for (var, (low, span)) in VARS.iter().zip(ranges) {
            let span = span.min(MOST_POINTS / points - 1);
            points *= span + 1;
            out.var(&Name::new(*var), low, low + span);
        }
        for (a, b) in &equal {
            out.equal(a, b);
        }
        for (a, b) in less {
            out.less(&Less::new(a, b));
        }
        out
    })
}

/// The first point of a box where all conditions hold.
fn first_point(problem: &Problem) -> Option<Vec<i64>> {
    let mut point: Vec<i64> = problem.vars.iter().map(|it| it.1).collect();
    loop {
        if problem.holds(&point) {
            return Some(point);
        }
        let at = (0..point.len()).rev().find(|&at| point[at] < problem.vars[at].2)?;
        point[at] += 1;
        for (value, var) in point.iter_mut().zip(&problem.vars).skip(at + 1) {
            *value = var.1;
        }
    }
}

fn config(cases: u32) -> Config {
    Config { failure_persistence: None, ..Config::with_cases(cases) }
}

/// The same questions on each run, so that the share of those without an answer can be asserted.
fn fixed(cases: u32) -> TestRunner {
    TestRunner::new_with_rng(config(cases), TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]))
}

#[test]
fn answers_are_those_of_trying_all_points() {
    let counts = Cell::new([0; 3]);
    let count = |at: usize| {
        let mut all = counts.get();
        all[at] += 1;
        counts.set(all);
    };
    let ran = fixed(3000).run(&problems(), |problem| {
        match problem.solve() {
            Answer::Point(point) => {
                let values: Vec<i64> = VARS.iter().map(|it| point[&Name::new(*it)]).collect();
                prop_assert!(problem.holds(&values));
                count(0);
            }
            Answer::Never => {
                prop_assert_eq!(first_point(&problem), None);
                count(1);
            }
            Answer::Unknown => count(2),
        }
        Ok(())
    });
    ran.unwrap();
    let [points, nevers, unknown] = counts.get();
    assert!(unknown * 100 < points + nevers, "{:?}", counts.get());
    assert!(points > 600 && nevers > 600, "{:?}", counts.get());
}

/// The problem with each range as far again at both ends, which no trial of all points could cover.
fn wide(problem: &Problem) -> Problem {
    let mut out = Problem { vars: vec![], ..problem.clone() };
    for (name, low, high) in &problem.vars {
        out.var(name, low.min(&0) - 1, high + (1 << 20));
    }
    out
}

proptest! {
    #![proptest_config(config(1000))]

    /// A point in a part of the ranges is a point; where there is none in all, there is none in a part.
    #[test]
    fn wide_ranges_contradict_no_narrow_ones(problem in problems()) {
        match (problem.solve(), wide(&problem).solve()) {
            (Answer::Point(_), Answer::Never) => prop_assert!(false, "a point got lost"),
            (_, Answer::Point(point)) => {
                let all: BTreeMap<_, _> = point;
                let values: Vec<i64> = VARS.iter().map(|it| all[&Name::new(*it)]).collect();
                prop_assert!(wide(&problem).holds(&values));
            }
            (Answer::Point(_) | Answer::Never | Answer::Unknown, Answer::Never | Answer::Unknown) => {}
        }
    }

    #[test]
    fn the_same_question_gets_the_same_answer(problem in problems()) {
        prop_assert_eq!(problem.solve(), problem.solve());
    }
}
