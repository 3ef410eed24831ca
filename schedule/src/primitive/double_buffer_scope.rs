use ir::{
    Name, Role,
    pipeline::{DOUBLE, SLOTS},
};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_block};
use crate::{Number, PipelineError, ScheduleError, ScheduleState};

/// Asks for two or more slots of the temporary that a block fills, so that one can be filled while others are read.
///
/// ```text
/// double_buffer_scope(block: "A_shared")
///
/// block A_shared(…)
/// ->
/// block A_shared(…) #{double_buffer_scope: 0}
/// ```
///
/// With `slots: 3` there are at least that many, up to 16, and the block is marked `double_buffer_slots: 3` too. A
/// pipeline that needs more takes more. A slot holds what one iteration of the pipelined loop fills.
///
/// A block may write several buffers. Those temporaries among them that each iteration fills before it reads them get slots; what a
/// block keeps from one iteration to another stays where it is, and so do outputs. Sums in tensor memory that another role reads have slots, too, one after the other for each time
/// that they are computed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoubleBufferScope {
    /// The block.
    pub block: Name,
    /// How many slots at least; two if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<Number>,
}

/// The most slots that can be asked for.
const MOST_SLOTS: i64 = 16;

impl Primitive for DoubleBufferScope {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        expect_temp(state, &self.block)?;
        annotate_block(state, &self.block, DOUBLE, |it| it.double_buffer = true)?;
        self.slots.iter().try_for_each(|it| ask_slots(state, &self.block, it.get()?))
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        self.slots.iter_mut().collect()
    }
}

/// Refuses a block that fills no temporary.
fn expect_temp(state: &ScheduleState, name: &Name) -> Result<(), ScheduleError> {
    let written = state.expect_block(name)?.writes();
    let is_temp = |name: &Name| state.func.buffers.get(name).is_some_and(|it| it.role == Role::Temp);
    if !written.iter().any(|it| is_temp(&it.buffer)) {
        return Err(PipelineError::NotOneTemp { block: name.clone() }.into());
    }
    Ok(())
}

/// Attaches the number of slots that the temporary of a block shall have at least.
pub(crate) fn ask_slots(state: &mut ScheduleState, name: &Name, slots: i64) -> Result<(), ScheduleError> {
    expect_temp(state, name)?;
    if !(2..=MOST_SLOTS).contains(&slots) {
        return Err(PipelineError::Slots { block: name.clone(), slots, limit: MOST_SLOTS }.into());
    }
    annotate_block(state, name, SLOTS, |it| it.slots = Some(slots))
}
