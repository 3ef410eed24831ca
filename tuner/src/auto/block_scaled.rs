//! Products of which each group of the sum has scales of its own, as fp8 is multiplied with scales of blocks, by warpgroups.

use ir::{Access, Block, DType, Feature, Func, Index, Iter, IterKind, Name, Role, Stmt, Target, TensorMap};

use super::{
    Draft, Request, counted,
    model::{SLOT_MBARRIERS, ceil_div, group, shared_bytes, units},
    product::{Axis, axis_of, elementwise_tail, inputs},
    rows::words,
    wgmma::{blocks_that_stay, roles},
};

/// The bytes of a group of the sum in each row: those that the widest swizzle permutes, and that four instructions read.
const GROUP: i64 = 128;

/// The rows and columns of a tile: of warpgroups that each have sums of a group and of all of them in registers.
const WARPGROUPS: i64 = 2;
const ROWS: i64 = 64 * WARPGROUPS;
const COLUMNS: i64 = 128;

/// How many slots a pipeline has. On an H100 four were faster than five at 4096³ and 8192³; more, with the sums of two groups in registers, were slower still.
const SLOTS: i64 = 4;

/// A sum of groups, each of which is a product of matrices times two scales.
struct Scaled<'a> {
    part: &'a Block,
    sums: &'a Block,
    /// Loops of the part along rows and columns.
    part_loops: [Axis; 2],
    /// Loops of the sums along rows, columns and groups.
    loops: [Axis; 3],
    a: Factor,
    b: Factor,
    a_scale: Name,
    b_scale: Name,
    /// The dimension of the scales of A that runs along its rows.
    row_axis: usize,
    tail: Vec<Name>,
    others: Vec<Name>,
    out: DType,
}

struct Factor {
    buffer: Name,
    dtype: DType,
    /// The bytes of its rows in memory.
    row: i64,
}

/// The kernel, if the program is such a product and the target has warpgroups.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Target::Cuda(arch) = request.target else { return vec![] };
    let found = arch.has(Feature::Wgmma).then(|| Scaled::of(request.func)).flatten();
    found.map(|it| it.draft(request)).into_iter().collect()
}

