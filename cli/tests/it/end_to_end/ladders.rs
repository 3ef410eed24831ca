//! Every rung of every ladder that ships.

use indexmap::IndexMap;
use ir::{Name, Target, ThreadAxis};
use schedule::{Script, Step, primitive::Padding, workload::Param};
use workloads::{Ladder, Shipped};

use super::{
    check::{Case, Scheduled, size},
    gpu,
};

use crate::common::expanded;

/// What the rungs of a workload are tried at, the sizes in the order of its axes: smaller than one tile, a whole number of some tiles, ones,
/// and past some tiles. Products, of whatever stages, have rows, columns and depth.
fn sizes_of(workload: &str) -> (&'static [&'static str], [&'static [i64]; 4]) {
    match workload {
        "attention" => (&["queries", "keys"], [&[33, 50], &[64, 64], &[1, 1], &[40, 150]]),
        "softmax" => (&["m", "n"], [&[3, 50], &[2, 4096], &[1, 1], &[3, 5001]]),
        "transpose" => (&["m", "n"], [&[33, 50], &[64, 64], &[1, 1], &[48, 80]]),
        _ => (PRODUCT, [&[33, 50, 20], &[64, 64, 64], &[1, 1, 1], &[48, 80, 40]]),
    }
}

/// The sizes of a product.
const PRODUCT: &[&str] = &["m", "n", "k"];

/// The rung from which a kernel holds its tile in registers and so must not spill.
const IN_REGISTERS: usize = 3;

pub(super) fn case(ladder: &Ladder, rung: &Shipped, params: Vec<(String, Param)>) -> Case {
    let what = format!("{} {} {params:?}", ladder.name, rung.name);
    // What follows a product is no whole number, and what f16 makes of it depends on the last bit.
    let tolerance = if matches!(ladder.workload, "matmul" | "transpose") { 0.0 } else { 2e-3 };
    Case {
        what,
        text: expanded(rung.text),
        params: whole_rows(rung, params),
        dims: IndexMap::new(),
        tolerance,
    }
}

/// Lengths of rows that the copy engine can take, multiples of 16 bytes, for a rung whose warps have roles.
fn whole_rows(rung: &Shipped, params: Vec<(String, Param)>) -> Vec<(String, Param)> {
    let text = expanded(rung.text);
    let has_roles = text.contains("warp_specialize");
    let own = Script::parse(&text).unwrap().params.value;
    let given = |name: &str| params.iter().find(|it| it.0 == name).map(|it| it.1.clone());
    let dtype = given("dtype").or_else(|| own.get("dtype").cloned());
    let unit = 16 / dtype.and_then(|it| it.element_bytes()).unwrap_or(2).min(2);
    let whole = |(name, it): (String, Param)| match it {
        Param::Int(it) if has_roles && name != "m" => (name, Param::Int((it + unit - 1) / unit * unit)),
        _ => (name, it),
    };
    params.into_iter().map(whole).collect()
}

pub(super) fn every_rung(mut visit: impl FnMut(&Ladder, usize, &Shipped)) {
    let mut count = 0;
    for ladder in workloads::ladders() {
        for (at, rung) in ladder.rungs.iter().enumerate() {
            visit(ladder, at, rung);
            count += 1;
        }
    }
    assert!(count >= 15);
}

fn sizes((m, n, k): (i64, i64, i64)) -> Vec<(String, Param)> {
    numbers(PRODUCT, &[m, n, k])
}

fn numbers(names: &[&str], values: &[i64]) -> Vec<(String, Param)> {
    names.iter().zip(values).map(|(name, it)| ((*name).to_owned(), Param::Int(*it))).collect()
}

/// Whether a ladder is one of products.
fn is_of_products(ladder: &Ladder) -> bool {
    sizes_of(ladder.workload).0 == PRODUCT
}

fn at_size(at: usize) {
    every_rung(|ladder, number, rung| {
        let (names, all) = sizes_of(ladder.workload);
        let case = case(ladder, rung, numbers(names, all[at]));
        // The compiler sees each rung at one of these sizes; at its own size it sees all.
        if number % all.len() == at {
            case.check();
        } else {
            case.check_values();
        }
    });
}

/// Rows and columns of a block, and how deep it goes at a time. `None` for a CPU.
fn tile(case: &Case) -> Option<(i64, i64, i64)> {
    let Scheduled { before, after, target } = case.schedule();
    if target == Target::Cpu {
        return None;
    }
    if let Some(padded) = padded(case) {
        return Some(padded);
    }
    let module = case.lower(&after, &target);
    let extents = before.loops().into_iter().map(|it| it.extent.as_int().unwrap()).collect::<Vec<_>>();
    let [m, n, k] = extents[..] else { panic!("{}: a product has three loops", case.what) };
    let blocks = |axis| i64::try_from(size(&module.kernels[0].launch[&axis], &case.dims)).unwrap();
    let steps = after.find_loop(&Name::new("ko")).map_or(k, |it| it.extent.as_int().unwrap());
    Some((m / blocks(ThreadAxis::BlockY), n / blocks(ThreadAxis::BlockX), k / steps))
}

/// What a script pads rows, columns and depth to multiples of: its tile.
fn padded(case: &Case) -> Option<(i64, i64, i64)> {
    let padding = case.steps().into_iter().find_map(|it| match it.value {
        Step::PadEinsum(it) => Some(it.padding),
        _ => None,
    })?;
    let Padding::Map(map) = padding else { panic!("{}: paddings go by name here", case.what) };
    let of = |name: &str| map[&Name::new(name)].get().unwrap();
    Some((of("i"), of("j"), of("k")))
}

