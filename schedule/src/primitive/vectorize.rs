use ir::{LoopKind, Name};
use serde::{Deserialize, Serialize};

use super::{Primitive, mark};
use crate::{ScheduleError, ScheduleState};

/// Runs the iterations of a loop as lanes of vector instructions.
///
/// ```text
/// vectorize(loop: "j")
///
/// for j in 0..4 { s }
/// ->
/// for j in 0..4 @vectorized { s }
/// ```
///
/// No block may reduce over the loop, none may use what another iteration leaves behind, and the number of
/// iterations has to be a constant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vectorize {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for Vectorize {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        if state.expect_loop(&self.target)?.extent.as_int().is_none() {
            return Err(ScheduleError::UnknownExtent { name: self.target.clone() });
        }
        mark(state, &self.target, LoopKind::Vectorized)
    }

    fn moves_work(&self) -> bool {
        false
    }
}
