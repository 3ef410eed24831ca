//! How long a grid of tiles takes, as far as waves tell.

use ir::{Mbarriers, Target};

use super::Request;

/// How many multiprocessors a schedule is for: as many as was said, or as the usual GPU of the architecture has.
pub(super) fn units(request: &Request<'_>) -> i64 {
    let Target::Cuda(arch) = request.target else { return 1 };
    request.units.unwrap_or(i64::from(arch.caps().usual_units))
}

/// The bytes of shared memory that a block of threads may have.
pub(super) fn shared_bytes(request: &Request<'_>) -> i64 {
    let Target::Cuda(arch) = request.target else { return 0 };
    i64::from(arch.caps().max_shared_per_block)
}

/// The bytes of the two mbarriers that a slot of a ring has: one that tells of what has come, one of what may come again.
pub(super) const SLOT_MBARRIERS: i64 = 2 * Mbarriers::BYTES;

/// A tile that a block of threads computes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tile {
    pub rows: i64,
    pub columns: i64,
    /// How fast it is where there are many, against the fastest tile of its kind.
    pub rate: f64,
}

/// The tiles that cover a matrix.
pub(super) fn tiles(m: i64, n: i64, tile: Tile) -> i64 {
    ceil_div(m, tile.rows) * ceil_div(n, tile.columns)
}

pub(super) fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}

/// The time of a grid of tiles, in that of one multiplication and addition of the fastest tile by one multiprocessor.
///
/// Where there are several blocks for each multiprocessor, they share it, and about a third of a wave is lost at the end. A block alone
/// reaches six tenths of what several do together. Both are round figures that suit about a hundred runs of the templates in `std/simt` and
/// `std/mma` at 18 shapes on an H200.
pub(super) fn shared_waves(count: i64, tile: Tile, units: i64) -> f64 {
    let waves = as_f64(count) / as_f64(units);
    as_f64(tile.rows * tile.columns) / tile.rate * (waves + 0.3).max(1.0 / 0.6)
}

/// What it costs to add up the parts of a sum in a second kernel, in the same measure, on multiprocessors that do `products` in a
/// cycle: its launch takes about 3 microseconds, which are 5,000 cycles, and each part is written and read once by way of the second-level cache,
/// at 30 bytes a cycle (`bench/latency`). Round figures, not fitted.
pub(super) fn parts_cost(elements: i64, slices: i64, units: i64, products: f64) -> f64 {
    let cycles = 5e3 + 0.27 * as_f64(elements * slices) / as_f64(units);
    if slices == 1 { 0.0 } else { products * cycles }
}

/// What the second-level cache of an H100 keeps of what one kernel writes and the next reads, about.
const CACHED: i64 = 32 << 20;

/// The cycles of a kernel that only copies so many bytes: of its launch, a little less than above, since it starts while the one ahead
/// ends, and of moving them. Global memory gives and takes about 15 bytes a cycle of each multiprocessor of an H100, the cache more than twice
/// as much. Round figures, with which `mma` is taken for 8 products of 2049 x 2049 x 513 (180 us on an H100, `wgmma` 234), whose results in f32 are
/// packed by way of memory, and `wgmma` for one of 2049 x 2049 x 511 in f16 (21 us, `mma` 32), where the cache has all.
pub(super) fn copy_cycles(bytes: i64, units: i64) -> f64 {
    let cached = bytes.min(CACHED);
    4e3 + (0.05 * as_f64(cached) + 0.13 * as_f64(bytes - cached)) / as_f64(units)
}

/// The same where blocks stay and take tile after tile: some have one more than others.
pub(super) fn whole_waves(count: i64, tile: Tile, units: i64) -> f64 {
    as_f64(tile.rows * tile.columns) / tile.rate * as_f64(ceil_div(count, units))
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52, and this is an estimate")]
pub(super) fn as_f64(it: i64) -> f64 {
    it as f64
}

/// The choices by their estimates, the least first.
pub(super) fn ranked<T>(choices: impl IntoIterator<Item = T>, cost: impl Fn(&T) -> f64) -> Vec<T> {
    let mut all: Vec<_> = choices.into_iter().collect();
    all.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    all
}

/// How many rows of tiles are in a group: at most so many, and in equal groups where that is possible.
pub(super) fn group(rows: i64, most: i64) -> i64 {
    ceil_div(rows, ceil_div(rows, most))
}
