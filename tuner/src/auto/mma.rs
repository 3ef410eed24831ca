//! Products on tensor cores by `mma.sync`.

use std::cmp::Ordering;

use ir::{
    DType, Target,
    intrin::{self, Intrinsic},
};

use super::{
    Draft, Request, counted,
    model::{
        Tile, as_f64, ceil_div, group, parts_cost, ranked, shared_bytes, shared_waves, tiles, units,
        whole_waves,
    },
    packing::{Pack, Packing},
    product::{Factor, Product, vector},
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
    /// Whether a multiprocessor has registers for one block only.
    is_alone: bool,
}

const fn shape(rows: i64, columns: i64, warps: (i64, i64), depth: i64, stages: i64, rate: f64) -> Shape {
    let (warps_m, warps_n) = warps;
    Shape { tile: Tile { rows, columns, rate }, warps_m, warps_n, depth, stages, is_alone: false }
}

const fn alone(shape: Shape) -> Shape {
    Shape { is_alone: true, ..shape }
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

/// The same for copies of 4 bytes, of which a deep slot takes more than there are registers for addresses. Rates at 2046³ on an H200.
const NARROW: [Shape; 4] = [
    alone(shape(256, 128, (4, 2), 32, 3, 0.92)),
    shape(128, 128, (2, 2), 32, 3, 1.0),
    shape(128, 64, (2, 2), 64, 3, 0.71),
    shape(64, 64, (2, 2), 32, 3, 0.5),
];

/// The same for factors that come by way of the registers that sums leave, and have two slots. Rates at 2047³ on an H200.
const STAGED: [Shape; 6] = [
    alone(shape(256, 128, (4, 2), 32, 2, 0.94)),
    alone(shape(128, 256, (2, 4), 32, 2, 0.89)),
    shape(128, 128, (2, 2), 32, 2, 1.0),
    shape(64, 128, (2, 2), 32, 2, 0.78),
    shape(64, 64, (2, 2), 64, 2, 0.63),
    shape(64, 64, (2, 2), 32, 2, 0.57),
];

/// Into how many parts the sum may be split.
const SLICES: [i64; 7] = [1, 2, 3, 4, 8, 16, 32];

/// How many products of two-byte elements a multiprocessor does in a cycle, about: what these schedules reach on an H200. Tensor cores do
/// twice as many of elements of half the size.
const PRODUCTS: f64 = 1300.0;

/// The most bytes of an asynchronous copy.
const WIDEST_COPY: i64 = 16;

/// The least.
const LEAST_COPY: i64 = 4;

/// A product that tensor cores take, and how.
struct Plan<'a> {
    request: &'a Request<'a>,
    product: Product,
    intrin: &'static Intrinsic,
    /// Which operands are packed first.
    packing: Packing,
    /// How many elements of each factor fit a copy: of A, of B, and of the one beside that, where there is one.
    widths: [i64; 3],
    /// The bytes of the narrower of the two.
    copy: i64,
}

