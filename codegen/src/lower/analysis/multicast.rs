//! Multicast: boxes that every block of threads of a cluster needs, and of which each copies a part for all.

use ir::{Block, Func, Index, Loop, LoopKind, Mechanism, Scope, Stmt, ThreadAxis, pipeline::is_pipeline};

use super::{
    copy_box::{CopyBox, PATTERN_ROWS, boxed_access, copy_box},
    roles::role_of,
};

/// The axis of the cluster along which the copy engine may send what a block fills, in the pipelined loop that `path` ends with.
///
/// Every block of threads along it has to copy the same box to the same place, as often as the others; and it has to hear that their slots
/// are free, which only rings tell that one role fills and others read. Loops around that are pipelines themselves would come apart, and with
/// them the place behind the last run of this one; behind a plain loop that is a whole kernel there is none.
pub(crate) fn multicast(func: &Func, path: &[&Loop], block: &Block) -> Option<ThreadAxis> {
    let (kernel, pipeline) = (path.first()?, path.last()?);
    let place = &block.writes().first()?.buffer;
    let fills = block.attrs.mechanism == Some(Mechanism::Tma) && func.buffers[place].scope == Scope::Shared;
    let own = role_of(block);
    let reads = |it: &Block| it.reads().iter().any(|it| it.buffer == *place);
    let is_given_back = |it: &Block| !reads(it) || role_of(it) != own;
    let is_read = pipeline.body.blocks().into_iter().any(reads);
    let is_run_once = !path[..path.len() - 1].iter().any(|it| is_pipeline(it));
    let has_end = matches!(kernel.kind, LoopKind::Bound(_));
    if !has_end || !fills || !is_read || !is_run_once || !func.body.blocks().into_iter().all(is_given_back) {
        return None;
    }
    let (loops, accesses) = boxed_access(func, &block.body)?;
    let bounds = ir::arith::Bounds::of_dims(func);
    let found = copy_box(&loops, [&accesses[0], &accesses[1]], &bounds).ok()?;
    let is_common = |it: &&&Loop| {
        let depends = |index: &Index| index.any_var(&|name| *name == it.var);
        !block.iters.iter().any(|iter| depends(&iter.binding)) && !path.iter().any(|it| depends(&it.extent))
    };
    path.iter().filter(is_common).find_map(|it| match (it.kind, it.extent.as_int()) {
        (LoopKind::Bound(axis), Some(blocks)) if axis.is_cluster() && blocks > 1 => {
            (is_all(kernel, axis, blocks) && rows_of_part(&found, blocks).is_some()).then_some(axis)
        }
        _ => None,
    })
}

/// Whether the loops of a kernel that are bound to an axis have so many iterations all.
fn is_all(kernel: &Loop, axis: ThreadAxis, blocks: i64) -> bool {
    let mut all = true;
    let mut check = |it: &Loop| all &= it.kind != LoopKind::Bound(axis) || it.extent.as_int() == Some(blocks);
    check(kernel);
    kernel.body.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt {
            check(it);
        }
    });
    all
}

/// How many rows each of some blocks of threads copies of a box: of its outermost dimension, which is cut into parts that begin where the
/// pattern of a swizzle does.
fn rows_of_part(found: &CopyBox, blocks: i64) -> Option<i64> {
    let mut sides = found.extents[0].iter().filter(|it| **it > 1);
    let (rows, _) = (sides.next()?, sides.next()?);
    (rows % (blocks * PATTERN_ROWS) == 0).then_some(rows / blocks)
}

/// The part of a box that a block of threads copies for all along an axis.
pub(crate) fn part(mut found: CopyBox, axis: &Index, blocks: i64) -> CopyBox {
    let Some(rows) = rows_of_part(&found, blocks) else { return found };
    for (starts, extents) in found.starts.iter_mut().zip(&mut found.extents) {
        if let Some(at) = extents.iter().position(|it| *it > 1) {
            starts[at] = starts[at].clone() + axis.clone() * rows;
            extents[at] = rows;
        }
    }
    found
}
