//! Reductions that are read while they grow, and what follows them: the rules behind `rolling_update`.
//!
//! A maximum `M` that has seen some of its terms is less than it will be, and a sum of `exp(t - M)` belongs to the `M` that its terms were taken with.
//! [`followers`] finds such sums, [`extremum`] proves that they are proportional to a factor of `M` alone, and [`correction`] puts in the blocks that
//! multiply them when `M` grows.

mod correction;
mod extremum;
mod followers;

use ir::Name;

pub(crate) use correction::{Correction, start_finite};
pub(crate) use extremum::Rescale;
pub(crate) use followers::followers;

/// A reduction in a loop over its terms.
pub(crate) struct Rolled<'a> {
    /// The block that reduces.
    pub(crate) block: &'a Name,
    /// The loop that it was moved into.
    pub(crate) target: &'a Name,
    /// The outermost loop that it reduces over: its init stands before that.
    pub(crate) outer: &'a Name,
    /// What it combines.
    pub(crate) reducer: &'a ir::Reducer,
}

/// A sum that follows an extremum.
pub(crate) struct Follower {
    /// The block that adds up.
    pub(crate) block: Name,
    /// By what the sum is multiplied.
    pub(crate) rescale: Rescale,
}