impl<'a> Plan<'a> {
    /// With operands as they are, and with those packed that no copy of 16 bytes takes.
    fn all(request: &'a Request<'a>) -> Vec<Plan<'a>> {
        let found = Product::gathered(request).or_else(|| Product::pair(request));
        let Some(product) = found else { return vec![] };
        let least = Packing::least(&product);
        let packed = Packing::of_tensor_cores(&product, WIDEST_COPY).filter(|it| Some(*it) != least);
        let both = [least, packed];
        both.into_iter().flatten().filter_map(|it| Plan::of(request, product.clone(), it)).collect()
    }

    fn of(request: &'a Request<'a>, product: Product, packing: Packing) -> Option<Plan<'a>> {
        let Target::Cuda(arch) = request.target else { return None };
        let intrin = intrinsic(&product).filter(|it| arch.has(it.needs))?;
        let width =
            |pack: Pack, it: &Factor| vector(if pack.is_any() { 0 } else { it.row }, it.dtype, WIDEST_COPY);
        let [wide_a, wide_b] = [width(packing.a, &product.a), width(packing.b, &product.b)];
        let further = product.beside.as_ref().map_or(wide_b, |it| width(packing.further, &it.b));
        let copy = wide_a.min(wide_b).min(further) * product.a.dtype.bytes_i64();
        // What comes by way of registers leaves none for the sums of two products.
        let fits = product.beside.is_none() || copy >= LEAST_COPY;
        let widths = [wide_a, wide_b, further];
        fits.then_some(Plan { request, product, intrin, packing, widths, copy })
    }

    /// Whether factors come by way of registers, since no asynchronous copy is as narrow as what rows allow.
    fn is_staged(&self) -> bool {
        self.copy < LEAST_COPY
    }

    /// The shapes, of which each of two products has half of the columns.
    fn shapes(&self) -> impl Iterator<Item = Shape> {
        let all: &[Shape] = match self.copy.cmp(&LEAST_COPY) {
            Ordering::Less => &STAGED,
            Ordering::Equal => &NARROW,
            Ordering::Greater => &SHAPES,
        };
        let products = self.product.products();
        all.iter().map(move |it| Shape {
            tile: Tile { columns: it.tile.columns / products, ..it.tile },
            depth: self.deep(it.depth),
            ..*it
        })
    }

    /// As many steps of the sum as take the bytes that so many of two-byte elements take, which the shapes are given for.
    fn deep(&self, steps: i64) -> i64 {
        2 * steps / self.product.a.dtype.bytes_i64()
    }

    /// The products that a multiprocessor does in a cycle.
    fn rate(&self) -> f64 {
        PRODUCTS * 2.0 / as_f64(self.product.a.dtype.bytes_i64())
    }

    /// The columns of a tile for all products.
    fn work(&self, shape: &Shape) -> Tile {
        Tile { columns: shape.tile.columns * self.product.products(), ..shape.tile }
    }

    /// The tiles of a grid.
    fn count(&self, shape: &Shape, slices: i64) -> i64 {
        let batch = self.product.batch.as_ref().map_or(1, |it| it.extent);
        slices * batch * tiles(self.product.i.extent, self.product.j.extent, shape.tile)
    }

    /// Whether each part of the sum is long enough for its pipeline. A batch has no axis of the grid left, and parts are added up as they are.
    fn fits(&self, shape: &Shape, slices: i64) -> bool {
        let is_alone = self.product.batch.is_none() && self.product.beside.is_none();
        let can_split = is_alone && matches!(self.product.acc, DType::F32 | DType::I32);
        slices == 1 || (can_split && self.product.k.extent >= slices * shape.depth * shape.stages)
    }

    /// How long it takes, in the time of one product.
    fn cost(&self, shape: &Shape, slices: i64) -> f64 {
        let units = units(self.request);
        // The first two slots of each part are waited for.
        let depth = as_f64(self.product.k.extent) / as_f64(slices) + as_f64(2 * shape.depth);
        let elements = self.product.i.extent * self.product.j.extent;
        let parts = parts_cost(elements, slices, units, self.rate());
        let waves = if shape.is_alone { whole_waves } else { shared_waves };
        let packing = self.rate() * self.packing.cycles(&self.product, units);
        waves(self.count(shape, slices), self.work(shape), units) * depth / self.pace() + parts + packing
    }

    /// How fast products are with copies as narrow as these, against those of 16 bytes: at 4097³ to 4100³ on an H100, against 4096³.
    fn pace(&self) -> f64 {
        match self.copy {
            ..=2 => 0.33,
            3..=4 => 0.57,
            5..=8 => 0.75,
            _ => 1.0,
        }
    }
}

/// The instruction that multiplies such elements.
fn intrinsic(product: &Product) -> Option<&'static Intrinsic> {
    let name = match (product.a.dtype, product.acc) {
        (DType::F16, DType::F32) => "mma_m16n8k16_f16_f32",
        (DType::F16, DType::F16) => "mma_m16n8k16_f16_f16",
        (DType::Bf16, DType::F32) => "mma_m16n8k16_bf16_f32",
        (DType::Tf32, DType::F32) => "mma_m16n8k8_tf32_f32",
        (DType::I8, DType::I32) => "mma_m16n8k32_s8_s32",
        (DType::F8e4m3, DType::F32) => "mma_m16n8k32_e4m3_f32",
        (DType::F8e5m2, DType::F32) => "mma_m16n8k32_e5m2_f32",
        _ => return None,
    };
    intrin::find(name).filter(|_| product.b.dtype == product.a.dtype)
}

/// The product on tensor cores, likeliest first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let plans = Plan::all(request);
    let fitting = plans.iter().flat_map(|plan| {
        let pairs = plan.shapes().flat_map(|it| SLICES.iter().map(move |slices| (it, *slices)));
        pairs.filter(|(it, slices)| plan.fits(it, *slices)).map(move |(it, slices)| (plan, it, slices))
    });
    let all = ranked(fitting, |(plan, it, slices)| plan.cost(it, *slices));
    all.into_iter().map(|(plan, it, slices)| plan.draft(it, slices)).collect()
}

/// The sizes of a schedule.
struct Sizes {
    m: Size,
    n: Size,
    k: Size,
    warps_m: Size,
    warps_n: Size,
    slots: Size,
    slices: Option<Size>,
}

