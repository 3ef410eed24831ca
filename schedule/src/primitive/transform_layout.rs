use std::collections::BTreeSet;

use ir::{Access, Block, Name, Role};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{ScheduleError, ScheduleState};

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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformLayout {
    /// The temporary.
    pub buffer: Name,
    /// The old dimensions in their new order.
    pub order: Vec<usize>,
}

impl Primitive for TransformLayout {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let buffer = state.expect_buffer(&self.buffer)?;
        let (name, rank) = (self.buffer.clone(), buffer.shape.len());
        if buffer.role != Role::Temp {
            return Err(ScheduleError::NotTemp { name });
        }
        let distinct: BTreeSet<_> = self.order.iter().copied().filter(|it| *it < rank).collect();
        if distinct.len() != rank || self.order.len() != rank {
            return Err(ScheduleError::NotAPermutation { name, rank });
        }
        if !buffer.layout.align.is_empty() {
            return Err(ScheduleError::AlreadyAligned { name });
        }

        if let Some(buffer) = state.func.buffers.get_mut(&self.buffer) {
            buffer.shape = self.permuted(&buffer.shape);
        }
        state.func.map_blocks(&mut |block| self.block(block));
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }
}

impl TransformLayout {
    fn permuted<T: Clone>(&self, of: &[T]) -> Vec<T> {
        self.order.iter().filter_map(|at| of.get(*at).cloned()).collect()
    }

    fn access(&self, it: &Access) -> Access {
        if it.buffer == self.buffer {
            Access { indices: self.permuted(&it.indices), ..it.clone() }
        } else {
            it.clone()
        }
    }

    fn block(&self, block: &mut Block) {
        for stmt in block.init.iter_mut().chain([&mut block.body]) {
            *stmt = stmt.map_accesses(&mut |it| self.access(it));
        }
    }
}
