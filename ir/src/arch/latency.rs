//! How long operations take and how much a multiprocessor gets done in a cycle: what pipelines are worked out from.
//!
//! Sources:
//! - Hopper: `bench/latency/2026-11-23-h200.json`, but for the bytes of shared memory: a copy of 2 KiB less a load for TMA,
//!   a product of 64 x 64 x 16 less the 32 cycles that it keeps the tensor cores, a barrier of 256 threads. `tilewright calibrate`, which
//!   came later, finds much the same on an H100 (`2026-11-28-h100.json`), from which [`Paces`] are;
//! - Volta to Ampere: round figures near those of published microbenchmarks (Volta: Jia et al., arXiv 1804.06826; products of warps:
//!   Sun et al., arXiv 2206.02874); nobody measured them with these programs;
//! - bytes a cycle of shared memory: the Programming Guide, 32 banks of 4 bytes.
//!
//! What nobody measured is as on the architecture before it. These numbers tell candidates apart; nothing is proved by them.

/// Latencies in clock cycles, and rates in units a cycle of one multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latencies {
    /// Until a load from global memory arrives that the second-level cache has.
    pub cached: u32,
    /// Until one arrives that it has not.
    pub global: u32,
    /// Until a load from shared memory arrives.
    pub shared: u32,
    /// Until a matrix load (`ldmatrix`) arrives.
    pub matrix: u32,
    /// Until a result of arithmetic in f32 can be used.
    pub arithmetic: u32,
    /// Until the result of a product of a warp (`mma.sync.m16n8k16`) can be used.
    pub product: u32,
    /// Until that of a warpgroup can, beyond the time for which it keeps the tensor cores busy.
    pub warpgroup_product: u32,
    /// What a copy that nobody waits for (`cp.async`) takes beyond a load.
    pub copy: u32,
    /// What a copy by the copy engine (TMA) takes beyond a load.
    pub bulk_copy: u32,
    /// For which a barrier of a block of threads keeps them.
    pub barrier: u32,
    /// The bytes that come from the second-level cache, all multiprocessors reading.
    pub cached_bytes: u32,
    /// The bytes that go to and from shared memory.
    pub shared_bytes: u32,
    /// The share, in percent, of the rates of the tensor cores that products of a warp reach.
    pub product_percent: u32,
    /// What a clock needs besides to play kernels; only where it was measured.
    pub paces: Option<Paces>,
}

/// What else a GPU was measured to do, for playing kernels on a clock. Cycles, and bytes a cycle of one multiprocessor while all are at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paces {
    /// The record in `bench/latency` that the numbers are from.
    pub record: &'static str,
    /// What a copy by the copy engine takes beyond a load that the second-level cache has.
    pub bulk_cached: u32,
    /// Bytes that the copy engine brings from the second-level cache to one multiprocessor, where others ask for the same.
    pub box_bytes: u32,
    /// The same where nobody else does.
    pub own_box_bytes: u32,
    /// Bytes of whole sectors that are stored.
    pub stored_bytes: u32,
    /// Bytes of sectors that are stored where of each a half is written at a time.
    pub stored_part_bytes: u32,
    /// From an arrival at an mbarrier until the warp that waits goes on.
    pub hand_over: u32,
    /// From one start of a kernel to the next, at the clock of the record.
    pub launch: u32,
    /// From the end of a block to that of the one that takes its place, where that does nothing; at the clock of the record.
    pub block: u32,
}

/// Volta, and what stands for those before it.
pub(super) const VOLTA: Latencies = Latencies {
    cached: 200,
    global: 400,
    shared: 20,
    matrix: 20,
    arithmetic: 4,
    product: 33,
    warpgroup_product: 33,
    copy: 0,
    bulk_copy: 0,
    barrier: 20,
    cached_bytes: 32,
    shared_bytes: 128,
    product_percent: 100,
    paces: None,
};

/// Hopper: an H200.
pub(super) const HOPPER: Latencies = Latencies {
    cached: 283,
    global: 662,
    shared: 23,
    matrix: 34,
    arithmetic: 4,
    product: 27,
    warpgroup_product: 53,
    copy: 65,
    bulk_copy: 184,
    barrier: 28,
    cached_bytes: 31,
    shared_bytes: 128,
    product_percent: 65,
    paces: Some(HOPPER_PACES),
};

/// What is after Hopper: as Hopper, but that nobody measured how kernels go there.
pub(super) const AFTER_HOPPER: Latencies = Latencies { paces: None, ..HOPPER };

/// Hopper: an H100.
const HOPPER_PACES: Paces = Paces {
    record: "2026-11-28-h100.json",
    bulk_cached: 79,
    box_bytes: 52,
    own_box_bytes: 29,
    stored_bytes: 15,
    stored_part_bytes: 7,
    hand_over: 60,
    launch: 1870,
    block: 595,
};
