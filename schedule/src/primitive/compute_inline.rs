use std::sync::Arc;

use ir::{Access, Block, Func, Index, Name, Role, Stmt, Store, Value, arith::Bounds};
use serde::{Deserialize, Serialize};

use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState, inverse::Inverse, moved::expect_unchanged_at_readers,
};

/// Puts the expression of an elementwise producer in the place of each read of its result.
///
/// ```text
/// compute_inline(block: "T")
///
/// for x in 0..n { T[x] = A[x] * 2 }
/// for i in 0..n { C[i] = T[i] + 1 }
/// ->
/// for i in 0..n { C[i] = A[i] * 2 + 1 }
/// ```
///
/// The block must be the only writer of a temporary, without init, reduction or guard, and from the place that it writes
/// has to follow which of its iterations that is: it may permute, flatten or cut up dimensions. Its block, loops and buffer disappear. Where a read is padded and what is read
/// too, their conditions become one. What several readers or iterations share is
/// computed for each of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeInline {
    /// The producer.
    pub block: Name,
}

impl Primitive for ComputeInline {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?.clone();
        let store = only_store(&block)?;
        let buffer = store.place.buffer.clone();
        let func = &state.func;
        if func.buffers[&buffer].role != Role::Temp {
            return Err(BlockError::WritesOutput { block: block.name, buffer }.into());
        }
        expect_only_writer(func, &block, &buffer)?;
        let inverse = Inverse::unique(func, &block, &store.place)?;
        expect_unchanged(func, &block)?;
        if func.readers(&buffer).is_empty() {
            return Err(BlockError::NoReaders { block: block.name }.into());
        }
        expect_unchanged_at_readers(func, &block, &buffer)?;

        let dims = Bounds::of_dims(func);
        let func = &mut state.func;
        func.replace_block(&self.block, |_| Stmt::Seq(vec![]));
        func.map_blocks(&mut |reader| {
            let mut bounds = dims.clone();
            reader.iters.iter().for_each(|it| bounds.insert(&it.var, &it.extent));
            for stmt in reader.init.iter_mut().chain([&mut reader.body]) {
                inline(stmt, &store, &inverse, &bounds);
            }
        });
        func.drop_unused_buffers();
        Ok(())
    }
}

/// The one store of a block without init, reduction or guard.
pub(crate) fn only_store(block: &Block) -> Result<Store, BlockError> {
    let name = block.name.clone();
    if block.init.is_some() || block.iters.iter().any(|it| it.kind == ir::IterKind::Reduce) {
        return Err(BlockError::InlineReduction { block: name });
    }
    if !block.guards.is_empty() {
        return Err(BlockError::InlineGuarded { block: name });
    }
    match &block.body {
        Stmt::Store(store) => {
            let mut own = None;
            store
                .value
                .each_load(&mut |it| own = own.take().or((it.buffer == store.place.buffer).then_some(it)));
            match own {
                None => Ok(Store::clone(store)),
                Some(it) => Err(BlockError::ReadsItself { block: name, buffer: it.buffer.clone() }),
            }
        }
        Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) | Stmt::Instr(_) => {
            Err(BlockError::NotOneStore { block: name })
        }
    }
}

/// No other block writes the buffer.
pub(crate) fn expect_only_writer(func: &Func, block: &Block, buffer: &Name) -> Result<(), BlockError> {
    match func.writers(buffer).iter().find(|it| it.name != block.name) {
        None => Ok(()),
        Some(other) => Err(BlockError::NotOnlyWriter {
            block: block.name.clone(),
            buffer: buffer.clone(),
            other: other.name.clone(),
        }),
    }
}

/// The access indexes with each iterator of the block exactly once (constants for dimensions of one element may
/// stand beside them).
pub(crate) fn expect_elementwise(block: &Block, access: &Access) -> Result<(), BlockError> {
    let uses = |var: &Name| access.indices.iter().filter(|it| it.as_var() == Some(var)).count();
    let plain = access.indices.iter().all(|it| it.as_var().is_some() || it.as_int().is_some());
    let unit = |iter: &ir::Iter| iter.extent.as_int() == Some(1);
    if plain && block.iters.iter().all(|it| uses(&it.var) == 1 || (unit(it) && uses(&it.var) == 0)) {
        return Ok(());
    }
    Err(BlockError::NotElementwise { block: block.name.clone(), buffer: access.buffer.clone() })
}

/// Nothing after the block writes what it reads.
fn expect_unchanged(func: &Func, block: &Block) -> Result<(), BlockError> {
    let blocks = func.body.blocks();
    for other in blocks.iter().skip_while(|it| it.name != block.name).skip(1) {
        for read in block.reads() {
            if other.writes().iter().any(|it| it.buffer == read.buffer) {
                let (buffer, other) = (read.buffer.clone(), other.name.clone());
                return Err(BlockError::OverwrittenLater { block: block.name.clone(), buffer, other });
            }
        }
    }
    Ok(())
}

/// Replaces each load of the stored place by the stored value. `bounds` knows the iterators of the reader.
fn inline(stmt: &mut Stmt, store: &Store, inverse: &Inverse, bounds: &Bounds) {
    stmt.walk_mut(&mut |it| {
        if let Stmt::Store(into) = it {
            let into = Arc::make_mut(into);
            let mut is_read = false;
            let value = into.value.map_loads(&mut |access| {
                if access.buffer == store.place.buffer {
                    is_read = true;
                    value_at(store, &access.indices, inverse, bounds)
                } else {
                    Value::Load(access.clone())
                }
            });
            into.value = if is_read { joined(value) } else { value };
        }
        true
    });
}

/// A choice within a choice as one under the conditions of both, where both take the same otherwise: padding of what is padded.
fn joined(value: Value) -> Value {
    let Value::Select(mut cond, then, other) = value else { return value };
    match joined(Value::clone(&then)) {
        Value::Select(inner, value, same) if same == other => {
            let new: Vec<_> = inner.into_iter().filter(|it| !cond.contains(it)).collect();
            cond.extend(new);
            Value::Select(cond, value, other)
        }
        then => Value::Select(cond, Arc::new(then), other),
    }
}

/// What is stored at a place. Indices of iterators that are not a subscript themselves are simplified.
fn value_at(store: &Store, place: &[Index], inverse: &Inverse, bounds: &Bounds) -> Value {
    let with = |var: &Name| inverse.at(var, place);
    let is_solved = |var: &Name| with(var).is_some_and(|it| it.as_int().is_none() && !place.contains(&it));
    store.value.map_indices(&mut |index| {
        let at = index.subst(&with);
        if index.any_var(&is_solved) { bounds.simplify(&at) } else { at }
    })
}
