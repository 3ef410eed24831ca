use ir::{Index, Name, Stmt};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{ScheduleError, ScheduleState};

/// Puts a loop of one iteration around a loop or a block.
///
/// ```text
/// add_unit_loop(loop: "i", into: "one")
///
/// for i in 0..n { s }
/// ->
/// for one in 0..1 { for i in 0..n { s } }
/// ```
///
/// So other stages have a loop to move to, and axes of threads one to be bound to, where a program has none: all of a vector in one block of
/// threads, for instance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
// One of: target | block
pub struct AddUnitLoop {
    /// The loop, if it is one.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Name>,
    /// The block, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<Name>,
    /// The name of the loop to make.
    pub into: Name,
}

impl Primitive for AddUnitLoop {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        state.expect_fresh(&self.into)?;
        let around = |stmt: Stmt| Stmt::serial(&self.into, Index::int(1), stmt);
        match (&self.target, &self.block) {
            (Some(name), None) => {
                state.expect_loop(name)?;
                state.func.replace_loop(name, |it| around(Stmt::Loop(it.into())));
            }
            (None, Some(name)) => {
                state.expect_block(name)?;
                state.func.replace_block(name, |it| around(Stmt::Block(it.into())));
            }
            (None, None) | (Some(_), Some(_)) => {
                return Err(ScheduleError::LoopOrBlock { primitive: "add_unit_loop" });
            }
        }
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }
}
