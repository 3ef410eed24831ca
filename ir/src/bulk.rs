//! Bulk copies: boxes that the tensor memory accelerator (TMA) moves between global and shared memory, and the boxes of shared
//! memory that matrix instructions read.

use crate::{Access, Index, Mode, Name, ThreadAxis, XorSwizzle};

/// A box of a buffer in shared memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tile {
    /// Its first element. From the pass `flatten` on, where that would be without a swizzle: the hardware permutes addresses itself.
    pub first: Access,
    /// How many elements it has in each dimension of the buffer. From `flatten` on in its own: those of the map of a copy, and of a
    /// factor first the one that the result has, too, then the one that is summed over.
    pub extents: Vec<i64>,
    /// How a matrix instruction finds its elements: `flatten` says it, and copies ask for nothing.
    pub matrix: Option<Matrix>,
}

/// How a matrix instruction finds the elements of an operand in shared memory (PTX ISA, *Matrix Descriptor Format*).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Matrix {
    /// Which of its dimensions is contiguous.
    pub major: Major,
    /// The leading dimension byte offset: where K is contiguous, between neighbouring chunks of 16 bytes, which swizzles leave
    /// unused; else between neighbouring panels of the rows.
    pub leading: i64,
    /// The stride dimension byte offset: between groups of eight rows of the swizzled pattern.
    pub stride: i64,
    /// How the rows are permuted.
    pub swizzle: Option<XorSwizzle>,
}

/// The dimension of an operand in which neighbours are neighbours in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Major {
    /// The one that is summed over.
    K,
    /// The one that the result has, too: M of the left factor, N of the right one.
    Mn,
}

/// A tensor in global memory as the copy engine sees it: a parameter of the kernel that the host encodes
/// (`cuTensorMapEncodeTiled`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// The buffer that it starts with.
    pub buffer: Name,
    /// Its size in each dimension, over the symbolic dimensions. What a box has beyond them is read as zero and not written.
    pub dims: Vec<Index>,
    /// The distance of neighbours in each dimension, in elements; of the last, 1.
    pub strides: Vec<Index>,
    /// The size of the box that a copy moves.
    pub tile: Vec<i64>,
    /// How the rows of the box are permuted in shared memory.
    pub swizzle: Option<XorSwizzle>,
}

impl TensorMap {
    /// The most dimensions (this and what follows: CUDA driver API, `cuTensorMapEncodeTiled`).
    pub const MOST_DIMS: usize = 5;
    /// What the address of the tensor, the distances between neighbours and the rows of a box are multiples of, in bytes.
    pub const UNIT: i64 = 16;
    /// The longest side of a box.
    pub const LONGEST_SIDE: i64 = 256;
    /// The largest size in a dimension.
    pub const LARGEST: i64 = 1 << 32;
    /// What distances between neighbours are below, in bytes.
    pub const FARTHEST: i64 = 1 << 40;
}

/// A copy of a box between global and shared memory, which one thread issues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BulkCopy {
    /// Which way it goes, and who hears of its end.
    pub kind: BulkKind,
    /// The tensor map of the kernel.
    pub map: Name,
    /// Where the box begins in the map's buffer: one coordinate a dimension of the map, after `flatten`, too. They may lie
    /// outside.
    pub global: Access,
    /// Where it is in shared memory.
    pub shared: Tile,
}

impl BulkKind {
    /// What it does where it copies from, and where it copies to.
    pub(crate) const fn modes(&self) -> (Mode, Mode) {
        match self {
            BulkKind::Load { .. } | BulkKind::Store => (Mode::Read, Mode::Write),
            BulkKind::Add => (Mode::Read, Mode::Atomic),
        }
    }
}

/// Which way a bulk copy goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BulkKind {
    /// To shared memory: its bytes count for the phase under way of an mbarrier.
    Load {
        /// The name of the mbarriers.
        barrier: Name,
        /// Which of them.
        slot: Index,
        /// An axis of the cluster along which it goes to each block (*multicast*): to the same place of its shared memory, and it counts for
        /// its mbarrier.
        along: Option<ThreadAxis>,
        /// Whether its bytes count for the mbarrier of the first block of the cluster, and not for that of its own (`.cta_group::2`).
        at_first: bool,
    },
    /// To global memory, in a group of the thread.
    Store,
    /// The same, added to what is there.
    Add,
}
