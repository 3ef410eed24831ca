//! `Effects`: what an instruction does, in the terms in which passes ask.

use crate::{Access, Arrival, Index, Name, Phase, ThreadAxis, Turn, Wait};

/// What an instruction does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effects<'a> {
    /// What it reads and writes: the reads first.
    pub accesses: Vec<Effect<'a>>,
    /// When its accesses have happened.
    pub completion: Completion,
    /// What it orders.
    pub sync: Option<SyncKind<'a>>,
    /// Who has to come to it together.
    pub participants: Participants,
}

/// An access of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect<'a> {
    /// Where.
    pub access: &'a Access,
    /// How many elements from there on in each dimension; none where it is `access.lanes` of the last one.
    pub extents: &'a [i64],
    /// How.
    pub mode: Mode,
    /// By which way.
    pub proxy: Proxy,
}

/// What an access does to a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes in one step, with which other such accesses have no race.
    Atomic,
}

impl Mode {
    /// Whether the place has another value afterwards.
    pub const fn writes(self) -> bool {
        match self {
            Mode::Read => false,
            Mode::Write | Mode::Atomic => true,
        }
    }
}

/// By which way an access goes to memory (PTX ISA, *Proxies*): accesses by different ways are ordered by a fence only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proxy {
    /// Loads and stores of threads, `cp.async` among them.
    Generic,
    /// Bulk copies, `wgmma` where it reads shared memory, and `tcgen05.mma`.
    Async,
}

/// Instructions that a thread waits for by counting the groups it has committed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// Copies by `cp.async`.
    CpAsync,
    /// Bulk copies from shared to global memory.
    Bulk,
    /// Products by `wgmma`.
    Wgmma,
    /// Products by `tcgen05.mma`.
    Tcgen05,
}

/// When the accesses of an instruction have happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// When the thread goes on.
    AtOnce,
    /// When the thread has waited for the group that its next commit closes.
    WithGroup(Group),
    /// When the phase of an mbarrier that it counts for is over, for every thread that has waited for that.
    WithPhase,
}

impl Completion {
    /// The group that it is waited for with, if it is one.
    pub const fn group(self) -> Option<Group> {
        match self {
            Completion::WithGroup(group) => Some(group),
            Completion::AtOnce | Completion::WithPhase => None,
        }
    }
}

/// What an instruction brings to shared memory while the thread goes on: its bytes count for the phase under way of an mbarrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fill<'a> {
    /// The name of the mbarriers.
    pub barrier: &'a Name,
    /// Which of them.
    pub slot: &'a Index,
    /// The axis of the cluster along which it is one of several, each from another block, that come together to all of them.
    pub along: Option<ThreadAxis>,
    /// Whether its bytes count in the first block of the cluster, and not in its own.
    pub at_first: bool,
    /// Where it goes.
    pub place: &'a Access,
    /// How many elements from there on in each dimension; none where it is `place.lanes` of the last one.
    pub extents: &'a [i64],
}

impl Fill<'_> {
    /// How many elements come.
    pub fn elements(&self) -> i64 {
        if self.extents.is_empty() { self.place.lanes.into() } else { self.extents.iter().product() }
    }
}

/// What an instruction orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncKind<'a> {
    /// It closes the group of what the thread has under way.
    Commit(Group),
    /// The thread waits for groups of its own.
    Wait(&'a Wait),
    /// The participants wait for each other, and see what the others wrote before.
    Barrier,
    /// The thread waits for a phase of an mbarrier.
    Await(&'a Phase),
    /// The thread arrives at an mbarrier.
    Arrive(&'a Arrival),
    /// What the thread did comes before what it does by another proxy.
    Fence(Fence),
    /// The warpgroup waits for its turn, or gives the next one.
    Turn(&'a Turn),
}

/// What a fence orders, for the thread that it stands in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fence {
    /// Accesses to shared memory by threads, before those of the asynchronous proxy (`fence.proxy.async`).
    Async,
    /// Accesses to registers, and to shared memory, before the products that use them (`wgmma.fence`).
    Wgmma,
}

/// Who has to come to an instruction together, from few to many.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Participants {
    /// Any thread comes by itself.
    Thread,
    /// All threads of a warp.
    Warp,
    /// All threads of a warpgroup: four warps.
    Warpgroup,
    /// All threads of a role.
    Role,
    /// All threads of a block.
    Block,
    /// All threads of a cluster's blocks that have not ended.
    Cluster,
}

impl Participants {
    /// Those that leaders are of. That of a cluster is in its first block, of the role at hand where there are some.
    pub const TEAMS: [Participants; 5] = Participants::MEETING;

    /// Those that barriers are of.
    pub const MEETING: [Participants; 5] = [
        Participants::Warp,
        Participants::Warpgroup,
        Participants::Role,
        Participants::Block,
        Participants::Cluster,
    ];

    /// The word in texts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Participants::Thread => "thread",
            Participants::Warp => "warp",
            Participants::Warpgroup => "warpgroup",
            Participants::Role => "role",
            Participants::Block => "block",
            Participants::Cluster => "cluster",
        }
    }
}

impl Group {
    /// Every kind.
    pub const ALL: [Group; 4] = [Group::CpAsync, Group::Bulk, Group::Wgmma, Group::Tcgen05];

    /// The word in texts; copies by `cp.async` have none.
    pub const fn as_str(self) -> &'static str {
        match self {
            Group::CpAsync => "",
            Group::Bulk => "bulk",
            Group::Wgmma => "wgmma",
            Group::Tcgen05 => "tcgen05",
        }
    }
}
