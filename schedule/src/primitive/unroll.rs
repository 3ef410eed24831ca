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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unroll {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for Unroll {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        if state.expect_plain_loop(&self.target)?.extent.as_int().is_none() {
            return Err(ScheduleError::UnknownExtent { name: self.target.clone() });
        }

        state
            .func
            .replace_loop(&self.target, |old| Stmt::Loop(Arc::new(Loop { kind: LoopKind::Unrolled, ..old })));
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }
}
