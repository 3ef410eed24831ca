//! Whether what a block reads was written in the same iteration, guards considered.

use super::{
    depend::Setting,
    touch::{Touch, touches},
};
use crate::{
    Index, Less, Loop, Name,
    solve::{Writes, never_missed},
};

/// Whether each element of a buffer that a block in the loop reads is written before in the same iteration.
pub(super) fn written(setting: &Setting<'_>, it: &Loop, reader: &Name, buffer: &Name) -> bool {
    let touches: Vec<Touch> = touches(&it.body).into_iter().filter(|it| it.buffer == *buffer).collect();
    touches.iter().enumerate().filter(|(_, it)| !it.write && it.block == *reader).all(|(n, read)| {
        let all = touches.iter().enumerate().rev().filter(|(_, it)| it.write);
        let before = all.clone().filter(|it| it.0 < n);
        let mut misses: Vec<_> =
            before.map(|it| in_same_iteration(it.1, read).misses(&read.indices)).collect();
        for (_, write) in all {
            let earlier = (0..shared(write, read)).rev();
            misses.extend(earlier.map(|at| in_earlier_iteration(write, read, at).misses(&read.indices)));
        }
        never_missed(&setting.problem_at(read), &misses)
    })
}

/// A write with the loops that it does not share with the read for its own.
pub(super) fn in_same_iteration(write: &Touch, read: &Touch) -> Writes {
    let Touch { indices, conditions, .. } = write.clone();
    Writes { loops: write.loops[shared(write, read)..].to_vec(), indices, conditions }
}

/// A write in an earlier iteration of one of the loops that it shares with the read, in any of those inside that one.
pub(super) fn in_earlier_iteration(write: &Touch, read: &Touch, at: usize) -> Writes {
    let mut out = with_own(write, at);
    let before = Less::new(Index::var(&out.loops[0].0), Index::var(&read.loops[at].0));
    out.conditions.push(before);
    out
}

/// A write in any iteration of its loops inside the outermost ones, whatever values these have elsewhere.
pub(super) fn with_own(write: &Touch, outermost: usize) -> Writes {
    let own = &write.loops[outermost..];
    let is_own = |it: &Name| own.iter().any(|own| own.0 == *it);
    let name = |it: &Name| if is_own(it) { Name::new(format!("{it}'")) } else { it.clone() };
    let with = |it: &Name| is_own(it).then(|| Index::var(&name(it)));
    Writes {
        loops: own.iter().map(|(var, extent)| (name(var), extent.subst(&with))).collect(),
        indices: write.indices.iter().map(|it| it.subst(&with)).collect(),
        conditions: write.conditions.iter().map(|it| it.subst(&with)).collect(),
    }
}

/// How many loops are around both.
pub(super) fn shared(write: &Touch, read: &Touch) -> usize {
    write.loops.iter().zip(&read.loops).take_while(|(a, b)| a.0 == b.0).count()
}
