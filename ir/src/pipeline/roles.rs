//! Roles: which warps run which components of a pipeline, each at its own pace.
//!
//! Where components belong to different roles, their stages say no longer when they run, since mbarriers order them: what the
//! stages are for then is how many slots a ring has. So each role starts with its first stage, and within an iteration components run in
//! program order: the sequence that this makes is legal whenever the declared one is, since an iteration writes before it reads.

use super::PipelinePlan;
use crate::{Index, Loop, LoopKind, Name};

/// The role by which warps run what has none: [`crate::BlockAttrs::role`].
pub const COMPUTE: &str = "compute";

impl PipelinePlan {
    /// The role of a component: that of its blocks.
    pub fn role(&self, component: usize) -> Option<&Name> {
        self.components[component].body.blocks().into_iter().find_map(|it| it.attrs.role.as_ref())
    }

    /// Whether its components have several roles.
    pub fn has_roles(&self) -> bool {
        let first = self.role(0);
        (1..self.components.len()).any(|it| self.role(it) != first)
    }

    /// The number of an iteration among those of all runs of the loop, counted through the serial loops around it.
    pub fn position(&self, around: &[&Loop], iteration: &Index) -> Index {
        let serial = around.iter().filter(|it| !matches!(it.kind, LoopKind::Bound(_)));
        let outer = serial.fold(Index::int(0), |all, it| all * it.extent.clone() + Index::var(&it.var));
        outer * self.extent.clone() + iteration.clone()
    }

    /// The plan with each role at its own pace.
    #[must_use]
    pub fn by_role(&self) -> PipelinePlan {
        let mut out = self.clone();
        for (at, component) in out.components.iter_mut().enumerate() {
            let own = (0..self.components.len()).filter(|it| self.role(*it) == self.role(at));
            let first = own.map(|it| self.components[it].stage).min().unwrap_or(0);
            component.stage -= first;
            component.order = i64::try_from(at).expect("components are in memory");
        }
        out
    }
}
