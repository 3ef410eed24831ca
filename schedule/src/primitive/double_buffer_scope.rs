use ir::{Annotation, Name, Role};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_block};
use crate::{PipelineError, ScheduleError, ScheduleState};

/// Asks for two copies of the temporary that a block fills, so that one can be filled while the other is read.
///
/// ```text
/// double_buffer_scope(block: "A_shared")
///
/// block A_shared(…)
/// ->
/// block A_shared(…) #{double_buffer_scope: 0}
/// ```
///
/// TVM's number is the position of the buffer among those that the block writes; ours write one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoubleBufferScope {
    /// The block.
    pub block: Name,
}

/// The annotation.
pub(crate) const KEY: &str = "double_buffer_scope";

impl Primitive for DoubleBufferScope {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let block = state.expect_block(&self.block)?;
        let mut written: Vec<&Name> = block.writes().into_iter().map(|it| &it.buffer).collect();
        written.dedup();
        let is_temp = |name: &&Name| state.func.buffers.get(*name).is_some_and(|it| it.role == Role::Temp);
        if written.len() != 1 || !written.iter().all(is_temp) {
            return Err(PipelineError::NotOneTemp { block: self.block.clone() }.into());
        }
        annotate_block(state, &self.block, KEY, Annotation::Int(0))
    }

    fn moves_work(&self) -> bool {
        false
    }
}
