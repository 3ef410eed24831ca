//! Whether what a block reads was written in the same iteration, guards considered.

use super::depend::Setting;
use crate::{
    Index, Less, Loop, Name,
    access::{AccessRelation, Axes, FuncAccess, accesses, never_missed},
};

/// Whether each element of a buffer that a block in the loop reads is written before in the same iteration.
pub(super) fn written(setting: &Setting<'_>, it: &Loop, reader: &Name, buffer: &Name) -> bool {
    let all: Vec<_> =
        accesses(&it.body, Axes::AsLoops).into_iter().filter(|it| it.buffer == buffer).collect();
    let is_read = |it: &FuncAccess<'_>| !it.write && it.block_name() == *reader;
    all.iter().enumerate().filter(|it| is_read(it.1)).all(|(n, read)| {
        let writes = all.iter().enumerate().rev().filter(|(_, it)| it.write);
        let before = writes.clone().filter(|it| it.0 < n);
        let mut misses: Vec<_> =
            before.map(|it| in_same_iteration(it.1, read).misses(&read.indices)).collect();
        let points = setting.points(read);
        // Most reads find what the same iteration has written, which is the shorter question.
        if never_missed(&points, &misses) {
            return true;
        }
        for (_, write) in writes {
            let earlier = (0..write.shared_loops(read)).rev();
            misses.extend(earlier.map(|at| in_earlier_iteration(write, read, at).misses(&read.indices)));
        }
        never_missed(&points, &misses)
    })
}

/// A write with the loops that it does not share with the read for its own.
pub(super) fn in_same_iteration(write: &FuncAccess<'_>, read: &FuncAccess<'_>) -> AccessRelation {
    let mut out = write.relation();
    out.vars.drain(..write.shared_loops(read));
    out
}

/// A write in an earlier iteration of one of the loops that it shares with the read, in any of those inside that one.
pub(super) fn in_earlier_iteration(
    write: &FuncAccess<'_>,
    read: &FuncAccess<'_>,
    at: usize,
) -> AccessRelation {
    let mut out = inside(write, at);
    let before = Less::new(Index::var(&out.vars[0].0), Index::var(&read.variables()[at].0));
    out.conditions.push(before);
    out
}

/// A write in any iteration of its loops inside the outermost ones, whatever values these have elsewhere.
pub(super) fn inside(write: &FuncAccess<'_>, outermost: usize) -> AccessRelation {
    let own = &write.variables()[outermost..];
    write.relation().of_own(&|name| own.iter().any(|it| it.0 == *name))
}
