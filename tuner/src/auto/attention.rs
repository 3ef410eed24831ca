//! Attention on tensor cores: two products with a softmax between them, in one kernel that goes through the keys once. What the program has is found here; [`attention_mma`]
//! and [`attention_wgmma`] make a kernel of it.

use ir::{Access, BinaryOp, Block, DType, Func, Index, Iter, IterKind, Name, Reducer, Target};

use super::{Draft, Request, attention_mma, attention_wgmma, product::is_stage, size::Size};
use crate::baseline::product_of;

/// The stages of attention.
pub(super) struct Attention<'a> {
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
    pub(super) depths: [i64; 2],
    pub(super) dtype: DType,
}

/// One kernel: by warpgroups where the target has them and rows begin where the copy engine can, else by warps.
pub(super) fn drafts(request: &Request<'_>) -> Vec<Draft> {
    if *request.target == Target::Cpu {
        return vec![];
    }
    let Some(found) = Attention::of(request.func) else { return vec![] };
    // Tiles that a mask hides are left out where the compiler finds some.
    let both =
        |draft: &dyn Fn(bool) -> Option<Draft>| [true, false].map(draft).into_iter().flatten().collect();
    let by_warpgroups: Vec<Draft> = both(&|skips| attention_wgmma::draft(&found, request, skips));
    let by_warps: Vec<Draft> = both(&|skips| attention_mma::draft(&found, request, skips));
    by_warpgroups.into_iter().chain(by_warps).collect()
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

    /// How many heads there are in all.
    pub(super) fn heads(&self) -> Option<i64> {
        let around = self.scores.iters.get(..self.rank() - 2)?;
        around.iter().map(|it| it.extent.as_int()).try_fold(1, |all, it| i64::checked_mul(all, it?))
    }

    /// How many queries a head has.
    pub(super) fn queries(&self) -> Option<i64> {
        self.scores.iters.get(self.rank() - 2)?.extent.as_int()
    }

    fn rank(&self) -> usize {
        self.scores.iters.len() - 1
    }

    /// A block of threads for each tile of queries of each head: the loop over them.
    pub(super) fn bind_grid(&self, request: &Request<'_>, out: &mut Draft) -> Option<&'static str> {
        let around = loops_of(request.func, self.acc)?;
        let around: Vec<&str> = around[..self.rank() - 2].iter().map(String::as_str).chain(["qo"]).collect();
        let grid = if around.len() > 1 { "tile" } else { "qo" };
        if around.len() > 1 {
            out.step(format!("fuse(loops: {around:?}, into: {grid:?})"));
        }
        out.step(format!("bind(loop: {grid:?}, axis: \"blockIdx.x\")"));
        Some(grid)
    }

    /// What the procedures call the stages, the inputs and the dimensions.
    pub(super) fn names(&self) -> Names {
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
    pub(super) fn loops(&self, request: &Request<'_>) -> Option<[Argument; 7]> {
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
pub(super) type Argument = (&'static str, String, &'static str);

/// Arguments that several procedures take.
pub(super) struct Names(Vec<Argument>);

impl Names {
    /// Those for the parameters of one of them.
    pub(super) fn of(&self, params: &'static [&str]) -> impl Iterator<Item = Argument> {
        self.0.iter().filter(|it| params.contains(&it.0)).cloned()
    }
}

/// A call with these sizes, and with the arguments that are not what they are unless given.
pub(super) fn call(
    procedure: &str,
    sizes: &[(&str, &Size)],
    arguments: impl Iterator<Item = Argument>,
) -> String {
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
