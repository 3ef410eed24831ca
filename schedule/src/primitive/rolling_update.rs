use ir::{
    Access, Block, Func, IterKind, Loop, Name, Reducer, Role, Stmt,
    region::{self, Way},
};
use serde::{Deserialize, Serialize};

use super::{compute_inline::expect_only_writer, decompose_reduction::DecomposeReduction};
use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState,
    check::once::{expect_all_points, expect_all_terms, expect_no_point_twice, expect_start},
    moved,
    nest::{self, Spot},
    rolling::{Correction, Follower, Rolled, followers, start_finite},
    tile::range_of_tiles,
};

/// Moves a reduction into a loop over its own terms, and lets the sums there follow it as it grows.
///
/// ```text
/// rolling_update(block: "M", loop: "ko")
///
/// for i in 0..n { for k in 0..m { M[i] = -inf when k == 0; M[i] = max(M[i], T[i, k]) } }
/// for i in 0..n { for ko in 0..m/8 { for ki in 0..8 {
///   L[i] = 0 when ko*8 + ki == 0; L[i] += exp(T[i, ko*8 + ki] - M[i]) } } }
/// ->
/// for i in 0..n {
///   M[i] = lowest
///   L[i] = 0
///   for ko in 0..m/8 {
///     M_old[i] = M[i]
///     for ki in 0..8 { M[i] = max(M[i], T[i, ko*8 + ki]) }
///     M_scale[i] = exp(M_old[i] - M[i])
///     L_old[i] = L[i]
///     L[i] = L_old[i] * M_scale[i]
///     for ki in 0..8 { L[i] += exp(T[i, ko*8 + ki] - M[i]) } } }
/// ```
///
/// So softmax and attention go through a row once (Milakov and Gimelshein, *Online normalizer calculation for softmax*;
/// FlashAttention). In each iteration the block takes the terms that other blocks in the loop read there, too, and stands before its
/// readers. Its init is taken out before the outermost loop that it reduces over.
///
/// Readers in the loop see what the reduction is so far. Of a maximum or a minimum `M` they may be elementwise blocks and sums whose terms
/// are products with `exp(c*(t - M))` or `exp2`, `t` being a term of `M`: by linearity the sum that belongs to the new `M` is the old one times
/// `exp(c*(M_old - M))`, and no exponent is ever above zero. `{block}_old`, `{block}_scale` and, for each sum, `{sum}_old` and `{sum}_rescale`
/// are the blocks that do this; none of them updates, so that threads may share them or each do all. Sums are divided, and used, behind the loop. A reduction that nothing in the loop reads, of any
/// kind, just moves.
///
/// The result is the same but for rounding wherever it is a number: where all terms of a maximum are `-inf`, it is the least finite
/// number instead, so that rows which begin with masked terms are none of `NaN`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RollingUpdate {
    /// The reduction.
    pub block: Name,
    /// The loop over its terms.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for RollingUpdate {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?.clone();
        state.expect_loop(&self.target)?;
        let reducer = Reducer::of(&block).filter(|_| block.init.is_some());
        let reducer = reducer.ok_or_else(|| BlockError::NotReducer { block: self.block.clone() })?;
        let func = &state.func;
        self.expect_own_temporary(func, &block, &reducer)?;
        expect_no_point_twice(func, &block)?;
        expect_all_terms(func, &block)?;
        expect_start(func, &block)?;
        moved::expect_movable(func, &self.block, &self.target)?;

        let moved = self.moved(func, &block, &reducer)?;
        let outer = self.outermost(&moved)?;
        let rolled = Rolled { block: &self.block, target: &self.target, outer: &outer, reducer: &reducer };
        let sums = followers(&moved, &rolled)?;
        state.func = moved;
        self.decompose(state, &outer, &sums)?;
        if !sums.is_empty() {
            start_finite(&mut state.func, &self.block);
            Correction(&rolled).insert(&mut state.func, &sums)?;
        }
        Ok(())
    }
}

impl RollingUpdate {
    fn expect_own_temporary(&self, func: &Func, block: &Block, reducer: &Reducer) -> Result<(), BlockError> {
        let buffer = &reducer.place.buffer;
        if func.buffers[buffer].role != Role::Temp {
            return Err(BlockError::WritesOutput { block: self.block.clone(), buffer: buffer.clone() });
        }
        expect_only_writer(func, block, buffer)
    }