impl Sizes {
    /// Those of the shape, which are knobs in a space.
    fn of(out: &mut Draft, plan: &Plan<'_>, shape: Shape, slices: i64) -> Sizes {
        let m = out.knob("m_tile", shape.tile.rows, &[64, 128, 256]);
        let n = out.knob("n_tile", shape.tile.columns, &[32, 64, 128, 256]);
        let warps_m = out.knob("warps_m", shape.warps_m, &[1, 2, 4]);
        let warps_n = out.knob("warps_n", shape.warps_n, &[1, 2, 4]);
        let k = out.knob("k_tile", shape.depth, &[32, 64].map(|it| plan.deep(it)));
        let slots = if plan.is_staged() { 2.into() } else { out.knob("slots", shape.stages, &[2, 3, 4, 5]) };
        let slices = (slices > 1).then(|| out.knob("slices", slices, &SLICES[1..]));
        let (below, beside) = (m.over(&warps_m).words(), n.over(&warps_n).words());
        out.constraint(format!("{below} % 16 == 0 && {beside} % 16 == 0"));
        // The sums of a warp, which its 32 lanes hold.
        let columns = n.times(plan.product.products());
        let sums = out.value("sums", &m.times(&columns).over(warps_m.times(&warps_n))).words();
        out.constraint(format!("{sums} >= 1024 && {sums} < 8192"));
        let slot = m.plus(&columns).times(&k);
        if plan.is_staged() {
            // Beside the sums, a lane holds what it loads of the next slot.
            let lanes = warps_m.times(&warps_n).times(32);
            out.constraint(format!("{} <= 64", slot.over(lanes).words()));
        }
        let bytes = slot.times(&slots).times(plan.product.a.dtype.bytes_i64());
        out.constraint(format!("{} <= {}", bytes.words(), shared_bytes(plan.request)));
        Sizes { m, n, k, warps_m, warps_n, slots, slices }
    }
}

