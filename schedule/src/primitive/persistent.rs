use std::sync::Arc;

use ir::{Loop, LoopKind, Name, PERSISTENT, Stmt, ThreadAxis};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop};
use crate::{Number, RoleError, ScheduleError, ScheduleState};

/// Deals the iterations of a loop over blocks to a smaller grid: a persistent kernel, whose blocks live as long as there is work.
///
/// ```text
/// persistent(loop: "tile", blocks: 132)
///
/// for tile in 0..512 @blockIdx.x { s }
/// ->
/// for tile in 0..512 @blockIdx.x #{persistent: 132} { s }
/// ```
///
/// Block `b` runs the iterations `b`, `b + blocks`, `b + 2*blocks`, …, in this order. What a block sets up is set up once, and rings of warps with
/// roles (`warp_specialize`) go on from one iteration to the next: the next tile is loaded while this one is stored.
/// As many blocks as a GPU holds at once, its multiprocessors times the blocks that each holds, leave none idle; any number is right.
/// Where loops are bound to the axes of a cluster, it is clusters that are counted.
///
/// The loop is bound to `blockIdx.x`, and the only one of its kernel that is. Blocks that reduce together
/// (`cross_block_reduction`) cannot be: their turns would come round again. Changes no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Persistent {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// How many blocks the grid has; how many clusters, where there are some.
    pub blocks: Number,
}

impl Primitive for Persistent {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = expect_over_grid(state, &self.target)?;
        let name = || self.target.clone();
        let number = self.blocks.get()?;
        if !(1..=i64::from(i32::MAX)).contains(&number) {
            return Err(RoleError::BlockCount { name: name(), number }.into());
        }
        if it.attrs.claims {
            return Err(RoleError::DealtTwice { name: name() }.into());
        }

        annotate_loop(state, &self.target, PERSISTENT, |it| it.persistent = Some(number))
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        vec![&mut self.blocks]
    }
}

/// A loop whose iterations blocks can have several of: bound to `blockIdx.x`, alone in its kernel, and without blocks that wait for others.
pub(super) fn expect_over_grid<'s>(
    state: &'s ScheduleState,
    target: &Name,
) -> Result<&'s Loop, ScheduleError> {
    let it = state.expect_loop(target)?;
    let name = || target.clone();
    if it.kind != LoopKind::Bound(ThreadAxis::BlockX) {
        return Err(RoleError::NotBlockBound { name: name() }.into());
    }
    let path = state.func.path_to_loop(target);
    let kernel = path.and_then(|it| it.first().copied()).unwrap_or(it);
    let mut others = Vec::new();
    Stmt::Loop(Arc::new(kernel.clone())).walk(&mut |stmt| {
        if let Stmt::Loop(other) = stmt {
            if other.kind == it.kind && other.var != *target {
                others.push(RoleError::GridShared { name: name(), other: other.var.clone() });
            }
            if other.attrs.cross_block.is_some() {
                others.push(RoleError::TurnsRepeat { name: name(), other: other.var.clone() });
            }
        }
    });
    others.into_iter().next().map_or(Ok(it), |err| Err(err.into()))
}
