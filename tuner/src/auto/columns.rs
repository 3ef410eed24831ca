//! Programs that reduce a matrix along its columns: sums of columns, with or without batches.

use std::fmt::Write as _;

use codegen::lower::vector_bytes;
use ir::{Access, Block, DType, Func, Index, IterKind, Name, Role, Target};

use super::{
    Draft, Request, counted, free,
    model::{ceil_div, units},
};

/// Threads of a block, and the most of them beside each other: a warp reads along a row.
const THREADS: i64 = 256;
const LANES: i64 = 32;

/// The bytes of the widest load, and of what a thread reads before it adds.
const VECTOR: i64 = 16;
const IN_FLIGHT: i64 = 64;

/// How many blocks a multiprocessor has at best.
const BLOCKS: i64 = 4;

/// How many vectors of columns a CPU adds up beside each other: as many as hide the latency of an addition.
const VECTORS: i64 = 4;

/// A reduction of columns.
pub(super) struct Columns {
    pub(super) block: Name,
    /// The loops around, then those over columns and over rows.
    pub(super) outer: Vec<Name>,
    pub(super) along: Name,
    pub(super) reduced: Name,
    /// What is read along rows, and its dimensions over rows and columns.
    pub(super) buffer: Name,
    pub(super) dtype: DType,
    /// The type in which is added up.
    pub(super) sums: DType,
    pub(super) axes: [usize; 2],
    /// How many columns, rows, and matrices there are.
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) count: i64,
}

/// Vectors of columns on a CPU; on a GPU threads side by side along a row, several for each column, and the rows in slices where columns
/// are few.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Some(columns) = Columns::of(request.func) else { return vec![] };
    if *request.target != Target::Cpu {
        return vec![columns.on_gpu(request)];
    }
    let bytes = i64::try_from(vector_bytes(request.target)).expect("a vector is a few bytes");
    let all = [VECTORS, 1].map(|vectors| vectors * bytes / columns.sums.bytes_i64());
    all.into_iter()
        .filter(|lanes| *lanes > 1 && *lanes <= columns.width)
        .map(|lanes| columns.on_cpu(request, lanes))
        .collect()
}

impl Columns {
    fn of(func: &Func) -> Option<Columns> {
        let blocks = func.body.blocks();
        let [block] = blocks.as_slice() else { return None };
        block.init.as_ref()?;
        let (reduced, spatial): (Vec<_>, Vec<_>) =
            block.iters.iter().partition(|it| it.kind == IterKind::Reduce);
        let ([reduced], Some(last)) = (reduced.as_slice(), spatial.last()) else { return None };
        let place = block.writes().first().copied()?;
        if variables(place)? != spatial.iter().map(|it| &it.var).collect::<Vec<_>>() {
            return None;
        }
        let loops = func.loops_of(&block.name)?;
        let extent = |var: &Name| loops.iter().find(|it| it.var == *var)?.extent.as_int();
        let bound = |it: &ir::Iter| it.binding.as_var().cloned();
        let (read, vars) = matrix(func, block)?;
        let axis = |var: &Name| vars.iter().position(|it| *it == var);
        let outer: Vec<_> = spatial[..spatial.len() - 1].iter().map(|it| bound(it)).collect::<Option<_>>()?;
        let (columns, rows) = (bound(last)?, bound(reduced)?);
        let is_along = vars.last() == Some(&&last.var) && vars.len() == block.iters.len();
        let names: Vec<_> = outer.iter().chain([&columns, &rows]).collect();
        let is_nest = loops.iter().map(|it| &it.var).eq(names.iter().copied());
        let count = outer.iter().map(extent).collect::<Option<Vec<_>>>()?;
        (is_along && is_nest).then_some(Columns {
            block: block.name.clone(),
            width: extent(&columns)?,
            height: extent(&rows)?,
            count: count.iter().fold(1, |all: i64, it| all.saturating_mul(*it)),
            outer,
            along: columns,
            reduced: rows,
            buffer: read.buffer.clone(),
            dtype: func.dtype_of(&read.buffer)?,
            sums: func.dtype_of(&place.buffer)?,
            axes: [axis(&reduced.var)?, axis(&last.var)?],
        })
    }

