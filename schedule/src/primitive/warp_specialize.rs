use indexmap::IndexMap;
use ir::{
    Loop, LoopKind, Name, ROLE, Role, Scope, Target, WARP_ROLES,
    intrin::Intrinsic,
    pipeline::{self, COMPUTE, STAGE, components_of, is_pipeline, numbers},
};
use serde::{Deserialize, Serialize};

use super::{Primitive, annotate_loop};
use crate::{Number, RoleError, ScheduleError, ScheduleState};

/// Gives some blocks to warps of their own, which only start copies, or products into tensor memory, and run ahead of those that compute.
///
/// ```text
/// warp_specialize(loop: "by", roles: {"load": ["A_pad"]}, registers: {"load": 40, "compute": 232})
///
/// for by in 0..8 @blockIdx.y { for ko in 0..n #{…} { A_pad; C } }
/// ->
/// for by in 0..8 @blockIdx.y #{warp_roles: {load: 40, compute: 232}} { for ko in 0..n #{…} { A_pad #{role: "load"}; C } }
/// ```
///
/// The loop is the outermost one of its kernel, or bound to a `blockIdx` axis with only such loops around it. What no role
/// names is run by the role `compute`. Each role starts with its first stage and keeps its own pace: the stages of a pipeline then
/// say how many slots its rings have, and how many products are in flight when a slot is given back. Mbarriers order the roles, one pair a slot;
/// lowering places them and proves that they suffice.
///
/// `registers` says how many registers the threads of each role get (`setmaxnreg`), multiples of 8 from 24 to 256: for each role,
/// or for none.
///
/// A block of a role copies asynchronously (by TMA) in a pipelined loop: it fills shared memory that other roles read in the same loop, and
/// reads what no other role writes. A block that `tensorize` gave to a `tcgen05_` product, or that copies scales for it, may have a role, too: it reads what other roles fill in its loop, and who reads
/// its sums stands behind the loop, in another role; `double_buffer_scope` with `slots: 2` lets the next sums be computed meanwhile. Changes no result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WarpSpecialize {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// The blocks of each role.
    pub roles: IndexMap<Name, Vec<Name>>,
    /// The registers of a thread of each role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<IndexMap<Name, Number>>,
}

impl Primitive for WarpSpecialize {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let it = state.expect_loop(&self.target)?;
        if let Some(target @ Target::Cpu) = &state.target {
            let (name, target) = (self.target.clone(), target.as_str());
            return Err(ScheduleError::WrongTarget { name, kind: "run by warps with roles", target });
        }
        expect_outermost(state, it)?;
        let mut seen: IndexMap<Name, Name> = IndexMap::new();
        for (role, blocks) in &self.roles {
            if role.as_str() == COMPUTE {
                return Err(RoleError::Reserved { role: role.clone() }.into());
            }
            for block in blocks {
                if let Some(first) = seen.insert(block.clone(), role.clone()) {
                    let (block, second) = (block.clone(), role.clone());
                    return Err(RoleError::InTwoRoles { block, first, second }.into());
                }
                self.expect_producer(state, block, role)?;
            }
        }
        let registers = self.registers()?;

        for (block, role) in seen {
            super::annotate_block(state, &block, ROLE, |it| it.role = Some(role))?;
        }
        annotate_loop(state, &self.target, WARP_ROLES, |it| it.roles = registers)
    }

    fn moves_work(&self) -> bool {
        false
    }

    fn numbers(&mut self) -> Vec<&mut Number> {
        self.registers.iter_mut().flat_map(IndexMap::values_mut).collect()
    }
}

impl WarpSpecialize {
    /// The registers of each role, `compute` last; 0 where none are said.
    fn registers(&self) -> Result<IndexMap<Name, i64>, ScheduleError> {
        let compute = Name::from(COMPUTE);
        let roles = || self.roles.keys().chain([&compute]);
        let Some(given) = &self.registers else {
            return Ok(roles().map(|it| (it.clone(), 0)).collect());
        };
        if let Some(role) = given.keys().find(|it| !roles().any(|role| role == *it)) {
            let (name, known) = (role.clone(), roles().cloned().collect());
            return Err(ScheduleError::NoSuch { thing: crate::error::Thing::Role, name, known });
        }
        let one = |role: &Name| {
            let missing = || RoleError::RegistersMissing { role: role.clone() };
            let number = given.get(role).ok_or_else(missing)?.get()?;
            if number % 8 != 0 || !(24..=256).contains(&number) {
                return Err(RoleError::Registers { role: role.clone(), number }.into());
            }
            Ok((role.clone(), number))
        };
        roles().map(one).collect()
    }

