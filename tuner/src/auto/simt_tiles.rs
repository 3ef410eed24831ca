//! Tiles of products by the ordinary arithmetic units, and how long they take: by how many of them a multiprocessor has, and how many it holds at once.

use codegen::device::{Resources, occupancy};
use ir::{Arch, Feature, Target};

use super::{
    Request,
    model::{Tile, as_f64, ceil_div, tiles, units},
    packing::{Pack, Packing},
    product::{Factor, Product, vector},
};

/// How threads share a tile: each has `rows` x `columns` sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) ty: i64,
    pub(super) tx: i64,
    pub(super) rows: i64,
    pub(super) columns: i64,
    /// How many steps of the sum a slot has, and how many slots there are.
    pub(super) depth: i64,
    pub(super) slots: i64,
    /// The share of the arithmetic that it would reach with as many warps as hide all that they wait for.
    rate: f64,
}

/// Shapes with rates that were fitted, with the constants below, to 275 trials of random searches in f32 at nine sizes on an H200
/// (`bench/fits/2026-11-28-h200-simt-*.twlog`): the estimate is off by 8 % (root mean square), and what it takes first has 0.96 of the best rate
/// among them (geometric mean). The last two are of older runs (`bench/fits/2026-11-23-h200-auto-templates-simt.jsonl`).
const SHAPES: [Shape; 14] = [
    Shape { ty: 16, tx: 16, rows: 8, columns: 8, depth: 16, slots: 3, rate: 0.895 },
    Shape { ty: 8, tx: 16, rows: 8, columns: 8, depth: 16, slots: 3, rate: 0.834 },
    Shape { ty: 16, tx: 8, rows: 8, columns: 8, depth: 16, slots: 3, rate: 0.834 },
    Shape { ty: 4, tx: 32, rows: 8, columns: 8, depth: 16, slots: 4, rate: 0.837 },
    Shape { ty: 4, tx: 16, rows: 8, columns: 8, depth: 8, slots: 6, rate: 0.784 },
    Shape { ty: 8, tx: 32, rows: 8, columns: 4, depth: 16, slots: 4, rate: 0.785 },
    Shape { ty: 16, tx: 16, rows: 8, columns: 4, depth: 16, slots: 4, rate: 0.771 },
    Shape { ty: 8, tx: 16, rows: 8, columns: 4, depth: 16, slots: 3, rate: 0.777 },
    Shape { ty: 4, tx: 32, rows: 8, columns: 4, depth: 16, slots: 4, rate: 0.775 },
    Shape { ty: 16, tx: 8, rows: 8, columns: 4, depth: 16, slots: 4, rate: 0.752 },
    Shape { ty: 4, tx: 16, rows: 8, columns: 4, depth: 8, slots: 6, rate: 0.715 },
    Shape { ty: 8, tx: 16, rows: 4, columns: 4, depth: 32, slots: 4, rate: 0.628 },
    Shape { ty: 8, tx: 8, rows: 4, columns: 4, depth: 32, slots: 6, rate: 0.65 },
    Shape { ty: 16, tx: 8, rows: 1, columns: 4, depth: 64, slots: 3, rate: 0.25 },
];

/// Multiplications and additions in f32 that a multiprocessor does in a cycle, at most.
const UNITS: f64 = 128.0;

/// Warps with which half of what they wait for is hidden.
const HALF_HIDDEN: f64 = 2.7;

/// What is lost at the end of a grid that a multiprocessor does not hold at once, in tiles.
const TAIL: f64 = 0.8;

/// Cycles for which two blocks of a cluster wait for each other and read their parts, about.
const MEETING: f64 = 1e3;

/// The most tiles, one after the other, for which blocks are paired: a pair gained 10 % with 9 of them, and lost 1 to 4 % with 16 and more, on an H200
/// (`bench/results/2026-11-28-h200-auto-simt.jsonl`).
const FEW: i64 = 12;

/// Into how many parts the sum may be split where a second kernel adds them up.
pub(super) const SLICES: [i64; 6] = [2, 3, 4, 8, 16, 32];

/// Who adds up the parts of a sum.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Parts {
    /// There is one.
    One,
    /// The two blocks of a cluster, from each other's shared memory. Clusters of four and more leave multiprocessors without work: sizes of their groups
    /// are even, but no multiples of four on an H200. With 128 and 256 blocks they took 1.3 to 1.5 times as long as the estimate.
    Pair,
    /// A second kernel adds up so many.
    Kernel(i64),
}

impl Parts {
    pub(super) fn count(self) -> i64 {
        match self {
            Parts::One => 1,
            Parts::Pair => 2,
            Parts::Kernel(slices) => slices,
        }
    }
}

/// A way to compute a product.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) shape: Shape,
    pub(super) parts: Parts,
    pub(super) packing: Packing,
}

