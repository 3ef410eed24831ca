//! Tiles of products by warpgroups, and how long they take: by their arithmetic, or by the factors that come to them.

use super::{
    Request,
    model::{Tile, as_f64, ceil_div, units, whole_waves},
    packing::Packing,
    product::Product,
};

/// A tile of 64 rows for each warpgroup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) warpgroups: i64,
    pub(super) columns: i64,
    pub(super) cluster_m: i64,
    rate: f64,
    /// How many products have sums of so many columns.
    pub(super) products: i64,
}

/// Columns of a tile of two warpgroups with estimates of their rates: set by hand, so that the tile ranked first is among the fast ones in
/// the tuning logs of 22 shapes in bf16 on an H200. No column was timed by itself.
const COLUMNS: [(i64, f64); 11] = [
    (256, 1.0),
    (240, 0.98),
    (224, 0.96),
    (208, 0.96),
    (192, 0.95),
    (176, 0.94),
    (160, 0.94),
    (144, 0.92),
    (128, 0.86),
    (96, 0.7),
    (64, 0.55),
];

/// The same of one warpgroup. What is wider or between them is for products that wait for their factors: its rates are in line with the two that were
/// there before, so that it is taken for fewer bytes and not for its arithmetic.
const NARROW: [(i64, f64); 11] = [
    (240, 0.78),
    (224, 0.77),
    (208, 0.76),
    (192, 0.75),
    (176, 0.73),
    (160, 0.7),
    (144, 0.65),
    (128, 0.6),
    (112, 0.55),
    (96, 0.5),
    (64, 0.4),
];

/// The bytes in which the second-level cache answers.
const SECTOR: i64 = 32;

/// How many products of two-byte elements a multiprocessor does in a cycle, about: what the fastest tile reaches on an H200. Tensor cores do
/// twice as many of elements of half the size.
const PRODUCTS: f64 = 1700.0;

/// How many bytes of factors come to a multiprocessor in a cycle where it waits for nothing else: between 42 and 60 in the fastest trials of searches for
/// 160, 192, 320 and 512 rows by long sums on an H100 (`bench/fits/2026-11-28-h100-few-rows-*.twlog`). With boxes that two blocks read, the copy engine
/// alone brings 52 (`tilewright calibrate`).
const ARRIVING: f64 = 45.0;

/// How many come from memory, all multiprocessors reading (`tilewright calibrate` on an H100).
const FROM_MEMORY: f64 = 11.8;

/// The share of its time in which a product reads its factors from memory once, from which on blocks of the next kernel that start ahead of time cost more
/// than they gain: they part rows of tiles that find the same columns in the cache while they run side by side. In those trials starting early took
/// 3 % longer with a share of 0.55, 15 % with 0.65 and 20 % with 0.8; with 0.3 it was faster.
const MOST_FROM_MEMORY: f64 = 0.45;

/// The most steps of a sum with which grids of several waves start early: 7 and 8 steps gain 3 and 1 %, 62 lose 3 %, 64 and 128 nothing, on an H100
/// (`bench/results/2026-11-28-h100-auto-few-rows.jsonl`).
const SHORT: i64 = 16;

/// All shapes for a factor B, alone, and in clusters of two, which share its copies. Where its rows end within a sector of the cache, a box
/// costs twice the requests, and sharing it is worth a third. Else a cluster gains a little with the largest tiles and loses up to a
/// quarter with small ones. Where rows of B run along the columns of a tile, boxes are 64 columns wide, and tiles hold whole ones.
pub(super) fn shapes(product: &Product, packing: Packing) -> Vec<Shape> {
    let (b, products) = (&product.b, product.products());
    let all = COLUMNS.iter().map(|it| (2, it)).chain(NARROW.iter().map(|it| (1, it)));
    // What leaves at a time has 16 columns and more.
    let is_whole = |columns: i64| columns % (if packing.b.is_k_last(b) { 16 } else { 64 } * products) == 0;
    let all = all.filter(|it| is_whole(it.1.0));
    let has_whole_sectors = packing.b.is_any() || b.row * b.dtype.bytes_i64() % SECTOR == 0;
    let pair = |(warpgroups, &(columns, rate)): (i64, &(i64, f64))| {
        let (alone, pair) = match (has_whole_sectors, columns) {
            (false, _) => (0.75, 1.0),
            (true, 256) => (0.99, 1.0),
            (true, _) => (1.0, 0.8),
        };
        [(2, pair), (1, alone)].map(|(cluster_m, gain)| Shape {
            warpgroups,
            columns: columns / products,
            cluster_m,
            rate: rate * gain,
            products,
        })
    };
    all.flat_map(pair).collect()
}

impl Shape {
    pub(super) fn tile(self) -> Tile {
        Tile { rows: 64 * self.warpgroups, columns: self.columns, rate: self.rate }
    }

    /// The tile with the columns of all products side by side, which is what it has to do.
    fn work(self) -> Tile {
        Tile { columns: self.columns * self.products, ..self.tile() }
    }

    /// The cycles of so many tiles whose blocks stay: the longer of what tensor cores take and of what the factors of a tile take to come.
    pub(super) fn cycles(self, product: &Product, count: i64, units: i64) -> f64 {
        let (work, bytes, depth) =
            (self.work(), as_f64(product.a.dtype.bytes_i64()), as_f64(product.k.extent));
        let multiplying = whole_waves(count, work, units) * depth * bytes / (2.0 * PRODUCTS);
        let arriving = as_f64((work.rows + work.columns) * ceil_div(count, units)) * depth * bytes / ARRIVING;
        multiplying.max(arriving)
    }
}

/// Whether it gains to start while the kernel ahead ends: a grid of one wave, or of short sums, of which a launch is a good part, unless several rows of
/// tiles have much of their time to read the factors once.
pub(super) fn begins_early(request: &Request<'_>, product: &Product, shape: Shape, count: i64) -> bool {
    let units = units(request);
    let rows = ceil_div(product.i.extent, shape.tile().rows);
    let batch = product.batch.as_ref().map_or(1, |it| it.extent);
    let across = product.i.extent + product.j.extent * shape.products;
    let bytes = as_f64(batch * across * product.k.extent * product.a.dtype.bytes_i64());
    let reading = bytes / (FROM_MEMORY * as_f64(units));
    let waits_for_memory = rows > 1 && reading > MOST_FROM_MEMORY * shape.cycles(product, count, units);
    (count <= units || steps(product) <= SHORT) && !waits_for_memory
}

/// How many steps of 128 bytes a sum has.
pub(super) fn steps(product: &Product) -> i64 {
    ceil_div(product.k.extent * product.a.dtype.bytes_i64(), 128)
}
