//! Products on Hopper's tensor cores by warpgroups, with a role for the copy engine.

use ir::{DType, Feature, Target};

use super::{
    Draft, Request, counted,
    model::{Tile, ceil_div, group, ranked, tiles, units, whole_waves},
    product::{Factor, Product},
};

/// A tile of 64 rows for each warpgroup.
#[derive(Clone, Copy, Debug)]
struct Shape {
    warpgroups: i64,
    columns: i64,
    cluster_m: i64,
    rate: f64,
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

/// The same of one warpgroup.
const NARROW: [(i64, f64); 2] = [(128, 0.6), (64, 0.4)];

/// The bytes in which the second-level cache answers.
const SECTOR: i64 = 32;

/// All shapes for a factor B, alone, and in clusters of two, which share its copies. Where its rows end within a sector of the cache, a box
/// costs twice the requests, and sharing it is worth a third. Else a cluster gains a little with the largest tiles and loses up to a
/// quarter with small ones. Where rows of B run along the columns of a tile, boxes are 64 columns wide, and tiles hold whole ones.
fn shapes(b: &Factor) -> Vec<Shape> {
    let all = COLUMNS.iter().map(|it| (2, it)).chain(NARROW.iter().map(|it| (1, it)));
    let all = all.filter(|it| b.is_k_last || it.1.0 % 64 == 0);
    let has_whole_sectors = b.row * b.dtype.bytes_i64() % SECTOR == 0;
    let pair = |(warpgroups, &(columns, rate)): (i64, &(i64, f64))| {
        let (alone, pair) = match (has_whole_sectors, columns) {
            (false, _) => (0.75, 1.0),
            (true, 256) => (0.99, 1.0),
            (true, _) => (1.0, 0.8),
        };
        [(2, pair), (1, alone)].map(|(cluster_m, gain)| Shape {
            warpgroups,
            columns,
            cluster_m,
            rate: rate * gain,
        })
    };
    all.flat_map(pair).collect()
}

impl Shape {
    fn tile(self) -> Tile {
        Tile { rows: 64 * self.warpgroups, columns: self.columns, rate: self.rate }
    }
}

/// Bytes by which the copy engine can find the next row.
const ROW_UNIT: i64 = 16;

/// The product by warpgroups, likeliest first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Target::Cuda(arch) = request.target else { return vec![] };
    if !arch.has(Feature::Wgmma) {
        return vec![];
    }
    let Some(product) = Product::of(request) else { return vec![] };
    let bytes = |it: DType| it.bytes_i64();
    let is_half = matches!(product.a.dtype, DType::F16 | DType::Bf16) && product.b.dtype == product.a.dtype;
    let rows = [
        product.a.row * bytes(product.a.dtype),
        product.b.row * bytes(product.b.dtype),
        product.j.extent * bytes(product.out),
    ];
    let fits = is_half && bytes(product.out) == 2 && product.acc == DType::F32 && product.only_converts;
    if !fits || product.batch.is_some() || rows.iter().any(|it| it % ROW_UNIT != 0) {
        return vec![];
    }
    let units = units(request);
    let shared = i64::from(arch.caps().max_shared_per_block);
    let count = |it: &Shape| {
        let pair = Tile { rows: it.tile().rows * it.cluster_m, ..it.tile() };
        tiles(product.i.extent, product.j.extent, pair) * it.cluster_m
    };
    let all = ranked(shapes(&product.b), |it| whole_waves(count(it), it.tile(), units));
    all.into_iter().map(|it| one(&product, it, count(&it), units, shared)).collect()
}

/// `shared` are the bytes that a block may have.
fn one(product: &Product, shape: Shape, count: i64, units: i64, shared: i64) -> Draft {
    let Shape { warpgroups, columns, cluster_m, .. } = shape;
    let rows = 64 * warpgroups;
    let block = product.block.as_str();
    let about = format!(
        "Tiles of {rows} x {columns} by {}, fed by a role for the copy engine.",
        counted(warpgroups, "warpgroup")
    );
    let mut out = Draft::new("wgmma", about, &["std/wgmma"]);
    let group = group(ceil_div(product.i.extent, rows * cluster_m), 16);
    out.because(
        format!(
            "{} for {}, {} of tiles at a time, which share what the cache holds.",
            counted(count, "tile"),
            counted(units, "multiprocessor"),
            counted(group, "row")
        ),
        format!(
            "wgmma_tile(block: {block:?}, warpgroups: {warpgroups}, columns: {columns}, group: {group}, cluster_m: {cluster_m})"
        ),
    );
    // The swizzle of the staging is as wide as what leaves at a time.
    let store = [64, 32, 16].into_iter().find(|it| columns % it == 0).unwrap_or(16);
    let last = product.last_block();
    out.step(format!(
        "wgmma_store(block: {last:?}, sums: \"{block}_pad\", m: {}, n: {columns}, store: {store})",
        rows * cluster_m
    ));
    let (slot, way_out) = ((rows + columns) * 128, 2 * rows * store * 2);
    let most = (shared - way_out) / (slot + ROW_UNIT);
    let slots = most.min(8).min((product.k.extent / 64).max(2));
    out.because(
        format!("A slot has {slot} bytes, and {slots} of them fit beside {way_out} bytes for the way out."),
        format!("wgmma_products(block: {block:?}, slots: {slots})"),
    );
    if count <= units {
        out.because(
            "The whole grid is one wave: it may start while the kernel ahead of it ends.",
            "annotate(loop: \"tile\", key: \"programmatic_launch\", value: 1)",
        );
    }
    let blocks = units / cluster_m;
    out.because(
        "As many blocks as there are multiprocessors take tile after tile: one is loaded while the one before is stored.",
        format!("persistent(loop: \"tile\", blocks: {blocks})"),
    );
    let registers = if warpgroups == 2 { ", registers: {\"load\": 40, \"compute\": 232}" } else { "" };
    out.step(format!(
        "warp_specialize(loop: \"tile\", roles: {{\"load\": [\"A_pad\", \"B_pad\"]}}{registers})"
    ));
    out
}
