//! Kinds of memory, and who sees them.

use crate::ThreadAxis;

/// A kind of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// Seen by every thread.
    Global,
    /// Seen by the threads of all blocks of a cluster: shared memory of those blocks, each of which has the elements whose first
    /// subscript is its number in the cluster.
    Cluster,
    /// Seen by the threads of one GPU block.
    Shared,
    /// Tensor memory of one GPU block: 128 rows, its lanes, of 512 columns of four bytes. Tensor intrinsics alone touch it.
    Tensor,
    /// Registers of a warp: each lane, a thread of `threadIdx.x`, has some of the elements ([`crate::intrin`] says
    /// which), and tensor intrinsics see them all.
    Fragment,
    /// Private to a thread: registers, where its subscripts become constants.
    Local,
}

impl Scope {
    /// Every scope, in declaration order.
    pub const ALL: [Scope; 6] =
        [Scope::Global, Scope::Cluster, Scope::Shared, Scope::Tensor, Scope::Fragment, Scope::Local];

    /// Into how many rows of tensor memory elements of so many bytes go, those of one column: each has a row and four bytes, or is a scale, of which
    /// there are four in the bytes of a column of 32 rows, and a copy for each other 32 (PTX ISA, *Block scaling*).
    pub const fn tensor_rows(bytes: usize) -> i64 {
        if bytes == 1 { Scope::SCALE_ROWS } else { Scope::TENSOR_ROWS }
    }

    /// The rows of tensor memory that scales go into.
    pub const SCALE_ROWS: i64 = 32;
    /// The rows of tensor memory, which are its lanes (PTX ISA, *Tensor Memory*).
    pub const TENSOR_ROWS: i64 = 128;
    /// The columns of tensor memory that a block can have, of four bytes each.
    pub const TENSOR_COLUMNS: i64 = 512;

    /// The word in scripts and in the text form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Global => "global",
            Scope::Cluster => "cluster",
            Scope::Shared => "shared",
            Scope::Tensor => "tensor",
            Scope::Fragment => "fragment",
            Scope::Local => "local",
        }
    }

    /// Whether the threads, or blocks, along an axis see the same memory.
    pub const fn is_shared_along(self, axis: ThreadAxis) -> bool {
        match self {
            Scope::Global => true,
            Scope::Cluster => axis.is_thread() || axis.is_cluster(),
            Scope::Shared | Scope::Tensor => axis.is_thread(),
            Scope::Fragment => matches!(axis, ThreadAxis::ThreadX),
            Scope::Local => false,
        }
    }

    /// Whether the threads, or blocks, along an axis see the same memory and can wait for each other: those of a grid cannot.
    pub const fn meets_along(self, axis: ThreadAxis) -> bool {
        self.is_shared_along(axis) && (axis.is_thread() || matches!(self, Scope::Cluster))
    }

    /// Whether it is in the shared memory of blocks of threads.
    pub const fn is_of_blocks(self) -> bool {
        matches!(self, Scope::Cluster | Scope::Shared)
    }

    /// Whether each block of threads has its own, which all its threads see.
    pub const fn is_per_block(self) -> bool {
        matches!(self, Scope::Cluster | Scope::Shared | Scope::Tensor)
    }

    /// Whether it is held in registers.
    pub const fn is_registers(self) -> bool {
        match self {
            Scope::Fragment | Scope::Local => true,
            Scope::Global | Scope::Cluster | Scope::Shared | Scope::Tensor => false,
        }
    }

    /// The scope of a word.
    pub fn parse(text: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|it| it.as_str() == text)
    }
}
