//! What a step made of a program, by names: they are the same before and after.

use std::collections::BTreeSet;

use ir::{Func, Loop, Name};

/// The last of some steps that made what has a name. `states` are the programs after each of them.
pub(crate) fn maker<'a>(
    name: &Name,
    start: &'a Func,
    states: impl Iterator<Item = &'a Func>,
) -> Option<usize> {
    let mut before = start;
    let mut found = None;
    for (n, after) in states.enumerate() {
        if after.is_taken(name) && !before.is_taken(name) {
            found = Some(n);
        }
        before = after;
    }
    found
}

/// The loops that were not there before, in program order.
pub(crate) fn new_loops<'a>(before: &Func, after: &'a Func) -> Vec<&'a Loop> {
    let old: BTreeSet<&Name> = before.loops().into_iter().map(|it| &it.var).collect();
    after.loops().into_iter().filter(|it| !old.contains(&it.var)).collect()
}
