//! Products of factors of eight or four bits with a scale for each 32 or 16 elements of a row, as the formats MX and NVFP4 have them, by tensor
//! cores that scale.

use ir::{Access, Block, DType, Feature, Func, Index, Iter, IterKind, Name, Role, Target, TensorMap};

use super::{
    Draft, Request, counted,
    model::{SLOT_MBARRIERS, ceil_div, group, shared_bytes, units},
    product::{axis_of, elementwise_tail, inputs},
    rows::words,
};

/// The rows and columns of a tile. Two sums of so many columns and the scales fit tensor memory; of 256 columns, two alone would.
const ROWS: i64 = 128;
const COLUMNS: i64 = 128;

/// The bytes of the sum in each row of a slot, and of a tile of scales.
const DEPTH: i64 = 128;
const SCALES: i64 = 512;

/// How factors and scales are kept.
struct Format {
    factors: &'static [DType],
    scale: DType,
    /// The bytes of a row of a factor that a tile of scales is for.
    tile: i64,
    /// What `tcgen05_tile` cannot find out itself.
    bytes: &'static str,
}

/// MXFP8, and MXFP4 and NVFP4 with two floats in each byte.
const FORMATS: [Format; 3] = [
    Format { factors: &[DType::F8e4m3, DType::F8e5m2], scale: DType::F8e8m0, tile: 128, bytes: "" },
    Format { factors: &[DType::U8], scale: DType::F8e8m0, tile: 64, bytes: ", bytes: 1" },
    Format { factors: &[DType::U8], scale: DType::F8e4m3, tile: 32, bytes: ", bytes: 1" },
];

/// The rows of tensor memory that scales stand in.
const LEAST: i64 = 32;

/// A product whose factors have scales.
struct Microscaled<'a> {
    block: &'a Block,
    format: &'static Format,
    /// The iterators along rows, columns and the sum, and how many rows, columns and steps there are.
    iters: [&'a Iter; 3],
    extents: [i64; 3],
    a: Factor,
    b: Factor,
    tail: Vec<Name>,
    others: Vec<Name>,
    out: DType,
}

struct Factor {
    buffer: Name,
    scale: Name,
    /// The stage that pads its rows with zeros, if there is one, with its loops over rows and columns.
    lead: Option<(Name, [Name; 2])>,
    /// The bytes of a row of the input.
    row: i64,
}

/// The kernel, if the program is such a product and the target has these tensor cores.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Target::Cuda(arch) = request.target else { return vec![] };
    let mut all = FORMATS.iter().filter(|_| arch.has(Feature::Tcgen05));
    let found = all.find_map(|it| Microscaled::of(request.func, it));
    found.map(|it| it.draft(request)).into_iter().collect()
}

