//! How long operations take and how much a multiprocessor gets done in a cycle: what pipelines are worked out from.
//!
//! Sources:
//! - Hopper: `bench/latency/2026-11-23-h200.json`, measured by `latency.cu` beside it, but for the bytes of shared memory: a copy of 2 KiB less a load for TMA,
//!   a product of 64 x 64 x 16 less the 32 cycles that it keeps the tensor cores, a barrier of 256 threads;
//! - Volta to Ampere: round figures near those of published microbenchmarks (Volta: Jia et al., arXiv 1804.06826; products of warps:
//!   Sun et al., arXiv 2206.02874); nobody measured them with that program;
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
};
