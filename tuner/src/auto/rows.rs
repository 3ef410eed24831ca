//! Programs that reduce rows on a CPU: sums, maxima, and what is done to the elements between them.

use codegen::lower::vector_bytes;
use ir::{Access, Block, Index, IterKind, Name, Target};

use super::{Draft, Request, counted};

/// How many vectors of partial results a row has: as many as hide the latency of an addition.
const VECTORS: i64 = 4;

/// What a stage over rows does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Does {
    /// It reduces a row.
    Reduce,
    /// Something to each element.
    Elements,
    /// Something once a row.
    Once,
}

/// A stage over rows.
#[derive(Clone, Debug)]
pub(super) struct Stage<'a> {
    pub(super) block: &'a Block,
    /// The loops over rows, and those along a row.
    pub(super) rows: Vec<Name>,
    pub(super) along: Vec<Name>,
    pub(super) does: Does,
}

/// All stages of a program over rows, in order, and the extents that they have in common.
#[derive(Clone, Debug)]
pub(super) struct Stages<'a> {
    pub(super) all: Vec<Stage<'a>>,
    pub(super) rows: Vec<i64>,
    pub(super) along: Vec<i64>,
}

impl Stages<'_> {
    /// Whether each stage that reduces reads something as it lies in memory, a row after the other.
    fn read_rows(&self) -> bool {
        let mut reductions = self.all.iter().filter(|it| it.does == Does::Reduce);
        reductions.all(|it| it.block.reads().iter().any(|read| is_row(read, it.block)))
    }

    /// The elements of a row.
    pub(super) fn length(&self) -> i64 {
        self.along.iter().fold(1, |all: i64, it| all.saturating_mul(*it))
    }
}

/// The stages that the blocks of a program are, if all are over the same rows and one reduces them. A row has one axis or several, and so
/// have the rows.
pub(super) fn stages<'a>(request: &Request<'a>) -> Option<Stages<'a>> {
    let blocks = request.func.body.blocks();
    let count = |block: &Block, kind: IterKind| block.iters.iter().filter(|it| it.kind == kind).count();
    let first = blocks.iter().find(|it| count(it, IterKind::Reduce) > 0)?;
    let (rows, along) = (count(first, IterKind::Spatial), count(first, IterKind::Reduce));
    if rows == 0 {
        return None;
    }
    let extents = |block: &Block| {
        let loops = request.func.loops_of(&block.name)?;
        loops.iter().map(|it| it.extent.as_int()).collect::<Option<Vec<_>>>()
    };
    let whole = extents(first)?;
    let stage = |block: &'a Block| {
        let loops = request.func.loops_of(&block.name)?;
        let these = extents(block)?;
        let kinds: Vec<_> = block.iters.iter().map(|it| it.kind).collect();
        let (outer, inner) = kinds.split_at_checked(rows)?;
        let does = match inner {
            [] => Does::Once,
            _ if inner.len() != along => return None,
            _ if inner.iter().all(|it| *it == IterKind::Reduce) => Does::Reduce,
            _ => Does::Elements,
        };
        let is_spatial = |all: &[IterKind]| all.iter().all(|it| *it == IterKind::Spatial);
        let fits = is_spatial(outer) && (does == Does::Reduce || is_spatial(inner));
        let names: Vec<_> = loops.iter().map(|it| it.var.clone()).collect();
        let (rows, along) = names.split_at_checked(rows)?;
        (fits && names.len() == kinds.len() && whole.starts_with(&these)).then(|| Stage {
            block,
            rows: rows.to_vec(),
            along: along.to_vec(),
            does,
        })
    };
    let all = blocks.into_iter().map(stage).collect::<Option<Vec<_>>>()?;
    let (rows, along) = whole.split_at(rows);
    Some(Stages { all, rows: rows.to_vec(), along: along.to_vec() })
}

/// Whether an access is to the row and the column that the block is about.
pub(super) fn is_row(access: &Access, block: &Block) -> bool {
    let iters: Vec<_> = block.iters.iter().map(|it| Some(&it.var)).collect();
    access.indices.iter().map(Index::as_var).eq(iters)
}

