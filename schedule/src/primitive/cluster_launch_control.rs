use ir::{CLUSTER_LAUNCH_CONTROL, Name};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop, persistent};
use crate::{RoleError, ScheduleError, ScheduleState};

/// Lets a block that is done take over one that has not begun: a persistent kernel whose iterations the GPU deals out while it runs.
///
/// ```text
/// cluster_launch_control(loop: "tile")
///
/// for tile in 0..512 @blockIdx.x { s }
/// ->
/// for tile in 0..512 @blockIdx.x #{cluster_launch_control: 1} { s }
/// ```
///
/// The grid has a block for each iteration. The GPU starts as many as it has room for; each of these asks for another one while it works
/// (`clusterlaunchcontrol.try_cancel`), and when it is done stands for that, which never begins then. So whoever is done early takes more, a kernel beside
/// this one takes room from nobody who is under way, and no script has to know how many multiprocessors there are, as `persistent` has to.
/// What a block sets up is set up once, and rings of warps with roles go on from one iteration to the next.
///
/// One warp asks, and all roles hear of the answer by an mbarrier: so the warps of the loop have roles (`warp_specialize`), of which the first one
/// that copies asks. It needs sm_100; on a CPU it changes nothing. Where loops are bound to the axes of a cluster, it is clusters that take over others.
///
/// The loop is bound to `blockIdx.x`, and the only one of its kernel that is. Blocks that reduce together (`cross_block_reduction`) cannot be: whom
/// they wait for might never begin. How often a loop inside runs may not depend on the iteration. Changes no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterLaunchControl {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
}

impl Primitive for ClusterLaunchControl {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = persistent::expect_over_grid(state, &self.target)?;
        if it.attrs.persistent.is_some() {
            return Err(RoleError::DealtTwice { name: self.target.clone() }.into());
        }

        annotate_loop(state, &self.target, CLUSTER_LAUNCH_CONTROL, |it| it.claims = true)
    }

    fn moves_work(&self) -> bool {
        false
    }
}
