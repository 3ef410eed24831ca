//! Attention on tensor cores: two products with a softmax between them, in one kernel that goes through the keys once.

use ir::{Access, BinaryOp, Block, DType, Func, Index, Iter, IterKind, Name, Reducer, Target};

use super::{
    Draft, Request, counted,
    product::{is_stage, vector},
    size::Size,
};
use crate::baseline::product_of;

/// The bytes of the widest copy, and the rows of an instruction.
const VECTOR: i64 = 16;
const ROWS: i64 = 16;

/// How many warps a block has, how many rows of instructions each has, how many keys an iteration takes, and whether the queries stay in registers:
/// by the most columns that a head may have. Sums in registers and tiles in shared memory leave no more. Measured on an H100
/// (`bench/results/2026-11-27-h100-attention.jsonl`).
const TILES: [(i64, Tile); 3] = [
    (64, Tile { warps: 4, rows: 1, keys: 64, keep: 1 }),
    (128, Tile { warps: 4, rows: 2, keys: 64, keep: 0 }),
    (256, Tile { warps: 4, rows: 1, keys: 32, keep: 0 }),
];

/// What a block of threads has of attention.
#[derive(Clone, Copy)]
struct Tile {
    warps: i64,
    rows: i64,
    keys: i64,
    keep: i64,
}

/// The stages of attention.
struct Attention<'a> {
    scores: &'a Block,
    /// Elementwise stages between the scores and the softmax, such as a mask.
    inline: Vec<&'a Block>,
    max: &'a Block,
    exps: &'a Block,
    sum: &'a Block,
    weights: &'a Block,
    acc: &'a Block,
    result: &'a Block,
    /// Queries, keys and values.
    inputs: [Name; 3],
    /// How many columns queries and values have.
    depths: [i64; 2],
    dtype: DType,
}

/// One kernel.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    if *request.target == Target::Cpu {
        return vec![];
    }
    let Some(found) = Attention::of(request.func) else { return vec![] };
    let most = found.depths[0].max(found.depths[1]);
    let Some((_, tile)) = TILES.iter().find(|it| most <= it.0) else { return vec![] };
    // Tiles that a mask hides are left out where the compiler finds some.
    [true, false].into_iter().filter_map(|skips| found.draft(request, *tile, skips)).collect()
}

