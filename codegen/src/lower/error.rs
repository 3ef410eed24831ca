//! Why a program cannot be lowered: data with names and numbers. Only the command line renders it.

mod help;

use ir::{
    Arch, Index, Name, Scope, ThreadAxis,
    intrin::{self, FragmentError, LdmatrixError},
    pipeline::PipelineError,
};

use super::passes::check_phases::error::PhaseError;

/// Why a program cannot be lowered for a target.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum LowerError {
    #[error("`{block}` runs outside any GPU thread: bind a loop around it")]
    Unbound { block: Name },
    #[error("loop `{var}` is bound to {}, which the cpu does not have", axis.as_str())]
    BoundOnCpu { var: Name, axis: ThreadAxis },
    #[error(
        "loops `{outer}` and `{inner}` are both bound to {}, and `{block}` under them depends on both",
        axis.as_str()
    )]
    AxisTwice { outer: Name, inner: Name, axis: ThreadAxis, block: Name },
    #[error("loop `{var}` is bound to {} and runs {extent} times, which is not a constant", axis.as_str())]
    ThreadExtent { var: Name, axis: ThreadAxis, extent: Index },
    #[error("loop `{var}` is bound to {} and runs {extent} times, which the launch cannot know", axis.as_str())]
    GridExtent { var: Name, axis: ThreadAxis, extent: Index },
    #[error("the name `{name}` is reserved for a thread axis")]
    ReservedName { name: Name },
    #[error(
        "`{buffer}` in {scope} memory is used by the kernels `{first}` and `{second}`, and does not outlive one"
    )]
    SpansKernels { buffer: Name, scope: &'static str, first: Name, second: Name },
    #[error(
        "`{buffer}` in {scope} memory needs {extent} elements in dimension {axis}, which is not a constant"
    )]
    NotConstant { buffer: Name, scope: &'static str, axis: usize, extent: Index },
    #[error(
        "the rows of `{buffer}` are {row} elements, and this swizzle needs multiples of {block}: it permutes {bytes} \
         bytes"
    )]
    SwizzleRows { buffer: Name, row: Index, block: i64, bytes: i64 },
    #[error("{bytes} bytes of `{buffer}` are read at once, and its swizzle keeps only {chunk} together")]
    SwizzleChunk { buffer: Name, bytes: i64, chunk: i64 },
    #[error("kernel `{kernel}` has {threads} threads in a block, and a block has at most {limit}")]
    TooManyThreads { kernel: Name, threads: i64, limit: i64 },
    #[error(
        "the roles of kernel `{kernel}` ask for {asked} registers a block ({}), and its blocks start with {limit}",
        shares(roles)
    )]
    TooManyRegisters { kernel: Name, asked: i64, limit: i64, roles: Vec<(Name, i64, u32)> },
    #[error(
        "kernel `{kernel}` has {blocks} blocks of threads in a cluster, and a cluster of {arch} has at most {limit}"
    )]
    ClusterTooLarge { kernel: Name, blocks: i64, arch: Arch, limit: i64 },
    #[error(
        "kernel `{kernel}` has clusters of blocks, which need sm_{least} or later, and the target is {arch}"
    )]
    NoClusters { kernel: Name, arch: Arch, least: u32 },
    #[error(
        "`{buffer}` in cluster memory has {} in its first dimension, and the clusters of its kernel have {blocks} blocks",
        count_of(*parts)
    )]
    ClusterParts { buffer: Name, parts: Option<i64>, blocks: i64 },
    #[error(
        "blocks of a cluster cannot meet{} in role `{role}`: {why}",
        buffer.as_ref().map(|it| format!(" for `{it}`")).unwrap_or_default()
    )]
    ClusterMeets { buffer: Option<Name>, role: Name, why: &'static str },
    #[error("kernel `{kernel}` has {extent} on {}, and the axis has at most {limit}", axis.as_str())]
    AxisTooLong { kernel: Name, axis: ThreadAxis, extent: i64, limit: i64 },
    #[error(
        "kernel `{kernel}` needs {bytes} bytes of shared memory, and a block has at most {limit}: {}",
        largest_first(buffers)
    )]
    SharedTooLarge { kernel: Name, bytes: i64, limit: i64, buffers: Vec<(Name, i64)> },
    #[error(
        "`{reader}` may read from `{buffer}` what `{writer}` wrote in another {unit}, and {units} of one kernel \
         cannot exchange {scope} data",
        unit = unit_of(*axis), units = units_of(*axis)
    )]
    Exchange { buffer: Name, scope: &'static str, writer: Name, reader: Name, axis: ThreadAxis },
    #[error("`{block}` may write one element of `{buffer}` in several threads of {}, in no order", axis.as_str())]
    Race { block: Name, buffer: Name, axis: ThreadAxis },
    #[error("the threads of a block cannot reduce `{block}` together: {why}")]
    ThreadReduction { block: Name, why: &'static str },
    #[error(
        "the blocks of loop `{var}` would take turns again and again in loop `{around}`, and nobody ends a round"
    )]
    TurnsRepeat { var: Name, around: Name },
    #[error("loop `{var}` is persistent, and loop `{other}` of its kernel is bound to blockIdx.x, too")]
    GridShared { var: Name, other: Name },
    #[error("warpgroups cannot take the iterations of loop `{var}` in turn: loop `{other}` {why}")]
    NotInTurn { var: Name, other: Name, why: &'static str },
    #[error("blocks cannot take over iterations of loop `{var}` that have not begun: {why}")]
    NotClaimed { var: Name, why: String, help: &'static str },
    #[error("loop `{var}` is parallel, and its iterations may meet in `{buffer}`")]
    ParallelRace { var: Name, buffer: Name },
    #[error("threads meet in `{buffer}` in loop `{var}`, which not all of them run equally often")]
    DivergentLoop { var: Name, buffer: Name },
    #[error("{0}")]
    Fragment(#[from] FragmentError),
    #[error(
        "block `{block}` is done by a warp together, and loop `{var}` around it is bound to threadIdx.x, the lanes"
    )]
    LaneLoop { block: Name, var: Name },
    #[error(
        "kernel `{kernel}` has {threads} threads on threadIdx.x, and `{intrinsic}` needs {lanes}, the lanes of a {}",
        if *lanes == intrin::WARP { "warp" } else { "warpgroup" }
    )]
    LaneCount { kernel: Name, threads: Index, intrinsic: &'static str, lanes: i64 },
    #[error("block `{block}` uses `{intrinsic}`, which needs {needed}, and the target is {arch}")]
    IntrinsicArch { block: Name, intrinsic: &'static str, needed: String, arch: Arch },
    #[error(
        "`{intrinsic}` in block `{block}` reads rows of 16 bytes from `{buffer}`, and they do not all lie in one piece, aligned to 16 bytes"
    )]
    RowAlignment { block: Name, buffer: Name, intrinsic: &'static str },
    #[error("`{intrinsic}` in block `{block}` cannot take `{buffer}`: {why}")]
    OperandLayout { block: Name, buffer: Name, intrinsic: &'static str, why: String, help: &'static str },
    #[error("`{intrinsic}` in block `{block}` cannot fill `{buffer}`: {error}")]
    MatrixLoad { block: Name, buffer: Name, intrinsic: &'static str, error: LdmatrixError },
    #[error("a tile of `{buffer}` in block `{block}` starts at `{index}`, which is no multiple of {tile}")]
    TileAlignment { block: Name, buffer: Name, index: Index, tile: i64 },
    #[error(
        "block `{block}` touches elements of `{buffer}` {}", if *in_lanes {
            format!("in other lanes than have them: here lane `{owner}` has it, and not `threadIdx_x`")
        } else {
            "and is not spread over the lanes that have them".to_owned()
        }
    )]
    OtherLane { block: Name, buffer: Name, owner: Index, in_lanes: bool },
    #[error("block `{block}` touches `{buffer}` in tensor memory, and is no tensor intrinsic that does")]
    TensorMemoryTouched { block: Name, buffer: Name },
    #[error("the tile of `{buffer}` in block `{block}` is not in its last two dimensions")]
    TensorMemoryTile { block: Name, buffer: Name },
    #[error(
        "kernel `{kernel}` needs {columns} columns of tensor memory, and a block has {}: {}",
        Scope::TENSOR_COLUMNS,
        largest_first(buffers)
    )]
    TensorMemoryFull { kernel: Name, columns: i64, buffers: Vec<(Name, i64)> },
    #[error("block `{block}` multiplies for a pair of blocks, and {why}")]
    Pair { block: Name, why: String, help: &'static str },
    #[error("{0}")]
    Pipeline(#[from] PipelineError),
    #[error("{0}")]
    Phase(#[from] PhaseError),
}

ir::codes!(LowerError {
    Unbound = 2001,
    BoundOnCpu = 2002,
    AxisTwice = 2003,
    ThreadExtent = 2004,
    GridExtent = 2005,
    ReservedName = 2006,
    SpansKernels = 2007,
    NotConstant = 2008,
    SwizzleRows = 2009,
    SwizzleChunk = 2010,
    TooManyThreads = 2011,
    AxisTooLong = 2012,
    SharedTooLarge = 2013,
    Exchange = 2014,
    Race = 2015,
    TurnsRepeat = 2016,
    ParallelRace = 2017,
    DivergentLoop = 2018,
    LaneLoop = 2019,
    LaneCount = 2020,
    IntrinsicArch = 2021,
    RowAlignment = 2022,
    MatrixLoad = 2023,
    TileAlignment = 2024,
    OtherLane = 2025,
    OperandLayout = 2026,
    GridShared = 2027,
    NotInTurn = 2028,
    TooManyRegisters = 2029,
    ClusterTooLarge = 2030,
    NoClusters = 2031,
    ClusterParts = 2032,
    ClusterMeets = 2033,
    ThreadReduction = 2034,
    TensorMemoryTouched = 2035,
    TensorMemoryTile = 2036,
    TensorMemoryFull = 2037,
    Pair = 2038,
    NotClaimed = 2039,
} of { Fragment, Pipeline, Phase });

impl LowerError {
    /// The names in the program that the message is about; the first is the culprit.
    pub fn names(&self) -> Vec<&Name> {
        match self {
            LowerError::Unbound { block }
            | LowerError::IntrinsicArch { block, .. }
            | LowerError::Pair { block, .. }
            | LowerError::ThreadReduction { block, .. } => vec![block],
            LowerError::BoundOnCpu { var, .. }
            | LowerError::ThreadExtent { var, .. }
            | LowerError::NotClaimed { var, .. }
            | LowerError::GridExtent { var, .. } => vec![var],
            LowerError::AxisTwice { outer, inner, block, .. } => vec![inner, outer, block],
            LowerError::ReservedName { name } => vec![name],
            LowerError::SpansKernels { buffer, .. }
            | LowerError::NotConstant { buffer, .. }
            | LowerError::ClusterParts { buffer, .. }
            | LowerError::SwizzleRows { buffer, .. }
            | LowerError::SwizzleChunk { buffer, .. } => vec![buffer],
            LowerError::ClusterMeets { buffer, .. } => buffer.iter().collect(),
            LowerError::TooManyThreads { .. }
            | LowerError::TooManyRegisters { .. }
            | LowerError::ClusterTooLarge { .. }
            | LowerError::NoClusters { .. }
            | LowerError::AxisTooLong { .. }
            | LowerError::LaneCount { .. } => vec![],
            LowerError::SharedTooLarge { buffers, .. } | LowerError::TensorMemoryFull { buffers, .. } => {
                buffers.iter().map(|(name, _)| name).collect()
            }
            LowerError::Exchange { buffer, writer, reader, .. } => vec![reader, writer, buffer],
            LowerError::TurnsRepeat { var, around } => vec![var, around],
            LowerError::GridShared { var, other } | LowerError::NotInTurn { var, other, .. } => {
                vec![other, var]
            }
            LowerError::ParallelRace { var, buffer } | LowerError::DivergentLoop { var, buffer } => {
                vec![var, buffer]
            }
            LowerError::Fragment(err) => err.names(),
            LowerError::LaneLoop { block, var } => vec![block, var],
            LowerError::Race { block, buffer, .. }
            | LowerError::RowAlignment { block, buffer, .. }
            | LowerError::OperandLayout { block, buffer, .. }
            | LowerError::MatrixLoad { block, buffer, .. }
            | LowerError::TileAlignment { block, buffer, .. }
            | LowerError::TensorMemoryTouched { block, buffer }
            | LowerError::TensorMemoryTile { block, buffer }
            | LowerError::OtherLane { block, buffer, .. } => vec![block, buffer],
            LowerError::Pipeline(err) => err.names(),
            LowerError::Phase(err) => err.names(),
        }
    }

    /// The axes of a launch that the message is about: the loops bound to them are the culprits.
    pub fn axes(&self) -> &[ThreadAxis] {
        match self {
            LowerError::TooManyThreads { .. } => {
                &[ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ]
            }
            LowerError::ClusterTooLarge { .. } | LowerError::NoClusters { .. } => {
                &[ThreadAxis::ClusterX, ThreadAxis::ClusterY, ThreadAxis::ClusterZ]
            }
            LowerError::AxisTooLong { axis, .. } => std::slice::from_ref(axis),
            LowerError::LaneCount { .. } => &[ThreadAxis::ThreadX],
            _ => &[],
        }
    }

    /// The buffer, where the message is about one first: a block may have the same name.
    pub fn buffer(&self) -> Option<&Name> {
        match self {
            LowerError::SpansKernels { buffer, .. }
            | LowerError::NotConstant { buffer, .. }
            | LowerError::ClusterParts { buffer, .. }
            | LowerError::SwizzleRows { buffer, .. }
            | LowerError::SwizzleChunk { buffer, .. } => Some(buffer),
            LowerError::ClusterMeets { buffer, .. } => buffer.as_ref(),
            LowerError::SharedTooLarge { buffers, .. } | LowerError::TensorMemoryFull { buffers, .. } => {
                buffers.first().map(|(name, _)| name)
            }
            LowerError::Fragment(err) => err.buffer(),
            _ => None,
        }
    }
}

/// How many elements a dimension has that may not be there.
fn count_of(elements: Option<i64>) -> String {
    match elements {
        None => "no elements".to_owned(),
        Some(1) => "1 element".to_owned(),
        Some(it) => format!("{it} elements"),
    }
}

fn unit_of(axis: ThreadAxis) -> &'static str {
    if axis.is_thread() { "thread" } else { "block of threads" }
}

fn units_of(axis: ThreadAxis) -> &'static str {
    if axis.is_thread() { "threads" } else { "blocks" }
}

/// What each role takes.
fn shares(roles: &[(Name, i64, u32)]) -> String {
    let each = roles.iter().map(|(name, threads, registers)| format!("`{name}` {threads} x {registers}"));
    each.collect::<Vec<_>>().join(", ")
}

fn largest_first(buffers: &[(Name, i64)]) -> String {
    let words = buffers.iter().map(|(name, bytes)| format!("`{name}` takes {bytes}"));
    words.collect::<Vec<_>>().join(", ")
}
