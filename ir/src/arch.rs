//! CUDA architectures: what each can do, and its limits.
//!
//! [`Arch::caps`] is the only place that says so. What is the same on all of them is a constant of [`Arch`]; what
//! differs is a row of the table in `arch/table.rs`, which names its sources. What differs between cards of one
//! architecture (multiprocessors, clocks, the second-level cache, memory) is asked of the device.

mod latency;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;

pub use latency::{Latencies, Paces};

use crate::{DType, ThreadAxis};
use table::TABLE;

/// A CUDA architecture such as `sm_80` or `sm_90a`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arch {
    /// The compute capability times ten: 80, 86, 89, 90, 100, 120.
    pub sm: u32,
    /// The suffix: `a` for architecture-specific features, `f` for a family's, or nothing.
    pub suffix: Option<char>,
}

/// What the multiprocessors of an architecture can do, and their limits. Bytes are bytes, and a KiB has 1024.
#[derive(PartialEq, Eq, Debug)]
pub struct Caps {
    /// The compute capability times ten.
    pub sm: u32,
    /// The multiprocessors of the usual GPU of the architecture, for estimates where no device says how many it has.
    pub usual_units: u32,
    /// Bytes of shared memory that one block can have, when it asks for more than [`Arch::DEFAULT_SHARED`].
    pub max_shared_per_block: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_sm: u32,
    /// Bytes of it that the system takes for each resident block.
    pub reserved_shared: u32,
    /// Shared memory is given to blocks in units of so many bytes.
    pub shared_unit: u32,
    /// The most 32-bit registers of a thread.
    pub registers_per_thread: u32,
    /// The most 32-bit registers of a block.
    pub registers_per_block: u32,
    /// The 32-bit registers of a multiprocessor.
    pub registers_per_sm: u32,
    /// Registers are given to warps in units of so many.
    pub register_unit: u32,
    /// The equal parts of a multiprocessor, each with its scheduler and its share of the registers.
    pub partitions: u32,
    /// The most warps that are resident on a multiprocessor together.
    pub warps_per_sm: u32,
    /// The most blocks that are resident on a multiprocessor together.
    pub blocks_per_sm: u32,
    /// The hardware barriers that the resident blocks of a multiprocessor share; `None` where they limit nothing.
    pub barriers_per_sm: Option<u32>,
    /// The widest access that a thread makes in one instruction, in bytes: a `float4`. PTX has loads and stores of global
    /// memory of 32 bytes from sm_100 on, which nothing here emits.
    pub vector_bytes: u32,
    /// The additions or multiplications of f32 that a multiprocessor does a cycle; a fused one is one.
    pub f32_lanes: u32,
    /// What the tensor cores of a multiprocessor do a cycle.
    pub tensor: TensorRates,
    /// The bits after the point that they keep of sums of products of `f8e4m3` and `f8e5m2`; `None` where as many as f32 has, where
    /// there are no such products, or where it is not known.
    pub f8_sum_bits: Option<u32>,
    /// How long operations take, and what gets done in a cycle.
    pub latencies: Latencies,
    /// How many blocks make a cluster; `None` where there are no clusters.
    pub cluster: Option<Cluster>,
    /// The instructions that only some architectures have.
    pub features: Features,
}

/// The operations that the tensor cores of one multiprocessor do a cycle in dense products, by the type of the factors:
/// an addition and a multiplication are two. `None` where they do not multiply the type, or where it is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names are those of the types")]
pub struct TensorRates {
    pub f16: Option<u32>,
    pub bf16: Option<u32>,
    pub tf32: Option<u32>,
    pub i8: Option<u32>,
    /// Of both types of eight bits, `f8e4m3` and `f8e5m2`.
    pub f8: Option<u32>,
}

/// The sizes of clusters, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cluster {
    /// The most that every architecture with clusters launches.
    pub portable: u32,
    /// The most of this architecture, for a kernel that asks for a size that is not portable.
    pub most: u32,
}

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features(u32);

/// An instruction, or a kind of them, that came with some architecture (PTX ISA, the notes on targets of each).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// `ldmatrix`, and with it the fragments of eight rows that the lanes of a warp have.
    Ldmatrix,
    /// `mma.sync.m16n8k16` with factors of f16.
    MmaF16,
    /// `mma.sync.m16n8k16` with factors of bf16.
    MmaBf16,
    /// `mma.sync.m16n8k8` with factors of tf32.
    MmaTf32,
    /// `mma.sync.m16n8k32` with factors of i8 or u8.
    MmaI8,
    /// `mma.sync.m16n8k32` with factors of `f8e4m3` or `f8e5m2`.
    MmaF8,
    /// `cvt.rn.bf16.f32`.
    ConvertBf16,
    /// `cp.async`: copies of [`Arch::CP_ASYNC_BYTES`] from global to shared memory that a thread does not wait for.
    CpAsync,
    /// `mbarrier`: barriers in shared memory, with phases.
    Mbarrier,
    /// `red.global.add.v2.f32` and `.v4.f32`: additions of several floats to memory in one operation.
    VectorAdd,
    /// `stmatrix`: matrices of eight rows from registers to shared memory.
    Stmatrix,
    /// `griddepcontrol`: a kernel that starts before the one ahead of it has ended, and waits for its results.
    ProgrammaticLaunch,
    /// Clusters of blocks, and shared memory that the blocks of one reach.
    Clusters,
    /// `cp.async.bulk.tensor`: the tensor memory accelerator, TMA.
    Tma,
    /// `wgmma.mma_async`: products of four warps from shared memory.
    Wgmma,
    /// `tcgen05.mma`: products that one thread starts, with tensor memory.
    Tcgen05,
    /// `tcgen05.mma` with `.kind::i8`, which is in code for one architecture alone.
    Tcgen05I8,
    /// `clusterlaunchcontrol`: blocks take over others that have not begun.
    ClusterLaunchControl,
    /// Code for one architecture alone, with the suffix `a`.
    ArchCode,
    /// Code for a family of architectures, with the suffix `f`.
    FamilyCode,
}

