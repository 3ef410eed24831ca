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
/// Scopes are `global`, `cluster`, `shared`, `tensor`, `fragment` and `local`. Whether the memory is large enough is asked when the program is
/// lowered, for only then is it known how much of the buffer is alive at a time.
///
/// `cluster` is shared memory of all blocks of a cluster together (*distributed shared memory*, sm_90 and later): each block has the elements whose
/// first subscript is its number in the cluster, in its own shared memory, and reaches those of the others. So the loop over the first dimension is bound to an
/// axis of the cluster (`bind`), and any loop behind it may read all of them. Where the blocks of a cluster have to wait for each other is
/// derived, also at the end, since memory goes with its block. That is split-K without a detour through global memory: `rfactor` with
/// `factor_axis: 0`, and the partial results in the scope `cluster`.
///
/// `tensor` is tensor memory of a block of threads (sm_100a): 128 rows of 512 columns of four bytes. Products by `tcgen05_` intrinsics write it, `tcgen05_cp` the scales of their factors, and
/// `tcgen05_ld` reads it into a `fragment`; nothing else touches it.
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
