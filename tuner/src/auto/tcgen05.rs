//! Products on Blackwell's tensor cores: sums in tensor memory, roles for copies and for products.

use ir::{Arch, DType, Feature, Name, Target, TensorMap};

use super::{
    Draft, Request, counted,
    model::{SLOT_MBARRIERS, Tile, as_f64, ceil_div, group, ranked, shared_bytes, tiles, units, whole_waves},
    packing::{Packing, leaves_by_lanes, leaving_cycles},
    product::Product,
    rows::words,
    size::Size,
    wgmma::behind,
};

/// The rows of a tile, which are those of tensor memory.
const ROWS: i64 = 128;

/// Columns of a tile, two of which fit tensor memory side by side. Nobody has measured one: wider tiles read less for what they compute, so that the
/// widest that keeps as many multiprocessors busy is first.
const COLUMNS: [i64; 7] = [256, 224, 192, 160, 128, 96, 64];

/// How many products a multiprocessor does in a cycle at most (`TensorRates`, of f16), by which it is compared with other rules.
const PRODUCTS: f64 = 4096.0;

/// The product by one thread a block, likeliest tiles first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Target::Cuda(arch) = request.target else { return vec![] };
    if !arch.has(Feature::Tcgen05) {
        return vec![];
    }
    let Some(product) = Product::gathered(request).filter(|it| is_taken(it, arch)) else { return vec![] };
    let Some(packing) = Packing::of_tensor_cores(&product, TensorMap::UNIT) else { return vec![] };
    let units = units(request);
    let batch = product.batch.as_ref().map_or(1, |it| it.extent);
    let all: Vec<_> = columns_of(&product, packing).map(tile).collect();
    let count = |it: &Tile| batch * tiles(product.i.extent, product.j.extent, *it);
    let all = ranked(all, |it| whole_waves(count(it), *it, units));
    let around = packing.cycles(&product, units) + leaving_cycles(&product, units);
    let cycles =
        |it: &Tile| whole_waves(count(it), *it, units) * as_f64(product.k.extent) / PRODUCTS + around;
    let draft =
        |it: Tile| Draft { cycles: Some(cycles(&it)), ..one(request, &product, packing, it, count(&it)) };
    all.into_iter().map(draft).collect()
}

/// A tile of so many columns. What a tile reads for what it computes is what tells them apart.
fn tile(columns: i64) -> Tile {
    let both = as_f64(ROWS * columns) / as_f64(ROWS + columns);
    let widest = as_f64(ROWS * COLUMNS[0]) / as_f64(ROWS + COLUMNS[0]);
    Tile { rows: ROWS, columns, rate: (both / widest).sqrt() }
}

/// The columns that a tile may have: whole boxes, where those lie along the columns.
fn columns_of(product: &Product, packing: Packing) -> impl Iterator<Item = i64> {
    let unit = if packing.b.is_k_last(&product.b) { 1 } else { 128 / product.b.dtype.bytes_i64() };
    COLUMNS.into_iter().filter(move |it| it % unit == 0)
}

/// Whether the tensor cores of an architecture can multiply it.
fn is_taken(product: &Product, arch: &Arch) -> bool {
    let Product { a, b, acc, out, inputs, .. } = product;
    let is_known = match (a.dtype, acc) {
        (DType::F16 | DType::Bf16 | DType::Tf32 | DType::F8e4m3 | DType::F8e5m2, DType::F32) => true,
        (DType::I8, DType::I32) => arch.has(Feature::Tcgen05I8),
        _ => false,
    };
    let is_other = |it: &Name| *it != a.buffer && *it != b.buffer;
    let has_others = inputs.as_ref().is_some_and(|all| all.iter().all(is_other));
    let leaves = matches!(out.bytes_i64(), 2 | 4);
    is_known && b.dtype == a.dtype && leaves && has_others && product.is_of_inputs()
}

