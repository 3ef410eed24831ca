//! What the virtual GPU finds: data, and the sentences for it.

mod clusters;
mod words;

use indexmap::IndexMap;
use ir::Name;
use serde::Serialize;

use super::RaceKind;

/// An access to memory, in a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Access {
    /// The kernel.
    pub kernel: Name,
    /// The line of the kernel's text form, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// The block, by its `blockIdx`: where there are clusters, the cluster.
    pub block: [i64; 3],
    /// Where the block is in its cluster, by the axes of that, if there are clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_cluster: Option<[i64; 3]>,
    /// The role of the thread, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Name>,
    /// The thread, by its `threadIdx`, which a role has for itself.
    pub thread: [i64; 3],
    /// The loops around the statement, outermost first, and their values.
    pub at: Vec<(Name, i64)>,
}

/// Something wrong with a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the sentence about each variant names its fields")]
pub enum Finding {
    /// Two accesses to one element of which one is a write, by different threads, that nothing orders.
    DataRace { buffer: Name, element: i64, race: RaceKind, first: Access, second: Access },
    /// An access to the destination of an asynchronous copy that the copying thread waits for only afterwards.
    MissingWait { buffer: Name, element: i64, copy: Access, access: Access },
    /// An access to the destination of an asynchronous copy that is never waited for.
    NeverLanded { buffer: Name, element: i64, copy: Access, access: Access },
    /// A read of an element that nothing has written.
    Uninitialised { buffer: Name, element: i64, access: Access },
    /// An access outside a buffer.
    OutOfBounds { buffer: Name, element: i64, len: i64, access: Access },
    /// Threads of a block that do not all come to the barriers under a loop or a condition; the run ends there.
    DivergentBarrier { access: Access, other: Access },
    /// An instruction of a whole warp that not all of its lanes come to.
    PartialWarp { intrinsic: &'static str, access: Access },
    /// An access to `element` and those behind it that begins at a byte, counted from the start of the buffer or of the
    /// block's shared memory, that is no multiple of `align`.
    Misaligned { buffer: Name, element: i64, byte: i64, shared: bool, align: i64, access: Access },
    /// An integer divided by zero.
    DivisionByZero { access: Access },
    /// A block waits for a turn that no other block gives it; the run ends there.
    Deadlock { buffer: Name, element: i64, turn: i64, counter: i64, access: Access },
    /// A counter of turns that is not zero at the end, so that the next run would begin with another turn.
    TurnsLeft { buffer: Name, element: i64, counter: i64 },
    /// An element of an output that no kernel has written at the end, the first of `count`.
    OutputUnwritten { buffer: Name, element: i64, count: i64 },
    /// All warps of a block that have not ended wait, the first of them by `access`; the run ends there.
    Stuck {
        waits: Vec<Waiting>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        turns: Vec<WaitingTurn>,
        access: Access,
    },
    /// A warp that ends a turn and is in another or in none; the run ends there.
    OutOfTurn { of: Name, turn: i64, began: Option<i64>, access: Access },
    /// An arrival in another block of the cluster, at this place in it, for which nothing there waits: that may have ended.
    BlockEnded { barrier: Name, slot: i64, ended: [i64; 3], access: Access },
    /// An access to an element of another block of the cluster, at this place in it, that nothing there waits for: the block may have
    /// ended, or not begun.
    MemoryGone { buffer: Name, element: i64, of: [i64; 3], has_begun: bool, access: Access },
    /// A wait for a phase of an mbarrier whose parity is that of another: the one under way is neither that phase nor the next.
    PhaseAhead { barrier: Name, slot: i64, phase: i64, under_way: i64, access: Access },
    /// A phase in which all arrived, and other bytes came than were expected.
    PhaseBytes { barrier: Name, slot: i64, phase: i64, expected: i64, got: i64, access: Access },
    /// A phase that has begun and is not over when its block ends.
    PhaseUnfinished { barrier: Name, slot: i64, phase: i64, came: i64, arrivals: i64, access: Access },
    /// An arrival in a phase in which all have arrived already.
    Arrivals { barrier: Name, slot: i64, phase: i64, arrivals: i64, access: Access },
    /// An access to registers that a product in flight uses.
    InFlightRegister { buffer: Name, product: Access, access: Access },
    /// A product with registers that were touched since the last fence for products, or without any such fence before it.
    MissingWgmmaFence { buffer: Name, access: Access },
    /// What a thread wrote to shared memory and a bulk copy or a product touches, or what it read and a copy fills, without a fence between the proxies.
    MissingProxyFence { buffer: Name, element: i64, first: Access, second: Access },
    /// A product that not all four warps of a warpgroup come to equally often; `access` is of one that is missing.
    PartialGroup { intrinsic: &'static str, access: Access },
    /// A bulk copy or a product that is under way when its block ends.
    Outstanding { access: Access },
    /// A claim for a block by one that has read that there is none for it.
    ClaimedAgain { access: Access },
}

/// Warps of a role that wait for one phase of one mbarrier.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waiting {
    /// The role, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Name>,
    /// The numbers of the warps in it.
    pub warps: Vec<i64>,
    /// The name of the mbarriers.
    pub barrier: Name,
    /// Which of them.
    pub slot: i64,
    /// The phase that they wait for.
    pub phase: i64,
    /// The phase under way, of which all below is.
    pub under_way: i64,
    /// How many have arrived.
    pub came: i64,
    /// Of how many.
    pub arrivals: i64,
    /// How many bytes have come.
    pub got: i64,
    /// How many were expected so far.
    pub expected: i64,
}

/// Warps of a role that wait for one turn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitingTurn {
    /// The role, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Name>,
    /// The numbers of the warps in it.
    pub warps: Vec<i64>,
    /// The loop that is run in turns.
    pub of: Name,
    /// The turn that they wait for.
    pub turn: i64,
    /// The turn under way, or to begin next.
    pub under_way: i64,
}

