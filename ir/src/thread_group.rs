//! Threads that follow each other along an axis and work on one result: the lanes that share a row of a fragment.

use std::collections::BTreeSet;

use crate::{Block, Index, IterKind, Less, Name, arith::Bounds};

/// How many threads in a row along an axis reduce to one result of a block, whose loop on that axis is `var`, where the others have other
/// results: 4 where `lane floordiv 4` says which row it is. All of them where the loop says nothing of results.
///
/// `None` where it is no power of two up to 32, as with `thread floordiv 6`, or threads that reduce together do not follow each other.
pub fn group_width(block: &Block, var: &Name, extent: i64) -> Option<i64> {
    let spatial = block.iters.iter().filter(|it| it.kind == IterKind::Spatial);
    let results: Vec<&Index> =
        spatial.map(|it| &it.binding).filter(|it| it.any_var(&|name| name == var)).collect();
    if results.is_empty() {
        return Some(extent);
    }
    let widths = (1..=5).rev().map(|it| 1 << it).filter(|it| extent % it == 0);
    let is_alike = |width: &i64| results.iter().all(|it| !depends_within(it, var, extent, *width));
    widths.into_iter().find(is_alike).filter(|width| are_told_apart(&results, var, extent, *width))
}

/// Whether each group of `width` threads has a result of its own: what the indices owe to the number of the group is never the same twice.
fn are_told_apart(results: &[&Index], var: &Name, extent: i64, width: i64) -> bool {
    let (bounds, [group, _]) = (in_digits(extent, width).0, digits());
    let first = Index::var(&group) * width;
    let of_group = |it: &&Index| {
        let index = it.subst(&|name| (name == var).then(|| first.clone()));
        bounds.split(&index, &|name| *name == group).1
    };
    let parts = results.iter().map(of_group);
    // An index in which the number of the group meets other variables tells nothing.
    let parts: Vec<Index> = parts.filter(|it| !it.any_var(&|name| *name != group)).collect();
    let mut seen = BTreeSet::new();
    (0..extent / width).all(|number| {
        let values = parts.iter().map(|it| it.eval(&|name| (*name == group).then_some(number)));
        values.collect::<Option<Vec<i64>>>().is_some_and(|it| seen.insert(it))
    })
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
