//! Products on a CPU.

use codegen::lower::vector_bytes;
use ir::Target;

use super::{
    Draft, Request, counted,
    model::{as_f64, ceil_div, ranked},
    product::{Factor, Product},
};

/// How many vector registers an x86 CPU has whose vectors have 32 bytes. With AVX-512, and on ARM, there are 32.
const AVX2_REGISTERS: i64 = 16;
const REGISTERS: i64 = 32;

/// How many cycles a sum takes to take the next product, and how many vectors a cycle multiplies, or loads: what CPUs of the last ten
/// years have in common.
const LATENCY: f64 = 4.0;
const A_CYCLE: f64 = 2.0;

/// From so many rows or columns of tiles on no core is idle for long.
const MANY: i64 = 16;

/// Below so many multiplications one core is done before the others have begun.
const WORTH_CORES: i64 = 1 << 20;

/// The most bytes of a row of tiles of A that a copy of it may have, which lies on the stack of a thread.
const GATHERED: i64 = 1 << 18;

/// How many choices are offered: all of them are legal where one is, unless a stage behind the product minds.
const CHOICES: usize = 3;

/// A tile of sums in registers.
#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: i64,
    /// Vectors in a row.
    vectors: i64,
    lanes: i64,
}

impl Shape {
    fn columns(self) -> i64 {
        self.vectors * self.lanes
    }

    /// How many tiles are below and beside each other.
    fn counts(self, product: &Product) -> [i64; 2] {
        [ceil_div(product.i.extent, self.rows), ceil_div(product.j.extent, self.columns())]
    }

    /// Whether what a row of tiles reads of A is copied together: where A is made of something else, each element costs more than a load.
    fn gathers(self, product: &Product) -> bool {
        let bytes = self.rows.saturating_mul(product.k.extent).saturating_mul(product.a.dtype.bytes_i64());
        product.a.is_copy && bytes <= GATHERED
    }

    /// Cycles for a step of the sum in all tiles: of arithmetic, or of loads, or of waiting for the sums.
    fn cycles(self, product: &Product) -> f64 {
        let [down, across] = self.counts(product);
        let arithmetic = as_f64(self.rows * self.vectors) / A_CYCLE;
        let loads = as_f64(self.rows + self.vectors) / A_CYCLE;
        as_f64(down * across) * arithmetic.max(loads).max(LATENCY)
    }
}

/// The product with tiles of sums in vector registers, likeliest first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    if *request.target != Target::Cpu {
        return vec![];
    }
    let Some(product) = Product::of(request) else { return vec![] };
    let all = ranked(shapes(request, &product), |it| it.cycles(&product));
    all.into_iter().take(CHOICES).map(|it| one(request, &product, it)).collect()
}

fn registers(request: &Request<'_>) -> i64 {
    if vector_bytes(request.target) == 32 { AVX2_REGISTERS } else { REGISTERS }
}

/// Tiles that leave half of the registers to factors and addresses.
fn shapes(request: &Request<'_>, product: &Product) -> Vec<Shape> {
    let bytes = i64::try_from(vector_bytes(request.target)).expect("a vector is a few bytes");
    let registers = registers(request);
    let lanes = (bytes / product.acc.bytes_i64()).max(1);
    // Of tiles that cost the same the first wins: two vectors of B and many rows of A.
    let shapes = [2, 1, 4, 8].into_iter().flat_map(|vectors| {
        let most = registers / 2 / vectors;
        (1..=most).rev().map(move |rows| Shape { rows, vectors, lanes })
    });
    shapes.collect()
}

