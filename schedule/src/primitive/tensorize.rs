use std::sync::Arc;

use ir::{
    Block, Index, IterKind, Loop, LoopAttrs, LoopKind, Name, Stmt, ThreadAxis,
    intrin::{self, Instruction, Intrinsic, LaneMap, TENSORIZE},
};
use serde::{Deserialize, Serialize};

use super::bind::expect_free_axis;
use crate::{
    Primitive, ScheduleError, ScheduleState, TileError,
    error::Thing,
    rewrite::{simplify_loop, subst_loops},
    tile::blockized,
    tile_error::Types,
};

/// Has a block, or the loops over a tile, done by the 32 lanes of a warp, or the 128 of a warpgroup, together, or by the tensor core for one thread.
///
/// ```text
/// tensorize(loop: "ii", intrin: "mma_m16n8k16_f16_f32")
///
/// for ko in 0..k/16 { for ii in 0..16 { for ji in 0..8 { for ki in 0..16 { C[ii, ji] += f32(A[ii, ko*16 + ki]) * f32(B[ko*16 + ki, ji]) } } } }
/// ->
/// for ko in 0..k/16 { C = mma_m16n8k16_f16_f32(C, A[.., ko*16 ..], B[ko*16 .., ..]) }
/// ```
///
/// With an `mma_` or `ldmatrix_` intrinsic, `loop` and the loops in it come into the block as `blockize` brings them, or
/// `block` names one that it made already. What the block computes must be what the intrinsic computes: loops of its
/// extents in any order, its arithmetic, its types, and operands in its scopes, `fragment` or `shared`. The block keeps
/// its name and its meaning, and moves and is pipelined like any other; only lowering puts the instruction in its place. It
/// stands under no loop bound to `threadIdx.x`, for that axis is the lanes; `threadIdx.y` and `threadIdx.z` number warps.
///
/// A `wgmma_` intrinsic is for a warpgroup: `threadIdx.x` has 128 lanes, and the loop over columns may have any extent that is a multiple of
/// 8 up to 256. Its factors stand in `shared` memory under `swizzle`, with the dimension that is summed over last (two-byte types may have it
/// first), the left one of `wgmma_rs_` in `fragment`. Unlike others, the block keeps its `init`, if that sets its sums to zero: the
/// instruction starts from zero in the first iteration. In a pipeline the threads go on while it multiplies.
///
/// A `tcgen05_` product has its sums in the scope `tensor`, 128 rows and a multiple of 16 up to 256 columns, and its factors like `wgmma_`. One thread starts it, and all go on. `tcgen05_ld`
/// copies 8 to 128 columns, a power of two, of 128 rows from there to a fragment: `threadIdx.x` has 128 lanes then, a row each.
/// `tcgen05_pair_` products are of two blocks of a cluster together: a loop of two iterations over their rows is bound to `cluster.x`, columns are a multiple of
/// 32, and copies and products have roles. Each block then copies and keeps half of the right factor.
///
/// `tcgen05_scaled_` products have factors with a scale for each 32 elements of a row, or for each 16 or 8 bytes of two floats, in the scope `tensor`, and 128 or 256 columns; `tcgen05_cp` copies 32 x 16 scales from
/// shared memory to there, those of 128 rows and four such blocks.
///
/// With a `lanes_` intrinsic, `loop` runs over the rows of a tile and the one loop in it over its columns. They become
/// `{loop}_lane`, bound to `threadIdx.x`, `{loop}_part`, unrolled, and `{loop}_elem`, vectorized over neighbours: each lane
/// works on the elements that it has. So accumulators are filled, converted and stored, guards and all. A reduction over columns is one of
/// the lanes that share a row. Without the loop over columns, what is in `loop` is done for the rows alone, by each lane that has elements of one.
///
/// `mma`, `tcgen05`, `tcgen05_pair`, `tcgen05_scaled`, `wgmma` or `wgmma_rs` alone is the one of them that has the types of the block: the same script then multiplies
/// `bf16` and `f8e4m3`.
///
/// `explain INTRINSIC` tells what an intrinsic computes and draws which lane has what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
// One of: target | block
pub struct Tensorize {
    /// The outermost loop over the tile.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Name>,
    /// In its place, a block that works on tiles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Name>,
    /// The intrinsic, or what the names of products of all types begin with.
    pub intrin: Name,
}

impl Primitive for Tensorize {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let named = intrin::find(self.intrin.as_str());
        if named.is_none() && !intrin::families().contains(&self.intrin.as_str()) {
            let all = intrin::ALL.iter().map(|it| it.name).chain(intrin::families());
            let (thing, name, known) = (Thing::Intrinsic, self.intrin.clone(), all.map(Name::from).collect());
            return Err(ScheduleError::NoSuch { thing, name, known });
        }
        match (&self.target, &self.block) {
            (Some(target), None) => {
                if let Some(Intrinsic { instruction: Instruction::Lanes(map), .. }) = named {
                    return spread(state, target, named.expect("it was just seen"), map);
                }
                let block = blockized(state, target)?;
                let marked = self.tensorized(state, block, named)?;
                state.func.replace_loop(target, |_| Stmt::Block(Arc::new(marked)));
                Ok(())
            }
            (None, Some(name)) => {
                let block = state.expect_block(name)?.clone();
                let marked = self.tensorized(state, block, named)?;
                state.func.replace_block(name, |_| Stmt::Block(Arc::new(marked)));
                Ok(())
            }
            (Some(_), Some(_)) | (None, None) => Err(TileError::TensorizeWhat.into()),
        }
    }
}

