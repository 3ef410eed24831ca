//! Programs that reduce rows on a CPU: sums, maxima, and what is done to the elements between them.

use codegen::lower::vector_bytes;
use ir::{Block, IterKind, Name, Target};

use super::{Draft, Request, counted};

/// How many vectors of partial results a row has: as many as hide the latency of an addition.
const VECTORS: i64 = 4;

/// A stage over rows.
pub(super) struct Stage<'a> {
    pub(super) block: &'a Block,
    /// The loops over rows and along a row.
    pub(super) loops: [Name; 2],
    pub(super) is_reduction: bool,
}

/// All stages row by row, with vectors of partial results.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    if *request.target != Target::Cpu {
        return vec![];
    }
    let Some((stages, length)) = stages(request, request.func.body.blocks()) else { return vec![] };
    let Some(last) = stages.iter().rev().find(|it| it.is_reduction) else { return vec![] };
    let place = last.block.writes().first().and_then(|it| request.func.dtype_of(&it.buffer));
    let Some(element) = place.map(ir::DType::bytes_i64) else { return vec![] };
    let bytes = i64::try_from(vector_bytes(request.target)).expect("a vector is a few bytes");
    let all = [VECTORS, 1].map(|vectors| vectors * bytes / element);
    all.into_iter()
        .filter(|lanes| *lanes > 1 && *lanes <= length)
        .map(|lanes| one(request, &stages, lanes))
        .collect()
}

/// The stages that blocks are, if all are over the same rows, and the length of a row.
pub(super) fn stages<'a>(request: &Request<'a>, blocks: Vec<&'a Block>) -> Option<(Vec<Stage<'a>>, i64)> {
    let mut extents = None;
    let stage = |block: &'a Block| {
        let loops = request.func.loops_of(&block.name)?;
        let [rows, along] = loops.as_slice() else { return None };
        let these = (rows.extent.as_int()?, along.extent.as_int()?);
        if *extents.get_or_insert(these) != these {
            return None;
        }
        let kinds: Vec<_> = block.iters.iter().map(|it| it.kind).collect();
        let is_reduction = match kinds.as_slice() {
            [IterKind::Spatial, IterKind::Reduce] => true,
            [IterKind::Spatial, IterKind::Spatial] => false,
            _ => return None,
        };
        Some(Stage { block, loops: [rows.var.clone(), along.var.clone()], is_reduction })
    };
    let all = blocks.into_iter().map(stage).collect::<Option<Vec<_>>>()?;
    Some((all, extents?.1))
}

fn one(request: &Request<'_>, stages: &[Stage<'_>], lanes: i64) -> Draft {
    let mut out = Draft::new(
        "rows",
        format!("Row by row on all cores, with {lanes} partial results of each row."),
        &[],
        request.form,
    );
    let reductions: Vec<_> = stages.iter().filter(|it| it.is_reduction).collect();
    for (number, it) in reductions.iter().enumerate() {
        let name = it.block.name.as_str();
        let split = format!(
            "split(loop: {:?}, into: {{\"{name}_part\": None, \"{name}_lane\": {lanes}}})",
            it.loops[1].as_str()
        );
        let why = format!(
            "{lanes} partial results of {} are computed beside each other, and put together at the end of a row.",
            counted(i64::try_from(reductions.len()).expect("stages are few"), "reduction")
        );
        if number == 0 {
            out.because(why, split);
        } else {
            out.step(split);
        }
        out.step(format!("rfactor(loop: \"{name}_lane\", factor_axis: -1)"));
        out.step(format!("set_scope(buffer: {:?}, scope: \"local\")", partial(it)));
    }
    let rows = stages[0].loops[0].as_str();
    let mut why = (stages.len() > 1).then_some("All that is done to a row is done while it is in the cache.");
    let mut together = |out: &mut Draft, step: String| match why.take() {
        Some(why) => out.because(why, step),
        None => out.step(step),
    };
    for (number, it) in stages.iter().enumerate() {
        let name = it.block.name.as_str();
        if it.is_reduction {
            let primitive = if number == 0 { "compute_at" } else { "reverse_compute_at" };
            together(&mut out, format!("{primitive}(block: {:?}, loop: {rows:?})", partial(it)));
        }
        if number > 0 {
            together(&mut out, format!("reverse_compute_at(block: {name:?}, loop: {rows:?})"));
        }
    }
    for it in &reductions {
        let partial = partial(it);
        out.step(format!("decompose_reduction(block: {partial:?}, loop: \"{partial}_1\")"));
        out.step(format!("vectorize(loop: \"{partial}_2\")"));
        out.step(format!("vectorize(loop: \"{partial}_2_init\")"));
    }
    out.because("Rows are independent of each other.", format!("parallel(loop: {rows:?})"));
    out
}

/// The block of partial results of a reduction, and its buffer.
fn partial(it: &Stage<'_>) -> String {
    format!("{}_rf", it.block.name)
}