impl<'a> Attention<'a> {
    fn of(func: &'a Func) -> Option<Attention<'a>> {
        let blocks = func.body.blocks();
        let [scores, between @ .., acc, result] = blocks.as_slice() else { return None };
        let (place, q, k) = product_of(scores)?;
        let (_, left, v) = product_of(acc)?;
        let reduced =
            |op: BinaryOp| between.iter().position(|it| Reducer::of(it).is_some_and(|it| it.op == op));
        let (max, sum) = (reduced(BinaryOp::Max)?, reduced(BinaryOp::Add)?);
        let (inline, [exps], [weights]) =
            (between.get(..max)?, between.get(max + 1..sum)?, between.get(sum + 1..)?)
        else {
            return None;
        };
        let stages = inline.iter().chain([exps, weights, result]);
        if !stages.clone().all(|it| is_stage(it))
            || !weights.writes().iter().any(|it| it.buffer == left.buffer)
        {
            return None;
        }
        // The rows of the result are those of the first factors, whichever way the products are written.
        let rank = place.indices.len();
        let of_rows = |block: &Block, access: &Access| {
            let row = block.iters.get(rank - 2);
            row.is_some_and(|it| access.indices.contains(&Index::var(&it.var)))
        };
        let (q, k) = if of_rows(scores, q) { (q, k) } else { (k, q) };
        let dtype = func.dtype_of(&v.buffer).filter(|it| matches!(it, DType::F16 | DType::Bf16))?;
        let types = [&q.buffer, &k.buffer, &left.buffer].map(|it| func.dtype_of(it));
        let all = inline
            .iter()
            .chain([max, sum].map(|at| &between[at]))
            .chain([exps, weights, acc, result, scores]);
        let is_in_order = all.clone().all(|it| in_order(it));
        let is_plain = rank >= 2 && types == [Some(dtype); 3] && is_in_order;
        let extent = |iter: Option<&Iter>| iter.and_then(|it| it.extent.as_int());
        let depths = [extent(scores.iters.get(rank))?, extent(acc.iters.get(rank - 1))?];
        is_plain.then_some(Attention {
            scores,
            inline: inline.to_vec(),
            max: between[max],
            exps,
            sum: between[sum],
            weights,
            acc,
            result,
            inputs: [q, k, v].map(|it| it.buffer.clone()),
            depths,
            dtype,
        })
    }

    fn rank(&self) -> usize {
        self.scores.iters.len() - 1
    }

    fn draft(&self, request: &Request<'_>, tile: Tile, skips: bool) -> Option<Draft> {
        let about = "One kernel goes through the keys once: each warp has rows of the scores in registers, and the sums of values follow the maximum as it grows.";
        let mut out = Draft::new("attention", about.to_owned(), &["std/attention"], request.form);
        let warps = out.knob("warps", tile.warps, &[2, 4, 8]);
        let rows = out.knob("query_rows", tile.rows, &[1, 2]);
        let keys = out.knob("key_tile", tile.keys, &[32, 64, 128]);
        let keep = out.knob("keep", tile.keep, &[0, 1]);
        let names = self.names();
        out.because(
            format!(
                "{} by {} of instructions are {} rows of queries for a block, and an iteration takes {}: sums of {} columns leave registers for no more.",
                counted(tile.warps, "warp"),
                counted(tile.rows, "row"),
                tile.warps * tile.rows * ROWS,
                counted(tile.keys, "key"),
                self.depths[1],
            ),
            call(
                "attention_tile",
                &[("warps", &warps), ("rows", &rows), ("keys", &keys)],
                names
                    .of(&["scores", "max", "exps", "sum", "weights", "acc", "result"])
                    .chain(self.loops(request)?),
            ),
        );
        let wide = self.depths.map(|it| vector(it, self.dtype, VECTOR));
        let vectors = wide.map(|it| ("vector", it.to_string(), "8"));
        let of_scores = names.of(&["scores", "q", "k", "row", "column", "depth"]);
        out.because(
            format!(
                "Rows of queries and keys have {}, {} at once.",
                counted(self.depths[0], "element"),
                wide[0]
            ),
            call(
                "attention_scores",
                &[("warps", &warps), ("keep", &keep)],
                of_scores.chain([vectors[0].clone()]),
            ),
        );
        let of_softmax = names.of(&["max", "exps", "sum", "weights", "acc", "result", "row", "column"]);
        out.step(call("attention_softmax", &[], of_softmax));
        let of_values = names.of(&["weights", "v", "acc", "row", "column"]);
        out.step(call("attention_values", &[("warps", &warps)], of_values.chain([vectors[1].clone()])));
        self.bind_grid(request, &mut out)?;
        if skips {
            out.because(
                "Tiles of keys that the mask hides as a whole are left out.",
                "remove_no_op(loop: \"ko\")",
            );
        }
        let style = if skips { "\"peel_prologue\"" } else { "\"peel\"" };
        let of_pipeline = names.of(&["scores", "max", "exps", "sum", "weights", "acc", "k", "v"]);
        out.because(
            "The next keys and values come while these are used.",
            call("attention_pipeline", &[], of_pipeline.chain([("style", style.to_owned(), "\"peel\"")])),
        );
        Some(out)
    }

    /// A block of threads for each tile of queries of each head.
    fn bind_grid(&self, request: &Request<'_>, out: &mut Draft) -> Option<()> {
        let around = loops_of(request.func, self.acc)?;
        let around: Vec<&str> = around[..self.rank() - 2].iter().map(String::as_str).chain(["qo"]).collect();
        let grid = if around.len() > 1 { "tile" } else { "qo" };
        if around.len() > 1 {
            out.step(format!("fuse(loops: {around:?}, into: {grid:?})"));
        }
        out.step(format!("bind(loop: {grid:?}, axis: \"blockIdx.x\")"));
        Some(())
    }

    /// What the procedures call the stages, the inputs and the dimensions.
    fn names(&self) -> Names {
        let rank = self.rank();
        let block = |param, it: &Block, usual| (param, format!("{:?}", it.name.as_str()), usual);
        let input = |param, at: usize, usual| (param, format!("{:?}", self.inputs[at].as_str()), usual);
        Names(vec![
            block("scores", self.scores, "\"S\""),
            block("max", self.max, "\"row_max\""),
            block("exps", self.exps, "\"P\""),
            block("sum", self.sum, "\"row_sum\""),
            block("weights", self.weights, "\"W\""),
            block("acc", self.acc, "\"acc\""),
            block("result", self.result, "\"O\""),
            input("q", 0, "\"Q\""),
            input("k", 1, "\"K\""),
            input("v", 2, "\"V\""),
            ("row", (rank - 2).to_string(), "2"),
            ("column", (rank - 1).to_string(), "3"),
            ("depth", rank.to_string(), "4"),
        ])
    }

    /// The loops of both products, and what stands between the first and the softmax.
    fn loops(&self, request: &Request<'_>) -> Option<[Argument; 7]> {
        let (scores, acc) = (loops_of(request.func, self.scores)?, loops_of(request.func, self.acc)?);
        let rank = self.rank();
        let at = |param, of: &[String], at: usize, usual| Some((param, format!("{:?}", of.get(at)?), usual));
        let inline: Vec<_> = self.inline.iter().map(|it| it.name.to_string()).collect();
        Some([
            at("at_q", &scores, rank - 2, "\"q\"")?,
            at("at_k", &scores, rank - 1, "\"k\"")?,
            at("at_d", &scores, rank, "\"d\"")?,
            at("queries", &acc, rank - 2, "\"q_acc\"")?,
            at("columns", &acc, rank - 1, "\"e\"")?,
            at("sum_k", &acc, rank, "\"k_acc\"")?,
            ("inline", format!("{inline:?}"), "[\"T\"]"),
        ])
    }
}

/// The loops around a block.
fn loops_of(func: &Func, block: &Block) -> Option<Vec<String>> {
    Some(func.loops_of(&block.name)?.iter().map(|it| it.var.to_string()).collect())
}

/// An argument of a procedure: its parameter, its value and what that is unless given.
type Argument = (&'static str, String, &'static str);

/// Arguments that several procedures take.
struct Names(Vec<Argument>);

impl Names {
    /// Those for the parameters of one of them.
    fn of(&self, params: &'static [&str]) -> impl Iterator<Item = Argument> {
        self.0.iter().filter(|it| params.contains(&it.0)).cloned()
    }
}

/// A call with these sizes, and with the arguments that are not what they are unless given.
fn call(procedure: &str, sizes: &[(&str, &Size)], arguments: impl Iterator<Item = Argument>) -> String {
    let sizes = sizes.iter().map(|(param, size)| format!("{param}: {size}"));
    let others = arguments.filter(|it| it.1 != it.2);
    let all: Vec<_> = sizes.chain(others.map(|it| format!("{}: {}", it.0, it.1))).collect();
    format!("{procedure}({})", all.join(", "))
}

/// Whether the spatial iterators of a block come first, and are the subscripts of what it writes, in this order; and each loop is one iterator.
fn in_order(block: &Block) -> bool {
    let writes = block.writes();
    let Some(place) = writes.first() else { return false };
    let spatial = block.iters.iter().take_while(|it| it.kind == IterKind::Spatial);
    let rest = block.iters.iter().skip_while(|it| it.kind == IterKind::Spatial);
    spatial.map(|it| Index::var(&it.var)).eq(place.indices.iter().cloned())
        && rest.count() <= 1
        && block.iters.iter().all(|it| it.binding.as_var().is_some())
}
