//! Threads that follow each other along an axis and work on one result: the lanes that share a row of a fragment.

use crate::{Block, Index, IterKind, Less, Name, arith::Bounds};

/// How many threads in a row along an axis reduce to one result of a block, whose loop on that axis is `var`, where the others have other
/// results: 4 where `lane floordiv 4` says which row it is. All of them where the loop says nothing of results.
///
/// `None` where it is no power of two, or threads that reduce together do not follow each other.
pub fn group_width(block: &Block, var: &Name, extent: i64) -> Option<i64> {
    let mut spatial = block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
    let mixed: Vec<_> = spatial.by_ref().filter(|it| it.binding.any_var(&|name| name == var)).collect();
    if mixed.is_empty() {
        return Some(extent);
    }
    let widths = (1..=5).rev().map(|it| 1 << it).filter(|it| extent % it == 0);
    widths.into_iter().find(|width| mixed.iter().all(|it| !depends_within(&it.binding, var, extent, *width)))
}

/// Whether an index differs between threads of one group of `width` along the axis of loop `var`.
pub fn depends_within(index: &Index, var: &Name, extent: i64, width: i64) -> bool {
    let (bounds, thread) = in_digits(extent, width);
    let of_group = index.subst(&|name| (name == var).then(|| thread.clone()));
    bounds.simplify(&of_group).any_var(&is_place)
}

/// Whether a condition does: `lane + 32*i < 400` is one on groups of 4.
pub fn condition_depends_within(less: &Less, var: &Name, extent: i64, width: i64) -> bool {
    let (bounds, thread) = in_digits(extent, width);
    let of_group = bounds.simplify_less(&less.subst(&|name| (name == var).then(|| thread.clone())));
    of_group.lhs.any_var(&is_place) || of_group.rhs.any_var(&is_place)
}

/// The number of a thread by its group and its place in that, and what is known of these.
fn in_digits(extent: i64, width: i64) -> (Bounds, Index) {
    let [group, place] = digits();
    let mut bounds = Bounds::default();
    bounds.insert(&group, &Index::int(extent / width));
    bounds.insert(&place, &Index::int(width));
    (bounds, Index::var(&group) * width + Index::var(&place))
}

fn is_place(name: &Name) -> bool {
    *name == digits()[1]
}

/// The names of a thread's group and of its place in that. No program has a name with a dot.
pub fn digits() -> [Name; 2] {
    [Name::new("thread.group"), Name::new("thread.place")]
}
