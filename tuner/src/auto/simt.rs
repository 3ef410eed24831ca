//! Products by the ordinary arithmetic units of a GPU.

use ir::Target;

use super::{
    Draft, Request, counted,
    model::{ranked, shared_bytes, units},
    packing::{Pack, Packing, called},
    product::{Factor, Product, vector},
    simt_tiles::{COPY, Parts, SLICES, Shape, Way, ways},
    size::Size,
};

/// How many blocks a space may ask a multiprocessor to hold.
const RESIDENT: [i64; 2] = [2, 3];

/// The product with tiles in registers, likeliest first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Target::Cuda(arch) = request.target else { return vec![] };
    let Some(product) = Product::gathered(request) else { return vec![] };
    let packed = Packing::of(&product, COPY).filter(|it| it.is_any());
    let packings: Vec<_> = [Some(Packing::NONE), packed].into_iter().flatten().collect();
    let all = ranked(ways(request, &product, arch, &packings), |it| it.cycles(request, &product));
    all.into_iter().map(|it| one(request, &product, it)).collect()
}

/// The sizes of a schedule.
struct Sizes {
    ty: Size,
    tx: Size,
    /// Groups of `iv` rows and of `jv` columns that a thread has.
    im: Size,
    jm: Size,
    /// Steps of the sum in groups of `kv`.
    ki: Size,
    slots: Size,
    /// How many blocks a multiprocessor is to hold, 0 for as many as come.
    resident: Size,
    /// What lies beside each other in memory and is read at once.
    iv: i64,
    jv: i64,
    kv: i64,
    /// Of the tile and of a slot.
    rows: Size,
    columns: Size,
    depth: Size,
}

impl Sizes {
    /// Those of the shape, which are knobs in a space.
    fn of(out: &mut Draft, request: &Request<'_>, product: &Product, shape: Shape) -> Sizes {
        let Product { a, b, .. } = product;
        // Four of what lies beside each other in memory, of A's rows and of B's columns.
        let iv = if a.is_k_last { 1 } else { shape.rows.min(4) };
        let jv = if b.is_k_last { 1 } else { 4 };
        let kv = if a.is_k_last || b.is_k_last { 4 } else { 1 };
        let ty = out.knob("ty", shape.ty, &[2, 4, 8, 16, 32]);
        let tx = out.knob("tx", shape.tx, &[4, 8, 16, 32]);
        let im = out.knob("im", shape.rows / iv, &[1, 2, 4, 8]);
        let jm = out.knob("jm", shape.columns / jv, &[1, 2, 4]);
        let ki = out.knob("ki", shape.depth / kv, &[2, 4, 8, 16, 32]);
        let slots = out.knob("slots", shape.slots, &[2, 3, 4, 5, 6]);
        let resident = out.knob("resident", 0, &RESIDENT);
        let height = out.value("height", &im.times(iv));
        let width = out.value("width", &jm.times(jv));
        let rows = out.value("rows", &height.times(&ty));
        let columns = out.value("columns", &width.times(&tx));
        let depth = out.value("depth", &ki.times(kv));
        let threads = out.value("threads", &ty.times(&tx)).words();
        out.constraint(format!("{threads} >= 64 && {threads} <= 512 && {threads} % 32 == 0"));
        // The registers of sums, and of operands for this iteration and the next.
        let (sums, operands) = (height.times(&width), height.plus(&width).times(2 * kv));
        out.constraint(format!("{} <= 220", sums.plus(&operands).words()));
        // The instructions that are written out for a slot.
        out.constraint(format!("{} <= 2048", sums.times(&depth).words()));
        let bytes = rows.plus(&columns).times(depth.plus(4)).times(&slots).times(a.dtype.bytes_i64());
        out.constraint(format!("{} <= {}", bytes.words(), shared_bytes(request)));
        Sizes { ty, tx, im, jm, ki, slots, resident, iv, jv, kv, rows, columns, depth }
    }
}