impl Arch {
    /// The threads of a warp.
    pub const WARP: u32 = 32;
    /// The most threads in one block, on all axes together.
    pub const MAX_THREADS: u32 = 1024;
    /// The most blocks of threads in a cluster, on all axes together, that every GPU with clusters launches. A kernel with more has to ask for it.
    pub const PORTABLE_CLUSTER: u32 = 8;
    /// The most that any architecture launches.
    pub const MAX_CLUSTER: u32 = 16;
    /// Bytes of shared memory that a block has without asking for more at run time.
    pub const DEFAULT_SHARED: u32 = 48 * 1024;
    /// The bytes that a thread copies by one `cp.async`, any of these (PTX ISA, cp-size).
    pub const CP_ASYNC_BYTES: [usize; 3] = [4, 8, 16];

    /// The most blocks or threads on an axis (CUDA C++ Programming Guide, technical specifications per compute
    /// capability, where all have the same).
    pub const fn axis_limit(axis: ThreadAxis) -> i64 {
        match axis {
            ThreadAxis::BlockX => i32::MAX as i64,
            ThreadAxis::BlockY | ThreadAxis::BlockZ => 65_535,
            ThreadAxis::ClusterX | ThreadAxis::ClusterY | ThreadAxis::ClusterZ => Arch::MAX_CLUSTER as i64,
            ThreadAxis::ThreadX | ThreadAxis::ThreadY => Arch::MAX_THREADS as i64,
            ThreadAxis::ThreadZ => 64,
        }
    }

    /// Parses `sm_90a`.
    pub fn parse(text: &str) -> Option<Arch> {
        let text = text.strip_prefix("sm_")?;
        let (digits, suffix) = match text.strip_suffix(['a', 'f']) {
            Some(digits) => (digits, text.chars().last()),
            None => (text, None),
        };
        let sm = digits.parse().ok().filter(|sm| (50..=990).contains(sm))?;
        Some(Arch { sm, suffix })
    }

    /// What it can do, and its limits. One that the table does not have is like the newest before it.
    pub fn caps(&self) -> &'static Caps {
        TABLE.iter().rev().find(|it| it.sm <= self.sm).unwrap_or(&TABLE[0])
    }

    /// The same where the table has this very architecture, for numbers that nobody should guess.
    pub fn known_caps(&self) -> Option<&'static Caps> {
        TABLE.iter().find(|it| it.sm == self.sm)
    }

    /// Whether code for it may have an instruction: some are only in code with a suffix.
    pub fn has(&self, feature: Feature) -> bool {
        let has_suffix = match feature {
            Feature::Wgmma | Feature::Tcgen05 => self.suffix.is_some(),
            Feature::Tcgen05I8 => self.suffix == Some('a'),
            _ => true,
        };
        self.caps().features.has(feature) && has_suffix
    }
}

impl Caps {
    /// The most threads that are resident on a multiprocessor together.
    pub const fn threads_per_sm(&self) -> u32 {
        self.warps_per_sm * Arch::WARP
    }
}

impl Features {
    const NONE: Features = Features(0);

    /// These and more.
    const fn with(self, more: &[Feature]) -> Features {
        let (mut out, mut at) = (self.0, 0);
        while at < more.len() {
            out |= 1 << more[at] as u32;
            at += 1;
        }
        Features(out)
    }

    /// Whether it is one of them. [`Arch::has`] also asks for the suffix, where an instruction needs one.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u32) != 0
    }
}

impl Feature {
    /// The first architecture that has it, as its compute capability times ten. Later ones need not have it.
    pub fn least_sm(self) -> u32 {
        TABLE.iter().find(|it| it.features.has(self)).expect("some architecture has each feature").sm
    }

    /// The targets that have it, in words: `sm_80 or later`, or `sm_100a or sm_110a` where later ones do not, or only in code with a suffix.
    pub fn targets(self) -> String {
        let least = self.least_sm();
        let of = |suffix| -> Vec<String> {
            let all = TABLE.iter().map(|it| Arch { sm: it.sm, suffix });
            all.filter(|it| it.has(self)).map(|it| it.to_string()).collect()
        };
        let found = [None, Some('a')].into_iter().map(of).find(|it| !it.is_empty()).unwrap_or_default();
        if found.len() == TABLE.iter().filter(|it| it.sm >= least).count() {
            return format!("sm_{least} or later");
        }
        match found.split_last() {
            Some((end, others)) if !others.is_empty() => format!("{} or {end}", others.join(", ")),
            _ => found.concat(),
        }
    }
}

impl TensorRates {
    const NONE: TensorRates = TensorRates { f16: None, bf16: None, tf32: None, i8: None, f8: None };

    /// The operations a cycle in products of factors of a type.
    pub const fn of(&self, factors: DType) -> Option<u32> {
        match factors {
            DType::F16 => self.f16,
            DType::Bf16 => self.bf16,
            DType::Tf32 => self.tf32,
            DType::I8 | DType::U8 => self.i8,
            DType::F8e4m3 | DType::F8e5m2 => self.f8,
            DType::Bool
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U16
            | DType::U32
            | DType::F8e8m0
            | DType::F32
            | DType::F64 => None,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.sm)?;
        self.suffix.iter().try_for_each(|it| write!(f, "{it}"))
    }
}
