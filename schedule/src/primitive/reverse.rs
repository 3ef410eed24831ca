use ir::{LoopKind, Name, REVERSE, ThreadAxis};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop};
use crate::{RoleError, ScheduleError, ScheduleState};

/// Lets blocks of threads take the iterations of a loop from the last to the first.
///
/// ```text
/// reverse(loop: "q")
///
/// for q in 0..32 @blockIdx.x { for k in 0..q + 1 { s } }
/// ->
/// for q in 0..32 @blockIdx.x #{reverse: 1} { for k in 0..q + 1 { s } }
/// ```
///
/// A GPU starts blocks in the order of their numbers, and a multiprocessor that is done with one starts the next. Where later iterations have more to do, as
/// rows of queries with a causal mask have, those that are left for the end should be short: longest processing time first (Graham 1969, *Bounds on
/// multiprocessing timing anomalies*). The loop is bound to `blockIdx.x`; lowering numbers its iterations anew. Changes no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reverse {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for Reverse {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_loop(&self.target)?;
        if it.kind != LoopKind::Bound(ThreadAxis::BlockX) {
            return Err(RoleError::NotBlockBound { name: self.target.clone() }.into());
        }

        annotate_loop(state, &self.target, REVERSE, |it| it.is_reversed = true)
    }

    fn moves_work(&self) -> bool {
        false
    }
}
