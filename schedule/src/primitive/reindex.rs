use std::sync::Arc;

use ir::{Access, Block, Buffer, Func, Iter, IterKind, Name, Scope, Stmt};
use serde::{Deserialize, Serialize};

use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState, TileError,
    check::once::expect_all_points,
    inverse::Inverse,
    nest::{self, Spot},
    one_place::{Dims, OnePlace, redirect},
};

/// Gives a block a copy of what it reads or writes of a buffer, with the block's iterators for subscripts.
///
/// ```text
/// reindex(block: "Y", buffer: "X", name: "A")
///
/// for i in 0..m { for k in 0..9 { Y[i] += select(0 < i + k, X[i + k - 1], 0) * w[k] } }
/// ->
/// for A_0 in 0..m { for A_1 in 0..9 { A[A_0, A_1] = select(0 < A_0 + A_1, X[A_0 + A_1 - 1], 0) } }
/// for i in 0..m { for k in 0..9 { Y[i] += A[i, k] * w[k] } }
/// ```
///
/// The copy has a dimension for each iterator that the subscripts and the conditions of the read have: first the one that the
/// subscripts end with soonest, so that what is contiguous stays so; `transform_layout` puts them in another order. Elements
/// under a condition are read under it, and are zero elsewhere; where zero is also what the block would have taken instead, it
/// takes the copy without asking. The copy of a result is written in its place, and goes to where it belongs afterwards:
///
/// ```text
/// reindex(block: "Y", buffer: "Y", name: "C")
///
/// for i in 0..m*n { Y[i floordiv n, i mod n] = f(i) }
/// ->
/// for i in 0..m*n { C[i] = f(i) }
/// for C_0 in 0..m*n { Y[C_0 floordiv n, C_0 mod n] = C[C_0] }
/// ```
///
/// The new block and buffer are named `{buffer}_reindex` (then `…2`) unless `name` says otherwise, and are in memory of the scope `global` unless `scope`
/// does, as with TVM's `reindex_cache_read` and `reindex_cache_write`. The block has to use the buffer at one place, and alone
/// write it if it does, each element in one iteration; guards come later, as loops are split. Inline or move the copy then: as it
/// stands, it has every element as often as the block reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reindex {
    /// The block.
    pub block: Name,
    /// The buffer that it reads or writes; what it writes if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Name>,
    /// The memory of the copy, in place of `global`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Name>,
    /// The name of the copy, in place of `{buffer}_reindex`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
}

impl Primitive for Reindex {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let scope = self.scope.as_ref().map_or(Ok(Scope::Global), |it| state.expect_scope(it))?;
        let block = state.expect_block(&self.block)?.clone();
        let buffer = &match (&self.buffer, block.writes().first()) {
            (Some(it), _) => it.clone(),
            (None, Some(it)) => it.buffer.clone(),
            (None, None) => return Err(BlockError::WritesNothing { block: self.block.clone() }.into()),
        };
        let dtype = state.expect_buffer(buffer)?.dtype;
        let name = match &self.name {
            Some(name) => state.expect_fresh(name).map(|()| name.clone())?,
            None => Name::nth(&format!("{buffer}_reindex"), |it| state.func.is_taken(it)),
        };
        let is_written = block.writes().iter().any(|it| it.buffer == *buffer);
        let found = self.place(&block, buffer, is_written)?;
        expect_all_points(&state.func, &block)?;
        if is_written {
            expect_own_results(&state.func, &block, &found)?;
        }
        let at = self.spot(&state.func, buffer, is_written)?;

        let dims = Dims::of(&state.func, &block, &found);
        let copy = dims.copy(&state.func, &name, (dtype, is_written), &found);
        let func = &mut state.func;
        func.buffers.insert(name.clone(), Buffer::temp(dtype, dims.shape(), scope));
        func.replace_block(&self.block, |mut it| {
            let new = Access::new(&name, dims.own);
            it.init
                .iter_mut()
                .chain([&mut it.body])
                .for_each(|stmt| redirect(stmt, buffer, &new, is_written));
            Stmt::Block(Arc::new(it))
        });
        nest::insert(func, &Spot { within: None, at }, copy);
        Ok(())
    }
}

impl Reindex {
    /// The one place at which the block uses the buffer.
    fn place(&self, block: &Block, buffer: &Name, is_written: bool) -> Result<OnePlace, ScheduleError> {
        let not = |why| TileError::NotOnePlace { block: self.block.clone(), buffer: buffer.clone(), why };
        if !block.guards.is_empty() {
            return Err(not("it is guarded; do this step before its loops are split").into());
        }
        let Some(found) = OnePlace::of(block, buffer, is_written).map_err(not)? else {
            let reads = block.reads().into_iter().map(|it| it.buffer.clone()).collect();
            let (block, buffer) = (self.block.clone(), buffer.clone());
            return Err(BlockError::DoesNotRead { block, buffer, reads }.into());
        };
        let mut inside = Vec::new();
        block.body.walk(&mut |it| {
            if let Stmt::Loop(it) = it {
                inside.push(it.var.clone());
            }
        });
        if found.mentions(&|name| inside.contains(name)) {
            return Err(not("the place depends on loops in the block").into());
        }
        Ok(found)
    }

    /// Where the copy goes among the statements of the program: before the block, or behind it for its results.
    fn spot(&self, func: &Func, buffer: &Name, is_written: bool) -> Result<usize, BlockError> {
        let children = nest::children(func, None);
        let own = std::slice::from_ref(&self.block);
        let (at, _) = nest::span(&children, own).expect("the block is one of the program's");
        let others = if is_written { func.readers(buffer) } else { func.writers(buffer) };
        let beside = children[at].blocks();
        let meets = |it: &&&Block| it.name != self.block && beside.iter().any(|other| other.name == it.name);
        if let Some(it) = others.iter().find(meets) {
            let (own, other, buffer) = (self.block.clone(), it.name.clone(), buffer.clone());
            let (block, other) = if is_written { (other, own) } else { (own, other) };
            return Err(BlockError::OutOfOrder { block, other, buffer });
        }
        Ok(if is_written { at + 1 } else { at })
    }
}

/// What the block leaves in the buffer is its own, and each element of one iteration.
fn expect_own_results(func: &Func, block: &Block, place: &OnePlace) -> Result<(), BlockError> {
    let (name, buffer) = (block.name.clone(), place.access.buffer.clone());
    if let Some(it) = func.writers(&buffer).iter().find(|it| it.name != name) {
        return Err(BlockError::NotOnlyWriter { block: name, buffer, other: it.name.clone() });
    }
    if block.init.is_none() && block.reads().iter().any(|it| it.buffer == buffer) {
        return Err(BlockError::ReadsItself { block: name, buffer });
    }
    let inverse = Inverse::of(func, block, &place.access.indices);
    let is_told = |it: &Iter| match it.kind {
        IterKind::Spatial => inverse.tells(&it.var),
        IterKind::Reduce => !place.mentions(&|name| *name == it.var),
    };
    if block.iters.iter().all(is_told) {
        return Ok(());
    }
    Err(BlockError::NotElementwise { block: name, buffer })
}
