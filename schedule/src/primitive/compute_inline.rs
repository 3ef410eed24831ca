use std::sync::Arc;

use ir::{Access, Block, Func, Index, Name, Role, Stmt, Store, Value};
use serde::{Deserialize, Serialize};

use crate::{BlockError, Primitive, ScheduleError, ScheduleState};

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
/// The block must be the only writer of a temporary, without init, reduction or guard, and index it with each of
/// its iterators exactly once. Its block, loops and buffer disappear. What several readers or iterations share is
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
        expect_elementwise(&block, &store.place)?;
        expect_unchanged(func, &block)?;
        if func.readers(&buffer).is_empty() {
            return Err(BlockError::NoReaders { block: block.name }.into());
        }

        let func = &mut state.func;
        func.replace_block(&self.block, |_| Stmt::Seq(vec![]));
        func.map_blocks(&mut |reader| {
            for stmt in reader.init.iter_mut().chain([&mut reader.body]) {
                inline(stmt, &block, &store);
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
        Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) => Err(BlockError::NotOneStore { block: name }),
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

/// Replaces each load of the stored place by the stored value.
fn inline(stmt: &mut Stmt, block: &Block, store: &Store) {
    stmt.walk_mut(&mut |it| {
        if let Stmt::Store(into) = it {
            let into = Arc::make_mut(into);
            into.value = into.value.map_loads(&mut |access| {
                if access.buffer == store.place.buffer {
                    store
                        .value
                        .subst(&|var| block.find_iter(var).map(|_| index_for(&store.place, access, var)))
                } else {
                    Value::Load(access.clone())
                }
            });
        }
        true
    });
}

/// What stands in `access` where `place` has the variable; zero for an iterator of one iteration that is not there.
fn index_for(place: &Access, access: &Access, var: &Name) -> Index {
    let at = place.indices.iter().position(|it| it.as_var() == Some(var));
    at.map_or_else(|| Index::int(0), |at| access.indices[at].clone())
}
