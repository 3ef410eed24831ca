//! Reductions of which each thread computes a few outputs that lie side by side, straight from memory: pooling, depthwise convolutions, sparse rows
//! times a matrix. Nothing is shared between threads but by the caches.

use ir::{Block, Index, IterKind, Loop, Target};

use super::{Draft, Request, counted, free};

/// The bytes of the widest access of a GPU; vectors of a CPU are taken as wide as that, twice over.
const VECTOR: i64 = 16;

/// Threads of a block.
const THREADS: i64 = 128;

/// Parts that CPU threads take.
const PARTS: i64 = 64;

/// The most steps of a reduction that are written out.
const WRITTEN_OUT: i64 = 32;

/// How many outputs behind each other a thread has where they share most of a window, which it loads once: on an H200 a depthwise convolution of 32 x 112 x 112 x 64 in f32
/// takes 64.8 us with two, 64.7 with four and 81.7 with one (`bench/fits/2026-11-29-h200-windows.jsonl`).
const BEHIND: i64 = 2;

/// A reduction with outputs side by side.
struct Direct {
    block: String,
    /// The loops over outputs, the last of which runs along a row.
    outputs: Vec<String>,
    /// The loops that are reduced over, and how many steps these are, where that is known.
    reduced: Vec<String>,
    steps: Option<i64>,
    /// The loop over outputs, all but the last, of which two behind each other read the same elements.
    window: Option<String>,
    /// The outputs of a row.
    row: i64,
    /// The bytes of the widest element that is read or written.
    widest: i64,
}

/// Vectors of outputs, the widest first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let Some(it) = Direct::of(request) else { return vec![] };
    let widest = if *request.target == Target::Cpu { 4 * VECTOR } else { VECTOR };
    let mut vector = widest / it.widest;
    let mut out = vec![];
    while vector >= 2 {
        if it.row % vector == 0 {
            out.push(it.draft(request, vector));
        }
        vector /= 2;
    }
    out
}

impl Direct {
    fn of(request: &Request<'_>) -> Option<Direct> {
        let func = request.func;
        let [block] = func.body.blocks()[..] else { return None };
        block.init.as_ref()?;
        let loops = func.loops_of(&block.name)?;
        let is_reduced = |it: &&&Loop| {
            let of = |var: &ir::Name| *var == it.var;
            let mut uses = block.iters.iter().filter(|iter| iter.binding.any_var(&of));
            uses.any(|iter| iter.kind == IterKind::Reduce)
        };
        let (reduced, outputs): (Vec<&Loop>, Vec<&Loop>) = loops.iter().partition(is_reduced);
        let place = *block.writes().first()?;
        let last = outputs.last()?;
        let along = block.iters.iter().find(|it| it.binding.as_var() == Some(&last.var))?;
        let is_along = place.indices.last()?.as_var() == Some(&along.var) && !reduced.is_empty();
        let steps = reduced.iter().try_fold(1, |all: i64, it| all.checked_mul(it.extent.as_int()?));
        let names = |all: &[&Loop]| all.iter().map(|it| it.var.to_string()).collect();
        let is_short = steps.is_some_and(|it| it <= WRITTEN_OUT);
        let window = outputs.iter().rev().skip(1).find(|it| is_short && is_window(block, it));
        let touched = block.reads().into_iter().chain([place]);
        is_along.then_some(Direct {
            block: block.name.to_string(),
            outputs: names(&outputs),
            reduced: names(&reduced),
            steps,
            window: window.filter(|_| *request.target != Target::Cpu).map(|it| it.var.to_string()),
            row: last.extent.as_int()?,
            widest: touched.filter_map(|it| func.dtype_of(&it.buffer)).map(ir::DType::bytes_i64).max()?,
        })
    }

