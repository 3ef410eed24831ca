use ir::{
    LoopKind, Name,
    pipeline::{ACROSS, COMPUTE, is_pipeline},
};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop};
use crate::{PipelineError, ScheduleError, ScheduleState};

/// Lets a pipeline go on from one iteration of a loop around it to the next.
///
/// ```text
/// software_pipeline_across(loop: "ko", outer: "tile")
///
/// for tile in 0..512 @blockIdx.x #{persistent: 132} { for ko in 0..8 #{…} { s } t }
/// ->
/// for tile in 0..512 @blockIdx.x #{persistent: 132} { for ko in 0..8 #{…, software_pipeline_across: "tile"} { s } t }
/// ```
///
/// So the first copies for the next tile are under way while this one is finished. When the program is lowered, the runs of `loop` in all iterations of `outer` that a block has become one loop. What stands behind
/// `loop` is done in the iterations that end a run, as a statement of the last stage. The prologue is written out once, and at the end nothing is fetched that is
/// not there; the `style` of `software_pipeline_stage` says otherwise.
///
/// `outer` is persistent or serial, and between it and `loop`, which is pipelined, only loops over threads stand. `loop` runs equally often in each iteration. A role that
/// copies (`warp_specialize`) runs ahead into the next iteration by itself. Changes no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoftwarePipelineAcross {
    /// The pipelined loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// The loop around it.
    pub outer: Name,
}

impl Primitive for SoftwarePipelineAcross {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_loop(&self.target)?;
        let around = state.expect_loop(&self.outer)?;
        let (name, outer) = (self.target.clone(), self.outer.clone());
        if !is_pipeline(it) {
            return Err(PipelineError::NoPipeline { name }.into());
        }
        let path = state.expect_path(&self.target)?;
        let is_of_threads = |it: &&ir::Loop| matches!(it.kind, LoopKind::Bound(axis) if axis.is_thread());
        let mut above = path.iter().rev().skip(1).copied().skip_while(is_of_threads);
        let repeats = around.kind == LoopKind::Serial || around.attrs.persistent.is_some();
        let varies = it.extent.any_var(&|name| !state.func.dims.contains(name));
        if above.next().map(|it| &it.var) != Some(&self.outer) || !repeats || varies {
            return Err(PipelineError::NotAround { name, outer }.into());
        }
        let role = it.body.blocks().into_iter().find_map(|it| it.attrs.role.clone());
        if let Some(role) = role.filter(|it| it.as_str() != COMPUTE) {
            return Err(PipelineError::OwnPace { name, role }.into());
        }

        annotate_loop(state, &self.target, ACROSS, |it| it.pipeline_mut().across = Some(outer))
    }

    fn moves_work(&self) -> bool {
        false
    }
}
