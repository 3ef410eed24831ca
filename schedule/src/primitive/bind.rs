use std::collections::BTreeMap;

use ir::{Loop, LoopKind, Name, Stmt, Target, ThreadAxis};
use serde::{Deserialize, Serialize};

use super::{Primitive, mark};
use crate::{ScheduleError, ScheduleState, error::Thing};

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
/// No block may reduce over the loop (`rfactor` makes partial results that one may bind), and none may use what
/// another iteration leaves behind. An axis is bound once on the way from the outermost loop to a block, and a
/// block of threads has at most 1024.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// The loop.
    #[serde(rename = "loop")]
    pub target: Name,
    /// CUDA's word for the axis: `blockIdx.x` to `blockIdx.z`, `threadIdx.x` to `threadIdx.z`.
    pub axis: Name,
}

impl Primitive for Bind {
    fn apply(&self, state: &mut ScheduleState) -> Result<(), ScheduleError> {
        let Some(axis) = ThreadAxis::parse(self.axis.as_str()) else {
            let known = ThreadAxis::ALL.iter().map(|it| Name::from(it.as_str())).collect();
            return Err(ScheduleError::NoSuch { thing: Thing::Axis, name: self.axis.clone(), known });
        };
        let it = state.expect_plain_loop(&self.target)?;
        if let Some(target @ Target::Cpu) = &state.target {
            let (name, target) = (self.target.clone(), target.as_str());
            return Err(ScheduleError::WrongTarget { name, kind: "bound to a GPU axis", target });
        }
        let path = state.expect_path(&self.target)?;
        let others: Vec<&Loop> = path.into_iter().chain(loops_below(it)).collect();
        if let Some(by) = others.iter().find(|other| other.kind == LoopKind::Bound(axis)) {
            return Err(ScheduleError::AxisTaken { name: it.var.clone(), by: by.var.clone(), axis });
        }
        check_counts(it, axis, &others)?;
        mark(state, &self.target, LoopKind::Bound(axis))
    }
}

/// Refuses more threads than a GPU has, where the numbers are known.
fn check_counts(it: &Loop, axis: ThreadAxis, others: &[&Loop]) -> Result<(), ScheduleError> {
    let Some(count) = it.extent.as_int() else { return Ok(()) };
    let (what, limit) = match axis {
        ThreadAxis::BlockX => ("blocks of threads on one axis", i64::from(i32::MAX)),
        ThreadAxis::BlockY | ThreadAxis::BlockZ => ("blocks of threads on one axis", 65_535),
        ThreadAxis::ThreadX | ThreadAxis::ThreadY => ("threads on one axis", Target::MAX_THREADS),
        ThreadAxis::ThreadZ => ("threads on one axis", 64),
    };
    if count > limit {
        return Err(ScheduleError::TooMany { name: it.var.clone(), count, what, limit });
    }
    // Loops beside each other on the same axis share its threads: the longest counts.
    let mut threads = BTreeMap::from([(axis, count)]);
    for other in others {
        if let (LoopKind::Bound(axis), Some(extent)) = (other.kind, other.extent.as_int()) {
            let most = threads.entry(axis).or_insert(extent);
            *most = extent.max(*most);
        }
    }
    let threads = threads.iter().filter(|(axis, _)| axis.is_thread()).map(|(_, count)| *count);
    let (count, limit) = (threads.fold(1, i64::saturating_mul), Target::MAX_THREADS);
    if axis.is_thread() && count > limit {
        let what = "threads with the axes around and inside it";
        return Err(ScheduleError::TooMany { name: it.var.clone(), count, what, limit });
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
