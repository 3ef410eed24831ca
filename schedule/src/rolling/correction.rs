//! The blocks that multiply sums when what they go by grows.

use std::sync::Arc;

use ir::{
    Access, BinaryOp, Block, BlockAttrs, Buffer, Func, Iter, IterKind, Literal, Name, Reducer, Stmt, Value,
    region::{self, Range, Way},
};

use super::{
    Follower, Rescale, Rolled,
    extremum::{PREVIOUS, finite_start},
};
use crate::{
    BlockError, ScheduleError,
    nest::{self, Spot},
    tile::range_of_tiles,
};

/// Lets a reduction start from a finite number, so that its difference to itself is one.
pub(crate) fn start_finite(func: &mut Func, block: &Name) {
    let Some(buffer) = func.find_block(block).and_then(|it| it.writes().first().map(|it| it.buffer.clone()))
    else {
        return;
    };
    func.map_blocks(&mut |it| {
        if let Stmt::Store(store) = &mut it.body
            && store.place.buffer == buffer
            && let Value::Const(start) = store.value
        {
            Arc::make_mut(store).value = Value::Const(finite_start(start));
        }
    });
}

/// The blocks that correct sums.
pub(crate) struct Correction<'a>(pub(crate) &'a Rolled<'a>);

impl Correction<'_> {
    /// `{block}_old` before the block, `{block}_scale` behind it, and `{sum}_rescale` before each sum.
    pub(crate) fn insert(&self, func: &mut Func, sums: &[Follower]) -> Result<(), ScheduleError> {
        let name = self.0.block;
        let old = self.value_block(func, &format!("{name}_old"), Value::Load(self.0.reducer.place.clone()));
        let buffer = old.writes()[0].buffer.clone();
        self.put(func, old, name, 0)?;
        let mut factors: Vec<(&Value, Name)> = Vec::new();
        for sum in sums {
            let factor = &sum.rescale.factor;
            if factors.iter().any(|it| it.0 == factor) {
                continue;
            }
            let value = factor.map_loads(&mut |it| {
                let is_old = it.buffer.as_str() == PREVIOUS;
                Value::Load(Access {
                    buffer: if is_old { &buffer } else { &it.buffer }.clone(),
                    ..it.clone()
                })
            });
            let scale = self.value_block(func, &format!("{name}_scale"), value);
            factors.push((factor, scale.writes()[0].buffer.clone()));
            self.put(func, scale, name, 1)?;
        }
        for sum in sums {
            let scale = factors.iter().find(|it| *it.0 == sum.rescale.factor).expect("each has one");
            self.rescale(func, sum, &scale.1)?;
        }
        Ok(())
    }

    /// A block that computes a value for each element of the extremum, and its buffer.
    fn value_block(&self, func: &mut Func, stem: &str, value: Value) -> Block {
        let place = &self.0.reducer.place;
        let name = temporary_like(func, &place.buffer, stem);
        let block = func.find_block(self.0.block).expect("it is there");
        spatial_like(block, name.clone(), Stmt::store(Access { buffer: name, ..place.clone() }, value))
    }

    /// Puts a block that runs over what the extremum runs over beside it.
    fn put(&self, func: &mut Func, block: Block, beside: &Name, behind: usize) -> Result<(), ScheduleError> {
        let place = self.0.reducer.place.clone();
        self.place(func, block, &place, self.0.block, beside, behind)
    }

    /// The sum as it was, and as it belongs to the new extremum.
    fn rescale(&self, func: &mut Func, sum: &Follower, scale: &Name) -> Result<(), ScheduleError> {
        let block = func.find_block(&sum.block).expect("it is there").clone();
        let place = Reducer::of(&block).expect("it is a sum").place;
        let old = temporary_like(func, &place.buffer, &format!("{}_old", sum.block));
        let before = Access { buffer: old.clone(), ..place.clone() };
        let kept = spatial_like(&block, old, Stmt::store(before.clone(), Value::Load(place.clone())));
        self.place(func, kept, &place, &sum.block, &sum.block, 0)?;
        let Rescale { at, when, .. } = &sum.rescale;
        let mut factor = Value::load(scale, at.clone());
        if !when.is_empty() {
            let one = Value::Const(Literal::from_f64(func.buffers[scale].dtype, 1.0));
            factor = Value::Select(when.clone(), Arc::new(factor), Arc::new(one));
        }
        let value = Value::binary(BinaryOp::Mul, Value::Load(before), factor);
        let name = Name::nth(&format!("{}_rescale", sum.block), |it| func.is_taken(it));
        let rescaled = spatial_like(&block, name, Stmt::store(place.clone(), value));
        self.place(func, rescaled, &place, &sum.block, &sum.block, 0)
    }

    /// Puts a block in the loop that runs over what block `like` writes at `place` in one iteration.
    fn place(
        &self,
        func: &mut Func,
        block: Block,
        place: &Access,
        like: &Name,
        beside: &Name,
        behind: usize,
    ) -> Result<(), ScheduleError> {
        let target = self.0.target;
        let path = nest::path(func, Some(target));
        let bounds = region::bounds_of(func, &path);
        let writer = func.find_block(like).expect("it is there");
        let region = region::touched_below(func, writer, &place.buffer, path.len(), Way::Write);
        let range = |iter: &Iter| -> Option<Range> {
            let mut dims = place.indices.iter().zip(&region);
            dims.find_map(|(index, part)| range_of_tiles(writer, &iter.var, index, part, &bounds))
        };
        let ranges: Vec<Option<Range>> = block.iters.iter().map(range).collect();
        let moves = |it: &Range| {
            let mut rolled = path.iter().skip_while(|it| it.var != *self.0.outer);
            rolled.any(|around| [&it.min, &it.extent].iter().any(|it| it.any_var(&|var| *var == around.var)))
        };
        if ranges.iter().any(|it| it.as_ref().is_none_or(moves)) {
            return Err(BlockError::NotRolling {
                block: self.0.block.clone(),
                other: like.clone(),
                loop_name: target.clone(),
                why: "which of its results one iteration of the loop works on is not the same in all of them",
            }
            .into());
        }
        let children = nest::children(func, Some(target));
        let (at, _) = nest::span(&children, std::slice::from_ref(beside)).unwrap_or_default();
        let nest = nest::place(func, block, &ranges, &bounds);
        nest::insert(func, &Spot { within: Some(target.clone()), at: at + behind }, nest);
        Ok(())
    }
}

/// A new temporary of the type, shape and memory of a buffer.
fn temporary_like(func: &mut Func, buffer: &Name, stem: &str) -> Name {
    let name = Name::nth(stem, |it| func.is_taken(it));
    let like = &func.buffers[buffer];
    let new = Buffer::temp(like.dtype, like.shape.clone(), like.scope);
    func.buffers.insert(name.clone(), new);
    name
}

/// A block of another body over the spatial iterators of a block.
fn spatial_like(block: &Block, name: Name, body: Stmt) -> Block {
    let iters = block.iters.iter().filter(|it| it.kind == IterKind::Spatial).cloned().collect();
    Block { name, iters, guards: vec![], attrs: BlockAttrs::default(), init: None, body }
}
