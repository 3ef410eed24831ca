//! Programs whose stages each do something to single elements.

use ir::{Block, Func, IterKind, Role, Target};

use super::{Draft, Request, counted, free};

/// Threads of a block.
const THREADS: i64 = 256;

/// Parts that CPU threads take.
const PARTS: i64 = 64;

/// One pass over all elements, the widest vectors first.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    let blocks = request.func.body.blocks();
    let Some((last, before)) = blocks.split_last() else { return vec![] };
    let is_spatial =
        |it: &&Block| it.init.is_none() && it.iters.iter().all(|it| it.kind == IterKind::Spatial);
    let is_temp =
        |it: &&Block| it.writes().iter().all(|it| role(request.func, &it.buffer) == Some(Role::Temp));
    let reads =
        |it: &Block| it.reads().iter().filter_map(|it| request.func.dtype_of(&it.buffer)).collect::<Vec<_>>();
    if !blocks.iter().all(is_spatial) || !before.iter().all(is_temp) {
        return vec![];
    }
    let Some(loops) = request.func.loops_of(&last.name) else { return vec![] };
    let loops: Vec<_> = loops.into_iter().map(|it| it.var.to_string()).collect();
    if loops.is_empty() {
        return vec![];
    }
    let widest = reads(last).iter().map(|it| it.bytes_i64()).max().unwrap_or(4);
    let mut vector = 16 / widest;
    let mut out = vec![];
    while vector >= 1 {
        out.push(one(request, before, last, &loops, vector));
        vector /= 2;
    }
    out
}

fn role(func: &Func, buffer: &ir::Name) -> Option<Role> {
    func.buffers.get(buffer).map(|it| it.role)
}

fn one(request: &Request<'_>, before: &[&Block], last: &Block, loops: &[String], vector: i64) -> Draft {
    let mut out = Draft::new("elementwise", "One pass over all elements.".to_owned(), &[], request);
    for block in before {
        out.step(format!("compute_inline(block: {:?})", block.name.as_str()));
    }
    let name = |it: &str| free(request.func, it).to_string();
    let mut all = loops[0].clone();
    if loops.len() > 1 {
        all = name(&format!("{}_all", last.name));
        out.step(format!("fuse(loops: {loops:?}, into: {all:?})"));
    }
    let why =
        format!("{} at once: as many as lie beside each other in all buffers.", counted(vector, "element"));
    let lane = name("lane");
    if *request.target == Target::Cpu {
        let (part, run) = (name("part"), name("run"));
        let parts = out.knob("parts", PARTS, &[16, 32, 128, 256]);
        out.because(
            why,
            format!("split(loop: {all:?}, into: {{{part:?}: {parts}, {run:?}: None, {lane:?}: {vector}}})"),
        );
        out.step(format!("parallel(loop: {part:?})"));
    } else {
        let (block, thread) = (name("block"), name("thread"));
        let threads = out.knob("threads", THREADS, &[64, 128, 512, 1024]);
        out.because(
            why,
            format!(
                "split(loop: {all:?}, into: {{{block:?}: None, {thread:?}: {threads}, {lane:?}: {vector}}})"
            ),
        );
        out.step(format!("bind(loop: {block:?}, axis: \"blockIdx.x\")"));
        out.step(format!("bind(loop: {thread:?}, axis: \"threadIdx.x\")"));
    }
    if vector > 1 {
        out.step(format!("vectorize(loop: {lane:?})"));
    }
    out
}