impl<'a> Microscaled<'a> {
    fn of(func: &'a Func, format: &'static Format) -> Option<Microscaled<'a>> {
        let blocks = func.body.blocks();
        let at = blocks.iter().position(|it| it.init.is_some())?;
        let (leads, [block, tail @ ..]) = blocks.split_at(at) else { return None };
        let [i, j, k] = block.iters.iter().collect::<Vec<_>>()[..] else { return None };
        let place = *block.writes().first()?;
        let is_matrix = place.indices == [i, j].map(|it| Index::var(&it.var)) && k.kind == IterKind::Reduce;
        let is_temp = func.buffers.get(&place.buffer)?.role == Role::Temp;
        let last = tail.last().filter(|_| is_matrix && is_temp && block.guards.is_empty())?;
        let reads: Vec<_> = block.reads().into_iter().filter(|it| it.buffer != place.buffer).collect();
        let factor = |own: &Iter, other: &Iter| factor(func, format, (leads, &reads), [own, other, k]);
        let (a, b) = (factor(i, j)?, factor(j, i)?);
        let used = [&a, &b].into_iter().filter_map(|it| it.lead.as_ref().map(|it| &it.0));
        if used.count() != leads.len() || reads.len() != 4 {
            return None;
        }
        let extents = [i, j, k].map(|it| it.extent.as_int());
        let [Some(rows), Some(columns), Some(depth)] = extents else { return None };
        // Of fewer rows nothing is left in the program of the way in which their scales lie.
        (rows.min(columns) > LEAST && depth % format.tile == 0).then_some(())?;
        Some(Microscaled {
            block,
            format,
            iters: [i, j, k],
            extents: [rows, columns, depth],
            a,
            b,
            tail: elementwise_tail(func, &place.buffer, tail)?,
            others: inputs(func, tail)?,
            out: func.dtype_of(&last.writes().last()?.buffer)?,
        })
    }

    fn draft(&self, request: &Request<'_>) -> Draft {
        let Microscaled { block, format, extents: [.., depth], a, b, .. } = self;
        let factors = [a, b];
        let is_odd = factors.iter().any(|it| it.row % TensorMap::UNIT != 0);
        let about = format!(
            "Tiles of {ROWS} x {COLUMNS} in tensor memory, beside the scales of their factors, with roles that copy, multiply and store."
        );
        let uses: &[&str] = if is_odd { &["std/copy", "std/tcgen05"] } else { &["std/tcgen05"] };
        let mut out = Draft::new("microscaled", about, uses, request);
        let name = block.name.as_str();
        self.tiles(&mut out, request);
        let store = self.store(&mut out);
        for it in factors {
            it.lead(&mut out);
        }
        let slot = (ROWS + COLUMNS) * DEPTH + 2 * SCALES * (DEPTH / format.tile) + SLOT_MBARRIERS;
        let most = (shared_bytes(request) - 256 - 2 * ROWS * store * self.out.bytes_i64()) / slot;
        let slots = out.knob("slots", most.min(6).min(ceil_div(*depth, DEPTH).max(2)), &[2, 3, 4, 5, 6]);
        out.constraint(format!("{} <= {most}", slots.words()));
        let names = format!(
            ", a: {:?}, b: {:?}, a_scale: {:?}, b_scale: {:?}",
            a.buffer.as_str(),
            b.buffer.as_str(),
            a.scale.as_str(),
            b.scale.as_str()
        );
        out.because(
            format!("A slot has {slot} bytes, and {} of them are in flight.", slots.value),
            format!("tcgen05_scaled_products(block: {name:?}{names}, slots: {slots})"),
        );
        if is_odd {
            out.reason("Kernels that follow each other may start while the one ahead ends.");
            out.step("annotate(loop: \"tile\", key: \"programmatic_launch\", value: 1)");
        }
        out.because(
            "As many blocks as there are multiprocessors take tile after tile, and have two accumulators: one tile is multiplied while the one before leaves.",
            format!("tcgen05_scaled_roles(block: {name:?}{names}, blocks: {})", units(request)),
        );
        out
    }

    /// The steps that make tiles, and number them.
    fn tiles(&self, out: &mut Draft, request: &Request<'_>) {
        let [rows, columns, depth] = self.extents;
        let (name, bytes) = (self.block.name.as_str(), self.format.bytes);
        let [i, j, k] = self.iters.map(|it| it.var.as_str());
        out.because(
            "Loops get the names of rows, columns and the sum.",
            format!(
                "transform_block_layout(block: {name:?}, into: {{\"i\": [{i:?}], \"j\": [{j:?}], \"k\": [{k:?}]}})"
            ),
        );
        let group = out.knob("group", group(ceil_div(rows, ROWS), 16), &[1, 2, 4, 8, 16]);
        let count = ceil_div(rows, ROWS) * ceil_div(columns, COLUMNS);
        let between = &self.tail[..self.tail.len() - 1];
        let inline =
            if between.is_empty() { String::new() } else { format!(", inline: {:?}", words(between)) };
        let whole = if depth % DEPTH == 0 { ", whole: 1" } else { "" };
        out.because(
            format!(
                "{} for {}. Two sums of {COLUMNS} columns leave tensor memory for scales.",
                counted(count, "tile"),
                counted(units(request), "multiprocessor"),
            ),
            format!(
                "tcgen05_tile(block: {name:?}{inline}, columns: {COLUMNS}, group: {group}{whole}{bytes})"
            ),
        );
    }

    /// The step by which the result leaves; how many of its columns do at a time.
    fn store(&self, out: &mut Draft) -> i64 {
        let bytes = self.out.bytes_i64();
        let store = if bytes == 2 { 64 } else { 32 };
        let last = self.tail.last().map_or("", Name::as_str);
        let lanes = if self.extents[1] * bytes % TensorMap::UNIT != 0 { ", lanes: 1" } else { "" };
        let read = if self.others.is_empty() {
            String::new()
        } else {
            format!(", inputs: {:?}", words(&self.others))
        };
        out.step(format!(
            "tcgen05_store(block: {last:?}, sums: \"{}_pad\"{read}, columns: {COLUMNS}, store: {store}{lanes})",
            self.block.name
        ));
        store
    }
}

impl Factor {
    /// The step for the stage that pads it: part of the copies, or a kernel ahead.
    fn lead(&self, out: &mut Draft) {
        let Some((block, [rows, columns])) = &self.lead else { return };
        let (block, rows, columns) = (block.as_str(), rows.as_str(), columns.as_str());
        if self.row % TensorMap::UNIT == 0 {
            out.step(format!("compute_inline(block: {block:?})"));
            return;
        }
        out.because(
            "Rows are too odd for the copy engine: a kernel ahead pads each to whole tiles.",
            format!("row_grid(rows: {rows:?}, columns: {columns:?}, name: \"{block}_whole\", early: 1)"),
        );
    }
}

/// The factor that has one of the iterators and not the other, with its scales.
fn factor(
    func: &Func,
    format: &Format,
    (leads, reads): (&[&Block], &[&Access]),
    [own, other, sum]: [&Iter; 3],
) -> Option<Factor> {
    let has = |it: &Access, iter: &Iter| it.indices.iter().any(|it| it.any_var(&|name| *name == iter.var));
    let mine: Vec<_> = reads.iter().filter(|it| has(it, own) && !has(it, other)).collect();
    let [first, second] = mine[..] else { return None };
    let is_scale = |it: &Access| func.dtype_of(&it.buffer) == Some(format.scale);
    let (factor, scale) = if is_scale(second) { (first, second) } else { (second, first) };
    let buffer = func.buffers.get(&factor.buffer)?;
    let is_row = factor.indices == [own, sum].map(|it| Index::var(&it.var));
    let is_taken = format.factors.contains(&buffer.dtype) && is_scale(scale) && is_row;
    let row = |buffer: &ir::Buffer| Some(buffer.shape.last()?.as_int()? * buffer.dtype.bytes_i64());
    let writing = leads.iter().find(|it| it.writes().iter().any(|it| it.buffer == factor.buffer));
    let (lead, row) = match writing {
        Some(lead) => {
            let from = lead.reads().first().and_then(|it| func.buffers.get(&it.buffer))?;
            let [rows, columns] = lead.iters.iter().collect::<Vec<_>>()[..] else { return None };
            let loops = [axis_of(func, lead, rows)?.loop_name, axis_of(func, lead, columns)?.loop_name];
            (Some((lead.name.clone(), loops)), row(from).filter(|_| from.role == Role::Input)?)
        }
        None => (None, row(buffer).filter(|it| buffer.role == Role::Input && it % TensorMap::UNIT == 0)?),
    };
    is_taken.then(|| Factor { buffer: factor.buffer.clone(), scale: scale.buffer.clone(), lead, row })
}
