//! Products by the ordinary arithmetic units of a GPU.

use ir::Target;

use super::{
    Draft, Request, counted,
    model::{Tile, ranked, shared_waves, tiles, units},
    product::{Factor, Product, vector},
};

/// How threads share a tile: each has `rows` x `columns` sums.
#[derive(Clone, Copy, Debug)]
struct Shape {
    ty: i64,
    tx: i64,
    rows: i64,
    columns: i64,
    /// How many steps of the sum a slot has, and how many slots there are.
    depth: i64,
    slots: i64,
    rate: f64,
}

/// Shapes with the rates that they reached in f32 at large sizes.
const SHAPES: [Shape; 6] = [
    Shape { ty: 16, tx: 16, rows: 8, columns: 8, depth: 16, slots: 3, rate: 0.95 },
    Shape { ty: 8, tx: 16, rows: 8, columns: 8, depth: 16, slots: 3, rate: 0.91 },
    Shape { ty: 8, tx: 16, rows: 8, columns: 4, depth: 32, slots: 3, rate: 1.0 },
    Shape { ty: 8, tx: 16, rows: 4, columns: 4, depth: 32, slots: 4, rate: 0.92 },
    Shape { ty: 8, tx: 8, rows: 4, columns: 4, depth: 32, slots: 6, rate: 0.8 },
    Shape { ty: 16, tx: 8, rows: 1, columns: 4, depth: 64, slots: 3, rate: 0.36 },
];

impl Shape {
    fn tile(self) -> Tile {
        Tile { rows: self.ty * self.rows, columns: self.tx * self.columns, rate: self.rate }
    }
}

/// The product with tiles in registers, likeliest first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Target::Cuda(_) = request.target else { return vec![] };
    let Some(product) = Product::of(request) else { return vec![] };
    let units = units(request);
    let batch = product.batch.as_ref().map_or(1, |it| it.extent);
    let count = |it: &Shape| batch * tiles(product.i.extent, product.j.extent, it.tile());
    let all = ranked(SHAPES, |it| shared_waves(count(it), it.tile(), units));
    all.into_iter().map(|it| one(&product, it, count(&it), units)).collect()
}

fn one(product: &Product, shape: Shape, count: i64, units: i64) -> Draft {
    let Shape { ty, tx, rows, columns, depth, slots, .. } = shape;
    let Product { a, b, .. } = product;
    let block = product.block.as_str();
    let tile = shape.tile();
    let about = format!("Tiles of {} x {} in the registers of {} threads.", tile.rows, tile.columns, ty * tx);
    let mut out = Draft::new("simt", about, &["std/simt"]);
    // Four of what lies beside each other in memory, of A's rows and of B's columns.
    let (iv, jv) = (if a.is_k_last { 1 } else { rows.min(4) }, if b.is_k_last { 1 } else { 4 });
    let kv = if a.is_k_last || b.is_k_last { 4 } else { 1 };
    let (im, jm) = (rows / iv, columns / jv);
    let (last, inlined) = (product.last_block(), product.inlined());
    let why = format!(
        "{} for {}. A slot has {depth} steps of the sum, so that a copy of it takes less time than its arithmetic.",
        counted(count, "tile"),
        counted(units, "multiprocessor")
    );
    out.because(
        why,
        format!(
            "simt_tile(block: {block:?}, out: {last:?}{inlined}, ty: {ty}, tx: {tx}, im: {im}, iv: {iv}, jm: {jm}, jv: {jv}, ki: {}, kv: {kv})",
            depth / kv
        ),
    );
    product
        .batch
        .iter()
        .for_each(|it| out.step(format!("bind(loop: {:?}, axis: \"blockIdx.z\")", it.loop_name.as_str())));
    store(&mut out, product, jm, jv);
    let axes = if product.batch.is_some() { ", row_axis: 1, column_axis: 2" } else { "" };
    let operand = |it: &Factor, lane_rows: i64, groups: i64| {
        let width = vector(it.row, it.dtype, 16);
        let (row, pad) = if it.is_k_last { (depth, 4) } else { (lane_rows, 0) };
        let is_wide = i64::from(it.is_k_last || width > 1);
        let groups = if it.is_k_last { 1 } else { groups };
        let step = format!(
            "simt_operand(block: {block:?}, name: {:?}, vector: {width}, ty: {ty}, tx: {tx}, row: {row}, pad: {pad}, groups: {groups}, wide: {is_wide}{axes})",
            it.buffer.as_str()
        );
        (format!("Rows of {} have {}: {width} fit a copy.", it.buffer, counted(it.row, "element")), step)
    };
    for (why, step) in [operand(a, tile.rows, im), operand(b, tile.columns, jm)] {
        out.because(why, step);
    }
    let nested = i64::from(depth / kv > 1);
    out.because(
        format!("{slots} slots: copies run {} iterations ahead.", slots - 1),
        format!("simt_pipeline(block: {block:?}, slots: {slots}, nested: {nested})"),
    );
    out
}

/// Stores as wide as rows of the output allow.
fn store(out: &mut Draft, product: &Product, jm: i64, jv: i64) {
    let width = vector(product.j.extent, product.out, 16).min(jv);
    let name = format!(
        "{}_{}{}",
        product.last_block(),
        if product.batch.is_some() { 2 } else { 1 },
        if jm > 1 { "_1" } else { "" }
    );
    match width {
        1 => {}
        _ if width == jv => out.step(format!("vectorize(loop: {name:?})")),
        _ => {
            out.step(format!("split(loop: {name:?}, into: {{\"store_m\": None, \"store_v\": {width}}})"));
            out.step("vectorize(loop: \"store_v\")");
        }
    }
}
