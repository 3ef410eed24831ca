//! What orders threads and asynchronous work, and the warps that it orders.

use ir::{Fence, Group, Name, Participants};
use serde::{Serialize, Serializer};

use super::Part;

/// Warps that run statements of a pipeline at a pace of their own.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lane {
    /// The role; none where all threads do the same.
    pub role: Option<Name>,
    /// How many threads they are, if the kernel says.
    pub threads: Option<i64>,
    /// How many warpgroups take whole runs of the loop in turn; 1 where all threads work on the same one.
    pub turns: i64,
    /// How many registers each of them gets, if the script says.
    pub registers: Option<u32>,
    /// How many steps later than the first lane it begins: so far others run ahead of it at most.
    pub behind: i64,
    /// Whether it goes on into the next run of the loop while others finish this one.
    pub goes_on: bool,
}

/// Some mbarriers with one name: by them it is told that slots are full, or free.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlotBarrier {
    /// Their name.
    pub name: Name,
    /// How many there are: one a slot.
    pub slots: i64,
    /// How many arrivals a phase of each waits for.
    pub arrivals: i64,
    /// How many bytes of copies it waits for besides; none if it waits for no copies.
    pub bytes: Option<i64>,
    /// The axes of the cluster along which other blocks send such bytes, or arrive where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<&'static str>,
    /// Whether both blocks of a pair tell those of the first one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_first: bool,
    /// How many iterations behind its own a statement tells of, where products that read a slot are still in flight.
    pub lag: i64,
    /// The statements whose copies or arrivals end a phase.
    pub told_by: Vec<Name>,
    /// The statements that wait for a phase.
    pub awaited_by: Vec<Name>,
}

/// The groups of a kind that the threads of a lane close and wait for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Groups {
    /// The role of the lane; none where all threads do the same.
    pub role: Option<Name>,
    /// What is in them: `copies` (by `cp.async`), `products` (by `wgmma`) or `stores` (bulk copies to global memory).
    #[serde(serialize_with = "group_word")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub kind: Group,
}

/// Something that orders threads or asynchronous work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// A group is closed.
    Commit {
        /// What is in it: `copies`, `products` or `stores`.
        #[serde(serialize_with = "group_word")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        group: Group,
    },
    /// The thread waits for groups of its own.
    Wait {
        /// What is in them: `copies`, `products` or `stores`.
        #[serde(serialize_with = "group_word")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        group: Group,
        /// Whether it is enough that they have read what they read.
        reads_only: bool,
        /// How many groups may stay under way.
        in_flight: u32,
        /// What it waits for.
        buffers: Vec<Name>,
    },
    /// Threads wait for each other: which of the barriers.
    Barrier {
        /// Its position in the list of barriers.
        at: usize,
        /// Whether it stands inside the statement, not before it.
        inside: bool,
    },
    /// The thread waits for a phase of an mbarrier: that of iteration `i + fill`, where `i` is the statement's.
    Await {
        /// The position in the list of mbarriers.
        mbarrier: usize,
        /// Which iteration's; unknown where that is not constant.
        fill: Option<i64>,
    },
    /// The thread arrives at an mbarrier, for iteration `i + fill`, where `i` is that of the statement before.
    Arrive {
        /// The position in the list of mbarriers.
        mbarrier: usize,
        /// Which iteration's; unknown where that is not constant.
        fill: Option<i64>,
    },
    /// The thread says how many bytes of copies a phase waits for, and arrives: for iteration `i + fill`, where `i` is that of the
    /// statement behind.
    Expect {
        /// The position in the list of mbarriers.
        mbarrier: usize,
        /// Which iteration's; unknown where that is not constant.
        fill: Option<i64>,
    },
    /// What the thread did comes before what it does by another proxy.
    Fence {
        /// Before what: `async` for accesses by hardware, `wgmma` for products.
        #[serde(serialize_with = "fence_word")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        before: Fence,
    },
}

/// A barrier.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Barrier {
    /// The part in which it stands.
    pub part: Part,
    /// The statement before which it stands, or inside which; none at the end of a step.
    pub before: Option<Name>,
    /// Who waits for each other: a `warp`, a `warpgroup`, a `role` or the `block`.
    #[serde(serialize_with = "participants_word")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub among: Participants,
    /// What it is there for, as the kernel says.
    pub proof: Vec<String>,
}

/// What is in the groups of a kind.
pub const fn in_groups(kind: Group) -> &'static str {
    match kind {
        Group::CpAsync => "copies",
        Group::Wgmma | Group::Tcgen05 => "products",
        Group::Bulk => "stores",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn group_word<S: Serializer>(group: &Group, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(in_groups(*group))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn fence_word<S: Serializer>(fence: &Fence, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match fence {
        Fence::Async => "async",
        Fence::Wgmma => "wgmma",
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn participants_word<S: Serializer>(who: &Participants, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(who.as_str())
}
