//! Semaphores: how blocks of a grid take turns.

use crate::{Access, Index};

/// A semaphore by which blocks that share a counter take turns (CUTLASS has one for split-k): one end of the turn of a block.
///
/// What a block did before the end of its turn, and what it knew of the blocks before it, is visible to the next one
/// from the beginning of its turn on. A block waits only for blocks that the hardware starts before it: those with a
/// smaller index on one axis, and the same on all others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Semaphore {
    /// Whether it begins or ends.
    pub kind: SemaphoreKind,
    /// Whose turn it is: an `i32` in workspace, zero before and after the kernel.
    pub counter: Access,
    /// Which turn the block has, from zero.
    pub turn: Index,
    /// How many turns there are.
    pub count: Index,
}

/// What a block does at a [`Semaphore`], or a warpgroup at a [`Turn`](crate::Turn).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SemaphoreKind {
    /// Waits until the counter says that it is its turn.
    Acquire,
    /// Sets the counter to the next turn; after the last one to zero.
    Release,
}

impl SemaphoreKind {
    /// The word in texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            SemaphoreKind::Acquire => "acquire",
            SemaphoreKind::Release => "release",
        }
    }
}
