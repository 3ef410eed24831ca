//! Turns: how warpgroups of a role run a part of their program one after the other, and the rest of it at the same time.

use crate::{Index, Name, SemaphoreKind};

/// One end of a turn of a warpgroup among those that share the iterations of a loop.
///
/// Turns are numbered from zero, and the warpgroup `turn mod members` has each of them. What the one before did until the end of its turn, and what it knew,
/// is visible from the beginning of the next one on; the first turn waits for nobody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Whether it begins or ends.
    pub kind: SemaphoreKind,
    /// What is run in turn: the name of a loop.
    pub of: Name,
    /// Which turn it is.
    pub turn: Index,
    /// How many turns there are.
    pub count: Index,
    /// How many warpgroups take turns: at least two.
    pub members: i64,
}