impl<'a> Scaled<'a> {
    fn of(func: &'a Func) -> Option<Scaled<'a>> {
        let blocks = func.body.blocks();
        let [part, sums, tail @ ..] = blocks.as_slice() else { return None };
        let [g, i, j] = spatial(part)?;
        let place = *part.writes().first()?;
        let order = [g, i, j].map(|it| Index::var(&it.var));
        let is_temp = func.buffers.get(&place.buffer)?.role == Role::Temp;
        if place.indices != order || !is_temp || sums.iters.len() != 3 || tail.is_empty() {
            return None;
        }
        let mut factors = part.reads().into_iter().filter(|it| it.buffer != place.buffer);
        let (first, second) = (factors.next()?, factors.next()?);
        let has =
            |it: &Access, iter: &Iter| it.indices.iter().any(|it| it.any_var(&|name| *name == iter.var));
        let (a, b) = if has(first, i) { (first, second) } else { (second, first) };
        let is_whole = has(a, i) && !has(a, j) && has(b, j) && !has(b, i) && factors.next().is_none();
        let group = part.iters.iter().find(|it| it.kind == IterKind::Reduce)?.extent.as_int()?;
        let (a, b) = (factor(func, a)?, factor(func, b)?);
        if !is_whole || a.dtype != b.dtype || group * a.dtype.bytes_i64() != GROUP {
            return None;
        }
        let [si, sj] = spatial(sums)?;
        let sg = sums.iters.iter().find(|it| it.kind == IterKind::Reduce)?;
        let own = sums.writes().first()?.buffer.clone();
        let is_scale = |it: &&Access| it.buffer != place.buffer && it.buffer != own;
        let scales: Vec<_> = sums.reads().into_iter().filter(is_scale).collect();
        let [x, y] = scales[..] else { return None };
        let (a_scale, b_scale) = if has(x, si) { (x, y) } else { (y, x) };
        let row_axis = a_scale.indices.iter().position(|it| *it == Index::var(&si.var))?;
        let is_plain =
            a_scale.indices.len() == 2 && has(b_scale, sj) && !has(b_scale, si) && has(b_scale, sg);
        let read = sums.reads().into_iter().find(|it| it.buffer == place.buffer)?;
        let last = tail.last()?;
        (is_plain && read.indices == [sg, si, sj].map(|it| Index::var(&it.var))).then_some(())?;
        Some(Scaled {
            part,
            sums,
            part_loops: [axis_of(func, part, i)?, axis_of(func, part, j)?],
            loops: [axis_of(func, sums, si)?, axis_of(func, sums, sj)?, axis_of(func, sums, sg)?],
            a,
            b,
            a_scale: a_scale.buffer.clone(),
            b_scale: b_scale.buffer.clone(),
            row_axis,
            tail: elementwise_tail(func, &own, tail)?,
            others: inputs(func, tail)?,
            out: func.dtype_of(&last.writes().last()?.buffer)?,
        })
    }

    fn draft(&self, request: &Request<'_>) -> Draft {
        let about = format!(
            "Tiles of {ROWS} x {COLUMNS} by {WARPGROUPS} warpgroups, which scale the sums of {GROUP} bytes of each row, fed by a role for the copy engine."
        );
        let is_odd = [&self.a, &self.b].map(|it| it.row % TensorMap::UNIT != 0);
        let uses: &[&str] = if is_odd.contains(&true) { &["std/copy", "std/wgmma"] } else { &["std/wgmma"] };
        let mut out = Draft::new("block_scaled", about, uses, request);
        let [rows, columns, groups] = self.loops.each_ref().map(|it| it.extent);
        let pair = if rows > ROWS { 2 } else { 1 };
        let cluster_m = out.knob("cluster_m", pair, &[1, 2]);
        let group = out.knob("group", group(ceil_div(rows, ROWS), 4), &[1, 2, 4, 8, 16]);
        let shared = shared_bytes(request);
        let slot = (ROWS + COLUMNS) * GROUP;
        let bytes = self.out.bytes_i64();
        let store = if bytes == 2 { 64 } else { GROUP / bytes };
        let most = (shared - 2 * ROWS * store * bytes) / (slot + SLOT_MBARRIERS);
        let slots = out.knob("slots", SLOTS.min(most).min(groups.max(2)), &[2, 3, 4, 5, 6]);
        out.constraint(format!("{} <= {most}", slots.words()));
        let tiles = ceil_div(rows, ROWS) * ceil_div(columns, COLUMNS);
        self.tiles(&mut out, request, (tiles, &cluster_m.to_string(), &group.to_string()));
        let last = self.tail.last().map_or("", Name::as_str);
        let wide = if bytes == 2 { "" } else { ", wide: 1" };
        let read = if self.others.is_empty() {
            String::new()
        } else {
            format!(", inputs: {:?}", words(&self.others))
        };
        let m = cluster_m.times(ROWS);
        out.step(format!(
            "wgmma_store(block: {last:?}, sums: \"{}_pad\"{read}, m: {m}, n: {COLUMNS}, store: {store}{wide})",
            self.sums.name
        ));
        let factors = self.packed(&mut out, is_odd);
        let [a, b] = &factors;
        let (part, sums) = (self.part.name.as_str(), self.sums.name.as_str());
        let (a_scale, b_scale, over) =
            (self.a_scale.as_str(), self.b_scale.as_str(), self.loops[2].loop_name.as_str());
        out.because(
            format!("A slot has {slot} bytes, and {} of them are in flight.", slots.value),
            format!(
                "wgmma_scaled_products(part: {part:?}, block: {sums:?}, a: {a:?}, b: {b:?}, a_scale: {a_scale:?}, b_scale: {b_scale:?}, \
                 groups: {over:?}, slots: {slots})"
            ),
        );
        blocks_that_stay(&mut out, request, &cluster_m);
        roles(&mut out, &factors, &WARPGROUPS.into());
        out
    }

    /// The step that makes tiles of both products.
    fn tiles(&self, out: &mut Draft, request: &Request<'_>, (tiles, cluster_m, group): (i64, &str, &str)) {
        let Scaled { part, sums, part_loops, loops, a, b, a_scale, b_scale, row_axis, tail, .. } = self;
        let between = &tail[..tail.len().saturating_sub(1)];
        let inline =
            if between.is_empty() { String::new() } else { format!(", inline: {:?}", words(between)) };
        let [i, j] = part_loops.each_ref().map(|it| it.loop_name.as_str());
        let [rows, columns, groups] = loops.each_ref().map(|it| it.loop_name.as_str());
        out.because(
            format!(
                "{} for {}. Sums of a group are scaled in registers, which leaves them for {COLUMNS} columns.",
                counted(tiles, "tile"),
                counted(units(request), "multiprocessor"),
            ),
            format!(
                "wgmma_scaled_tile(part: {:?}, block: {:?}, a: {:?}, b: {:?}, a_scale: {:?}, b_scale: {:?}, part_rows: {i:?}, part_columns: {j:?}, \
                 rows: {rows:?}, columns_loop: {columns:?}, groups: {groups:?}, row_axis: {row_axis}, group: {group}, cluster_m: {cluster_m}{inline})",
                part.name.as_str(),
                sums.name.as_str(),
                a.buffer.as_str(),
                b.buffer.as_str(),
                a_scale.as_str(),
                b_scale.as_str(),
            ),
        );
    }

    /// What the products read: the copies of the factors, or where their rows begin where the copy engine does not find them, what a kernel ahead
    /// makes of them.
    fn packed(&self, out: &mut Draft, is_odd: [bool; 2]) -> [String; 2] {
        let part = self.part.name.as_str();
        let one = |(which, is_odd): (&str, bool)| {
            let name = format!("{part}_{which}");
            if !is_odd {
                return name;
            }
            out.because(
                "Rows are too odd for the copy engine: a kernel ahead pads each to whole tiles.",
                format!("pack(block: {part:?}, name: {name:?}, column_axis: 2)"),
            );
            out.step(format!("bind(loop: \"{name}_pad_1\", axis: \"blockIdx.z\")"));
            format!("{name}_packed")
        };
        [("a", is_odd[0]), ("b", is_odd[1])].map(one)
    }
}

fn factor(func: &Func, access: &Access) -> Option<Factor> {
    let buffer = func.buffers.get(&access.buffer).filter(|it| it.role == Role::Input)?;
    let dtype = buffer.dtype;
    let row = buffer.shape.last()?.as_int()? * dtype.bytes_i64();
    let is_taken = matches!(dtype, DType::F16 | DType::Bf16 | DType::F8e4m3 | DType::F8e5m2);
    is_taken.then(|| Factor { buffer: access.buffer.clone(), dtype, row })
}

/// The spatial iterators of a block, if it has so many.
fn spatial<const N: usize>(block: &Block) -> Option<[&Iter; N]> {
    let all: Vec<_> = block.iters.iter().filter(|it| it.kind == IterKind::Spatial).collect();
    let is_sum = matches!((&block.body, &block.init), (Stmt::Store(_), Some(_)));
    all.try_into().ok().filter(|_| is_sum && block.guards.is_empty())
}
