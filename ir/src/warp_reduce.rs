//! `WarpReduce`: what lanes of a warp reduce together, by shuffles.

use crate::{Access, BinaryOp};

/// `place = op` over what the lanes of a group hold in `operand`: groups of `width` lanes that follow each other, all of which come to it
/// together, and all of which have the result afterwards.
///
/// Lanes are combined in pairs whose numbers differ in one bit, from the highest to the lowest (a butterfly of
/// `__shfl_xor_sync`). So the order of the operations is always the same, and, `op` being commutative, all lanes compute the same
/// bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WarpReduce {
    /// What combines: one that has an identity.
    pub op: BinaryOp,
    /// How many lanes a group has: 2, 4, 8, 16 or 32.
    pub width: u32,
    /// Each lane's own place for the result.
    pub place: Access,
    /// What each lane brings, of its own memory.
    pub operand: Access,
}

impl WarpReduce {
    /// How many lanes groups may have.
    pub const WIDTHS: [u32; 5] = [2, 4, 8, 16, 32];

    /// The operations there are, with their words in texts.
    pub const OPS: [(BinaryOp, &'static str); 4] = [
        (BinaryOp::Add, "warp_reduce_add"),
        (BinaryOp::Mul, "warp_reduce_mul"),
        (BinaryOp::Min, "warp_reduce_min"),
        (BinaryOp::Max, "warp_reduce_max"),
    ];

    /// The word in texts and messages.
    pub fn word(&self) -> &'static str {
        Self::OPS.iter().find(|it| it.0 == self.op).map_or("warp_reduce", |it| it.1)
    }

    /// The instruction with its accesses rewritten.
    #[must_use]
    pub fn map_accesses(&self, f: &mut dyn FnMut(&Access) -> Access) -> WarpReduce {
        let (operand, place) = (f(&self.operand), f(&self.place));
        WarpReduce { place, operand, ..*self }
    }
}