impl Tensorize {
    /// The block with its annotation, if it computes what the intrinsic does: the named one, or that of the family with the
    /// types of the block.
    fn tensorized(
        &self,
        state: &ScheduleState,
        mut block: Block,
        named: Option<&'static Intrinsic>,
    ) -> Result<Block, ScheduleError> {
        if block.attrs.tensorize.is_some() {
            return Err(ScheduleError::Annotated { name: block.name, key: TENSORIZE.to_owned() });
        }
        let found = named.map_or_else(|| intrin::of_types(self.intrin.as_str(), &state.func, &block), Ok);
        let intrinsic = found.map_err(|types| {
            let (block, family) = (block.name.clone(), self.intrin.clone());
            TileError::NoMember { block, family, types: Types(types) }
        })?;
        if let Err(mismatch) = intrin::matched(intrinsic, &state.func, &block) {
            let (block, intrinsic) = (block.name, intrinsic.name);
            return Err(TileError::Mismatch { block, intrinsic, mismatch }.into());
        }
        block.attrs.tensorize = Some(intrinsic);
        Ok(block)
    }
}

/// Spreads the elements of a tile, or the rows of one, over the lanes that have them.
fn spread(
    state: &mut ScheduleState,
    target: &Name,
    intrinsic: &'static Intrinsic,
    map: &'static LaneMap,
) -> Result<(), ScheduleError> {
    let rows = state.expect_plain_loop(target)?;
    let columns = match &rows.body {
        Stmt::Loop(it) => Some(state.expect_plain_loop(&it.var)?),
        Stmt::Block(_) | Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => None,
    };
    let found: Vec<Index> = [Some(rows), columns].into_iter().flatten().map(|it| it.extent.clone()).collect();
    // A row is in the lanes that have elements of it: which these are does not depend on where in the row they stand.
    let [row, _] =
        map.element(&Index::var(&"lane".into()), &Index::var(&"h".into()), &Index::var(&"v".into()));
    let has_rows = columns.is_some() || !row.any_var(&|it| it.as_str() == "v");
    if !has_rows || found.iter().zip(map.tile).any(|(it, tile)| it.as_int() != Some(tile)) {
        return Err(TileError::LaneTile { loop_name: target.clone(), map, found }.into());
    }
    let names = ["lane", "part", "elem"].map(|it| Name::new(format!("{target}_{it}")));
    let names = &names[..if columns.is_some() { 3 } else { 2 }];
    names.iter().try_for_each(|it| state.expect_fresh(it))?;

    let index = |at: usize| names.get(at).map_or(Index::int(0), Index::var);
    let [row, column] = map.element(&index(0), &index(1), &index(2));
    let mut body = columns.map_or_else(|| rows.body.clone(), |it| it.body.clone());
    subst_loops(&mut body, &|var| match var {
        var if var == target => Some(row.clone()),
        var if columns.is_some_and(|it| it.var == *var) => Some(column.clone()),
        _ => None,
    });
    let reduces = |it: &&Block| {
        let mut iters = it.iters.iter().filter(|it| it.kind == IterKind::Reduce);
        iters.any(|it| names.get(2).is_some_and(|elem| it.binding.any_var(&|var| var == elem)))
    };
    // A vector has places of its own for its elements.
    let neighbours =
        if body.blocks().iter().any(reduces) { LoopKind::Unrolled } else { LoopKind::Vectorized };
    let kinds = [LoopKind::Bound(ThreadAxis::ThreadX), LoopKind::Unrolled, neighbours];
    let extents = [map.lanes, map.parts[0], map.parts[1]];
    let mut loops: Vec<Loop> = Vec::new();
    for ((var, kind), extent) in names.iter().cloned().zip(kinds).zip(extents) {
        let (attrs, body) = (LoopAttrs::default(), Stmt::Seq(vec![]));
        loops.push(Loop { var, extent: Index::int(extent), kind, attrs, body });
    }
    loops[0].attrs.tensorize = Some(intrinsic);
    let first = loops[0].var.clone();
    let nest = loops.into_iter().rev().fold(body, |body, it| Stmt::Loop(Arc::new(Loop { body, ..it })));
    if let Stmt::Loop(lanes) = &nest {
        expect_free_axis(lanes, ThreadAxis::ThreadX, &state.expect_path(target)?)?;
    }

    state.func.replace_loop(target, |_| nest);
    simplify_loop(&mut state.func, &first);
    Ok(())
}
