//! What is measured: the kernels, by what an architecture has.

use ir::{Arch, Feature};

use super::{
    probe::{Probe, Unit},
    products::{FACTORS, Factors, mma, wgmma, wgmma_name},
};

/// Bytes of memory that the kernels read and write: more than any cache has.
pub(super) const MEMORY: usize = 512 << 20;
/// The same, as kernels take it.
const DEVICE: i64 = 512 << 20;
/// What stays in the second-level cache.
const CACHED: i64 = 8 << 20;
/// Steps of chains that are written out in the kernels.
const STEPS: i64 = 512;
/// Columns of products of warpgroups.
const COLUMNS: [i64; 4] = [64, 128, 192, 256];
/// Products in a group of a warpgroup: from two numbers follow the time of one more, and what the end of a group takes.
const FEW: usize = 4;
const MANY: usize = 20;

/// A source: its name, its text, and what an architecture must have for it.
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) needs: Option<Feature>,
}

/// The sources, each to be put behind `common.cu`.
pub(super) fn sources() -> Vec<Source> {
    let plain = |name, text: &str, needs| Source { name, text: text.to_owned(), needs };
    let mut out = vec![
        plain("memory", include_str!("kernels/memory.cu"), None),
        plain("arithmetic", include_str!("kernels/arithmetic.cu"), None),
        plain("ldmatrix", include_str!("kernels/ldmatrix.cu"), Some(Feature::Ldmatrix)),
        plain("copies", include_str!("kernels/copies.cu"), Some(Feature::CpAsync)),
        plain("bulk", include_str!("kernels/bulk.cu"), Some(Feature::Tma)),
    ];
    out.extend(FACTORS.into_iter().map(|it| Source {
        name: mma_source(it),
        text: [1, 8].map(|chains| mma(it, chains)).concat(),
        needs: Some(it.mma),
    }));
    let all = products()
        .into_iter()
        .flat_map(|(it, columns, registers)| [FEW, MANY].map(|count| wgmma(it, columns, registers, count)));
    out.push(Source { name: "wgmma", text: all.collect(), needs: Some(Feature::Wgmma) });
    out
}

/// The kernel by which multiprocessors tell their clocks.
pub(super) fn stamp() -> Source {
    Source { name: "stamp", text: include_str!("kernels/stamp.cu").to_owned(), needs: None }
}

/// The source of products of a warp of a type.
fn mma_source(it: Factors) -> &'static str {
    match it.word {
        "f16" => "mma_f16",
        "bf16" => "mma_bf16",
        "tf32" => "mma_tf32",
        "e4m3" => "mma_e4m3",
        _ => "mma_i8",
    }
}

/// The products of warpgroups: all widths in f16, the widest in other types, and what has its left factor in registers.
fn products() -> Vec<(Factors, i64, bool)> {
    let half = COLUMNS.map(|columns| (FACTORS[0], columns, false));
    let others = FACTORS[1..].iter().map(|it| (*it, 256, false));
    half.into_iter().chain(others).chain([64, 256].map(|columns| (FACTORS[0], columns, true))).collect()
}

/// All that is measured on an architecture with so many multiprocessors.
pub(super) fn probes(arch: &Arch, units: u32) -> Vec<Probe> {
    let mut out = chains();
    out.extend(arithmetic());
    out.extend(rates(units));
    if arch.has(Feature::Ldmatrix) {
        let it = Probe::chain("ldmatrix_x4", "ldmatrix", "chase_ldmatrix", STEPS);
        out.push(Probe { threads: 32, ..it });
    }
    if arch.has(Feature::CpAsync) {
        out.extend(copies(units));
    }
    for it in FACTORS.into_iter().filter(|it| arch.has(it.mma)) {
        out.extend(warp_products(it));
    }
    if arch.has(Feature::Tma) {
        out.extend(mbarriers());
        out.extend(boxes(units));
    }
    if arch.has(Feature::Wgmma) {
        out.extend(products().into_iter().flat_map(|(it, columns, registers)| group(it, columns, registers)));
    }
    out
}

