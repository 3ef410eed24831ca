//! Products on Hopper's tensor cores by warpgroups, with a role for the copy engine.

use ir::{DType, Feature, Name, Target, TensorMap};
use schedule::workload::Param;

use super::{
    Draft, Request, counted,
    model::{SLOT_MBARRIERS, Tile, ceil_div, group, ranked, shared_bytes, tiles, units},
    packing::{Packing, leaves_by_lanes, leaving_cycles},
    product::Product,
    rows::words,
    size::Size,
    warpgroup_tiles::{Shape, begins_early, shapes, steps},
};

/// Columns that a space has for tiles, and those that hold whole boxes.
const ALL_COLUMNS: [i64; 15] = [256, 240, 224, 208, 192, 176, 160, 144, 128, 112, 96, 80, 64, 48, 32];
const WHOLE_BOXES: [i64; 4] = [256, 192, 128, 64];

/// The product by warpgroups, likeliest first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Target::Cuda(arch) = request.target else { return vec![] };
    if !arch.has(Feature::Wgmma) {
        return vec![];
    }
    let Some(product) = found(request) else { return vec![] };
    let units = units(request);
    let batch = product.batch.as_ref().map_or(1, |it| it.extent);
    let count = |it: &Shape| {
        let pair = Tile { rows: it.tile().rows * it.cluster_m, ..it.tile() };
        batch * tiles(product.i.extent, product.j.extent, pair) * it.cluster_m
    };
    let Some(packing) = Packing::of_tensor_cores(&product, TensorMap::UNIT) else { return vec![] };
    let all = ranked(shapes(&product, packing), |it| it.cycles(&product, count(it), units));
    let around = packing.cycles(&product, units) + leaving_cycles(&product, units);
    let draft = |it: Shape| {
        let cycles = Some(it.cycles(&product, count(&it), units) + around);
        Draft { cycles, ..one(request, &product, packing, it, count(&it)) }
    };
    all.into_iter().map(draft).collect()
}

/// The product, or the first of two that share a factor.
fn found(request: &Request<'_>) -> Option<Product> {
    Product::gathered(request).or_else(|| Product::pair(request)).filter(is_taken)
}

/// Whether warpgroups can multiply it.
fn is_taken(product: &Product) -> bool {
    let Product { a, b, acc, out, inputs, .. } = product;
    let sums = match a.dtype {
        DType::F16 | DType::Bf16 | DType::Tf32 | DType::F8e4m3 | DType::F8e5m2 => DType::F32,
        DType::I8 => DType::I32,
        _ => return false,
    };
    // What else the stages behind it read is loaded lane by lane; copies of the factors belong to the product.
    let further = product.beside.as_ref().map(|it| &it.b.buffer);
    let is_other = |it: &Name| *it != a.buffer && *it != b.buffer && Some(it) != further;
    let has_others = inputs.as_ref().is_some_and(|all| all.iter().all(is_other));
    let leaves = matches!(out.bytes_i64(), 1 | 2 | 4);
    b.dtype == a.dtype && *acc == sums && leaves && has_others && product.is_of_inputs()
}

/// The sizes of a schedule.
struct Sizes {
    warpgroups: Size,
    columns: Size,
    cluster_m: Size,
    /// Rows of tiles in a group, or columns of them.
    group: Size,
    along: Size,
    rows: Size,
    /// The columns that leave at a time.
    store: Size,
    /// The bytes of a slot of both factors, and of what leaves.
    slot: Size,
    way_out: Size,
    slots: Size,
}

