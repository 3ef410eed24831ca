use ir::{CROSS_BLOCK, CrossBlock, IterKind, Loop, Name, Target};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop};
use crate::{CrossBlockError, ScheduleError, ScheduleState, error::Thing};

/// Lets the blocks of threads of a GPU reduce over a loop together: split-K in one kernel.
///
/// ```text
/// cross_block_reduction(loop: "kz", mechanism: "semaphore")
///
/// for kz in 0..4 { T[i] = f(kz, i); C[i] += T[i] }
/// ->
/// for kz in 0..4 #{cross_block_reduction: "semaphore"} { T[i] = f(kz, i); C[i] += T[i] }
/// ```
///
/// Afterwards the loop may be bound to a `blockIdx` axis, and only to one: `rfactor` makes the partial results, and
/// `compute_at` puts them under the loop, where each block computes its own and adds it to the sum in global memory.
///
/// `semaphore`: the blocks that meet in an element add to it one after the other, in the order of the loop, so that
/// every run gives the same numbers, those of the serial loop. A block waits only with what touches the sum, and only
/// for the block before it. The sum may start in the loop, and what stands behind the loop runs once, in the
/// last block, which sees the whole sum: a conversion, an activation. Blocks with a smaller index are started first, so
/// that the wait always ends.
///
/// `atomic`: each adds to the sum in memory, in no order, so that floats come out a little different in each run. The
/// sum has to start in a kernel before (`decompose_reduction` at the outermost loop) and to be used in one behind.
/// It is a sum of f32, f64, i32 or u32.
///
/// Blocks of one cluster need neither: with the partial results in memory of the scope `cluster` (`set_scope`), each of them adds up a part of
/// the elements.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossBlockReduction {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// `semaphore` or `atomic`.
    pub mechanism: Name,
}

impl Primitive for CrossBlockReduction {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let Some(mechanism) = CrossBlock::parse(self.mechanism.as_str()) else {
            let known = CrossBlock::ALL.iter().map(|it| Name::from(it.as_str())).collect();
            let name = self.mechanism.clone();
            return Err(ScheduleError::NoSuch { thing: Thing::Mechanism, name, known });
        };
        let it = state.expect_plain_loop(&self.target)?;
        if let Some(target @ Target::Cpu) = &state.target {
            let (name, target) = (self.target.clone(), target.as_str());
            return Err(ScheduleError::WrongTarget { name, kind: "run by blocks of threads", target });
        }
        if !is_reduced(it) {
            return Err(CrossBlockError::NotReduced { name: self.target.clone() }.into());
        }

        annotate_loop(state, &self.target, CROSS_BLOCK, |it| it.cross_block = Some(mechanism))
    }

    fn moves_work(&self) -> bool {
        false
    }
}

/// Whether some block reduces over the loop.
fn is_reduced(it: &Loop) -> bool {
    it.body
        .blocks()
        .into_iter()
        .flat_map(|it| &it.iters)
        .any(|iter| iter.kind == IterKind::Reduce && iter.binding.any_var(&|var| *var == it.var))
}