/// What was measured of groups of products and is told of one: the time of one more, and what a group takes beyond its products.
pub(super) fn differences() -> Vec<(String, String, [f64; 2])> {
    let names = products().into_iter().map(|(it, columns, registers)| wgmma_name(it, columns, registers));
    names
        .map(|name| {
            (format!("{name}_group_{FEW}"), format!("{name}_group_{MANY}"), [FEW as f64, MANY as f64])
        })
        .collect()
}

fn chains() -> Vec<Probe> {
    let lines = Some((4096, 32));
    let near = Probe { chain: lines, ..Probe::chain("global_l2_hit", "memory", "chase_global", 4096) };
    // Lines 4 KiB apart, after the cache was filled with something else.
    let far = Probe::chain("global_dram", "memory", "chase_global", STEPS);
    let far = Probe { chain: Some((STEPS, 1024)), is_cold: true, ..far };
    let first = Probe::chain("global_l1_hit", "memory", "chase_near", STEPS);
    let first = Probe { chain: Some((64, 32)), ..first };
    let mut out = vec![near, far, first, Probe::chain("shared_load", "memory", "chase_shared", STEPS)];
    out.extend([32, 128, 256, 512].map(|threads| {
        let it = Probe::chain(format!("barrier_{threads}_threads"), "memory", "barriers", STEPS);
        Probe { threads, ..it }
    }));
    out
}

fn arithmetic() -> Vec<Probe> {
    let warp = |it: Probe| Probe { threads: 32, ..it };
    let all = |name, kernel, of_one: f64| {
        let it = Probe::rate(name, "arithmetic", kernel, 512.0 * 8.0 * STEPS as f64 * of_one);
        Probe { threads: 512, ..it }
    };
    vec![
        warp(Probe::chain("fma_f32", "arithmetic", "chain_fma", STEPS)),
        warp(Probe::chain("exp2_f32", "arithmetic", "chain_exp2", STEPS)),
        all("fma_f32_flops_per_cycle", "rate_fma", 2.0),
        all("exp2_f32_per_cycle", "rate_exp2", 1.0),
    ]
}

/// What all multiprocessors, or one, move in a cycle.
fn rates(units: u32) -> Vec<Probe> {
    // Two blocks of 1024 fill each multiprocessor.
    let global = |name, kernel, bytes: i64, times: i64| Probe {
        unit: Unit::PerCycle { blocks_per_unit: 2 },
        blocks: 2 * units,
        threads: 1024,
        steps: times,
        bytes,
        ..Probe::rate(name, "memory", kernel, (bytes * times) as f64 / f64::from(2 * units))
    };
    let shared = |name, kernel| Probe {
        threads: 1024,
        ..Probe::rate(name, "memory", kernel, 1024.0 * 16.0 * STEPS as f64)
    };
    let starts = |name, times: u32| Probe {
        unit: Unit::Microseconds,
        blocks: units * times,
        threads: 256,
        shared: Arch::DEFAULT_SHARED,
        ..Probe::rate(name, "memory", "nothing", 1.0)
    };
    vec![
        global("l2_bytes_per_cycle_per_sm", "read_global", CACHED, 16),
        global("l2_store_bytes_per_cycle_per_sm", "write_global", CACHED, 16),
        global("dram_bytes_per_cycle_per_sm", "read_global", DEVICE, 1),
        global("dram_store_bytes_per_cycle_per_sm", "write_global", DEVICE, 1),
        Probe {
            unit: Unit::PerCycle { blocks_per_unit: 1 },
            blocks: units,
            threads: 256,
            steps: 16,
            stride: 8192,
            bytes: CACHED,
            ..Probe::rate(
                "l2_store_parts_bytes_per_cycle_per_sm",
                "memory",
                "write_parts",
                256.0 * 16.0 * 64.0 * 4.0,
            )
        },
        shared("shared_bytes_per_cycle_per_sm", "read_shared"),
        shared("shared_store_bytes_per_cycle_per_sm", "write_shared"),
        starts("launch", 1),
        starts("launch_33_blocks_each", 33),
    ]
}

