//! Whether what a block reads was written in the same iteration, guards considered.

use super::{
    depend::Setting,
    touch::{Touch, touches},
};
use crate::{
    Loop, Name,
    solve::{Writes, never_missed},
};

/// Whether each element of a buffer that a block in the loop reads is written before in the same iteration.
pub(super) fn written(setting: &Setting<'_>, it: &Loop, reader: &Name, buffer: &Name) -> bool {
    let touches: Vec<Touch> = touches(&it.body).into_iter().filter(|it| it.buffer == *buffer).collect();
    touches.iter().enumerate().filter(|(_, it)| !it.write && it.block == *reader).all(|(n, read)| {
        let writes = touches[..n].iter().rev().filter(|it| it.write);
        let misses: Vec<_> = writes.filter_map(|it| apart(it, read).misses(&read.indices)).collect();
        never_missed(&setting.problem_at(read), &misses)
    })
}

/// A write with the loops that it does not share with the read for its own.
fn apart(write: &Touch, read: &Touch) -> Writes {
    let shared = write.loops.iter().zip(&read.loops).take_while(|(a, b)| a.0 == b.0).count();
    let Touch { indices, conditions, .. } = write.clone();
    Writes { loops: write.loops[shared..].to_vec(), indices, conditions }
}
