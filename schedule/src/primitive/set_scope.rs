use ir::{Name, Role, Scope};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{LayoutError, ScheduleError, ScheduleState};

/// Moves a temporary into another memory.
///
/// ```text
/// set_scope(buffer: "T", scope: "shared")
///
/// temp T: f32[m, n]
/// ->
/// temp T: f32[m, n] @shared
/// ```
///
/// Scopes are `global`, `shared` and `local`. Whether the memory is large enough is asked when the program is
/// lowered, for only then is it known how much of the buffer is alive at a time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetScope {
    /// The temporary.
    pub buffer: Name,
    /// The memory.
    pub scope: Name,
}

impl Primitive for SetScope {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let scope = state.expect_scope(&self.scope)?;
        let (buffer, name) = (state.expect_buffer(&self.buffer)?, self.buffer.clone());
        if buffer.role != Role::Temp {
            return Err(ScheduleError::NotTemp { name });
        }
        if buffer.layout.swizzle.is_some() && scope != Scope::Shared {
            return Err(LayoutError::Swizzled { name }.into());
        }

        if let Some(buffer) = state.func.buffers.get_mut(&self.buffer) {
            buffer.scope = scope;
        }
        Ok(())
    }
}