fn one(request: &Request<'_>, product: &Product, shape: Shape) -> Draft {
    let (rows, columns) = (shape.rows, shape.columns());
    let [down, across] = shape.counts(product);
    let (last, inlined) = (product.last_block(), product.inlined());
    let block = product.block.as_str();
    let mut out = Draft::new(
        "cpu",
        format!("Tiles of {rows} x {columns} sums in vector registers."),
        &["std/cpu"],
        request,
    );
    let axes = if product.batch.is_some() { ", row_axis: 1, column_axis: 2" } else { "" };
    // The columns stand in the layout of panels, which takes no knobs.
    let most = registers(request) / 2 / shape.vectors;
    let others: Vec<_> = [1, 2, 4, 6, 8, 12, 16].into_iter().filter(|it| *it <= most).collect();
    let size = out.knob("rows", rows, &others);
    // A panel stays in the cache while tiles run down it, unless there are too few of them for the cores.
    let products = product.batch.as_ref().map_or(1, |it| it.extent);
    let gathers = shape.gathers(product);
    let a = called("a", "A", &product.a);
    let is_across = !gathers && products * across >= (products * down).min(MANY);
    let (outer, order) = if is_across { ("jo", "") } else { ("io", ", outer: \"io\", inner: \"jo\"") };
    let gather = if gathers { ", gather: 1" } else { "" };
    out.because(
        format!(
            "{} of {} sums each: a step of the sum loads {} of B, {} bytes each as on this machine, and {} of A for {}. {} of the \
             sums are of nothing but zeros.",
            counted(down * across, "tile"),
            rows * columns,
            counted(shape.vectors, "vector"),
            shape.lanes * product.acc.bytes_i64(),
            counted(rows, "element"),
            counted(rows * shape.vectors, "multiplication"),
            idle(product, shape),
        ),
        format!(
            "cpu_padded_tile(block: {block:?}, {a}out: {last:?}{inlined}, rows: {size}, columns: {columns}{order}{axes}{gather})"
        ),
    );
    let batch = product.batch.as_ref();
    let work = [&product.i, &product.j, &product.k].into_iter().chain(batch);
    let is_worth = work.fold(1, |all: i64, it| all.saturating_mul(it.extent)) >= WORTH_CORES;
    if gathers {
        let along = if batch.is_some() { ", column_axis: 2" } else { "" };
        out.because(
            format!("What {} read of {} is copied together once.", counted(across, "tile"), product.a.buffer),
            format!("cpu_gather({a}vector: {}{along})", shape.lanes),
        );
    }
    panels(&mut out, product, shape, is_worth);
    if is_worth {
        cores(&mut out, product, outer, if outer == "jo" { across } else { down });
    }
    out
}

/// An argument that says what a factor is called, if not as libraries expect: `a: "A2", `.
fn called(param: &str, usual: &str, factor: &Factor) -> String {
    if factor.buffer.as_str() == usual {
        String::new()
    } else {
        format!("{param}: {:?}, ", factor.buffer.as_str())
    }
}

/// What part of the tiles lies beyond the edges, in percent.
fn idle(product: &Product, shape: Shape) -> String {
    let [down, across] = shape.counts(product);
    let all = as_f64(down * shape.rows) * as_f64(across * shape.columns());
    format!("{:.0} %", 100.0 * (1.0 - as_f64(product.i.extent) * as_f64(product.j.extent) / all))
}

/// Copies B together, where it pays.
fn panels(out: &mut Draft, product: &Product, shape: Shape, is_worth: bool) {
    let (b, columns) = (&product.b, shape.columns());
    let [down, _] = shape.counts(product);
    if down == 1 && !b.is_k_last {
        out.because(
            format!("{} is read once, so it is read where it is.", b.buffer),
            format!("compute_inline(block: \"{}_pad\")", b.buffer),
        );
        return;
    }
    let (batched, before) = product.batch.as_ref().map_or(("", 0), |_| (", batched: 1", 1));
    let order = if b.is_k_last { ", first: \"j\", second: \"k\"" } else { "" };
    let (k, j) = if b.is_k_last { (before + 1, before) } else { (before, before + 1) };
    let axes = if (k, j) == (0, 1) { String::new() } else { format!(", row_axis: {k}, column_axis: {j}") };
    let wide = if b.is_k_last { ", wide: 0" } else { "" };
    let cores = if is_worth { "" } else { ", cores: 0" };
    out.because(
        format!(
            "{} of tiles read {}, so each panel of {columns} columns is copied together once.",
            counted(down, "row"),
            b.buffer,
        ),
        format!("cpu_panels({}columns: {columns}{order}{axes}{batched}{wide}{cores})", called("b", "B", b)),
    );
}

/// Gives tiles to the cores.
fn cores(out: &mut Draft, product: &Product, outer: &str, count: i64) {
    let why =
        format!("The cores share {} of tiles.", counted(count, if outer == "jo" { "column" } else { "row" }));
    let Some(batch) = &product.batch else {
        out.because(why, format!("parallel(loop: {outer:?})"));
        return;
    };
    let loops = [batch.loop_name.as_str(), outer];
    out.because(
        format!("{why} There are so many for each of {} products.", batch.extent),
        format!("fuse(loops: {loops:?}, into: \"shared\")"),
    );
    out.step("parallel(loop: \"shared\")");
}
