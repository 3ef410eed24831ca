use std::sync::Arc;

use ir::{
    Access, Block, Func, Index, Less, Name, Role, Stmt, Store, Value,
    arith::Bounds,
    deps::{self, Dep, DepKind},
};
use serde::{Deserialize, Serialize};

use super::compute_inline::{expect_elementwise, expect_only_writer, only_store};
use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState, check::once::expect_all_points, inverse::Inverse,
    moved, nest,
};

/// Merges a consumer that uses each element once at most into its only producer.
///
/// ```text
/// reverse_compute_inline(block: "D")
///
/// for x in 0..n { T[x] = A[x] * 2 }
/// for i in 0..n { D[i] = T[i] + 1 }
/// ->
/// for x in 0..n { D[x] = A[x] * 2 + 1 }
/// ```
///
/// The consumer must be the only reader of a temporary that one block without reduction writes, at a place with each of
/// its iterators once. From the place that the consumer reads has to follow which of its iterations that is: it may
/// permute, flatten or cut up dimensions (`D[p] = T[p floordiv 8, p mod 8]`), and reverse, shift or slice them
/// (`D[i] = T[i, 3]`), in which case the producer, for this consumer, runs under guards. Its block and loops disappear; the
/// producer keeps its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReverseComputeInline {
    /// The consumer.
    pub block: Name,
}

impl Primitive for ReverseComputeInline {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?.clone();
        let consumer = only_store(&block)?;
        let func = &state.func;
        let (buffer, producer) = only_producer(func, &block)?;
        let result = only_store(&producer)?;
        expect_only_writer(func, &producer, &buffer)?;
        expect_elementwise(&producer, &result.place)?;
        let read = only_read(&block, &buffer)?;
        let inverse = Inverse::unique(func, &block, &read)?;
        // Which of two stores to one element comes last could change.
        Inverse::unique(func, &block, &consumer.place)?;
        expect_all_points(func, &block)?;
        if let Some(other) = func.readers(&buffer).iter().find(|it| it.name != block.name) {
            let other = other.name.clone();
            return Err(BlockError::OtherReader { block: block.name, buffer, other }.into());
        }
        expect_computed(func, (&producer, &result.place), (&block, &read))?;
        expect_same_order(func, &producer, &block)?;

        let merged = Merge { producer: &producer, result: &result, block: &block, read: &read, inverse };
        let merged = merged.block(func, &consumer);
        let mut new = func.clone();
        new.replace_block(&self.block, |_| Stmt::Seq(vec![]));
        new.replace_block(&producer.name, |_| Stmt::Block(Arc::new(merged)));
        new.drop_unused_buffers();
        moved::expect_covered(func, &new, &producer.name)?;
        state.func = new;
        Ok(())
    }
}

/// The temporary that the block reads, and the one block that computes it.
fn only_producer(func: &Func, block: &Block) -> Result<(Name, Block), BlockError> {
    let mut found: Option<(Name, Block)> = None;
    for read in block.reads() {
        for writer in func.writers(&read.buffer) {
            match &found {
                Some((_, first)) if first.name != writer.name => {
                    return Err(BlockError::SeveralProducers {
                        block: block.name.clone(),
                        first: first.name.clone(),
                        second: writer.name.clone(),
                    });
                }
                Some(_) => {}
                None => found = Some((read.buffer.clone(), writer.clone())),
            }
        }
    }
    let (buffer, producer) = found.ok_or(BlockError::NoProducers { block: block.name.clone() })?;
    if func.buffers[&buffer].role != Role::Temp {
        return Err(BlockError::WritesOutput { block: producer.name, buffer });
    }
    Ok((buffer, producer))
}

/// The one place at which the block reads the buffer.
fn only_read(block: &Block, buffer: &Name) -> Result<Access, BlockError> {
    let reads = block.reads().into_iter().filter(|it| it.buffer == *buffer).collect::<Vec<_>>();
    if reads.iter().all(|it| it.indices == reads[0].indices) {
        return Ok(reads[0].clone());
    }
    Err(BlockError::NotElementwise { block: block.name.clone(), buffer: buffer.clone() })
}

/// The producer computes each element that the consumer reads.
fn expect_computed(
    func: &Func,
    (producer, place): (&Block, &Access),
    (block, read): (&Block, &Access),
) -> Result<(), BlockError> {
    let mut bounds = Bounds::of_dims(func);
    block.iters.iter().for_each(|it| bounds.insert(&it.var, &it.extent));
    let is_computed = |wrote: &Index, read: &Index| match wrote.as_var().and_then(|it| producer.find_iter(it))
    {
        Some(iter) => {
            bounds.at_most(&Index::int(0), read)
                && bounds.prove(&Less::new(read.clone(), iter.extent.clone())) == Some(true)
        }
        None => bounds.equal(wrote, read),
    };
    let mut dims = place.indices.iter().zip(&read.indices);
    if dims.all(|(wrote, read)| is_computed(wrote, read)) {
        return Ok(());
    }
    let (block, producer) = (block.name.clone(), producer.name.clone());
    Err(BlockError::OtherDomain { block, producer, buffer: place.buffer.clone() })
}