    fn is_under(&self, func: &Func, block: &Name) -> bool {
        func.loops_of(block).is_some_and(|loops| loops.iter().any(|it| it.var == self.target))
    }

    /// The program with the block in the loop, where it takes the terms that blocks there read as well.
    fn moved(&self, func: &Func, block: &Block, reducer: &Reducer) -> Result<Func, ScheduleError> {
        let mut terms: Vec<&Access> = Vec::new();
        reducer.term.each_load(&mut |it| terms.push(it));
        let path = nest::path(func, Some(&self.target));
        let bounds = region::bounds_of(func, &path);
        let mut ranges = vec![None; block.iters.len()];
        let mut shared: Vec<Name> = Vec::new();
        for read in &terms {
            let readers = func.readers(&read.buffer);
            for reader in readers.iter().filter(|it| self.is_under(func, &it.name)) {
                let region = region::touched_below(func, reader, &read.buffer, path.len(), Way::Read);
                shared.push(reader.name.clone());
                for (range, iter) in ranges.iter_mut().zip(&block.iters).filter(|it| it.0.is_none()) {
                    let mut dims = read.indices.iter().zip(&region);
                    *range =
                        dims.find_map(|(index, part)| range_of_tiles(block, &iter.var, index, part, &bounds));
                }
            }
        }
        if shared.is_empty() {
            let (block, loop_name) = (self.block.clone(), self.target.clone());
            return Err(BlockError::NoTermsInLoop { block, loop_name }.into());
        }
        moved::expect_same_values(func, block, &ranges, &self.target)?;
        let producers: Vec<Name> =
            terms.iter().flat_map(|it| func.writers(&it.buffer)).map(|it| it.name.clone()).collect();
        moved::expect_whole_results(func, &self.block, &producers, &self.target)?;

        let mut new = func.clone();
        new.replace_block(&self.block, |_| Stmt::Seq(vec![]));
        let bounds = region::bounds_of(&new, &nest::path(&new, Some(&self.target)));
        let children = nest::children(&new, Some(&self.target));
        let readers: Vec<Name> =
            new.readers(&reducer.place.buffer).iter().map(|it| it.name.clone()).collect();
        let behind = nest::span(&children, &producers).map(|it| it.1 + 1);
        let before = nest::span(&children, &readers).or_else(|| nest::span(&children, &shared));
        let at = behind.or(before.map(|it| it.0)).unwrap_or(0);
        let nest = nest::place(&new, block.clone(), &ranges, &bounds);
        nest::insert(&mut new, &Spot { within: Some(self.target.clone()), at }, nest);

        moved::expect_same_order(func, &new, &self.block)?;
        moved::expect_covered(func, &new, &self.block)?;
        let block = new.find_block(&self.block).expect("it was put there");
        expect_no_point_twice(&new, block)?;
        expect_all_terms(&new, block)?;
        expect_all_points(&new, block)?;
        Ok(new)
    }

    /// The outermost loop that the block reduces over, which must not be inside the one that is named.
    fn outermost(&self, moved: &Func) -> Result<Name, BlockError> {
        let block = moved.find_block(&self.block).expect("it was put there");
        let path = nest::path(moved, Some(&self.target));
        let reduces = |it: &&&Loop| {
            let mut iters = block.iters.iter().filter(|iter| iter.kind == IterKind::Reduce);
            iters.any(|iter| iter.binding.any_var(&|var| *var == it.var))
        };
        path.iter().find(reduces).map(|it| it.var.clone()).ok_or_else(|| BlockError::NotReductionLoop {
            block: self.block.clone(),
            loop_name: self.target.clone(),
        })
    }

    /// Inits come before the loops that are reduced over.
    fn decompose(
        &self,
        state: &mut ScheduleState,
        outer: &Name,
        sums: &[Follower],
    ) -> Result<(), ScheduleError> {
        DecomposeReduction { block: self.block.clone(), target: outer.clone() }.apply(state)?;
        for sum in sums {
            let block = state.expect_block(&sum.block)?;
            if block.init.is_some() {
                DecomposeReduction { block: sum.block.clone(), target: outer.clone() }.apply(state)?;
            }
        }
        Ok(())
    }
}