impl Sizes {
    /// Those of the shape, which are knobs in a space.
    fn of(
        out: &mut Draft,
        request: &Request<'_>,
        product: &Product,
        packing: Packing,
        shape: Shape,
        count: i64,
    ) -> Sizes {
        let shared = shared_bytes(request);
        let below = ceil_div(product.i.extent, 64 * shape.warpgroups * shape.cluster_m);
        let multiples = if packing.b.is_k_last(&product.b) { &ALL_COLUMNS[..] } else { &WHOLE_BOXES };
        let warpgroups = out.knob("warpgroups", shape.warpgroups, &[1, 2]);
        let columns = out.knob("columns", shape.columns, multiples);
        let cluster_m = out.knob("cluster_m", shape.cluster_m, &[1, 2]);
        let group = out.knob("group", group(below, 16), &[1, 2, 4, 8, 16]);
        let along = out.knob("along", 0, &[1]);
        let rows = out.value("rows", &warpgroups.times(64));
        // The swizzle of the staging is as wide as what leaves at a time, which is 128 bytes of a row at most.
        let bytes = product.out.bytes_i64();
        let store = out.value(
            "store",
            &columns.widest(match bytes {
                1 => &[128, 64, 32, 16],
                2 => &[64, 32, 16],
                _ => &[32, 16],
            }),
        );
        let all = columns.times(shape.products);
        let slot = out.value("slot", &rows.plus(&all).times(128));
        let way_out = out.value("way_out", &rows.times(&store).times(2 * bytes));
        let most = (shared - way_out.value) / (slot.value + SLOT_MBARRIERS);
        // A ring goes on from tile to tile.
        let deepest = (steps(product) * ceil_div(count, units(request))).max(2);
        let slots = out.knob("slots", most.min(8).min(deepest), &[2, 3, 4, 5, 6, 7, 8]);
        if shape.products > 1 {
            out.constraint(format!("{} <= 256", all.words()));
        }
        out.constraint(format!(
            "{} <= {shared}",
            slot.plus(SLOT_MBARRIERS).times(&slots).plus(&way_out).words()
        ));
        Sizes { warpgroups, columns, cluster_m, group, along, rows, store, slot, way_out, slots }
    }
}

fn one(request: &Request<'_>, product: &Product, packing: Packing, shape: Shape, count: i64) -> Draft {
    let about = format!(
        "Tiles of {} x {} by {}, fed by a role for the copy engine.",
        64 * shape.warpgroups,
        shape.columns,
        counted(shape.warpgroups, "warpgroup")
    );
    let uses = packing.libraries(product, "std/wgmma");
    let mut out = Draft::new("wgmma", about, &uses, request);
    let block = product.block.as_str();
    let sizes = Sizes::of(&mut out, request, product, packing, shape, count);
    let has_company = packing.is_any();
    let begins = has_company || begins_early(request, product, shape, count);
    let early = out.knob("early", i64::from(begins), &[0, 1]);
    tiles_and_result(&mut out, request, product, &sizes, count);
    packing.steps(&mut out, product, block);
    let Sizes { slot, way_out, slots, .. } = &sizes;
    out.because(
        format!(
            "A slot has {} bytes, and {} of them fit beside {} bytes for the way out.",
            slot.value, slots.value, way_out.value
        ),
        products_of(product, packing, slots),
    );
    if has_company {
        out.reason("Kernels that follow each other may start while the one ahead ends.");
    } else if early.value == 1 {
        out.reason("It may start while the kernel ahead of it ends.");
    }
    let launch = "annotate(loop: \"tile\", key: \"programmatic_launch\", value: 1)".to_owned();
    out.step_if(&early, "== 1", early.value == 1, &[launch], &[]);
    blocks_that_stay(&mut out, request, &sizes.cluster_m);
    roles(&mut out, &packing.factors(product), &sizes.warpgroups);
    out
}

/// The steps that make so many tiles, and those by which they leave.
fn tiles_and_result(out: &mut Draft, request: &Request<'_>, product: &Product, sizes: &Sizes, count: i64) {
    let Sizes { warpgroups, columns, cluster_m, group, along, rows, store, .. } = sizes;
    let block = product.block.as_str();
    out.because(
        format!(
            "{} for {}, {} of tiles at a time, which share what the cache holds.",
            counted(count, "tile"),
            counted(units(request), "multiprocessor"),
            counted(group.value, "row")
        ),
        format!(
            "wgmma_tile(block: {block:?}{}, warpgroups: {warpgroups}, columns: {columns}, group: {group}, along: {along}, cluster_m: {cluster_m})",
            behind(request, product)
        ),
    );
    if leaves_by_lanes(product) {
        out.reason(format!(
            "Rows of the result have {}, too odd for the copy engine: lanes store them.",
            counted(product.j.extent, "element")
        ));
    }
    out.step(way_out_of(product, &rows.times(cluster_m), columns, store));
}