/// All ways that fit a product.
pub(super) fn ways(request: &Request<'_>, product: &Product, arch: &Arch, packings: &[Packing]) -> Vec<Way> {
    // A batch has no axis of the grid left, and parts are stored four at a time.
    let can_split = product.batch.is_none() && product.acc.bytes_i64() == 4;
    let pair = arch.has(Feature::Clusters).then_some(Parts::Pair);
    let split = SLICES.map(Parts::Kernel).into_iter().chain(pair).filter(|_| can_split);
    let parts: Vec<_> = [Parts::One].into_iter().chain(split).collect();
    let mut out = vec![];
    for &packing in packings {
        for shape in SHAPES {
            let fits = |it: &&Parts| {
                let slices = it.count();
                slices == 1 || product.k.extent >= slices * shape.depth * shape.slots
            };
            let pays = |it: &Way| it.parts != Parts::Pair || it.in_turn(request, product) <= FEW;
            out.extend(parts.iter().filter(fits).map(|&parts| Way { shape, parts, packing }).filter(pays));
        }
    }
    out
}

impl Shape {
    pub(super) fn tile(self) -> Tile {
        Tile { rows: self.ty * self.rows, columns: self.tx * self.columns, rate: self.rate }
    }

    pub(super) fn threads(self) -> i64 {
        self.ty * self.tx
    }

    /// Registers of a thread, about: what NVRTC 13 gave nearly all of those trials, where rows let copies have four elements and where they do not.
    fn registers(self, is_narrow: bool) -> u32 {
        match (self.rows * self.columns, is_narrow) {
            (64.., false) => 168,
            (64.., true) => 254,
            (32..64, _) => 128,
            (16..32, false) => 80,
            (16..32, true) => 96,
            (..16, _) => 72,
        }
    }

    /// Bytes of a slot, with what is between its rows.
    fn slot_bytes(self, element: i64) -> i64 {
        (self.tile().rows + self.tile().columns) * (self.depth + 4) * element
    }
}

impl Way {
    /// Blocks in all.
    pub(super) fn blocks(&self, product: &Product) -> i64 {
        let batch = product.batch.as_ref().map_or(1, |it| it.extent);
        self.parts.count() * batch * tiles(product.i.extent, product.j.extent, self.shape.tile())
    }

    /// How many blocks the multiprocessor with most of them has.
    fn in_turn(&self, request: &Request<'_>, product: &Product) -> i64 {
        ceil_div(self.blocks(product), units(request))
    }

    /// Cycles from the first block to the last. Those that a multiprocessor holds at once share its arithmetic, and the more warps there are, the more of what
    /// they wait for is hidden.
    pub(super) fn cycles(&self, request: &Request<'_>, product: &Product) -> f64 {
        let Target::Cuda(arch) = request.target else { return f64::INFINITY };
        let (shape, units) = (self.shape, units(request));
        let (blocks, most) = (self.blocks(product), self.in_turn(request, product));
        let together = most.min(self.resident(product, arch));
        let Tile { rows, columns, rate } = shape.tile();
        let steps = ceil_div(ceil_div(product.k.extent, self.parts.count()), shape.depth) * shape.depth;
        let alone = as_f64(rows * columns * steps) / (UNITS * rate * pace(product, self.packing));
        let warps = as_f64(together * shape.threads() / 32);
        let in_turn = if most == together { as_f64(most) } else { as_f64(blocks) / as_f64(units) + TAIL };
        let meeting = if self.parts == Parts::Pair { MEETING } else { 0.0 };
        in_turn * (alone * (warps + HALF_HIDDEN) / warps + meeting)
            + self.adding(product, units)
            + self.packing.cycles(product, units)
    }

    /// How many blocks a multiprocessor holds.
    fn resident(&self, product: &Product, arch: &Arch) -> i64 {
        let (shape, tile) = (self.shape, self.shape.tile());
        let own = if self.parts == Parts::Pair { 4 * tile.rows * tile.columns } else { 0 };
        let shared = shape.slots * shape.slot_bytes(product.a.dtype.bytes_i64()) + own;
        let registers = shape.registers(width(product, self.packing) < 4);
        let needs = Resources { registers, ..Resources::default() };
        let [threads, shared] =
            [shape.threads(), shared].map(|it| u32::try_from(it).expect("shapes are small"));
        occupancy(&needs, threads, shared, arch).map_or(1, |it| i64::from(it.blocks.max(1)))
    }

    /// What it costs to add up the parts by another kernel, which starts while the first one ends and moves each part twice by way of the second-level
    /// cache.
    fn adding(&self, product: &Product, units: i64) -> f64 {
        let Parts::Kernel(slices) = self.parts else { return 0.0 };
        1.6e3 + 0.36 * as_f64(product.i.extent * product.j.extent * slices) / as_f64(units)
    }
}

/// The most bytes of a copy.
pub(super) const COPY: i64 = 16;

/// How fast products are where rows allow no copies of four elements, against those of four; of two at 4097³ in f32 on an H100.
fn pace(product: &Product, packing: Packing) -> f64 {
    match width(product, packing) {
        1 => 0.83,
        2 => 0.92,
        _ => 1.0,
    }
}

/// The elements of the narrower copies, of four.
fn width(product: &Product, packing: Packing) -> i64 {
    let width =
        |pack: Pack, it: &Factor| if pack.is_any() { 4 } else { vector(it.row, it.dtype, COPY).min(4) };
    width(packing.a, &product.a).min(width(packing.b, &product.b))
}
