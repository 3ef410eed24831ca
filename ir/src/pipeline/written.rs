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
        let mut misses: Vec<_> = before.map(|it| apart(it.1, read).misses(&read.indices)).collect();
        for (_, write) in all {
            let earlier = (0..shared(write, read)).rev();
            misses.extend(earlier.map(|at| earlier_in(write, read, at).misses(&read.indices)));
        }
        never_missed(&setting.problem_at(read), &misses)
    })
}

/// A write with the loops that it does not share with the read for its own.
fn apart(write: &Touch, read: &Touch) -> Writes {
    let Touch { indices, conditions, .. } = write.clone();
    Writes { loops: write.loops[shared(write, read)..].to_vec(), indices, conditions }
}

/// A write in an earlier iteration of one of the loops that it shares with the read, in any of those inside that one.
fn earlier_in(write: &Touch, read: &Touch, at: usize) -> Writes {
    let own = &write.loops[at..];
    let is_own = |it: &Name| own.iter().any(|own| own.0 == *it);
    let name = |it: &Name| if is_own(it) { Name::new(format!("{it}'")) } else { it.clone() };
    let with = |it: &Name| is_own(it).then(|| Index::var(&name(it)));
    let var = &read.loops[at].0;
    let before = Less::new(Index::var(&name(var)), Index::var(var));
    Writes {
        loops: own.iter().map(|(var, extent)| (name(var), extent.subst(&with))).collect(),
        indices: write.indices.iter().map(|it| it.subst(&with)).collect(),
        conditions: write.conditions.iter().map(|it| it.subst(&with)).chain([before]).collect(),
    }
}

/// How many loops, inside the pipelined one, are around both.
fn shared(write: &Touch, read: &Touch) -> usize {
    write.loops.iter().zip(&read.loops).take_while(|(a, b)| a.0 == b.0).count()
}
