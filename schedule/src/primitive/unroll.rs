use std::sync::Arc;

use ir::{Loop, LoopKind, Name, Stmt};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{ScheduleError, ScheduleState};

/// Writes the iterations of a loop out one after the other.
///
/// ```text
/// unroll(loop: "k")
///
/// for k in 0..4 { s }
/// ->
/// for k in 0..4 @unrolled { s }
/// ```
///
/// The number of iterations has to be a constant. Nothing else is asked: the order does not change.
///
/// With `serpentine: "i"`, a loop around it, the iterations run backwards whenever that loop is at an odd iteration,
/// so that what the last iteration of one row used is used again by the first of the next: operands of a tile of sums
/// in registers then need fewer reads. That does change the order, so iterations that depend on each other are
/// refused, and a reduction over the loop has to be decomposed before: its init runs in the first iteration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unroll {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// A loop around it: in its odd iterations this loop runs backwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serpentine: Option<Name>,
}

impl Primitive for Unroll {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let target = state.expect_plain_loop(&self.target)?;
        if target.extent.as_int().is_none() {
            return Err(ScheduleError::UnknownExtent { name: self.target.clone() });
        }
        let distance = self.serpentine.as_ref().map(|outer| self.distance(state, outer)).transpose()?;

        state.func.replace_loop(&self.target, |mut old| {
            old.attrs.serpentine = distance;
            Stmt::Loop(Arc::new(Loop { kind: LoopKind::Unrolled, ..old }))
        });
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }
}

impl Unroll {
    /// How many loops further out the other loop is, which has to be written out or short as well.
    fn distance(&self, state: &ScheduleState, outer: &Name) -> Result<i64, ScheduleError> {
        let it = state.expect_loop(outer)?;
        match it.kind {
            LoopKind::Unrolled => {}
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Bound(_) => {
                state.expect_serial_loop(outer)?;
            }
        }
        if it.extent.as_int().is_none() {
            return Err(ScheduleError::UnknownExtent { name: outer.clone() });
        }
        let path = state.expect_path(&self.target)?;
        let further = path.iter().rev().position(|it| it.var == *outer).filter(|it| *it > 0);
        let further = further.and_then(|it| i64::try_from(it).ok());
        further.ok_or_else(|| ScheduleError::NotAround { outer: outer.clone(), inner: self.target.clone() })
    }
}
