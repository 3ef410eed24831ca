//! The shared memory that a kernel takes beside the rings of a loop.

use std::collections::BTreeSet;

use super::work::extent;
use crate::{
    Buffer, Func, Loop, LoopKind, Name, Role,
    access::{Axes, FuncAccess, accesses},
    intrin,
    pipeline::{STAGE, is_pipeline, numbers},
};

/// Bytes of the temporaries in shared memory that are none of some rings, and whether they live beside these: what is filled before or
/// after the loop is given the same bytes, unless iterations around it overlap. Unknown sizes count nothing.
pub(super) fn elsewhere(func: &Func, it: &Loop, around: &[&Loop], rings: &BTreeSet<Name>) -> (f64, bool) {
    let all = accesses(&func.body, Axes::AsLoops);
    let kernel = around.first().map_or(&it.var, |it| &it.var);
    let is_here = |access: &&FuncAccess<'_>| access.loops.first().is_some_and(|it| it.var == *kernel);
    let is_other = |(name, info): &(&Name, &Buffer)| {
        info.role == Role::Temp && info.scope.is_of_blocks() && !rings.contains(*name)
    };
    let bytes = |(name, info): (&Name, &Buffer)| {
        let uses: Vec<_> = all.iter().filter(|it| it.buffer == name).filter(is_here).collect();
        Some(elements(&uses, it)? * info.dtype.bytes() as f64 / intrin::sharing(func, name) as f64)
    };
    let sum = func.buffers.iter().filter(is_other).filter_map(bytes).sum();
    let repeats = |it: &&Loop| it.attrs.repeats_in_block() || !matches!(it.kind, LoopKind::Bound(_));
    (sum, around.iter().any(repeats))
}

/// Elements of a buffer in all its slots.
fn elements(uses: &[&FuncAccess<'_>], it: &Loop) -> Option<f64> {
    let first = uses.first()?;
    let common = uses.iter().map(|other| first.shared_loops(other)).min()?;
    let of_one = |access: &&FuncAccess<'_>| {
        let is_in = |name: &Name| access.indices.iter().any(|it| it.any_var(&|var| var == name));
        let is_of_threads = |it: &Loop| matches!(it.kind, LoopKind::Bound(axis) if axis.is_thread());
        let loops = access.loops.iter().enumerate();
        let counted = loops.filter(|(at, it)| (*at >= common || is_of_threads(it)) && is_in(&it.var));
        counted.map(|(_, it)| extent(&it.extent)).product::<Option<f64>>()
    };
    let most = uses.iter().map(of_one).collect::<Option<Vec<_>>>()?.into_iter().fold(0.0, f64::max);
    let home = first.loops[..common].iter().rev().find(|it| !matches!(it.kind, LoopKind::Bound(_)));
    let asked = uses.iter().filter_map(|it| it.block()?.attrs.slots).max().unwrap_or(1);
    Some(most * home.map_or(1, |home| slots(home, it)).max(asked) as f64)
}

/// How many slots a loop may give to what is filled in it: one more than its stages, and two where it may yet become a pipeline.
fn slots(home: &Loop, it: &Loop) -> i64 {
    match numbers(home, STAGE) {
        Ok(stages) if is_pipeline(home) => {
            stages.values().max().unwrap_or(&0) - stages.values().min().unwrap_or(&0) + 1
        }
        _ if home.var == it.var => 1,
        _ => 2,
    }
}