fn one(request: &Request<'_>, product: &Product, way: Way) -> Draft {
    let Way { shape, parts, packing } = way;
    let (tile, threads) = (shape.tile(), shape.threads());
    let about = format!("Tiles of {} x {} in the registers of {threads} threads.", tile.rows, tile.columns);
    let uses = packing.libraries(product, "std/simt");
    let mut out = Draft::new("simt", about, &uses, request);
    let sizes = Sizes::of(&mut out, request, product, shape);
    let Sizes { im, jm, slots, resident, jv, .. } = &sizes;
    out.reason(format!(
        "{} for {}. A slot has {} steps of the sum, so that a copy of it takes less time than its arithmetic.",
        counted(way.blocks(product), "tile"),
        counted(units(request), "multiprocessor"),
        shape.depth,
    ));
    match parts {
        Parts::One => {}
        Parts::Pair => {
            out.reason("Two blocks of a cluster have half of a sum each, so that there is work for all.");
        }
        Parts::Kernel(slices) => {
            out.reason(format!("With a tile for each of {slices} parts of the sum, there is work for all."));
        }
    }
    let step = tile_step(&mut out, product, &sizes, parts);
    out.step(step);
    product
        .batch
        .iter()
        .for_each(|it| out.step(format!("bind(loop: {:?}, axis: \"blockIdx.z\")", it.loop_name.as_str())));
    for blocks in RESIDENT {
        let hold = format!("annotate(loop: \"by\", key: \"blocks_per_sm\", value: {blocks})");
        out.step_if(resident, &format!("== {blocks}"), false, &[hold], &[]);
    }
    let block = if parts == Parts::One { product.block.to_string() } else { format!("{}_rf", product.block) };
    if parts == Parts::One {
        store(&mut out, product, jm, *jv);
    }
    packing.steps(&mut out, product, &block);
    operand(&mut out, product, &block, (&product.a, packing.a), (&sizes.rows, im), &sizes);
    operand(&mut out, product, &block, (&product.b, packing.b), (&sizes.columns, jm), &sizes);
    out.because(
        format!("{} slots: copies run {} iterations ahead.", slots.value, slots.value - 1),
        format!("simt_pipeline(block: {block:?}{}, slots: {slots})", packing.names(product)),
    );
    out
}

/// The step that makes tiles, and parts of the sum where there are any.
fn tile_step(out: &mut Draft, product: &Product, sizes: &Sizes, parts: Parts) -> String {
    let Sizes { ty, tx, im, jm, ki, iv, jv, kv, .. } = sizes;
    let (block, last, inlined) = (product.block.as_str(), product.last_block(), product.inlined());
    let shape = format!("ty: {ty}, tx: {tx}, im: {im}, iv: {iv}, jm: {jm}, jv: {jv}, ki: {ki}, kv: {kv}");
    match parts {
        Parts::One => format!("simt_tile(block: {block:?}, out: {last:?}{inlined}, {shape})"),
        Parts::Pair => {
            let width = vector(product.out_row, product.out, 16).min(*jv);
            // Each of the two adds up half of the rows that every thread has.
            out.constraint(format!("{} % 2 == 0", im.times(*iv).words()));
            format!(
                "simt_tile_cluster(block: {block:?}, out: {last:?}{inlined}, slices: 2, vector: {width}, {shape})"
            )
        }
        Parts::Kernel(slices) => {
            let slices = out.knob("slices", slices, &SLICES);
            let [rows, columns] = &product.out_loops;
            format!(
                "simt_tile_split(block: {block:?}, out: {last:?}{inlined}, rows: {rows:?}, columns: {columns:?}, slices: {slices}, {shape})"
            )
        }
    }
}

/// A factor of the block in shared memory: rows of A or columns of B, of which a thread has groups.
fn operand(
    out: &mut Draft,
    product: &Product,
    block: &str,
    (it, pack): (&Factor, Pack),
    (lines, groups): (&Size, &Size),
    sizes: &Sizes,
) {
    let Sizes { ty, tx, depth, .. } = sizes;
    let width = vector(if pack.is_any() { 0 } else { it.row }, it.dtype, COPY);
    let (row, pad) = if it.is_k_last { (depth, 4) } else { (lines, 0) };
    let is_wide = i64::from(it.is_k_last || width > 1);
    let groups = if it.is_k_last { Size::from(1) } else { groups.clone() };
    let axes = product.axes();
    let name = called(it, pack);
    let why = if pack.is_any() {
        format!("Of its rows now, {width} elements fit a copy.")
    } else {
        format!("{}: {width} fit a copy.", it.lengths())
    };
    out.because(
        why,
        format!(
            "simt_operand(block: {block:?}, name: {name:?}, vector: {width}, ty: {ty}, tx: {tx}, row: {row}, pad: {pad}, groups: {groups}, wide: {is_wide}{axes})"
        ),
    );
}

/// Stores as wide as rows of the output allow.
fn store(out: &mut Draft, product: &Product, jm: &Size, jv: i64) {
    let width = vector(product.out_row, product.out, 16).min(jv);
    let name = format!("{}_{}", product.last_block(), if product.batch.is_some() { 2 } else { 1 });
    let steps = |name: String| match width {
        1 => vec![],
        _ if width == jv => vec![format!("vectorize(loop: {name:?})")],
        _ => vec![
            format!("split(loop: {name:?}, into: {{\"store_m\": None, \"store_v\": {width}}})"),
            "vectorize(loop: \"store_v\")".to_owned(),
        ],
    };
    if width > 1 {
        out.step_if(jm, "> 1", jm.value > 1, &steps(format!("{name}_1")), &steps(name));
    }
}
