use ir::{Access, Block, Func, Name, Role, Stmt, arith::Bounds};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{LayoutError, ScheduleError, ScheduleState, layout_map::LayoutMap};

/// Stores a temporary with its dimensions in another order.
///
/// ```text
/// transform_layout(buffer: "T", order: [1, 0])
///
/// temp T: f32[m, n]
/// for i in 0..m { for j in 0..n { T[i, j] = f(i, j) } }
/// ->
/// temp T: f32[n, m]
/// for i in 0..m { for j in 0..n { T[j, i] = f(i, j) } }
/// ```
///
/// `order` lists the old dimensions, counted from 0, in their new order, each once; the last one is contiguous in
/// memory. Every access follows. What blocks compute, and their loops, stay as they are. Dimensions are put in order
/// before they are padded: `storage_align` comes afterwards.
///
/// Instead of an order, `index_map` says for any subscripts what the new ones are, and the shape follows:
///
/// ```text
/// transform_layout(buffer: "T", index_map: "(i, k) -> (k floordiv 8, i, k mod 8)")
///
/// temp T: f32[m, 32]
/// for i in 0..m { for k in 0..32 { T[i, k] = f(i, k) } }
/// ->
/// temp T: f32[4, m, 8]
/// for i in 0..m { for k in 0..32 { T[k floordiv 8, i, k mod 8] = f(i, k) } }
/// ```
///
/// The map takes every element to a place of its own and leaves no place: that is proved, or tried for all elements if
/// they are at most a million. Subscripts have `+ - *`, `floordiv`, `mod`, `min`, `max` and `xor(a, b)`. A dimension whose
/// size is known only when the program runs is passed on as it is. Move the blocks of the buffer first: `compute_at` cuts
/// a block to what is needed only where it writes at its own iterators, and after such a map it does not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
// One of: order | index_map
pub struct TransformLayout {
    /// The temporary.
    pub buffer: Name,
    /// The old dimensions in their new order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<usize>>,
    /// Or the new subscripts over the old ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_map: Option<String>,
}

impl Primitive for TransformLayout {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let buffer = state.expect_buffer(&self.buffer)?;
        let name = self.buffer.clone();
        if buffer.role != Role::Temp {
            return Err(ScheduleError::NotTemp { name });
        }
        let map = self.map(&state.func, buffer.shape.len())?;
        if !buffer.layout.align.is_empty() {
            return Err(ScheduleError::AlreadyAligned { name });
        }
        let shape = map.shape(&state.func, &name, &buffer.shape)?;

        if let Some(buffer) = state.func.buffers.get_mut(&self.buffer) {
            buffer.shape = shape;
        }
        let dims = Bounds::of_dims(&state.func);
        state.func.map_blocks(&mut |block| self.block(block, &map, &dims));
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }
}

impl TransformLayout {
    fn map(&self, func: &Func, rank: usize) -> Result<LayoutMap, ScheduleError> {
        let name = || self.buffer.clone();
        match (&self.order, &self.index_map) {
            (Some(order), None) => LayoutMap::permutation(order, rank, func)
                .ok_or_else(|| ScheduleError::NotAPermutation { name: name(), rank }),
            (None, Some(text)) => Ok(LayoutMap::parse(text, &self.buffer)?),
            (None, None) | (Some(_), Some(_)) => Err(LayoutError::TransformWhat { name: name() }.into()),
        }
    }

    fn block(&self, block: &mut Block, map: &LayoutMap, dims: &Bounds) {
        let mut bounds = dims.clone();
        block.iters.iter().for_each(|it| bounds.insert(&it.var, &it.extent));
        for stmt in block.init.iter_mut().chain([&mut block.body]) {
            let mut inside = bounds.clone();
            stmt.walk(&mut |stmt| {
                if let Stmt::Loop(it) = stmt {
                    inside.insert(&it.var, &it.extent);
                }
            });
            *stmt = stmt.map_accesses(&mut |it| {
                if it.buffer != self.buffer {
                    return it.clone();
                }
                Access { indices: map.apply(&it.indices, &inside), ..it.clone() }
            });
        }
    }
}