    fn draft(&self, request: &Request<'_>, vector: i64) -> Draft {
        let about = format!("Each thread has {} side by side, in registers.", counted(vector, "output"));
        let mut out = Draft::new("direct", about, &[], request);
        let name = |it: &str| free(request.func, it).to_string();
        let (block, [tile, lane]) = (&self.block, ["tile", "lane"].map(name));
        let sums = name(&format!("{block}_sums"));
        let (last, others) = self.outputs.split_last().expect("there is a row");
        out.because(
            format!(
                "{} at once are what a thread reduces, and leave when it has.",
                counted(vector, "output")
            ),
            format!("cache_write(block: {block:?}, scope: \"local\", name: {sums:?})"),
        );
        out.step(format!("split(loop: {last:?}, into: {{{tile:?}: None, {lane:?}: {vector}}})"));
        let (mut others, mut behind) = (others.to_vec(), vec![]);
        if let Some(at) = self.window.as_ref().and_then(|it| others.iter().position(|other| other == it)) {
            let (outer, inner) = (name(&format!("{}_pair", others[at])), name("behind"));
            out.because(
                "Outputs behind each other read the same elements, which a thread that has both loads once.",
                format!("split(loop: {:?}, into: {{{outer:?}: None, {inner:?}: {BEHIND}}})", others[at]),
            );
            others[at] = outer;
            behind = vec![inner.clone(), format!("{inner}_init"), format!("{sums}_{at}")];
        }
        let around = others.iter().chain([&tile]).chain(&self.reduced);
        let order: Vec<_> = around.chain(behind.first()).chain([&lane]).collect();
        out.step(format!("reorder(order: {order:?})"));
        out.step(format!("reverse_compute_at(block: {sums:?}, loop: {tile:?})"));
        out.step(format!("decompose_reduction(block: {block:?}, loop: {:?})", self.reduced[0]));
        for it in [lane.clone(), format!("{lane}_init"), format!("{sums}_{}", others.len())] {
            out.step(format!("vectorize(loop: {it:?})"));
        }
        for it in behind {
            out.step(format!("unroll(loop: {it:?})"));
        }
        if self.steps.is_some_and(|it| it <= WRITTEN_OUT) {
            out.reason("The reduction is short: written out, its loads are on the way together.");
            for it in &self.reduced {
                out.step(format!("unroll(loop: {it:?})"));
            }
        }
        let mut all = tile.clone();
        if !others.is_empty() {
            all = name("outputs");
            let outer: Vec<_> = others.iter().chain([&tile]).collect();
            out.step(format!("fuse(loops: {outer:?}, into: {all:?})"));
        }
        to_threads(request, &mut out, &all);
        out
    }
}

/// Whether two iterations of a loop over outputs share more than half of what each reads: `x + dx` with three `dx`, but not `x*2 + dx`, for which pooling takes 1.04 to 1.14 times as
/// long with two of them.
fn is_window(block: &Block, around: &Loop) -> bool {
    let Some(along) = block.iters.iter().find(|it| it.binding.as_var() == Some(&around.var)) else {
        return false;
    };
    let at = |index: &Index, place: i64| index.eval(&|it| Some(if *it == along.var { place } else { 0 }));
    let reduced = || block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    block.reads().iter().flat_map(|it| &it.indices).any(|index| {
        let Some(step) = at(index, 1).zip(at(index, 0)).and_then(|(a, b)| a.checked_sub(b)) else {
            return false;
        };
        let mut windows = reduced().filter(|it| index.any_var(&|var| *var == it.var));
        step > 0 && windows.any(|it| it.extent.as_int().is_some_and(|it| it > 2 * step))
    })
}

/// Gives a loop over vectors of outputs to threads.
fn to_threads(request: &Request<'_>, out: &mut Draft, all: &str) {
    let name = |it: &str| free(request.func, it).to_string();
    if *request.target == Target::Cpu {
        let (part, run) = (name("part"), name("run"));
        let parts = out.knob("parts", PARTS, &[16, 32, 128, 256]);
        out.step(format!("split(loop: {all:?}, into: {{{part:?}: {parts}, {run:?}: None}})"));
        out.step(format!("parallel(loop: {part:?})"));
        return;
    }
    let (block, thread) = (name("block"), name("thread"));
    let threads = out.knob("threads", THREADS, &[64, 256, 512]);
    out.step(format!("split(loop: {all:?}, into: {{{block:?}: None, {thread:?}: {threads}}})"));
    out.step(format!("bind(loop: {block:?}, axis: \"blockIdx.x\")"));
    out.step(format!("bind(loop: {thread:?}, axis: \"threadIdx.x\")"));
}
