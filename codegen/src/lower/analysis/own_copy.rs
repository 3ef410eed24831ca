//! Private memory of which several threads have the same part, each its own copy: rows that four lanes of a fragment share.

use ir::{
    Block, Func, Index, Loop, Name, ThreadAxis,
    access::{Disjointness, FuncAccess, bounds_of_both},
    axis_var,
    thread_group::{condition_depends_within, depends_within, digits, group_width},
};

use super::thread_reduction::reduces_over;

/// Whether every thread that reads an element of private memory has written it itself, as all threads of its group along the axis do with
/// the same value.
pub(crate) fn has_own_copy(
    func: &Func,
    write: &FuncAccess<'_>,
    read: &FuncAccess<'_>,
    axis: ThreadAxis,
) -> bool {
    let (Some(bound), Some(block)) = (write.bound(axis), write.block()) else { return false };
    let Some(extent) = bound.extent.as_int() else { return false };
    let reads_within = |it: &Loop| it.extent.as_int().is_some_and(|it| it <= extent);
    let mut widths = (1..=5).map(|it| 1 << it).filter(|it| extent % it == 0);
    read.bound(axis).is_some_and(reads_within)
        && widths.any(|it| {
            is_alike(write, block, bound, extent, it) && is_of_group(func, write, read, axis, extent, it)
        })
}

/// Whether all threads of a group of `width` write the same value, as far as they write one element.
fn is_alike(write: &FuncAccess<'_>, block: &Block, bound: &Loop, extent: i64, width: i64) -> bool {
    if reduces_over(block, &bound.var) {
        return group_width(block, &bound.var, extent).is_some_and(|it| it % width == 0);
    }
    // What no iteration changes, all of them read alike.
    let changes = |name: &&Name| {
        let mut inside = bound.body.blocks().into_iter();
        inside.any(|it| it.writes().iter().any(|it| it.buffer == **name))
    };
    !write.updates()
        && !block.iters.iter().any(|it| depends_within(&it.binding, &bound.var, extent, width))
        && !block.guards.iter().any(|it| condition_depends_within(it, &bound.var, extent, width))
        && !write.loads().iter().any(changes)
}

/// Whether all threads of a group of `width` write the same elements, and threads of other groups read none of them.
fn is_of_group(
    func: &Func,
    write: &FuncAccess<'_>,
    read: &FuncAccess<'_>,
    axis: ThreadAxis,
    extent: i64,
    width: i64,
) -> bool {
    let ([group, place], var) = (digits(), axis_var(axis));
    let mut bounds = bounds_of_both(func, write, read);
    bounds.insert(&group, &Index::int(extent / width));
    bounds.insert(&place, &Index::int(width));
    let thread = Index::var(&group) * width + Index::var(&place);
    let in_digits = |access: &FuncAccess<'_>| -> Vec<Index> {
        let of_thread = |name: &Name| (*name == var).then(|| thread.clone());
        access.indices.iter().map(|it| bounds.simplify(&it.subst(&of_thread))).collect()
    };
    let (a, b) = (in_digits(write), in_digits(read));
    let is_common = |name: &Name| func.dims.contains(name);
    let same = Disjointness { a: &a, b: &b, bounds: &bounds, is_common: &is_common }.separated();
    !a.iter().any(|it| it.any_var(&|name| *name == place)) && same.contains(&group)
}
