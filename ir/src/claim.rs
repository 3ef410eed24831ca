//! Cluster launch control: how a block of threads that has done its work takes over that of one which has not begun (PTX ISA,
//! *clusterlaunchcontrol*).
//!
//! The grid has a block for each piece of work. Those that the GPU has no room for wait, and one that runs may claim one of them: the answer comes
//! to its shared memory as the bytes of a bulk copy do, and names a block that will then never begin, or none. Whoever takes a named block stands for it
//! from there on: the variables of the axes of the grid have its place. The variable [`Kernel::claims`](crate::Kernel::claims) counts for how many blocks a
//! thread has stood, so that a loop with that extent runs once for each of them: it has one iteration more as often as a block is taken.

use crate::{Access, Index, Name};

/// A claim for a block of the grid that has not begun (`clusterlaunchcontrol.try_cancel`), by one thread; in a cluster, whose blocks claim
/// together, the claim of the first one counts, and all of them get the answer.
///
/// Behind an answer that names none, nobody may claim again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Where the answer goes, in shared memory.
    pub answer: Access,
    /// The mbarriers for whose phase under way its bytes count.
    pub barrier: Name,
    /// Which of them.
    pub slot: Index,
}

/// A thread reads an answer, and stands for the block that it names from here on, if it names one
/// (`clusterlaunchcontrol.query_cancel`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Take {
    /// Where the answer is.
    pub answer: Access,
}

impl Claim {
    /// The elements of an answer, which are of four bytes.
    pub const ELEMENTS: u32 = 4;
    /// How many bytes an answer has, and what it begins at a multiple of.
    pub const BYTES: i64 = 16;
}
