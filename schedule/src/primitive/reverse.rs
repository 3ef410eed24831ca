use std::sync::Arc;

use ir::{Index, Loop, LoopKind, Name, REVERSE, Stmt, ThreadAxis};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop};
use crate::{
    RoleError, ScheduleError, ScheduleState,
    check::independent::expect_independent,
    rewrite::{simplify_loop, subst_loops},
};

/// Takes the iterations of a loop from the last to the first.
///
/// ```text
/// reverse(loop: "q")
///
/// for q in 0..32 @blockIdx.x { for k in 0..q + 1 { s } }
/// ->
/// for q in 0..32 @blockIdx.x #{reverse: 1} { for k in 0..q + 1 { s } }
/// ```
///
/// A GPU starts blocks in the order of their numbers, and a multiprocessor that is done with one starts the next. Where later iterations have more to do, as
/// rows of queries with a causal mask have, those that are left for the end should be short: longest processing time first (Graham 1969, *Bounds on
/// multiprocessing timing anomalies*). Of a loop bound to `blockIdx.x` lowering numbers the iterations anew.
///
/// A serial loop is written anew at once, with `n - 1 - q` in the place of `q`: so it may be merged with one that has to go backward. Its
/// iterations must be independent of each other. Changes no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reverse {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for Reverse {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_loop(&self.target)?;
        match it.kind {
            LoopKind::Bound(ThreadAxis::BlockX) => {
                annotate_loop(state, &self.target, REVERSE, |it| it.is_reversed = true)
            }
            LoopKind::Serial => self.count_from_the_end(state),
            _ => Err(RoleError::NotBlockBound { name: self.target.clone() }.into()),
        }
    }

    fn moves_work(&self) -> bool {
        false
    }
}

impl Reverse {
    fn count_from_the_end(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_plain_loop(&self.target)?;
        expect_independent(&state.func, it, LoopKind::Parallel)?;
        state.func.replace_loop(&self.target, |it| {
            let last = &it.extent - 1 - Index::var(&it.var);
            let mut body = it.body.clone();
            subst_loops(&mut body, &|var| (*var == it.var).then(|| last.clone()));
            Stmt::Loop(Arc::new(Loop { body, ..it }))
        });
        simplify_loop(&mut state.func, &self.target);
        Ok(())
    }
}