fn copies(units: u32) -> Vec<Probe> {
    let one = |name, stride, is_cold| Probe {
        threads: 32,
        stride,
        is_cold,
        ..Probe::chain(name, "copies", "copy_async", STEPS)
    };
    let all = Probe {
        blocks: units,
        threads: 256,
        steps: 512,
        bytes: CACHED,
        ..Probe::rate("cp_async_bytes_per_cycle_per_sm", "copies", "rate_async", 512.0 * 4096.0)
    };
    vec![one("cp_async_l2_hit", 512, false), one("cp_async_dram", 4096, true), all]
}

fn warp_products(it: Factors) -> Vec<Probe> {
    let (word, source) = (it.word, mma_source(it));
    // Eight warps of eight chains each keep all tensor cores busy.
    let flops = 8.0 * 8.0 * STEPS as f64 * (2 * 16 * 8 * it.depth) as f64;
    let one = Probe::chain(format!("mma_m16n8k{}_{word}", it.depth), source, &format!("mma_{word}_1"), STEPS);
    let all = Probe::rate(format!("mma_{word}_flops_per_cycle"), source, &format!("mma_{word}_8"), flops);
    vec![Probe { threads: 32, ..one }, Probe { threads: 256, ..all }]
}

/// Groups of a few and of many products of a warpgroup.
fn group(it: Factors, columns: i64, in_registers: bool) -> [Probe; 2] {
    let name = wgmma_name(it, columns, in_registers);
    [FEW, MANY].map(|count| {
        let one = Probe::chain(format!("{name}_group_{count}"), "wgmma", &format!("{name}_{count}"), 64);
        Probe { threads: 128, ..one }
    })
}

fn mbarriers() -> Vec<Probe> {
    // Each step is two hand-overs.
    let near = Probe::chain("mbarrier_hand_over", "bulk", "hand_over", STEPS);
    let far = Probe::chain("mbarrier_hand_over_in_cluster", "bulk", "hand_over_remote", STEPS);
    let both = 2.0 * STEPS as f64;
    vec![Probe { threads: 64, amount: both, ..near }, Probe { threads: 32, blocks: 2, amount: both, ..far }]
}

/// Copies by the copy engine.
fn boxes(units: u32) -> Vec<Probe> {
    let mut out = vec![];
    for is_cold in [false, true] {
        let place = if is_cold { "dram" } else { "l2_hit" };
        for bytes in [2048, 16384] {
            let it = Probe::chain(format!("bulk_{bytes}_bytes_{place}"), "bulk", "copy_bulk", 128);
            out.push(Probe { is_cold, stride: bytes, bytes, shared: 16384, ..it });
        }
        for rows in [16u32, 64, 128, 256] {
            let bytes = i64::from(rows) * 128;
            let it = Probe::chain(format!("box_{bytes}_bytes_{place}"), "bulk", "copy_box", 128);
            out.push(Probe { is_cold, rows: Some(rows), stride: rows.into(), bytes, shared: 32768, ..it });
        }
    }
    let ring = |name: String, blocks, sharing| Probe {
        blocks,
        rows: Some(128),
        shared: 8 * 16384,
        steps: 256,
        stride: sharing,
        bytes: CACHED,
        ..Probe::rate(name, "bulk", "rate_box", 256.0 * 16384.0)
    };
    out.push(ring("box_bytes_per_cycle_alone".to_owned(), 1, 1));
    out.extend(
        [1, 2, 4, 8, 16]
            .map(|sharing| ring(format!("box_bytes_per_cycle_per_sm_{sharing}_sharing"), units, sharing)),
    );
    let one = Probe::chain("bulk_store_16384_bytes", "bulk", "store_bulk", 128);
    out.push(Probe { stride: 16384, bytes: 16384, shared: 16384, ..one });
    let all = Probe::rate("bulk_store_bytes_per_cycle_per_sm", "bulk", "rate_store", 128.0 * 16384.0);
    out.push(Probe { blocks: units, steps: 128, bytes: CACHED, shared: 16384, ..all });
    out
}
