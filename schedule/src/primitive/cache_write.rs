use std::sync::Arc;

use ir::{Buffer, Name, Stmt, region};
use serde::{Deserialize, Serialize};

use super::cache_read::redirect;
use crate::{
    BlockError, Primitive, ScheduleError, ScheduleState,
    nest::{self, Spot},
};

/// Writes a buffer through a copy in another memory.
///
/// ```text
/// cache_write(block: "C", scope: "local")
///
/// for i in 0..n { for k in 0..m { C[i] += A[i, k] } }
/// ->
/// for i in 0..n { for k in 0..m { C_local[i] += A[i, k] } }
/// for C_local_0 in 0..n { C[C_local_0] = C_local[C_local_0] }
/// ```
///
/// The block keeps its name and computes into the new buffer `{buffer}_{scope}` (then `…2`; or `name`); a new
/// block of that name copies the result back. It stands after the last writer, before any reader of the buffer, and in
/// the loop of the writers where only some readers are in that too; move it with `reverse_compute_at`. If a reduction was decomposed, its init writes the new buffer too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheWrite {
    /// The block that computes the buffer.
    pub block: Name,
    /// The memory of the copy: `global`, `shared` or `local`.
    pub scope: Name,
    /// The name of the copy, in place of `{buffer}_{scope}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
}

impl Primitive for CacheWrite {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let scope = state.expect_scope(&self.scope)?;
        let block = state.expect_block(&self.block)?;
        let Some(buffer) = block.writes().first().map(|it| it.buffer.clone()) else {
            return Err(BlockError::WritesNothing { block: self.block.clone() }.into());
        };
        let name = match &self.name {
            Some(name) => state.expect_fresh(name).map(|()| name.clone())?,
            None => Name::nth(&format!("{buffer}_{}", scope.as_str()), |it| state.func.is_taken(it)),
        };
        let func = &state.func;
        let writers: Vec<Name> = func.writers(&buffer).iter().map(|it| it.name.clone()).collect();
        let readers: Vec<Name> = func.readers(&buffer).iter().map(|it| it.name.clone()).collect();
        let spot = nest::between(func, &writers, &readers)
            .map_err(|(block, other)| BlockError::OutOfOrder { block, other, buffer: buffer.clone() })?;

        let old = state.func.clone();
        let func = &mut state.func;
        let target = &func.buffers[&buffer];
        let target = Buffer::temp(target.dtype, target.shape.clone(), scope);
        func.buffers.insert(name.clone(), target);
        func.map_blocks(&mut |block| {
            if writers.contains(&block.name) {
                for stmt in block.init.iter_mut().chain([&mut block.body]) {
                    redirect(stmt, &buffer, &name);
                    store_to(stmt, &buffer, &name);
                }
            }
        });
        let bounds = region::bounds_of(func, &nest::path(func, spot.within.as_ref()));
        let region = written(func, &writers, &name, &spot);
        let copy = nest::copy(func, &name, &name, &buffer, &region, &bounds);
        nest::insert(func, &spot, copy);
        crate::moved::expect_covered(&old, func, &name)?;
        Ok(())
    }
}

/// What the writers of the new buffer touch at the spot.
fn written(func: &ir::Func, writers: &[Name], buffer: &Name, spot: &Spot) -> region::Region {
    let shape = &func.buffers[buffer].shape;
    let fixed = nest::path(func, spot.within.as_ref());
    let bounds = region::bounds_of(func, &fixed);
    let regions = writers.iter().filter_map(|it| {
        Some(region::touched_below(func, func.find_block(it)?, buffer, fixed.len(), region::Way::Write))
    });
    regions.reduce(|a, b| region::union(&a, &b, shape, &bounds)).unwrap_or_default()
}

/// Makes stores to one buffer stores to another.
fn store_to(stmt: &mut Stmt, from: &Name, to: &Name) {
    stmt.walk_mut(&mut |it| {
        if let Stmt::Store(store) = it
            && store.place.buffer == *from
        {
            Arc::make_mut(store).place.buffer = to.clone();
        }
        true
    });
}
