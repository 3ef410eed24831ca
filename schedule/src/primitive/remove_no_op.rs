use std::sync::Arc;

use ir::{Index, Less, Loop, Name, Stmt, region};
use serde::{Deserialize, Serialize};

use crate::{BlockError, Primitive, ScheduleError, ScheduleState, nest, no_op};

/// Ends a loop before the iterations that change nothing.
///
/// ```text
/// remove_no_op(loop: "ko")
///
/// for i in 0..64 { for ko in 0..8 { for ki in 0..8 {
///   s[i] += select(ko*8 + ki < i + 1, A[i, ko*8 + ki], 0) } } }
/// ->
/// for i in 0..64 { for ko in 0..min(i floordiv 8 + 1, 8) { for ki in 0..8 {
///   s[i] += select(ko*8 + ki < i + 1, A[i, ko*8 + ki], 0) } } }
/// ```
///
/// Where a condition is false from some iteration on, for all that is done in one, sums add zero, maxima see `-inf`, and what follows a maximum
/// by `rolling_update` is multiplied by one: the tiles of keys that a causal mask hides. Everything that is used behind the loop has to
/// be left as it is; what threads do in one iteration counts as one, so bind them before. The new end speaks of the loops around.
///
/// Zero times anything counts as zero here. Comes before a pipeline of the loop; no other reduction of a block may move behind it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoveNoOp {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for RemoveNoOp {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_plain_loop(&self.target)?;
        let end = no_op::end(&state.func, &self.target)
            .map_err(|why| BlockError::NoNoOp { loop_name: self.target.clone(), why })?;
        let path = nest::path(&state.func, Some(&self.target));
        let bounds = region::bounds_of(&state.func, &path[..path.len() - 1]);
        // A block that starts its sums does so in the first iteration, which stays.
        let first = Less::new(Index::int(0), end.clone());
        if bounds.prove(&first) != Some(true) {
            let why = "its first iteration may be one of those that change nothing";
            return Err(BlockError::NoNoOp { loop_name: self.target.clone(), why }.into());
        }
        let extent = bounds.simplify(&end.minimum(&it.extent));

        state.func.replace_loop(&self.target, |it| Stmt::Loop(Arc::new(Loop { extent, ..it })));
        Ok(())
    }

    /// What is left of the iterations does what it did.
    fn moves_work(&self) -> bool {
        false
    }
}
