use ir::{
    Access, Block, Func, Index, Iter, Name, Stmt, Value,
    arith::Bounds,
    region::{self, Range, Way},
};
use serde::{Deserialize, Serialize};

use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState,
    check::{
        independent::accumulates,
        once::{expect_all_points, expect_no_point_twice, may_run_more},
    },
    inverse::Inverse,
    moved,
    nest::{self, Spot},
    tile::range_of_tiles,
};

/// Moves a consumer under a loop of its producers, using there just what one iteration computes.
///
/// ```text
/// reverse_compute_at(block: "D", loop: "io")
///
/// for io in 0..n/8 { for ii in 0..8 { T[io*8 + ii] = f(io*8 + ii) } }
/// for x in 0..n { D[x] = T[x] }
/// ->
/// for io in 0..n/8 {
///   for ii in 0..8 { T[io*8 + ii] = f(io*8 + ii) }
///   for D_0 in 0..8 { D[io*8 + D_0] = T[io*8 + D_0] }
/// }
/// ```
///
/// All blocks that produce what it reads must be under the loop. The block gets fresh loops `{block}_0`, … and
/// stands right after its last producer. A loop that a producer reduces over is refused, since the consumer would
/// see partial sums (and write them out again and again); so is a consumer that itself reduces and would run
/// some iterations twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReverseComputeAt {
    /// The consumer.
    pub block: Name,
    /// The loop of its producers.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for ReverseComputeAt {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?.clone();
        state.expect_loop(&self.target)?;
        let func = &state.func;
        expect_no_point_twice(func, &block)?;
        if !may_run_more(func, &block)? {
            expect_all_points(func, &block)?;
        }
        moved::expect_movable(func, &self.block, &self.target)?;
        let producers = self.producers(func, &block)?;
        moved::expect_whole_results(func, &self.block, &producers, &self.target)?;

        let ranges = iterator_ranges(func, &block, &block.reads(), &producers, &self.target);
        moved::expect_same_values(func, &block, &ranges, &self.target)?;
        let mut new = func.clone();
        new.replace_block(&self.block, |_| Stmt::Seq(vec![]));
        let bounds = region::bounds_of(&new, &nest::path(&new, Some(&self.target)));
        let children = nest::children(&new, Some(&self.target));
        let (_, last) = nest::span(&children, &producers).unwrap_or_default();
        let nest = nest::place(&new, block.clone(), &ranges, &bounds);
        nest::insert(&mut new, &Spot { within: Some(self.target.clone()), at: last + 1 }, nest);

        moved::expect_same_order(func, &new, &self.block)?;
        moved::expect_covered(func, &new, &self.block)?;
        if !self.follows_one_read(func, &block, &producers, &ranges) {
            self.expect_all_points_still(&new, &producers)?;
        }
        self.expect_each_once(&new)?;
        state.func = new;
        Ok(())
    }
}

impl ReverseComputeAt {
    /// The blocks that write what this one reads, all of them under the loop.
    fn producers(&self, func: &Func, block: &Block) -> Result<Vec<Name>, BlockError> {
        let mut producers: Vec<Name> = Vec::new();
        for read in block.reads() {
            for writer in func.writers(&read.buffer) {
                if writer.name == self.block || producers.contains(&writer.name) {
                    continue;
                }
                let loops = func.loops_of(&writer.name).expect("the block is one of the program's");
                if !loops.iter().any(|it| it.var == self.target) {
                    return Err(BlockError::ProducerOutside {
                        block: self.block.clone(),
                        other: writer.name.clone(),
                        buffer: read.buffer.clone(),
                        loop_name: self.target.clone(),
                    });
                }
                producers.push(writer.name.clone());
            }
        }
        if producers.is_empty() {
            return Err(BlockError::NoProducers { block: self.block.clone() });
        }
        Ok(producers)
    }

    /// Whether the block surely runs in some iteration for each of its points, because what one access reads there, which it
    /// reads whenever it runs, is what its producers write there, and they write all of it.
    fn follows_one_read(
        &self,
        func: &Func,
        block: &Block,
        producers: &[Name],
        ranges: &[Option<Range>],
    ) -> bool {
        let fixed = nest::path(func, Some(&self.target)).len();
        let written =
            |writer: &&Block, buffer: &Name| region::touched_below(func, writer, buffer, fixed, Way::Write);
        let alike = |buffer: &Name| {
            let writers = func.writers(buffer);
            let mut all = writers.iter().filter(|it| producers.contains(&it.name));
            let first = all.next().map(|it| written(it, buffer));
            all.all(|it| Some(written(it, buffer)) == first)
        };
        block.reads().into_iter().any(|read| {
            let own = iterator_ranges(func, block, &[read], producers, &self.target);
            let mut pairs = ranges.iter().zip(own);
            let mut always = false;
            block.body.each_store(&mut |it| always |= reads_always(&it.value, read));
            always && alike(&read.buffer) && pairs.all(|(range, own)| range.is_none() || *range == own)
        })
    }

    /// The block has each of its points in some iteration of the loop, as far as that can be proved. If not, it needs more
    /// there than what is written.
    fn expect_all_points_still(&self, new: &Func, producers: &[Name]) -> Result<(), BlockError> {
        let Some(block) = new.find_block(&self.block) else { return Ok(()) };
        let missed = |_| {
            let of = |buffer: &Name| new.writers(buffer).into_iter().find(|it| producers.contains(&it.name));
            let mut reads = block.reads().into_iter().map(|it| &it.buffer);
            let found = reads.find_map(|buffer| Some((of(buffer)?.name.clone(), buffer.clone())));
            let (writer, buffer) = found.unwrap_or_else(|| (self.block.clone(), self.block.clone()));
            BlockError::Uncovered { reader: self.block.clone(), writer, buffer, is_moved: false }
        };
        expect_all_points(new, block).map_err(missed)
    }