    fn on_cpu(&self, request: &Request<'_>, lanes: i64) -> Draft {
        let about = format!("Vectors of columns, {lanes} at once, by all cores.");
        let mut out = Draft::new("columns", about, &[], request);
        let (block, columns, reduced) = (self.block.as_str(), self.along.as_str(), self.reduced.as_str());
        let name = |it: &str| free(request.func, it).to_string();
        let (tile, column, sums) = (
            name(&format!("{block}_columns")),
            name(&format!("{block}_column")),
            name(&format!("{block}_sums")),
        );
        let axis = self.outer.len();
        out.because(
            format!("{lanes} columns are added up in registers while rows are read one after the other."),
            format!("cache_write(block: {block:?}, scope: \"local\", name: {sums:?})"),
        );
        out.step(format!("split(loop: {columns:?}, into: {{{tile:?}: None, {column:?}: {lanes}}})"));
        out.step(format!("reorder(order: [{tile:?}, {reduced:?}, {column:?}])"));
        out.step(format!("reverse_compute_at(block: {sums:?}, loop: {tile:?})"));
        out.step(format!("decompose_reduction(block: {block:?}, loop: {reduced:?})"));
        for it in [column.clone(), format!("{column}_init"), format!("{sums}_{axis}")] {
            out.step(format!("vectorize(loop: {it:?})"));
        }
        let mut shared = tile.clone();
        if !self.outer.is_empty() {
            shared = name("shared");
            let all: Vec<_> = self.outer.iter().map(Name::as_str).chain([tile.as_str()]).collect();
            out.step(format!("fuse(loops: {all:?}, into: {shared:?})"));
        }
        out.because("Columns are independent of each other.", format!("parallel(loop: {shared:?})"));
        out
    }

    fn on_gpu(&self, request: &Request<'_>) -> Draft {
        let about = "Threads side by side along a row, several for each column.".to_owned();
        let mut out = Draft::new("columns", about, &["std/rows"], request);
        self.reduce(request, &mut out);
        out
    }

    /// Reduces them on a GPU; whether in slices, which a second kernel adds up.
    pub(super) fn reduce(&self, request: &Request<'_>, out: &mut Draft) -> bool {
        let element = self.dtype.bytes_i64();
        let mut vector = VECTOR / element;
        while self.width % vector != 0 {
            vector /= 2;
        }
        let power =
            |it: i64, most: i64| (0..32).map(|at| 1 << at).find(|at| *at >= it.min(most)).unwrap_or(most);
        let x = power(self.width / vector, LANES);
        let y = power(self.height, THREADS / x);
        let loads = (IN_FLIGHT / (vector * element)).min(ceil_div(self.height, y)).clamp(1, 8);
        let blocks = self.count * ceil_div(self.width, x * vector);
        let wanted = ceil_div(BLOCKS * units(request), blocks);
        // A slice has at least as many rows as its threads read at once, a few times over. Near as many may leave no row over.
        let slices = wanted.min(self.height / (y * loads * 4));
        let near = (slices - slices / 3..=slices + slices / 3).filter(|it| *it > 0 && self.height % it == 0);
        let slices = near.min_by_key(|it| it.abs_diff(slices)).unwrap_or(slices);
        let x = out.knob("x", x, &[8, 16, 32]);
        let y = out.knob("y", y, &[1, 2, 4, 8, 16]);
        let loads = out.knob("loads", loads, &[1, 2, 4, 8]);
        let [row_axis, column_axis] = self.axes;
        let mut words = format!(
            "block: {:?}, buffer: {:?}, columns: {:?}, reduced: {:?}, x: {x}, y: {y}, loads: {loads}, vector: {vector}",
            self.block.as_str(),
            self.buffer.as_str(),
            self.along.as_str(),
            self.reduced.as_str(),
        );
        if !self.outer.is_empty() {
            let outer: Vec<_> = self.outer.iter().rev().map(Name::as_str).collect();
            let _ = write!(words, ", outer: {outer:?}, row_axis: {row_axis}, column_axis: {column_axis}");
        }
        out.reason(format!(
            "{} read along a row, {} at once each, and {} for each column put their parts together in shared memory.",
            counted(x.value, "thread"),
            counted(vector, "element"),
            counted(y.value, "thread"),
        ));
        if slices < 2 {
            out.step(format!("reduce_columns({words})"));
            return false;
        }
        out.reason(format!(
            "That makes {}, so the rows are in {slices} slices, which a second kernel adds up.",
            counted(blocks, "block")
        ));
        let slices = out.knob("slices", slices, &[2, 4, 8, 16, 32, 64, 128]);
        out.step(format!("reduce_columns_in_slices({words}, slices: {slices})"));
        true
    }
}

/// The input that has an element for each iteration of a block.
fn matrix<'a>(func: &Func, block: &'a Block) -> Option<(&'a Access, Vec<&'a Name>)> {
    let is_input = |it: &Name| func.buffers.get(it).is_some_and(|it| it.role == Role::Input);
    let reads = block.reads().into_iter().filter(|it| is_input(&it.buffer));
    let mut all = reads.filter(|it| it.indices.len() == block.iters.len());
    let only = all.next().filter(|_| all.next().is_none())?;
    Some((only, variables(only)?))
}

/// The variables that an access has for subscripts, if it has nothing else.
pub(super) fn variables(access: &Access) -> Option<Vec<&Name>> {
    access.indices.iter().map(Index::as_var).collect()
}