impl Plan<'_> {
    fn draft(&self, shape: Shape, slices: i64) -> Draft {
        let Shape { tile: Tile { rows, columns, .. }, warps_m, warps_n, .. } = shape;
        let about =
            format!("Tiles of {rows} x {columns} on tensor cores, {} warps a block.", warps_m * warps_n);
        let uses = self.packing.libraries(&self.product, "std/mma");
        let mut out = Draft::new("mma", about, &uses, self.request);
        let group = group(ceil_div(self.product.i.extent, rows), 8);
        let sizes = Sizes::of(&mut out, self, shape, slices);
        let group = out.knob("group", group, &[1, 2, 4, 8, 16]);
        out.cycles = Some(self.cost(&shape, slices) / self.rate());
        self.tiles(&mut out, &sizes, self.count(&shape, slices));
        out.because(
            format!(
                "{} of tiles at a time: blocks that run together find each other's factors in the cache.",
                counted(group.value, "row")
            ),
            format!("rasterize(outer: \"by\", inner: \"bx\", group: {group}, into: \"bid\")"),
        );
        out.step("bind(loop: \"bid\", axis: \"blockIdx.x\")");
        if let Some(batch) = &self.product.batch {
            out.step(format!("bind(loop: {:?}, axis: \"blockIdx.z\")", batch.loop_name.as_str()));
        }
        if slices == 1 {
            self.store(&mut out, &sizes);
        }
        self.sum(&mut out, &sizes, shape);
        out
    }

    /// The step that makes tiles, and parts of the sum where there are any.
    fn tiles(&self, out: &mut Draft, sizes: &Sizes, count: i64) {
        let Sizes { m, n, k, warps_m, warps_n, slices, .. } = sizes;
        let product = &self.product;
        let (block, inlined) = (product.block.as_str(), product.inlined());
        let units = counted(units(self.request), "multiprocessor");
        out.reason(format!("{} for {units}.", counted(count, "tile")));
        let beside = product.beside.as_ref().map(|it| {
            let (a, block) = (product.a.buffer.as_str(), it.block.as_str());
            let batch = product.batch.as_ref().map(|it| format!(", batch: [{:?}]", it.loop_name.as_str()));
            format!(", a: {a:?}, beside: [{block:?}]{}", batch.unwrap_or_default())
        });
        let beside = beside.unwrap_or_default();
        let step = match self.deep(16) {
            16 => String::new(),
            other => format!(", ki: {other}"),
        };
        let shape = format!("m: {m}, n: {n}, k: {k}, warps_m: {warps_m}, warps_n: {warps_n}{step}{beside}");
        let Some(slices) = slices else {
            return out.step(format!("mma_tile(block: {block:?}{inlined}, {shape})"));
        };
        out.reason(format!(
            "With a tile for each of {} parts of the sum, there is work for all.",
            slices.value
        ));
        let (last, [rows, columns]) = (product.last_block(), &product.out_loops);
        out.step(format!(
            "mma_tile_split(block: {block:?}, out: {last:?}{inlined}, rows: {rows:?}, columns: {columns:?}, slices: {slices}, {shape})"
        ));
    }

    /// The way of the result through shared memory.
    fn store(&self, out: &mut Draft, sizes: &Sizes) {
        let Sizes { n, warps_m, warps_n, .. } = sizes;
        let (last, axes, row) = (self.product.last_block(), self.product.axes(), self.product.out_row);
        let width = vector(row, self.product.out, 16).min(8);
        out.because(
            format!("Rows of the result have {}: {width} at a time can leave.", counted(row, "element")),
            format!("mma_store(block: {last:?}, n: {n}, vector: {width}, y: {warps_n}, z: {warps_m}{axes})"),
        );
    }

    /// Copies of the factors, products, and how they overlap.
    fn sum(&self, out: &mut Draft, sizes: &Sizes, shape: Shape) {
        let Sizes { warps_m, warps_n, slices, .. } = sizes;
        let (Product { a, b, .. }, intrin, axes) = (&self.product, self.intrin.name, self.product.axes());
        let names = self.packing.names(&self.product);
        let part = if slices.is_some() { "_rf" } else { "" };
        let block = format!("\"{}{part}\"", self.product.block);
        let [wide_a, wide_b, _] = self.widths;
        let copies = format!("vector_a: {wide_a}, vector_b: {wide_b}, y: {warps_n}, z: {warps_m}{axes}");
        let (is_turned, is_rows) = (!self.packing.a.is_k_last(a), self.packing.b.is_k_last(b));
        let layout = format!("columns: {}, rows: {}", i64::from(is_turned), i64::from(is_rows));
        self.packing.steps(out, &self.product, &format!("{}{part}", self.product.block));
        let lengths = self.product.lengths();
        if self.is_staged() {
            out.because(
                format!("{lengths}, too odd for asynchronous copies: they come by way of registers."),
                format!("mma_fetch_staged(block: {block}{names}, {copies})"),
            );
            out.step(format!(
                "mma_products(block: {block}{names}, from: \"shared\", intrin: {intrin:?}, {layout}{axes})"
            ));
            return out.because(
                "What is loaded for the next iteration has all products of this one to arrive in.",
                format!("mma_pipeline_staged(block: {block}{names})"),
            );
        }
        let fit = if self.packing.is_any() {
            format!("Of what rows are now, {wide_a} and {wide_b} elements fit a copy.")
        } else {
            format!("{lengths}: {wide_a} and {wide_b} fit a copy.")
        };
        let arguments = if names.is_empty() { copies } else { format!("{}, {copies}", &names[2..]) };
        out.because(fit, format!("mma_fetch({arguments})"));
        out.step(format!("mma_products(block: {block}{names}, intrin: {intrin:?}, {layout}{axes})"));
        self.pipeline(out, sizes, shape, &block);
    }

    /// The product beside the first one, if there is one, and how copies and products overlap.
    fn pipeline(&self, out: &mut Draft, sizes: &Sizes, shape: Shape, block: &str) {
        let Sizes { warps_m, warps_n, slots, .. } = sizes;
        let (names, product) = (self.packing.names(&self.product), &self.product);
        let why = format!("{} slots of {} steps of the sum.", shape.stages, shape.depth);
        let (Some(other), [a, b, further]) = (&product.beside, &self.packing.factors(product)[..]) else {
            return out.because(why, format!("mma_pipeline(block: {block}{names}, stages: {slots})"));
        };
        let rows = i64::from(self.packing.further.is_k_last(&other.b));
        let (beside, axes) = (other.block.as_str(), product.axes());
        let (wide, intrin) = (self.widths[2], self.intrin.name);
        out.because(
            format!("{} multiplies {} in the same steps.", other.b.buffer, other.a.buffer),
            format!(
                "mma_products_beside(beside: {beside:?}, b: {further:?}, vector: {wide}, y: {warps_n}, z: {warps_m}, intrin: {intrin:?}, rows: {rows}{axes})"
            ),
        );
        out.because(
            why,
            format!(
                "mma_pipeline_beside(block: {block}, beside: {beside:?}, a: {a:?}, b: {b:?}, further: {further:?}, stages: {slots})"
            ),
        );
    }
}
