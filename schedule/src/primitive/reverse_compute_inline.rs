use std::sync::Arc;

use ir::{Access, Block, Func, Index, Name, Role, Stmt, Store, Value, arith::Bounds};
use serde::{Deserialize, Serialize};

use super::compute_inline::{expect_elementwise, expect_only_writer, only_store};
use crate::{BlockError, Primitive, ScheduleError, ScheduleState};

/// Merges an elementwise consumer into its only producer.
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
/// The consumer must be the only reader of a temporary that one block without reduction writes, and must index it
/// with each of its iterators exactly once. Its block and loops disappear; the producer keeps its name.
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
        expect_elementwise(&block, &read)?;
        if let Some(other) = func.readers(&buffer).iter().find(|it| it.name != block.name) {
            let other = other.name.clone();
            return Err(BlockError::OtherReader { block: block.name, buffer, other }.into());
        }
        expect_same_domain(func, (&producer, &result.place), (&block, &read))?;
        expect_nothing_between(func, &producer, &block)?;

        let func = &mut state.func;
        let merged = merge(&result, &block, &consumer, &read);
        func.replace_block(&self.block, |_| Stmt::Seq(vec![]));
        func.replace_block(&producer.name, |it| Stmt::Block(Arc::new(Block { body: merged, ..it })));
        func.drop_unused_buffers();
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

/// The consumer runs once for each element that the producer computes.
fn expect_same_domain(
    func: &Func,
    (producer, place): (&Block, &Access),
    (block, read): (&Block, &Access),
) -> Result<(), BlockError> {
    let bounds = Bounds::of_dims(func);
    let extent = |block: &Block, index: &Index| {
        let iter = index.as_var().and_then(|it| block.find_iter(it));
        iter.map_or_else(|| Index::int(1), |it| it.extent.clone())
    };
    let mut dims = place.indices.iter().zip(&read.indices);
    if dims.all(|(wrote, read)| bounds.equal(&extent(producer, wrote), &extent(block, read))) {
        return Ok(());
    }
    let (block, producer) = (block.name.clone(), producer.name.clone());
    Err(BlockError::OtherDomain { block, producer, buffer: place.buffer.clone() })
}

/// Nothing between the two touches what the consumer writes, and nothing there writes what it reads.
fn expect_nothing_between(func: &Func, producer: &Block, consumer: &Block) -> Result<(), BlockError> {
    let blocks = func.body.blocks();
    let between = blocks.iter().skip_while(|it| it.name != producer.name).skip(1);
    for other in between.take_while(|it| it.name != consumer.name) {
        let deps = ir::deps::between(other, consumer);
        if let Some(dep) = deps.first() {
            let (block, other) = (consumer.name.clone(), other.name.clone());
            return Err(BlockError::OutOfOrder { block, other, buffer: dep.buffer.clone() });
        }
    }
    Ok(())
}

/// The consumer's store with the producer's value in it, over the producer's iterators.
fn merge(result: &Store, block: &Block, consumer: &Store, read: &Access) -> Stmt {
    let with = |var: &Name| -> Option<Index> {
        block.find_iter(var)?;
        let at = read.indices.iter().position(|it| it.as_var() == Some(var));
        Some(at.map_or_else(|| Index::int(0), |at| result.place.indices[at].clone()))
    };
    let value = consumer.value.subst(&with).map_loads(&mut |access| {
        if access.buffer == read.buffer { result.value.clone() } else { Value::Load(access.clone()) }
    });
    Stmt::store(consumer.place.subst(&with), value)
}