ir::codes!(Finding {
    DataRace = 2401,
    MissingWait = 2402,
    NeverLanded = 2403,
    Uninitialised = 2404,
    OutOfBounds = 2405,
    DivergentBarrier = 2406,
    PartialWarp = 2407,
    DivisionByZero = 2408,
    Deadlock = 2409,
    TurnsLeft = 2410,
    OutputUnwritten = 2411,
    Misaligned = 2412,
    Stuck = 2409,
    PhaseAhead = 2413,
    PhaseBytes = 2414,
    PhaseUnfinished = 2415,
    Arrivals = 2416,
    InFlightRegister = 2417,
    MissingWgmmaFence = 2418,
    MissingProxyFence = 2419,
    PartialGroup = 2420,
    Outstanding = 2421,
    OutOfTurn = 2422,
    BlockEnded = 2423,
    MemoryGone = 2423,
    ClaimedAgain = 2424,
});

/// A finding and how often it was made: the same kind at the same lines counts as the same.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CountedFinding {
    /// The first of its sort.
    pub finding: Finding,
    /// How many there were.
    pub times: u64,
}

/// What makes two findings the same: the kind, the kernel and the statements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) kind: u8,
    pub(crate) kernel: usize,
    pub(crate) sites: [u32; 2],
}

/// Keeps the first findings of each sort.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    pub(crate) found: IndexMap<Key, CountedFinding>,
    /// How many sorts were not kept.
    pub(crate) dropped: u64,
    pub(crate) limit: usize,
}

impl Sink {
    /// Counts a finding; `false` if it is the first of its sort and should be kept.
    pub(crate) fn count(&mut self, key: Key) -> bool {
        if let Some(found) = self.found.get_mut(&key) {
            found.times += 1;
            return true;
        }
        let full = self.found.len() >= self.limit;
        self.dropped += u64::from(full);
        full
    }

    /// Keeps the first finding of a sort.
    pub(crate) fn keep(&mut self, key: Key, finding: Finding) {
        self.found.insert(key, CountedFinding { finding, times: 1 });
    }
}
