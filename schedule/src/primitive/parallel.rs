use ir::{LoopKind, Name, Target};
use serde::{Deserialize, Serialize};

use super::{Primitive, mark};
use crate::{ScheduleError, ScheduleState};

/// Runs the iterations of a loop by the threads of a CPU.
///
/// ```text
/// parallel(loop: "i")
///
/// for i in 0..m { s }
/// ->
/// for i in 0..m @parallel { s }
/// ```
///
/// No block may reduce over the loop, and none may use what another iteration leaves behind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parallel {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for Parallel {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        if let Some(target @ Target::Cuda(_)) = &state.target {
            let (name, target) = (self.target.clone(), target.as_str());
            return Err(ScheduleError::WrongTarget { name, kind: "parallel", target });
        }
        mark(state, &self.target, LoopKind::Parallel)
    }

    fn moves_work(&self) -> bool {
        false
    }
}
