//! What threads wait for: groups of their own, and each other.

use crate::{Group, Name, Participants};

/// Waits until all but the last `in_flight` committed groups of a kind are complete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The kind.
    pub group: Group,
    /// Whether it is enough that they have read what they read: what they write may still be under way. Of bulk copies only.
    pub reads_only: bool,
    /// How many groups, the youngest, may still be under way.
    pub in_flight: u32,
    /// The buffers that it is there for: what of them earlier groups copied is in its place afterwards.
    pub buffers: Vec<Name>,
}

impl Wait {
    /// A wait for copies by `cp.async`.
    pub const fn copies(in_flight: u32, buffers: Vec<Name>) -> Wait {
        Wait { group: Group::CpAsync, reads_only: false, in_flight, buffers }
    }
}

/// A barrier: those that it is among wait for each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Barrier {
    /// Who.
    pub among: Participants,
    /// The dependences between threads that no other barrier orders, in words, for readers; of a barrier that somebody wrote by
    /// hand there are none.
    pub proof: Vec<String>,
}
