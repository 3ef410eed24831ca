//! Mbarriers: objects in shared memory that count arrivals and bytes (PTX ISA, *mbarrier*).
//!
//! A phase of an mbarrier is over when all arrivals of it and all bytes that were expected in it have come; the next one
//! begins then. Phases are numbered from zero. The hardware tells only whether the number of the phase under way is even
//! (`try_wait.parity`); that it answers for the right one is proved where waits are placed, and tried on the virtual GPU.

use crate::{Index, Name, ThreadAxis};

/// Some mbarriers with one name, in the shared memory of a block, initialised before its threads begin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mbarriers {
    /// How many there are: one a slot of what they guard.
    pub slots: i64,
    /// How many arrivals a phase of each has.
    pub arrivals: i64,
}

impl Mbarriers {
    /// What one takes, and what it starts at a multiple of.
    pub const BYTES: i64 = 8;
}

/// A phase of an mbarrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phase {
    /// The name of the mbarriers.
    pub barrier: Name,
    /// Which of them.
    pub slot: Index,
    /// The number of the phase; that before the first, -1, is over from the start.
    pub phase: Index,
}

/// An arrival at an mbarrier, in the phase that is under way there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The name of the mbarriers.
    pub barrier: Name,
    /// Which of them.
    pub slot: Index,
    /// How many bytes of bulk copies the phase waits for besides; none for a plain arrival.
    pub bytes: Option<Index>,
    /// Whether it arrives when the products into tensor memory are over that the thread has started before, while the thread goes on
    /// (`tcgen05.commit`).
    pub is_late: bool,
    /// The axes of the cluster along which it arrives in each block, at the mbarrier of the same name there; none for the own block alone.
    pub along: Vec<ThreadAxis>,
    /// Whether it is at the mbarrier of the first block of the cluster, and not at that of its own: of a pair, one block multiplies for both.
    pub at_first: bool,
}
