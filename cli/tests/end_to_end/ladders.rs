//! Every rung of every ladder that ships.

use indexmap::IndexMap;
use schedule::workload::Param;
use workloads::{Ladder, Shipped};

use crate::{check::Case, gpu};

/// Rows, columns and depth: smaller than one tile, a whole number of some tiles, and one past them.
const SIZES: [(i64, i64, i64); 4] = [(33, 50, 20), (64, 64, 64), (1, 1, 1), (48, 80, 40)];

/// The rung from which a kernel holds its tile in registers and so must not spill.
const IN_REGISTERS: usize = 3;

fn case(ladder: &Ladder, rung: &Shipped, params: Vec<(String, Param)>) -> Case {
    let what = format!("{} {} {params:?}", ladder.name, rung.name);
    Case { what, text: rung.text.to_owned(), params, dims: IndexMap::new(), tolerance: 0.0 }
}

fn every_rung(mut visit: impl FnMut(&Ladder, usize, &Shipped)) {
    let mut count = 0;
    for ladder in workloads::ladders() {
        assert_eq!(ladder.workload, "matmul", "this test knows the parameters of one workload");
        for (at, rung) in ladder.rungs.iter().enumerate() {
            visit(ladder, at, rung);
            count += 1;
        }
    }
    assert!(count >= 15);
}

fn at_size((m, n, k): (i64, i64, i64)) {
    every_rung(|ladder, _, rung| {
        let params = [("m", m), ("n", n), ("k", k)].map(|(name, it)| (name.to_owned(), Param::Int(it)));
        case(ladder, rung, params.to_vec()).check();
    });
}

// One test a size, for the sizes run beside each other.

#[test]
fn rungs_at_size_0() {
    at_size(SIZES[0]);
}

#[test]
fn rungs_at_size_1() {
    at_size(SIZES[1]);
}

#[test]
fn rungs_at_size_2() {
    at_size(SIZES[2]);
}

#[test]
fn rungs_at_size_3() {
    at_size(SIZES[3]);
}

#[test]
fn register_tiles_do_not_spill() {
    every_rung(|ladder, at, rung| {
        if !ladder.name.contains("cuda") {
            return;
        }
        let scheduled = case(ladder, rung, vec![]).schedule();
        for it in gpu::compile(rung.name, &scheduled.after) {
            let memory = (it.stack_bytes, it.spill_store_bytes, it.spill_load_bytes);
            assert!(at < IN_REGISTERS || memory == (0, 0, 0), "{}: {it:?}", rung.name);
        }
    });
}
