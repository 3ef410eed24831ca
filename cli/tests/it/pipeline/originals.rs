//! All annotations of two tiny loops, which showed that the rule is exact: 180 of them, 24 legal.
//!
//! TVM 0.27 refused 135 of the other 156, and compiled 21 to kernels that compute something else.

use super::{
    model::{Access, Block, Buffer, BufferUse, Component, Guard, Program, Reduce, Subscript, Trips},
    oracle::{Oracle, Times, agree},
    random::{Asked, Tally, judge, parse},
};

const TRIPS: i64 = 6;

const fn access(buffer: Option<usize>, per_trip: i64) -> Access {
    Access { buffer, flip: false, subscript: Subscript { per_trip, offset: 0, modulo: None, per_tile: 0 } }
}

fn component(place: Access, read: Access, reduce: Reduce, copies: bool) -> Component {
    Component {
        tile: 1,
        nested: false,
        blocks: vec![Block { guard: Guard::Always, reduce, place, reads: vec![read], copies }],
    }
}

/// Sums are kept as they grow: `sum = sum + A[i]; out[i] = sum`.
fn two(trips: Trips) -> Program {
    let output = Buffer { kind: BufferUse::Output, long: true, own: false };
    let sum = Buffer { kind: BufferUse::Carried(" @shared"), long: false, own: false };
    let components = vec![
        component(access(Some(1), 0), access(None, 1), Reduce::Update, false),
        component(access(Some(0), 1), access(Some(1), 0), Reduce::No, true),
    ];
    Program { trips, cooperative: true, buffers: vec![output, sum], components }
}

/// The same with the load apart: `tile = A[i]; sum = sum + tile; out[i] = sum`.
fn three(trips: Trips) -> Program {
    let mut out = two(trips);
    out.buffers.push(Buffer { kind: BufferUse::Inner(" @shared"), long: false, own: false });
    out.components[0].blocks[0].reads = vec![access(Some(2), 0)];
    out.components.insert(0, component(access(Some(2), 0), access(None, 1), Reduce::No, true));
    out
}

/// Every stage from 0 to 2 and every order.
fn annotations(components: usize) -> Vec<Times> {
    let mut orders = vec![vec![]];
    for at in 0..i64::try_from(components).unwrap() {
        let insert = |order: &Vec<i64>| {
            (0..=order.len())
                .map(|place| {
                    let mut order = order.clone();
                    order.insert(place, at);
                    order
                })
                .collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(insert).collect();
    }
    let mut out = Vec::new();
    for number in 0..3i64.pow(u32::try_from(components).unwrap()) {
        let stages = (0..components).map(|at| number / 3i64.pow(u32::try_from(at).unwrap()) % 3);
        let stages: Vec<_> = stages.collect();
        out.extend(orders.iter().map(|order| stages.iter().copied().zip(order.iter().copied()).collect()));
    }
    out
}

#[test]
fn the_180_annotations_are_judged_exactly() {
    let mut tally = Tally::default();
    for trips in [Trips::Constant(TRIPS), Trips::Symbolic] {
        let mut all = 0;
        for program in [two(trips), three(trips)] {
            let func = parse(&program);
            for times in annotations(program.components.len()) {
                // Here no illegal order happens to give the right values.
                let oracle = Oracle::new(&program, TRIPS);
                let right = agree(&oracle.result(Some(&times)), &oracle.result(None));
                assert_eq!(oracle.violation(&times).is_none(), right);
                let inner = vec![None; program.components.len()];
                judge(&program, &func, &Asked { times, inner, ..Asked::default() }, &mut tally);
                all += 1;
            }
        }
        assert_eq!(all, 180);
    }
    println!("{}", tally.report());
    assert!(tally.wrongly_refused.is_empty(), "{}", tally.wrongly_refused[0]);
    assert_eq!((tally.accepted, tally.refused, tally.kernels), (2 * 24, 2 * 156, 2 * 24));
}
