//! Products on tensor cores by `mma.sync`.

use ir::{DType, Feature, Target};

use super::{
    Draft, Request, counted,
    model::{Tile, ceil_div, group, ranked, shared_bytes, shared_waves, tiles, units},
    product::{Product, vector},
    size::Size,
};

/// A tile of a block of `warps_m` x `warps_n` warps.
#[derive(Clone, Copy, Debug)]
struct Shape {
    tile: Tile,
    warps_m: i64,
    warps_n: i64,
    depth: i64,
    stages: i64,
}

const fn shape(rows: i64, columns: i64, warps: (i64, i64), depth: i64, stages: i64, rate: f64) -> Shape {
    Shape { tile: Tile { rows, columns, rate }, warps_m: warps.0, warps_n: warps.1, depth, stages }
}

/// Shapes with the rates that they reached in f16 at large sizes. The last two are for GPUs with little shared memory: they reached 0.95 and
/// 0.72, and stand lower here so that they are taken where the others do not fit.
const SHAPES: [Shape; 6] = [
    shape(256, 128, (4, 2), 64, 3, 0.98),
    shape(128, 128, (2, 2), 64, 3, 1.0),
    shape(128, 64, (2, 2), 64, 3, 0.91),
    shape(64, 64, (2, 2), 64, 4, 0.75),
    shape(128, 128, (2, 2), 32, 3, 0.9),
    shape(64, 64, (2, 2), 32, 3, 0.6),
];

/// The product on tensor cores, likeliest first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Target::Cuda(arch) = request.target else { return vec![] };
    let Some(product) = Product::of(request) else { return vec![] };
    let (feature, intrin) = match (product.a.dtype, product.acc) {
        (DType::F16, DType::F32) => (Feature::MmaF16, "mma_m16n8k16_f16_f32"),
        (DType::F16, DType::F16) => (Feature::MmaF16, "mma_m16n8k16_f16_f16"),
        (DType::Bf16, DType::F32) => (Feature::MmaBf16, "mma_m16n8k16_bf16_f32"),
        _ => return vec![],
    };
    // A batch has a dimension more, which the procedures do not know.
    if product.batch.is_some()
        || !arch.has(feature)
        || product.b.dtype != product.a.dtype
        || !product.a.is_k_last
    {
        return vec![];
    }
    let units = units(request);
    let count = |it: &Shape| tiles(product.i.extent, product.j.extent, it.tile);
    let all = ranked(SHAPES, |it| shared_waves(count(it), it.tile, units));
    all.into_iter().map(|it| one(request, &product, it, intrin, count(&it))).collect()
}

/// The sizes of a schedule.
struct Sizes {
    m: Size,
    n: Size,
    k: Size,
    warps_m: Size,
    warps_n: Size,
    slots: Size,
}

impl Sizes {
    /// Those of the shape, which are knobs in a space.
    fn of(out: &mut Draft, request: &Request<'_>, product: &Product, shape: Shape) -> Sizes {
        let m = out.knob("m_tile", shape.tile.rows, &[64, 128, 256]);
        let n = out.knob("n_tile", shape.tile.columns, &[32, 64, 128, 256]);
        let warps_m = out.knob("warps_m", shape.warps_m, &[1, 2, 4]);
        let warps_n = out.knob("warps_n", shape.warps_n, &[1, 2, 4]);
        let k = out.knob("k_tile", shape.depth, &[32, 64]);
        let slots = out.knob("slots", shape.stages, &[2, 3, 4, 5]);
        let (below, beside) = (m.over(&warps_m).words(), n.over(&warps_n).words());
        out.constraint(format!("{below} % 16 == 0 && {beside} % 16 == 0"));
        // The sums of a warp, which its 32 lanes hold.
        let sums = out.value("sums", &m.times(&n).over(warps_m.times(&warps_n))).words();
        out.constraint(format!("{sums} >= 1024 && {sums} < 8192"));
        let bytes = m.plus(&n).times(&k).times(&slots).times(product.a.dtype.bytes_i64());
        out.constraint(format!("{} <= {}", bytes.words(), shared_bytes(request)));
        Sizes { m, n, k, warps_m, warps_n, slots }
    }
}

fn one(request: &Request<'_>, product: &Product, shape: Shape, intrin: &str, count: i64) -> Draft {
    let Shape { tile: Tile { rows, columns, .. }, warps_m, warps_n, depth, stages } = shape;
    let Product { a, b, .. } = product;
    let block = product.block.as_str();
    let about = format!("Tiles of {rows} x {columns} on tensor cores, {} warps a block.", warps_m * warps_n);
    let mut out = Draft::new("mma", about, &["std/mma"], request.form);
    let group = group(ceil_div(product.i.extent, rows), 8);
    let Sizes { m, n, k, warps_m, warps_n, slots } = Sizes::of(&mut out, request, product, shape);
    let group = out.knob("group", group, &[1, 2, 4, 8, 16]);
    out.because(
        format!("{} for {}.", counted(count, "tile"), counted(units(request), "multiprocessor")),
        format!(
            "mma_tile(block: {block:?}{}, m: {m}, n: {n}, k: {k}, warps_m: {warps_m}, warps_n: {warps_n})",
            product.inlined()
        ),
    );
    out.because(
        format!(
            "{} of tiles at a time: blocks that run together find each other's factors in the cache.",
            counted(group.value, "row")
        ),
        format!("rasterize(outer: \"by\", inner: \"bx\", group: {group}, into: \"bid\")"),
    );
    out.step("bind(loop: \"bid\", axis: \"blockIdx.x\")");
    let last = product.last_block();
    let width = vector(product.j.extent, product.out, 16).min(8);
    let pad = 16 / product.out.bytes_i64();
    out.because(
        format!(
            "Rows of the result have {}: {width} at a time can leave.",
            counted(product.j.extent, "element")
        ),
        format!(
            "mma_store(block: {last:?}, n: {n}, vector: {width}, pad: {pad}, y: {warps_n}, z: {warps_m})"
        ),
    );
    let (wide_a, wide_b) = (vector(a.row, a.dtype, 16), vector(b.row, b.dtype, 16));
    out.because(
        format!(
            "Rows of A have {} and those of B {}: {wide_a} and {wide_b} fit a copy.",
            counted(a.row, "element"),
            b.row
        ),
        format!("mma_fetch(vector_a: {wide_a}, vector_b: {wide_b}, y: {warps_n}, z: {warps_m})"),
    );
    let is_rows = i64::from(b.is_k_last);
    out.step(format!("mma_products(block: {block:?}, intrin: {intrin:?}, rows: {is_rows})"));
    out.because(
        format!("{stages} slots of {depth} steps of the sum."),
        format!("mma_pipeline(block: {block:?}, stages: {slots})"),
    );
    out
}
