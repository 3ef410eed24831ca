//! The roofline rule: how long a lowered program will take on a GPU, about, without a compiler or a device.
//!
//! The kernels are walked for one warp. Loads, stores and arithmetic are counted as the multiprocessor's pipes meet them:
//! issue slots, arithmetic, wavefronts of shared memory, sectors of global memory at the first-level cache and behind it.
//! Beside that a clock runs along one warp, which waits for what it loads, for copies in flight and at barriers, so that
//! pipelining shows. What the compiler will do is assumed: loops over registers are written out, loads that a loop does
//! not change leave it. A kernel takes as long as the most loaded multiprocessor, the clock of its blocks one after the
//! other, and memory take together.
//!
//! The numbers are good for an order of candidates and not for more; `tests/it/search/roofline.rs` says how good.

mod access;
mod build;
mod clock;
mod tree;

use codegen::{
    device::{MachineInfo, Resources, occupancy},
    shared_layout,
};
use indexmap::IndexMap;
use ir::{Arch, Caps, Kernel, Module, Name, Role};

/// What the rule needs to know of a GPU.
#[derive(Clone, PartialEq, Debug)]
pub struct Gpu {
    /// The architecture.
    pub arch: Arch,
    /// Multiprocessors.
    pub units: f64,
    /// Cycles per second.
    pub clock: f64,
    /// Bytes per second from and to device memory.
    pub memory: f64,
    /// Bytes of the second-level cache.
    pub cache: f64,
}

/// How long a program will take, about.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    /// Seconds per call.
    pub seconds: f64,
    /// Its kernels.
    pub kernels: Vec<KernelEstimate>,
}

/// How long a kernel will take, about, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct KernelEstimate {
    /// Seconds, the launch included.
    pub seconds: f64,
    /// How many blocks a multiprocessor will hold.
    pub resident: u32,
    /// The registers of a thread.
    pub registers: u32,
    /// Seconds that the pipes of the most loaded multiprocessor are busy.
    pub busy: f64,
    /// Seconds that blocks one after the other take if nothing is in their way but their own latencies.
    pub latency: f64,
    /// Seconds for the traffic behind the first-level caches.
    pub memory: f64,
}

/// Seconds between the starts of two kernels that do nothing.
const LAUNCH: f64 = 2e-6;
/// Bytes per cycle between the second-level cache and each multiprocessor, all of them reading.
const CACHE_BYTES_PER_CYCLE: f64 = 24.0;
/// Registers for addresses and loop variables.
const BASE_REGISTERS: f64 = 26.0;

impl Gpu {
    /// Of a machine, if it is a GPU.
    pub fn of(info: &MachineInfo) -> Option<Gpu> {
        let arch = Arch::parse(&info.arch)?;
        let units = f64::from(info.units.max(1));
        // A fused multiply-add counts two.
        let lanes = f64::from(arch.caps().f32_lanes);
        let clock = info.peak_f32_gflops.map_or(1.5e9, |it| it * 1e9 / (2.0 * lanes * units));
        let memory = info.peak_gb_per_s.map_or(1e12, |it| it * 1e9);
        Some(Gpu { arch, units, clock, memory, cache: info.cache_bytes as f64 })
    }
}

/// How long a program will take. None where sizes are missing, or where it is for no GPU.
pub fn predict(module: &Module, dims: &IndexMap<Name, i64>, gpu: &Gpu) -> Option<Estimate> {
    let module = module.clone().with_remainders();
    let kernels = module.kernels.iter().map(|it| kernel(&module, it, dims, gpu));
    let kernels = kernels.collect::<Option<Vec<_>>>()?;
    Some(Estimate { seconds: kernels.iter().map(|it| it.seconds).sum(), kernels })
}

fn kernel(module: &Module, kernel: &Kernel, dims: &IndexMap<Name, i64>, gpu: &Gpu) -> Option<KernelEstimate> {
    let size = |index: &ir::Index| index.eval(&|it| dims.get(it).copied()).filter(|it| *it > 0);
    let (mut blocks, mut threads) = (1i64, 1i64);
    for (axis, extent) in &kernel.launch {
        let count = if axis.is_thread() { &mut threads } else { &mut blocks };
        *count = count.checked_mul(size(extent)?)?;
    }
    let threads = u32::try_from(threads).ok().filter(|it| *it <= Arch::MAX_THREADS)?;
    let tree = tree::Tree::of(module, kernel, dims)?;
    let warps = f64::from(threads.div_ceil(Arch::WARP));

    let (registers, spills) = registers(tree.registers, threads, kernel, gpu.arch.caps());
    let needs = Resources { registers, ..Resources::default() };
    let shared = u32::try_from(shared_layout(kernel).1).ok()?;
    let resident = occupancy(&needs, threads, shared, &gpu.arch).map_or(1, |it| it.blocks);
    if resident == 0 {
        return None;
    }

    let all = tree::totals(&tree.body);
    let pipes = [all.issue.max(all.arithmetic) / 4.0, all.shared, all.sectors / 4.0];
    let busy_block = warps * together(&pipes) * (1.0 + spills);
    let fullest = (blocks as f64 / gpu.units).ceil();
    let waves = (blocks as f64 / (gpu.units * f64::from(resident))).ceil();
    let lone = clock::cycles(&tree);
    let bytes: f64 = module
        .args
        .iter()
        .filter(|(name, it)| it.role != Role::Temp || kernel.args.contains_key(*name))
        .filter_map(|(_, it)| Some(size(&it.elements())? as f64 * it.dtype.bytes() as f64))
        .sum();
    let traffic = all.behind * 32.0 * warps * blocks as f64;
    let cached = traffic / (CACHE_BYTES_PER_CYCLE * gpu.units * gpu.clock);
    let missed = (1.0 - gpu.cache / bytes).max(0.0);
    let device = (missed * (bytes + 0.5 * (traffic - bytes).max(0.0))) / gpu.memory;

    let busy = fullest * busy_block / gpu.clock;
    let latency = waves * lone / gpu.clock;
    let memory = together(&[cached, device]);
    let seconds = LAUNCH + together(&[busy, latency, memory]);
    Some(KernelEstimate { seconds, resident, registers, busy, latency, memory })
}

/// The registers of a thread whose arrays take so many, and the share of its time that spills cost.
fn registers(arrays: f64, threads: u32, kernel: &Kernel, caps: &Caps) -> (u32, f64) {
    let resident = i64::from(threads.next_multiple_of(Arch::WARP)) * kernel.blocks_per_sm.unwrap_or(1).max(1);
    let unit = i64::from(caps.register_unit / Arch::WARP);
    let limit = i64::from(caps.registers_per_sm) / resident.max(1) / unit * unit;
    let limit = limit.clamp(16, caps.registers_per_thread.into()) as f64;
    let wanted = arrays + BASE_REGISTERS;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 255")]
    let given = wanted.min(limit).ceil() as u32;
    (given, ((wanted - limit) / limit).max(0.0))
}

/// How long things take together that partly hide each other: more than the longest, less than all.
fn together(parts: &[f64]) -> f64 {
    parts.iter().map(|it| it.powi(3)).sum::<f64>().cbrt()
}