/// All stages row by row, with vectors of partial results.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    if *request.target != Target::Cpu {
        return vec![];
    }
    let Some(stages) = stages(request).filter(Stages::read_rows) else { return vec![] };
    let Some(last) = stages.all.iter().rev().find(|it| it.does == Does::Reduce) else { return vec![] };
    let place = last.block.writes().first().and_then(|it| request.func.dtype_of(&it.buffer));
    let Some(element) = place.map(ir::DType::bytes_i64) else { return vec![] };
    let bytes = i64::try_from(vector_bytes(request.target)).expect("a vector is a few bytes");
    let all = [VECTORS, 1].map(|vectors| vectors * bytes / element);
    all.into_iter()
        .filter(|lanes| *lanes > 1 && *lanes <= stages.length())
        .map(|lanes| one(request, &stages, lanes))
        .collect()
}

fn one(request: &Request<'_>, stages: &Stages<'_>, lanes: i64) -> Draft {
    let mut out = Draft::new(
        "rows",
        format!("Row by row on all cores, with {lanes} partial results of each row."),
        &[],
        request,
    );
    let reductions: Vec<_> = stages.all.iter().filter(|it| it.does == Does::Reduce).collect();
    for (number, it) in reductions.iter().enumerate() {
        if number == 0 {
            out.reason(format!(
                "{lanes} partial results of {} are computed beside each other, and put together at the end of a row.",
                counted(i64::try_from(reductions.len()).expect("stages are few"), "reduction")
            ));
        }
        let name = it.block.name.as_str();
        let mut along = it.along[0].to_string();
        if it.along.len() > 1 {
            along = format!("{name}_along");
            out.step(format!("fuse(loops: {:?}, into: {along:?})", words(&it.along)));
        }
        out.step(format!(
            "split(loop: {along:?}, into: {{\"{name}_part\": None, \"{name}_lane\": {lanes}}})"
        ));
        out.step(format!("rfactor(loop: \"{name}_lane\", factor_axis: -1)"));
        out.step(format!("set_scope(buffer: {:?}, scope: \"local\")", partial(it)));
    }
    in_one_nest(&mut out, stages);
    let depth = stages.rows.len();
    for it in &reductions {
        let partial = partial(it);
        let (parts, lane) = (format!("{partial}_{depth}"), format!("{partial}_{}", depth + 1));
        out.step(format!("decompose_reduction(block: {partial:?}, loop: {parts:?})"));
        out.step(format!("vectorize(loop: {lane:?})"));
        out.step(format!("vectorize(loop: \"{lane}_init\")"));
    }
    let rows = &stages.all[0].rows;
    out.reason("Rows are independent of each other.");
    if let [rows] = rows.as_slice() {
        out.step(format!("parallel(loop: {:?})", rows.as_str()));
    } else {
        let all = super::free(request.func, "rows").to_string();
        out.step(format!("fuse(loops: {:?}, into: {all:?})", words(rows)));
        out.step(format!("parallel(loop: {all:?})"));
    }
    out
}

/// Moves all stages under the rows of the first.
fn in_one_nest(out: &mut Draft, stages: &Stages<'_>) {
    let rows = stages.all[0].rows.last().expect("there are rows").as_str();
    let mut why =
        (stages.all.len() > 1).then_some("All that is done to a row is done while it is in the cache.");
    let mut together = |out: &mut Draft, step: String| match why.take() {
        Some(why) => out.because(why, step),
        None => out.step(step),
    };
    for (number, it) in stages.all.iter().enumerate() {
        let name = it.block.name.as_str();
        if it.does == Does::Reduce {
            let primitive = if number == 0 { "compute_at" } else { "reverse_compute_at" };
            together(out, format!("{primitive}(block: {:?}, loop: {rows:?})", partial(it)));
        }
        if number > 0 {
            together(out, format!("reverse_compute_at(block: {name:?}, loop: {rows:?})"));
        }
    }
}

/// Names as the list that a step takes.
pub(super) fn words(names: &[Name]) -> Vec<&str> {
    names.iter().map(Name::as_str).collect()
}

/// The block of partial results of a reduction, and its buffer.
fn partial(it: &Stage<'_>) -> String {
    format!("{}_rf", it.block.name)
}