fn one(request: &Request<'_>, product: &Product, packing: Packing, tile: Tile, count: i64) -> Draft {
    let about = format!(
        "Tiles of {ROWS} x {} in tensor memory, with roles that copy, multiply and store.",
        tile.columns
    );
    let uses = packing.libraries(product, "std/tcgen05");
    let mut out = Draft::new("tcgen05", about, &uses, request);
    let (block, units) = (product.block.as_str(), units(request));
    let whole: Vec<i64> = columns_of(product, packing).collect();
    let columns = out.knob("columns", tile.columns, &whole);
    let groups = out.knob("group", group(ceil_div(product.i.extent, ROWS), 16), &[1, 2, 4, 8, 16]);
    let bytes = product.out.bytes_i64();
    let store = out.value("store", &columns.widest(if bytes == 4 { &[32] } else { &[64, 32] }));
    let slot = out.value("slot", &columns.plus(ROWS).times(128));
    let way_out = out.value("way_out", &store.times(2 * ROWS * bytes));
    let shared = shared_bytes(request) - 256;
    let deepest = ceil_div(product.k.extent, 128 / product.a.dtype.bytes_i64()).max(2);
    let most = (shared - way_out.value) / (slot.value + SLOT_MBARRIERS);
    let slots = out.knob("slots", most.min(8).min(deepest), &[2, 3, 4, 5, 6, 7, 8]);
    out.constraint(format!("{} <= {shared}", slot.plus(SLOT_MBARRIERS).times(&slots).plus(&way_out).words()));
    out.because(
        format!(
            "{} for {}, {} of tiles at a time, which share what the cache holds.",
            counted(count, "tile"),
            counted(units, "multiprocessor"),
            counted(groups.value, "row")
        ),
        format!(
            "tcgen05_tile(block: {block:?}{}, columns: {columns}, group: {groups})",
            behind(request, product)
        ),
    );
    out.step(way_out_of(product, &columns, &store));
    packing.steps(&mut out, product, block);
    let names = packing.names(product);
    out.because(
        format!(
            "A slot has {} bytes, and {} of them fit beside {} bytes for the way out.",
            slot.value, slots.value, way_out.value
        ),
        format!("tcgen05_products(block: {block:?}{names}, slots: {slots})"),
    );
    if packing.is_any() {
        out.reason("Kernels that follow each other may start while the one ahead ends.");
        out.step("annotate(loop: \"tile\", key: \"programmatic_launch\", value: 1)".to_owned());
    }
    out.because(
        "As many blocks as there are multiprocessors take tile after tile, and have two accumulators: one tile is multiplied while the one before leaves.",
        format!("tcgen05_roles(block: {block:?}{names}, blocks: {units})"),
    );
    out
}

/// The step by which the result leaves, `store` of its columns at a time.
fn way_out_of(product: &Product, columns: &Size, store: &Size) -> String {
    let (block, axes) = (&product.block, product.axes());
    let lanes = if leaves_by_lanes(product) { ", lanes: 1" } else { "" };
    let Some(last) = product.tail.last() else {
        return format!(
            "tcgen05_out(block: \"{block}_sums\", sums: \"{block}_sums\", result: \"{block}\", store: {store}{lanes}{axes})"
        );
    };
    let inputs = match product.inputs.as_deref() {
        None | Some([]) => String::new(),
        Some(some) => format!(", inputs: {:?}", words(some)),
    };
    let own = product.out_iters.as_ref().map(|all| all.each_ref().map(Name::as_str));
    let iters = match own {
        None | Some(["vi", "vj"]) => String::new(),
        Some([rows, columns]) => format!(", rows: {rows:?}, columns_of: {columns:?}"),
    };
    let last = last.as_str();
    format!(
        "tcgen05_store(block: {last:?}, sums: \"{block}_pad\"{inputs}, columns: {columns}, store: {store}{lanes}{axes}{iters})"
    )
}
