use ir::{
    Block, Func, Index, IterKind, Name, Role, Stmt,
    arith::Bounds,
    region::{self, Range, Way},
};
use serde::{Deserialize, Serialize};

use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState,
    check::{
        independent::accumulates,
        once::{expect_all_terms, expect_no_point_twice},
    },
    moved,
    nest::{self, Spot},
    tile::range_of_tiles,
};

/// Moves a producer under a loop of its readers, computing there just what they need in one iteration.
///
/// ```text
/// compute_at(block: "T", loop: "io")
///
/// for x in 0..n { T[x] = f(x) }
/// for io in 0..n/8 { for ii in 0..8 { C[io*8 + ii] = T[io*8 + ii] } }
/// ->
/// for io in 0..n/8 {
///   for T_0 in 0..8 { T[io*8 + T_0] = f(io*8 + T_0) }
///   for ii in 0..8 { C[io*8 + ii] = T[io*8 + ii] }
/// }
/// ```
///
/// All readers must be under the loop. For a shared buffer, what all threads of the block need counts, so bind the
/// loops of the readers first. The block gets fresh loops `{block}_0`, `{block}_1`, …, one an iterator in
/// order, and stands right before its first reader. What two iterations of the loop both need is computed twice.
/// Outputs, and blocks whose old loops are bound or annotated, are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeAt {
    /// The producer.
    pub block: Name,
    /// The loop of its readers.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for ComputeAt {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?.clone();
        state.expect_loop(&self.target)?;
        let func = &state.func;
        if accumulates(&block)? {
            expect_no_point_twice(func, &block)?;
            expect_all_terms(func, &block)?;
        }
        moved::expect_movable(func, &self.block, &self.target)?;
        let buffer = only_result(func, &block)?;
        let readers = self.readers(func, &buffer)?;
        let fixed = region::bounds_of(func, &nest::path(func, Some(&self.target)));
        let needed = needed(func, &readers, &buffer, &self.target);
        let ranges = iterator_ranges(&block, &buffer, &needed, &fixed)?;
        moved::expect_same_values(func, &block, &ranges, &self.target)?;

        let mut new = func.clone();
        new.replace_block(&self.block, |_| Stmt::Seq(vec![]));
        let bounds = region::bounds_of(&new, &nest::path(&new, Some(&self.target)));
        let children = nest::children(&new, Some(&self.target));
        let (at, _) = nest::span(&children, &readers).unwrap_or_default();
        let nest = nest::place(&new, block, &ranges, &bounds);
        nest::insert(&mut new, &Spot { within: Some(self.target.clone()), at }, nest);

        moved::expect_same_order(func, &new, &self.block)?;
        moved::expect_covered(func, &new, &self.block)?;
        state.func = new;
        Ok(())
    }
}

impl ComputeAt {
    fn readers(&self, func: &Func, buffer: &Name) -> Result<Vec<Name>, BlockError> {
        let readers: Vec<Name> = func.readers(buffer).iter().map(|it| it.name.clone()).collect();
        if readers.is_empty() {
            return Err(BlockError::NoReaders { block: self.block.clone() });
        }
        let under =
            |it: &&Name| func.loops_of(it).is_some_and(|loops| loops.iter().any(|it| it.var == self.target));
        match readers.iter().find(|it| !under(it)) {
            None => Ok(readers),
            Some(other) => Err(BlockError::ReaderOutside {
                block: self.block.clone(),
                other: other.clone(),
                buffer: buffer.clone(),
                loop_name: self.target.clone(),
            }),
        }
    }
}

/// The temporary that the block alone writes.
fn only_result(func: &Func, block: &Block) -> Result<Name, BlockError> {
    let writes = block.writes();
    let Some(buffer) = writes.first().map(|it| it.buffer.clone()) else {
        return Err(BlockError::WritesNothing { block: block.name.clone() });
    };
    if func.buffers[&buffer].role != Role::Temp {
        return Err(BlockError::WritesOutput { block: block.name.clone(), buffer });
    }
    match func.writers(&buffer).iter().find(|it| it.name != block.name) {
        None => Ok(buffer),
        Some(other) => {
            let other = other.name.clone();
            Err(BlockError::NotOnlyWriter { block: block.name.clone(), buffer, other })
        }
    }
}

/// The box of the buffer that the readers touch in one iteration of the loop.
fn needed(func: &Func, readers: &[Name], buffer: &Name, target: &Name) -> region::Region {
    let shape = &func.buffers[buffer].shape;
    let fixed = nest::path(func, Some(target));
    let regions = readers.iter().filter_map(|it| {
        let block = func.find_block(it)?;
        Some(region::touched_below(func, block, buffer, fixed.len(), Way::Read))
    });
    let bounds = region::bounds_of(func, &fixed);
    regions.reduce(|a, b| region::union(&a, &b, shape, &bounds)).unwrap_or_default()
}

/// The range of each iterator that produces the needed box: that of the dimension it indexes alone, by itself or
/// tile by tile.
///
/// Reduction iterators, and those that index in another way, run over their whole domain (`None`). All stores have to
/// ask for the same.
fn iterator_ranges(
    block: &Block,
    buffer: &Name,
    needed: &region::Region,
    bounds: &Bounds,
) -> Result<Vec<Option<Range>>, BlockError> {
    let range = |iter: &ir::Iter, place: &[Index]| {
        let uses = |it: &Index| it.any_var(&|v| *v == iter.var);
        let alone = place.iter().position(uses)?;
        let elsewhere = place[alone + 1..].iter().any(uses);
        let whole = iter.kind == IterKind::Reduce || elsewhere;
        if whole { None } else { range_of_tiles(block, &iter.var, &place[alone], needed.get(alone)?, bounds) }
    };
    let writes = block.writes();
    let each = writes.iter().map(|it| block.iters.iter().map(|iter| range(iter, &it.indices)).collect());
    let mut each = each.collect::<Vec<Vec<_>>>().into_iter();
    let first = each.next().unwrap_or_default();
    if writes.iter().all(|it| it.buffer == *buffer) && each.all(|it| it == first) {
        return Ok(first);
    }
    Err(BlockError::NotElementwise { block: block.name.clone(), buffer: buffer.clone() })
}