/// No block runs on the other side of the consumer than before and has to do with it.
///
/// Those between the two do, and others in loops that are around one of the two but not around both.
fn expect_same_order(func: &Func, producer: &Block, consumer: &Block) -> Result<(), BlockError> {
    let within = nest::common_loop(func, &[producer.name.clone(), consumer.name.clone()]);
    let children = nest::children(func, within.as_ref());
    let both = [producer.name.clone(), consumer.name.clone()];
    let Some((first, last)) = nest::span(&children, &both) else { return Ok(()) };
    let (mut after_producer, mut after_consumer) = (false, false);
    for other in children[first..=last].iter().flat_map(|it| it.blocks()) {
        after_producer |= other.name == producer.name;
        after_consumer |= other.name == consumer.name;
        if other.name == consumer.name && after_producer || other.name == producer.name && !after_consumer {
            continue;
        }
        let between = after_producer && !after_consumer;
        let own = consumer.writes().first().map(|it| it.buffer.clone());
        let overwritten = own.as_ref().is_some_and(|it| func.writers(it).len() > 1);
        let matters = |dep: &Dep| match dep.kind {
            _ if between => true,
            // Whether it is still written before it is read is judged of the new program.
            DepKind::Raw => after_consumer,
            // Each element has one value.
            DepKind::War => !after_consumer || overwritten,
            DepKind::Waw => true,
        };
        if let Some(dep) = deps::between(other, consumer).iter().find(|it| matters(it)) {
            let (block, other) = (consumer.name.clone(), other.name.clone());
            return Err(BlockError::OutOfOrder { block, other, buffer: dep.buffer.clone() });
        }
    }
    Ok(())
}

/// What becomes of a producer and its consumer.
struct Merge<'a> {
    producer: &'a Block,
    result: &'a Store,
    block: &'a Block,
    read: &'a Access,
    inverse: Inverse,
}

impl Merge<'_> {
    /// The producer with the consumer's store in the place of its own, under the conditions that the consumer has an
    /// iteration for it.
    fn block(&self, func: &Func, consumer: &Store) -> Block {
        let mut bounds = Bounds::of_dims(func);
        self.producer.iters.iter().for_each(|it| bounds.insert(&it.var, &it.extent));
        let with = |var: &Name| {
            let value = self.inverse.at(var, &self.result.place.indices)?;
            Some(bounds.simplify(&value))
        };
        let simple = |index: &Index| {
            let new = index.subst(&with);
            let solved =
                |var: &Name| with(var).is_some_and(|it| it.as_var().is_none() && it.as_int().is_none());
            if index.any_var(&solved) { bounds.simplify(&new) } else { new }
        };
        let value = consumer.value.map_indices(&mut |it| simple(it)).map_loads(&mut |access| {
            if access.buffer == self.read.buffer {
                self.result.value.clone()
            } else {
                Value::Load(access.clone())
            }
        });
        let place = consumer.place.indices.iter().map(simple).collect();
        let place = Access { indices: place, ..consumer.place.clone() };
        let binding = |var: &Name| self.producer.find_iter(var).map(|it| it.binding.clone());
        let guards = self.conditions(&with, &mut bounds.clone());
        Block {
            body: Stmt::store(place, value),
            guards: guards.iter().map(|it| it.subst(&binding)).collect(),
            ..self.producer.clone()
        }
    }

    /// When the consumer has an iteration for an element of the producer, over the producer's iterators; what always
    /// holds is left out.
    fn conditions(&self, with: &dyn Fn(&Name) -> Option<Index>, bounds: &mut Bounds) -> Vec<Less> {
        let mut all = Vec::new();
        for iter in &self.block.iters {
            let Some(value) = with(&iter.var) else { continue };
            all.extend([Less::new(Index::int(-1), value.clone()), Less::new(value, iter.extent.clone())]);
        }
        for (wrote, read) in self.result.place.indices.iter().zip(&self.read.indices) {
            let read = read.subst(with);
            all.extend([Less::new(read.clone(), wrote + 1), Less::new(wrote.clone(), read + 1)]);
        }
        let mut out = Vec::new();
        for it in all {
            let it = bounds.simplify_less(&it);
            if bounds.prove(&it) != Some(true) {
                bounds.assume(&it);
                out.push(it);
            }
        }
        out
    }
}
