//! The table of architectures: each row says what differs from the one that it is like.
//!
//! Sources:
//! - resident blocks and warps, registers, shared memory: the CUDA C++ Programming Guide, technical specifications per
//!   compute capability; of 5.x to 7.0 its last edition that has them (12.9);
//! - units in which registers and shared memory are given, partitions, barriers: NVIDIA's `cuda_occupancy.h` of CUDA 13;
//! - the KiB that the system takes of each block, and sizes of clusters: NVIDIA's tuning guides for Ampere, Ada, Hopper
//!   and Blackwell;
//! - multiprocessors: NVIDIA's data sheets, of the card of the architecture that computes most: M40, P100, GTX 1080 Ti, V100, RTX 6000,
//!   A100, A40, Orin, RTX 4090, H100 and H200 (SXM), B200, B300, Thor, RTX 5090, GB10;
//! - f32 lanes: the Programming Guide, throughput of arithmetic instructions;
//! - tensor cores: NVIDIA's white papers on Turing, Ampere, Jetson Orin, Ada, Hopper and Blackwell, of the fastest cards
//!   of an architecture: of those with compute capability 8.6, 8.9 and 12.0, the ones for games add up in f32 at half
//!   the rate;
//! - sums of products of eight-bit floats: measured by others, for NVIDIA does not say. SageAttention2 (arXiv 2411.10958) finds
//!   one bit of sign, 8 of exponent and 13 of mantissa on Ada and Hopper, DeepSeek-V3's report (arXiv 2412.19437, 3.5.2) about 14 bits
//!   on Hopper;
//! - features: the PTX ISA, the notes on targets of each instruction.

use super::{Arch, Caps, Cluster, Feature, Features, TensorRates, latency};

const KIB: u32 = 1024;

/// The rows, by compute capability.
pub(super) const TABLE: &[Caps] = &[
    SM_50, SM_60, SM_61, SM_70, SM_75, SM_80, SM_86, SM_87, SM_88, SM_89, SM_90, SM_100, SM_103, SM_110,
    SM_120, SM_121,
];

/// Maxwell.
const SM_50: Caps = Caps {
    sm: 50,
    usual_units: 24,
    max_shared_per_block: 48 * KIB,
    shared_per_sm: 64 * KIB,
    reserved_shared: 0,
    shared_unit: 256,
    registers_per_thread: 255,
    registers_per_block: 65_536,
    registers_per_sm: 65_536,
    register_unit: 256,
    partitions: 4,
    warps_per_sm: 64,
    blocks_per_sm: 32,
    barriers_per_sm: None,
    vector_bytes: 16,
    f32_lanes: 128,
    tensor: TensorRates::NONE,
    f8_sum_bits: None,
    latencies: latency::VOLTA,
    cluster: None,
    features: Features::NONE,
};

/// Pascal: P100.
const SM_60: Caps = Caps { sm: 60, usual_units: 56, partitions: 2, f32_lanes: 64, ..SM_50 };

/// Pascal: cards for games.
const SM_61: Caps = Caps { sm: 61, usual_units: 28, shared_per_sm: 96 * KIB, ..SM_50 };

/// Volta: V100. Its tensor cores multiply by an instruction that no later architecture is good at and nothing here emits.
const SM_70: Caps = Caps {
    sm: 70,
    usual_units: 80,
    max_shared_per_block: 96 * KIB,
    shared_per_sm: 96 * KIB,
    f32_lanes: 64,
    ..SM_50
};

/// Turing.
const SM_75: Caps = Caps {
    sm: 75,
    usual_units: 72,
    max_shared_per_block: 64 * KIB,
    shared_per_sm: 64 * KIB,
    warps_per_sm: 32,
    blocks_per_sm: 16,
    tensor: TensorRates { f16: Some(1024), i8: Some(2048), ..TensorRates::NONE },
    features: TURING,
    ..SM_70
};

/// Ampere: A100.
const SM_80: Caps = Caps {
    sm: 80,
    usual_units: 108,
    max_shared_per_block: 163 * KIB,
    shared_per_sm: 164 * KIB,
    reserved_shared: KIB,
    shared_unit: 128,
    warps_per_sm: 64,
    blocks_per_sm: 32,
    tensor: ampere_rates(2048),
    features: AMPERE,
    ..SM_75
};

/// Ampere: cards for games and graphics, A40.
const SM_86: Caps = Caps {
    sm: 86,
    usual_units: 84,
    max_shared_per_block: 99 * KIB,
    shared_per_sm: 100 * KIB,
    warps_per_sm: 48,
    blocks_per_sm: 16,
    f32_lanes: 128,
    tensor: ampere_rates(1024),
    ..SM_80
};

