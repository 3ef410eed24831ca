use std::{collections::BTreeMap, sync::Arc};

use ir::{Arch, Loop, LoopAttrs, LoopKind, Name, Stmt, Target, ThreadAxis};
use serde::{Deserialize, Serialize};

use super::Primitive;
use crate::{
    CrossBlockError, ScheduleError, ScheduleState, check::independent::expect_independent, error::Thing,
};

/// Runs the iterations of a loop by the threads, or blocks of threads, of a GPU axis.
///
/// ```text
/// bind(loop: "i", axis: "threadIdx.x")
///
/// for i in 0..128 { s }
/// ->
/// for i in 0..128 @threadIdx.x { s }
/// ```
///
/// Threads may reduce over the loop together, if the block is a sum, product, minimum or maximum: each reduces the terms of its own
/// iterations, and then the threads combine what they have, by shuffles between the lanes of a warp and through shared memory between
/// warps. The result is there for all of them, in local memory for each (floating-point results change by rounding, since the order does). Blocks of threads
/// may not (`rfactor` makes partial results, and `cross_block_reduction` lets them reduce together). No block may use what
/// another iteration leaves behind. An axis may be bound again in a nest beside this one, which then shares its
/// threads. Inside a loop bound to it, an axis is bound again only by a loop of the same extent whose blocks do not
/// use the outer loop: each thread then does its share of work that all of them need. A block of threads has at
/// most 1024.
///
/// `cluster.x` to `cluster.z` are the blocks of threads of a *cluster* (sm_90 and later), which run at the same time: at most eight on every GPU that has clusters, and up to sixteen on sm_90, sm_100 and sm_103, where so many multiprocessors
/// lie together. Each has shared memory of its own, as other blocks have, and what it has of memory of the scope `cluster` all of them see (`set_scope`). What the copy engine brings to all of them alike, each fetches a part of, for all
/// (*multicast*): a role has to do it (`warp_specialize`). The axes `blockIdx` number the clusters then.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// CUDA's word for the axis: `blockIdx.x` to `blockIdx.z`, `threadIdx.x` to `threadIdx.z`; or `cluster.x` to `cluster.z`.
    pub axis: Name,
}

impl Primitive for Bind {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let Some(axis) = ThreadAxis::parse(self.axis.as_str()) else {
            let known = ThreadAxis::ALL.iter().map(|it| Name::from(it.as_str())).collect();
            return Err(ScheduleError::NoSuch { thing: Thing::Axis, name: self.axis.clone(), known });
        };
        let it = self.expect_bindable(state, axis)?;
        if let Some(target @ Target::Cpu) = &state.target {
            let (name, target) = (self.target.clone(), target.as_str());
            return Err(ScheduleError::WrongTarget { name, kind: "bound to a GPU axis", target });
        }
        let above = state.expect_path(&self.target)?;
        let below = loops_below(it);
        expect_free_axis(it, axis, &above)?;
        let others: Vec<&Loop> = above.iter().chain(&below).copied().collect();
        check_counts(it, axis, &others)?;
        expect_independent(&state.func, it, LoopKind::Bound(axis))?;

        let kind = LoopKind::Bound(axis);
        state.func.replace_loop(&self.target, |old| Stmt::Loop(Arc::new(Loop { kind, ..old })));
        Ok(())
    }

    fn moves_work(&self) -> bool {
        false
    }
}

impl Bind {
    /// The loop: a plain one, one over tiles in groups of rows, or one over which blocks of threads reduce together.
    fn expect_bindable<'a>(
        &self,
        state: &'a ScheduleState,
        axis: ThreadAxis,
    ) -> Result<&'a Loop, ScheduleError> {
        let it = state.expect_serial_loop(&self.target)?;
        let only = LoopAttrs { cross_block: it.attrs.cross_block, ..LoopAttrs::default() };
        if it.attrs.is_empty() || it.attrs != only {
            return state.expect_unmarked_loop(&self.target);
        }
        if axis.is_thread() {
            return Err(CrossBlockError::Axis { name: self.target.clone(), axis }.into());
        }
        Ok(it)
    }
}

/// Whether the work under `inner` is the same in every iteration of `outer`: then each thread may do its share of it
/// once, instead of every thread doing all of it.
fn shares_axis(outer: &Loop, inner: &Loop) -> bool {
    let uses_outer = |index: &ir::Index| index.any_var(&|var| *var == outer.var);
    let free = |block: &ir::Block| {
        block.iters.iter().all(|iter| !uses_outer(&iter.binding))
            && block.guards.iter().all(|it| !uses_outer(&it.lhs) && !uses_outer(&it.rhs))
    };
    outer.extent == inner.extent && inner.body.blocks().into_iter().all(free)
}

/// Refuses more threads than a GPU has, where the numbers are known.
fn check_counts(it: &Loop, axis: ThreadAxis, others: &[&Loop]) -> Result<(), ScheduleError> {
    let Some(count) = it.extent.as_int() else { return Ok(()) };
    let what = match axis {
        it if it.is_thread() => "threads on one axis",
        it if it.is_cluster() => "blocks of threads in a cluster",
        _ => "blocks of threads on one axis",
    };
    let limit = Arch::axis_limit(axis);
    if count > limit {
        return Err(ScheduleError::TooMany { name: it.var.clone(), count, what, limit });
    }
    // Loops beside each other on the same axis share its threads: the longest counts.
    let mut extents = BTreeMap::from([(axis, count)]);
    for other in others {
        if let (LoopKind::Bound(axis), Some(extent)) = (other.kind, other.extent.as_int()) {
            let most = extents.entry(axis).or_insert(extent);
            *most = extent.max(*most);
        }
    }
    let all = |is_of: fn(ThreadAxis) -> bool| {
        let counts = extents.iter().filter(|(axis, _)| is_of(**axis)).map(|(_, count)| *count);
        counts.fold(1, i64::saturating_mul)
    };
    let (count, limit, what) = if axis.is_thread() {
        (all(ThreadAxis::is_thread), Arch::MAX_THREADS, "threads with the axes around and inside it")
    } else if axis.is_cluster() {
        (all(ThreadAxis::is_cluster), Arch::MAX_CLUSTER, "blocks of threads in a cluster")
    } else {
        return Ok(());
    };
    if count > i64::from(limit) {
        let limit = limit.into();
        return Err(ScheduleError::TooMany { name: it.var.clone(), count, what, limit });
    }
    Ok(())
}

/// Refuses to bind a loop to an axis that a loop around it or inside it has, unless the two can share it.
pub(super) fn expect_free_axis(it: &Loop, axis: ThreadAxis, above: &[&Loop]) -> Result<(), ScheduleError> {
    let below = loops_below(it);
    let same = |other: &&Loop| other.kind == LoopKind::Bound(axis);
    let outer = above.iter().copied().filter(same).map(|other| (other, it));
    let inner = below.iter().copied().filter(same).map(|other| (it, other));
    for (outer, inner) in outer.chain(inner) {
        if !shares_axis(outer, inner) {
            let (outer, inner) = (outer.var.clone(), inner.var.clone());
            return Err(ScheduleError::AxisTaken { outer, inner, axis });
        }
    }
    Ok(())
}

fn loops_below(it: &Loop) -> Vec<&Loop> {
    let mut out = Vec::new();
    it.body.walk(&mut |stmt| {
        if let Stmt::Loop(inner) = stmt {
            out.push(&**inner);
        }
    });
    out
}