    /// Whether a role other than `compute` has a block.
    fn is_of_a_role(&self, block: &Name) -> bool {
        self.roles.values().any(|it| it.contains(block))
    }

    /// Refuses a block that does not fill a ring for other roles, or that needs something of them.
    fn expect_producer(&self, state: &ScheduleState, block: &Name, role: &Name) -> Result<(), ScheduleError> {
        let found = state.expect_block(block)?;
        let path = state.func.loops_of(block).into_iter().flatten();
        let name = || self.target.clone();
        let inside = path.skip_while(|it| it.var != self.target);
        let Some(ring) = inside.filter(|it| is_pipeline(it)).last() else {
            return Err(RoleError::NotPipelined { block: block.clone(), name: name() }.into());
        };
        if !is_product(found) && !is_asynchronous(ring, block) {
            let (block, name) = (block.clone(), ring.var.clone());
            return Err(RoleError::NotAsynchronous { block, name }.into());
        }
        let func = &state.func;
        let own = |other: &ir::Block| self.roles[role].contains(&other.name);
        let names = |it: &Loop| it.body.blocks().iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        let in_ring = names(ring);
        let in_kernel =
            state.func.loops_of(block).and_then(|it| it.first().map(|it| names(it))).unwrap_or_default();
        for other in func.body.blocks().into_iter().filter(|it| !own(it)) {
            let exchange = |buffer: &Name| RoleError::Exchange {
                block: block.clone(),
                buffer: buffer.clone(),
                other: other.name.clone(),
            };
            for write in found.writes() {
                let touches = other.any_access(&mut |it, _| it.buffer == write.buffer);
                let writes = other.writes().iter().any(|it| it.buffer == write.buffer);
                let is_inside = in_ring.contains(&other.name);
                let is_handed_over = match func.buffers[&write.buffer].scope {
                    Scope::Shared => is_inside,
                    Scope::Tensor => !is_inside,
                    _ => return Err(exchange(&write.buffer).into()),
                };
                if touches && (writes || !is_handed_over) {
                    return Err(exchange(&write.buffer).into());
                }
            }
            // What another kernel writes is there before this one begins.
            let read = found.reads().into_iter().filter(|_| in_kernel.contains(&other.name)).find(|read| {
                let is_given = func.buffers[&read.buffer].role == Role::Input;
                let is_filled =
                    is_product(found) && in_ring.contains(&other.name) && self.is_of_a_role(&other.name);
                !is_given && !is_filled && other.writes().iter().any(|it| it.buffer == read.buffer)
            });
            if let Some(read) = read {
                return Err(exchange(&read.buffer).into());
            }
        }
        Ok(())
    }
}

/// Whether a block is products into tensor memory.
fn is_product(block: &ir::Block) -> bool {
    block.attrs.tensorize.is_some_and(Intrinsic::is_of_tensor_core)
}

/// Whether a pipelined loop copies in the stage of a block asynchronously.
fn is_asynchronous(ring: &Loop, block: &Name) -> bool {
    let Ok(stages) = numbers(ring, STAGE) else { return false };
    let all = components_of(ring, &stages);
    let own = all.iter().zip(stages.values()).find(|it| it.0.names.contains(block));
    own.is_some_and(|(it, stage)| pipeline::is_asynchronous(ring, *stage, &it.names))
}

/// Refuses a loop inside others that are not bound to the blocks of a grid.
fn expect_outermost(state: &ScheduleState, it: &Loop) -> Result<(), ScheduleError> {
    let path = state.func.path_to_loop(&it.var).into_iter().flatten();
    let is_grid = |it: &&Loop| matches!(it.kind, LoopKind::Bound(axis) if !axis.is_thread());
    match path.take_while(|around| around.var != it.var).find(|it| !is_grid(it)) {
        Some(around) => {
            Err(RoleError::NotOutermost { name: it.var.clone(), around: around.var.clone() }.into())
        }
        None => Ok(()),
    }
}