/// The step that gives products to the tensor cores.
fn products_of(product: &Product, packing: Packing, slots: &Size) -> String {
    let (block, names) = (product.block.as_str(), packing.names(product));
    match (&product.beside, &packing.factors(product)[..]) {
        (Some(other), [a, b, further]) => format!(
            "wgmma_products_beside(block: {block:?}, beside: {:?}, a: {a:?}, b: {b:?}, further: {further:?}, slots: {slots})",
            other.block.as_str()
        ),
        _ => format!("wgmma_products(block: {block:?}{names}, slots: {slots})"),
    }
}

/// What is around the tiles and behind the sums, as arguments of a procedure.
pub(super) fn behind(request: &Request<'_>, product: &Product) -> String {
    let dtype = product.a.dtype;
    let is_said = request.known.get("dtype") == Some(&Param::Text(dtype.as_str().to_owned()));
    let bytes = if is_said { String::new() } else { format!(", bytes: {}", dtype.bytes_i64()) };
    let batch = product.batch.as_ref().map(|it| format!(", batch: [{:?}]", it.loop_name.as_str()));
    let tail = match product.tail.split_last() {
        None => ", tail: 0".to_owned(),
        Some((_, [])) => String::new(),
        Some((_, between)) => format!(", inline: {:?}", words(between)),
    };
    let beside = product.beside.as_ref().map(|it| {
        let (a, block) = (product.a.buffer.as_str(), it.block.as_str());
        format!(", a: {a:?}, beside: [{block:?}]")
    });
    tail + &batch.unwrap_or_default() + &beside.unwrap_or_default() + &bytes
}

/// The step by which the result leaves, `store` of its columns at a time.
fn way_out_of(product: &Product, rows: &Size, columns: &Size, store: &Size) -> String {
    let wide = if product.out.bytes_i64() == 2 { "" } else { ", wide: 1" };
    let block = &product.block;
    let lanes = if leaves_by_lanes(product) { ", lanes: 1" } else { "" };
    let Some(last) = product.tail.last() else {
        let axes = product.axes();
        return format!(
            "wgmma_out(block: \"{block}_frag\", result: \"{block}\", store: {store}{wide}{lanes}{axes})"
        );
    };
    let inputs = match product.inputs.as_deref() {
        None | Some([]) => String::new(),
        Some(some) => format!(", inputs: {:?}", words(some)),
    };
    let (last, axes) = (last.as_str(), product.axes());
    let own = product.out_iters.as_ref().map(|all| all.each_ref().map(Name::as_str));
    let iters = match own {
        None | Some(["vi", "vj"]) => String::new(),
        Some([rows, columns]) => format!(", rows: {rows:?}, columns: {columns:?}"),
    };
    format!(
        "wgmma_store(block: {last:?}, sums: \"{block}_pad\"{inputs}, m: {rows}, n: {columns}, store: {store}{wide}{lanes}{axes}{iters})"
    )
}

/// The step by which blocks take tile after tile, in clusters of so many.
pub(super) fn blocks_that_stay(out: &mut Draft, request: &Request<'_>, cluster: &Size) {
    let blocks = Size::from(units(request)).over(cluster);
    out.because(
        "As many blocks as there are multiprocessors take tile after tile: one is loaded while the one before is stored.",
        format!("persistent(loop: \"tile\", blocks: {blocks})"),
    );
}

/// The role that loads, which gives registers to two warpgroups that multiply.
pub(super) fn roles(out: &mut Draft, factors: &[String], warpgroups: &Size) {
    let loads: Vec<_> = factors.iter().map(|it| format!("{it}_pad")).collect();
    let step = |registers: &str| {
        format!("warp_specialize(loop: \"tile\", roles: {{\"load\": {loads:?}}}{registers})")
    };
    let own = ", registers: {\"load\": 40, \"compute\": 232}";
    out.step_if(warpgroups, "== 2", warpgroups.value == 2, &[step(own)], &[step("")]);
}
