use ir::{
    Loop, LoopKind, Name, PING_PONG, Stmt, Target, ThreadAxis,
    pipeline::{COMPUTE, is_pipeline},
};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop};
use crate::{Number, RoleError, ScheduleError, ScheduleState};

/// Lets warpgroups take the iterations of a persistent loop in turn: one multiplies while another stores.
///
/// ```text
/// ping_pong(loop: "tile", turns: "ko", members: 2)
///
/// for tile in 0..512 @blockIdx.x #{persistent: 132} { for ko in 0..64 #{…} { A_pad; C_acc } C }
/// ->
/// for tile in 0..512 @blockIdx.x #{persistent: 132, ping_pong: {ko: 2}} { for ko in 0..64 #{…} { A_pad; C_acc } C }
/// ```
///
/// Of the iterations that a block runs, warpgroup `g` of `members` takes those of number `g`, `g + members`, …, each as a whole. The loop
/// `turns` is run by one warpgroup at a time, in the order of the iterations: its products have the tensor cores for themselves. What stands beside it
/// overlaps with the turns of the others. Roles that only copy go on through all iterations.
///
/// The loop is persistent, and warps have roles in it (`warp_specialize`). `turns` is a pipelined loop directly inside, whose copies a role makes. Nothing is bound to
/// `threadIdx.y` and `threadIdx.z`, which number the warpgroups, and what is bound to `threadIdx.x` has their 128 threads, as products by `wgmma_…` have. `members` is 2, unless it
/// is said to be 3. Changes no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PingPong {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// The loop inside that is run in turn.
    pub turns: Name,
    /// How many warpgroups take turns.
    #[serde(default = "two", skip_serializing_if = "is_two")]
    pub members: Number,
}

pub(super) fn two() -> Number {
    Number::Int(2)
}

fn is_two(it: &Number) -> bool {
    *it == two()
}

impl Primitive for PingPong {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_loop(&self.target)?;
        let name = || self.target.clone();
        if let Some(target @ Target::Cpu) = &state.target {
            let target = target.as_str();
            return Err(ScheduleError::WrongTarget {
                name: name(),
                kind: "run by warpgroups in turn",
                target,
            });
        }
        if it.attrs.persistent.is_none() {
            return Err(RoleError::NotPersistent { name: name() }.into());
        }
        let is_producer = |role: &Option<Name>| role.as_ref().is_some_and(|it| it.as_str() != COMPUTE);
        if !it.body.blocks().into_iter().any(|it| is_producer(&it.attrs.role)) {
            return Err(RoleError::NoRole { name: name() }.into());
        }
        if let Some((other, axis)) = numbered(it) {
            return Err(RoleError::AxisTaken { name: name(), other, axis: axis.as_str() }.into());
        }
        let members = self.members.get()?;
        if !ir::PingPong::MEMBERS.contains(&members) {
            return Err(RoleError::MemberCount { name: name(), number: members }.into());
        }
        let turns = state.expect_loop(&self.turns)?;
        // A block of a cluster runs one iteration of a loop over those.
        let is_block = |it: &&Loop| matches!(it.kind, LoopKind::Bound(axis) if axis.is_cluster());
        let is_inside = state.func.path_to_loop(&self.turns).is_some_and(|path| {
            let mut around = path.into_iter().rev().skip(1).skip_while(is_block);
            around.next().is_some_and(|it| it.var == self.target)
        });
        let roles = || turns.body.blocks().into_iter().map(|it| is_producer(&it.attrs.role));
        let is_fed = roles().any(|it| it) && !roles().all(|it| it);
        let needed = [
            (is_inside, "it is not directly inside that one"),
            (is_pipeline(turns), "it is not pipelined"),
            (is_fed, "no role copies for others in it"),
        ];
        if let Some((_, why)) = needed.into_iter().find(|it| !it.0) {
            return Err(RoleError::NotATurn { name: self.turns.clone(), around: name(), why }.into());
        }

        let turns = self.turns.clone();
        annotate_loop(state, &self.target, PING_PONG, |it| {
            it.ping_pong = Some(ir::PingPong { turns, members });
        })
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        vec![&mut self.members]
    }
}

/// A loop inside that is bound to an axis by which warpgroups are numbered.
fn numbered(it: &Loop) -> Option<(Name, ThreadAxis)> {
    let mut found = None;
    it.body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && let LoopKind::Bound(axis @ (ThreadAxis::ThreadY | ThreadAxis::ThreadZ)) = it.kind
        {
            found.get_or_insert((it.var.clone(), axis));
        }
    });
    found
}