    /// Each iteration of the block still runs: exactly once if it reduces or updates.
    fn expect_each_once(&self, new: &Func) -> Result<(), ScheduleError> {
        let Some(block) = new.find_block(&self.block) else { return Ok(()) };
        let loops = new.loops_of(&self.block).expect("the block is one of the program's");
        let bounds = region::bounds_of(new, &loops);
        let twice = || BlockError::RunsTwice { block: self.block.clone(), loop_name: self.target.clone() };
        if !accumulates(block)? {
            return Ok(());
        }
        let used = |var: &Name| block.iters.iter().any(|it| it.binding.any_var(&|v| v == var));
        let each_used = loops.iter().all(|it| it.extent.as_int() == Some(1) || used(&it.var));
        let shared = loops
            .iter()
            .any(|it| block.iters.iter().filter(|iter| iter.binding.any_var(&|v| *v == it.var)).count() > 1);
        let injective = block.iters.iter().all(|it| is_injective(&it.binding, &bounds));
        if each_used && !shared && injective { Ok(()) } else { Err(twice().into()) }
    }
}

/// Whether a value is computed from that element in any case.
fn reads_always(value: &Value, access: &Access) -> bool {
    match value {
        Value::Load(it) => it == access,
        Value::Cast(_, a) | Value::Unary(_, a) => reads_always(a, access),
        Value::Binary(_, a, b) => reads_always(a, access) || reads_always(b, access),
        Value::Select(_, a, b) => reads_always(a, access) && reads_always(b, access),
        Value::Where(cond, a, b) => [cond, a, b].into_iter().any(|it| reads_always(it, access)),
        Value::Const(_) | Value::Index(..) => false,
    }
}

/// Whether different values of the variables give different values: a mixed-radix sum such as `io*8 + ii` with
/// `ii < 8` (TVM's iterator sum, `iter_affine_map`).
fn is_injective(binding: &Index, bounds: &Bounds) -> bool {
    let mut terms: Vec<(i64, i64)> = Vec::new();
    let mut rest = bounds.simplify(binding);
    for var in binding.vars() {
        let Some(extent) = bounds.extent(&var).and_then(Index::as_int) else {
            // A symbolic extent can only be the outermost digit, which needs no upper bound.
            match bounds.linear_in(&rest, &var) {
                Some((c, other)) if bounds.extent(&var).is_some() => {
                    terms.push((c, i64::MAX));
                    rest = other;
                    continue;
                }
                Some(_) | None => return false,
            }
        };
        let Some((c, other)) = bounds.linear_in(&rest, &var) else { return false };
        terms.push((c, extent));
        rest = other;
    }
    terms.sort_unstable();
    let mut reach = 1i64;
    for (c, extent) in terms {
        if c < reach {
            return false;
        }
        reach = c.saturating_mul(extent);
    }
    true
}

/// The range of each iterator in one iteration of the loop: what the producers write there, where an iterator
/// alone, or tile by tile, indexes a dimension that they wrote, or follows from the subscripts together; else its whole
/// domain (`None`).
fn iterator_ranges(
    func: &Func,
    block: &Block,
    reads: &[&Access],
    producers: &[Name],
    target: &Name,
) -> Vec<Option<Range>> {
    let fixed = nest::path(func, Some(target));
    let (fixed, bounds) = (fixed.len(), region::bounds_of(func, &fixed));
    let mut ranges = vec![None; block.iters.len()];
    for read in reads {
        let writers = func.writers(&read.buffer);
        let Some(writer) = writers.iter().rev().find(|it| producers.contains(&it.name)) else { continue };
        let region = region::touched_below(func, writer, &read.buffer, fixed, Way::Write);
        for (range, iter) in ranges.iter_mut().zip(&block.iters) {
            if range.is_none() {
                let mut dims = read.indices.iter().zip(&region);
                *range =
                    dims.find_map(|(index, part)| range_of_tiles(block, &iter.var, index, part, &bounds));
            }
        }
        if ranges.contains(&None) {
            let solved = solved_ranges(func, block, &read.indices, &region, &bounds);
            ranges.iter_mut().zip(solved).for_each(|(range, it)| *range = range.take().or(it));
        }
    }
    ranges
}

/// The range of each iterator for which subscripts are in a region, where they can be solved for it.
fn solved_ranges(
    func: &Func,
    block: &Block,
    subscripts: &[Index],
    region: &[Range],
    bounds: &Bounds,
) -> Vec<Option<Range>> {
    let inverse = Inverse::of(func, block, subscripts);
    let mut bounds = bounds.clone();
    let mut inner: Vec<Name> = Vec::new();
    // No program has a name with a dot.
    let mut variable = |name: Name, extent: &Index| {
        bounds.insert(&name, extent);
        inner.push(name.clone());
        Index::var(&name)
    };
    inverse.free().for_each(|(name, extent)| drop(variable(name.clone(), extent)));
    let mut places = Vec::new();
    for (at, range) in region.iter().enumerate() {
        let mut place = range.min.clone();
        if range.steps.is_empty() && range.extent.as_int() != Some(1) {
            place = place + variable(Name::new(format!("in.{at}")), &range.extent);
        }
        for (n, step) in range.steps.iter().enumerate() {
            place =
                place + variable(Name::new(format!("in.{at}.{n}")), &Index::int(step.count)) * step.stride;
        }
        places.push(place);
    }
    let is_inner = |name: &Name| inner.contains(name);
    let range_of = |iter: &Iter| {
        let value = inverse.at(&iter.var, &places)?;
        Some(region::range_of(&value, &[], &iter.extent, &bounds, &is_inner))
    };
    block.iters.iter().map(range_of).collect()
}