/// Ampere: Jetson Orin.
const SM_87: Caps = Caps {
    sm: 87,
    usual_units: 16,
    max_shared_per_block: 163 * KIB,
    shared_per_sm: 164 * KIB,
    tensor: ampere_rates(2048),
    ..SM_86
};

/// Ampere without a name: as `cuda_occupancy.h` has it, which gives it the blocks and the shared memory of 8.6.
const SM_88: Caps = Caps { sm: 88, tensor: TensorRates::NONE, ..SM_86 };

/// Ada.
const SM_89: Caps = Caps {
    sm: 89,
    usual_units: 128,
    blocks_per_sm: 24,
    tensor: ada_rates(1024),
    f8_sum_bits: Some(13),
    features: ADA,
    ..SM_86
};

/// Hopper: H100, H200.
const SM_90: Caps = Caps {
    sm: 90,
    usual_units: 132,
    max_shared_per_block: 227 * KIB,
    shared_per_sm: 228 * KIB,
    barriers_per_sm: Some(64),
    f32_lanes: 128,
    tensor: ada_rates(4096),
    f8_sum_bits: Some(13),
    latencies: latency::HOPPER,
    cluster: Some(Cluster { portable: Arch::PORTABLE_CLUSTER, most: Arch::MAX_CLUSTER }),
    features: HOPPER,
    ..SM_80
};

/// Blackwell: B200.
const SM_100: Caps = Caps {
    sm: 100,
    usual_units: 148,
    tensor: ada_rates(8192),
    f8_sum_bits: None,
    latencies: latency::AFTER_HOPPER,
    features: BLACKWELL,
    ..SM_90
};

/// Blackwell: B300.
const SM_103: Caps =
    Caps { sm: 103, usual_units: 160, barriers_per_sm: Some(32), features: BLACKWELL_ULTRA, ..SM_100 };

/// Blackwell: Jetson Thor. No clusters larger than portable ones and no rates are documented.
const SM_110: Caps = Caps {
    sm: 110,
    usual_units: 20,
    warps_per_sm: 48,
    blocks_per_sm: 24,
    barriers_per_sm: Some(24),
    tensor: TensorRates::NONE,
    cluster: Some(Cluster { portable: Arch::PORTABLE_CLUSTER, most: 8 }),
    ..SM_100
};

/// Blackwell: cards for games and graphics.
const SM_120: Caps = Caps {
    sm: 120,
    usual_units: 170,
    max_shared_per_block: 99 * KIB,
    shared_per_sm: 100 * KIB,
    tensor: ada_rates(1024),
    features: BLACKWELL_GRAPHICS,
    ..SM_110
};

/// Blackwell: DGX Spark.
const SM_121: Caps = Caps { sm: 121, usual_units: 48, ..SM_120 };

/// Rates that follow from those of f16.
const fn ampere_rates(half: u32) -> TensorRates {
    TensorRates { f16: Some(half), bf16: Some(half), tf32: Some(half / 2), i8: Some(2 * half), f8: None }
}

/// The same with types of eight bits, which came with Ada.
const fn ada_rates(half: u32) -> TensorRates {
    TensorRates { f8: Some(2 * half), ..ampere_rates(half) }
}

const TURING: Features = Features::NONE.with(&[Feature::Ldmatrix]);
const AMPERE: Features = TURING.with(&[
    Feature::MmaF16,
    Feature::MmaBf16,
    Feature::MmaTf32,
    Feature::MmaI8,
    Feature::ConvertBf16,
    Feature::CpAsync,
    Feature::Mbarrier,
]);
const ADA: Features = AMPERE.with(&[Feature::MmaF8]);
/// What Hopper has and all after it.
const CLUSTERED: Features = ADA.with(&[
    Feature::VectorAdd,
    Feature::Stmatrix,
    Feature::ProgrammaticLaunch,
    Feature::Clusters,
    Feature::Tma,
    Feature::ArchCode,
]);
const HOPPER: Features = CLUSTERED.with(&[Feature::Wgmma]);
/// Without products of i8 (PTX ISA, *tcgen05.mma*, target notes of `.kind::i8`).
const BLACKWELL_ULTRA: Features = BLACKWELL_GRAPHICS.with(&[Feature::Tcgen05]);
const BLACKWELL: Features = BLACKWELL_ULTRA.with(&[Feature::Tcgen05I8]);
const BLACKWELL_GRAPHICS: Features = CLUSTERED.with(&[Feature::FamilyCode, Feature::ClusterLaunchControl]);
