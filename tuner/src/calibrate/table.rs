//! What the numbers of the table in `ir::arch` are made of.

use indexmap::IndexMap;
use ir::{Caps, Latencies, Paces};

use super::Quantity;

/// A number of the table beside what was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// What it is called in the table.
    pub name: &'static str,
    /// How it follows from what was measured.
    pub from: &'static str,
    /// What the table has.
    pub committed: f64,
    /// What follows from the measurement; nothing where that lacks a part.
    pub measured: Option<f64>,
}

/// All numbers of the table that are measured, at the clock of the record in MHz.
pub fn rows(caps: &Caps, measured: &IndexMap<String, Quantity>, mhz: Option<f64>) -> Vec<Row> {
    let table = &caps.latencies;
    let mut out = latencies(table, measured);
    if let Some(rate) = caps.tensor.f16 {
        let share = get(measured, "mma_f16_flops_per_cycle").map(|it| it * 100.0 / f64::from(rate));
        out.push(row("product_percent", "mma_f16_flops_per_cycle of the most", table.product_percent, share));
    }
    out.extend(table.paces.iter().flat_map(|it| paces(it, measured, mhz)));
    out
}

fn row(name: &'static str, from: &'static str, committed: u32, measured: Option<f64>) -> Row {
    Row { name, from, committed: committed.into(), measured }
}

fn get(measured: &IndexMap<String, Quantity>, name: &str) -> Option<f64> {
    measured.get(name).map(|it| it.median)
}

fn latencies(table: &Latencies, measured: &IndexMap<String, Quantity>) -> Vec<Row> {
    let less = |a: &str, b: &str| Some(get(measured, a)? - get(measured, b)?);
    let same = |name, from: &'static str, committed| row(name, from, committed, get(measured, from));
    vec![
        same("cached", "global_l2_hit", table.cached),
        same("global", "global_dram", table.global),
        same("shared", "shared_load", table.shared),
        same("matrix", "ldmatrix_x4", table.matrix),
        same("arithmetic", "fma_f32", table.arithmetic),
        same("product", "mma_m16n8k16_f16", table.product),
        same("warpgroup_product", "wgmma_f16_n64_latency", table.warpgroup_product),
        row("copy", "cp_async_dram - global_dram", table.copy, less("cp_async_dram", "global_dram")),
        row(
            "bulk_copy",
            "bulk_2048_bytes_dram - global_dram",
            table.bulk_copy,
            less("bulk_2048_bytes_dram", "global_dram"),
        ),
        same("barrier", "barrier_256_threads", table.barrier),
        same("cached_bytes", "l2_bytes_per_cycle_per_sm", table.cached_bytes),
    ]
}

fn paces(table: &Paces, measured: &IndexMap<String, Quantity>, mhz: Option<f64>) -> Vec<Row> {
    let less = |a: &str, b: &str| Some(get(measured, a)? - get(measured, b)?);
    let same = |name, from: &'static str, committed| row(name, from, committed, get(measured, from));
    let cycles = |us: Option<f64>| Some(us? * mhz?);
    // Four blocks with 48 KiB of shared memory each are on a multiprocessor of Hopper at once: 33 take nine turns.
    let block = less("launch_33_blocks_each", "launch").map(|it| it / 8.0);
    vec![
        row(
            "bulk_cached",
            "bulk_2048_bytes_l2_hit - global_l2_hit",
            table.bulk_cached,
            less("bulk_2048_bytes_l2_hit", "global_l2_hit"),
        ),
        same("box_bytes", "box_bytes_per_cycle_per_sm_16_sharing", table.box_bytes),
        same("own_box_bytes", "box_bytes_per_cycle_per_sm_1_sharing", table.own_box_bytes),
        same("stored_bytes", "l2_store_bytes_per_cycle_per_sm", table.stored_bytes),
        row(
            "stored_part_bytes",
            "twice l2_store_parts_bytes_per_cycle_per_sm",
            table.stored_part_bytes,
            get(measured, "l2_store_parts_bytes_per_cycle_per_sm").map(|it| 2.0 * it),
        ),
        same("hand_over", "mbarrier_hand_over", table.hand_over),
        row("launch", "launch at its clock", table.launch, cycles(get(measured, "launch"))),
        row("block", "an 8th of launch_33_blocks_each - launch", table.block, cycles(block)),
    ]
}