/// Sizes at which the loop of a pipeline is in its steady state for a while; `None` for a CPU.
pub(super) fn steady(ladder: &Ladder, case: &Case) -> Option<Vec<(String, Param)>> {
    if is_of_products(ladder) {
        return tile(case).map(|it| sizes(whole(it)));
    }
    let (names, [.., last]) = sizes_of(ladder.workload);
    Some(numbers(names, last))
}

fn on_tiles(half: usize, of_tile: impl Fn((i64, i64, i64)) -> (i64, i64, i64)) {
    every_rung(|ladder, at, rung| {
        if at % 2 == half
            && is_of_products(ladder)
            && let Some(tile) = tile(&case(ladder, rung, vec![]))
        {
            case(ladder, rung, sizes(of_tile(tile))).check_values();
        }
    });
}

/// Full tiles, and enough of them for the steady loop of the deepest pipeline.
fn whole((m, n, k): (i64, i64, i64)) -> (i64, i64, i64) {
    (m, n, 5 * k)
}

/// A block of full rows, one with a single row, columns that are missing, and a last step that is cut short.
fn past((m, n, k): (i64, i64, i64)) -> (i64, i64, i64) {
    (m + 1, n - 3, 3 * k + 5)
}

#[test]
fn even_rungs_on_whole_tiles() {
    on_tiles(0, whole);
}

#[test]
fn odd_rungs_on_whole_tiles() {
    on_tiles(1, whole);
}

#[test]
fn even_rungs_past_their_tiles() {
    on_tiles(0, past);
}

#[test]
fn odd_rungs_past_their_tiles() {
    on_tiles(1, past);
}

// One test a size, for the sizes run beside each other.

#[test]
fn rungs_at_size_0() {
    at_size(0);
}

#[test]
fn rungs_at_size_1() {
    at_size(1);
}

#[test]
fn rungs_at_size_2() {
    at_size(2);
}

#[test]
fn rungs_at_size_3() {
    at_size(3);
}

/// The types of the factors, the sums and the result that products of warpgroups, and into tensor memory, have beside those of the scripts, with the
/// rung that computes them.
const TYPES: [([&str; 3], [&str; 2]); 19] = [
    (["f8e4m3", "f32", "bf16"], ["matmul-hopper", "07_store"]),
    (["f8e5m2", "f32", "f16"], ["matmul-hopper", "07_store"]),
    (["tf32", "f32", "bf16"], ["matmul-hopper", "07_store"]),
    (["f16", "f32", "f16"], ["matmul-hopper", "07_store"]),
    (["i8", "i32", "bf16"], ["matmul-hopper", "07_store"]),
    (["f8e4m3", "f32", "f8e4m3"], ["matmul-hopper", "06_raster"]),
    (["f8e4m3", "f32", "bf16"], ["matmul-hopper", "09_ping_pong"]),
    (["i8", "i32", "i32"], ["matmul-hopper-i8", "01_store"]),
    (["tf32", "f32", "f32"], ["matmul-hopper-i8", "01_store"]),
    (["bf16", "f32", "f32"], ["matmul-hopper-i8", "01_store"]),
    (["f8e4m3", "f32", "f32"], ["matmul-hopper-i8", "01_store"]),
    (["f16", "f16", "f16"], ["matmul-hopper-i8", "01_store"]),
    (["f16", "f32", "f16"], ["matmul-blackwell", "06_store"]),
    (["f8e4m3", "f32", "bf16"], ["matmul-blackwell", "06_store"]),
    (["f8e5m2", "f32", "f8e5m2"], ["matmul-blackwell", "05_accumulators"]),
    (["tf32", "f32", "bf16"], ["matmul-blackwell", "03_roles"]),
    (["f16", "f32", "f16"], ["matmul-blackwell", "07_pairs"]),
    (["tf32", "f32", "bf16"], ["matmul-blackwell", "07_pairs"]),
    (["f8e4m3", "f32", "bf16"], ["matmul-blackwell", "07_pairs"]),
];

fn in_types(mut visit: impl FnMut(Case)) {
    for ([dtype, acc, out], [ladder, rung]) in TYPES {
        let ladder = workloads::find_ladder(ladder).unwrap();
        let rung = ladder.rungs.iter().find(|it| it.name == rung).unwrap();
        let types = [("dtype", dtype), ("acc", acc), ("out", out)];
        let types = types.map(|(name, it)| (name.to_owned(), Param::Text(it.to_owned())));
        let params = types.into_iter().chain(sizes((70, 48, 272))).collect();
        let case = case(ladder, rung, params);
        // Sums in f16 are rounded each.
        let tolerance = if acc == "f16" { 4e-3 } else { 0.0 };
        visit(Case { tolerance, ..case });
    }
}

#[test]
fn rungs_are_right_in_every_type() {
    in_types(|case| drop(case.check_values()));
}

/// The lines of one script give each type the instruction that it has.
#[test]
fn rungs_compile_in_every_type() {
    in_types(|case| {
        let Scheduled { after, target, .. } = case.schedule();
        for it in gpu::compile(&case.what, &after, &target) {
            let memory = (it.stack_bytes, it.spill_store_bytes, it.spill_load_bytes);
            assert_eq!(memory, (0, 0, 0), "{}: {it:?}", case.what);
        }
    });
}

#[test]
fn register_tiles_do_not_spill() {
    every_rung(|ladder, at, rung| {
        let scheduled = case(ladder, rung, vec![]).schedule();
        if scheduled.target == Target::Cpu {
            return;
        }
        for it in gpu::compile(rung.name, &scheduled.after, &scheduled.target) {
            let memory = (it.stack_bytes, it.spill_store_bytes, it.spill_load_bytes);
            assert!(at < IN_REGISTERS || memory == (0, 0, 0), "{}: {it:?}", rung.name);
        }
    });
}
