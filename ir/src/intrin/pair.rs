//! What the blocks of threads of a pair share.

use super::{Instruction, matched};
use crate::{Block, Func, Name};

/// How many blocks of threads share what is in a buffer, each of which keeps a part of it: the two of a pair where it is the right factor of
/// their products (PTX ISA, *CTA Pair*), before these have taken the places of their blocks. Else 1.
pub fn sharing(func: &Func, buffer: &Name) -> i64 {
    let shared_by = |block: &Block| {
        let intrinsic = block.attrs.tensorize.filter(|it| it.is_of_pair())?;
        let Instruction::Tcgen05(kind) = intrinsic.instruction else { return None };
        let right = matched(intrinsic, func, block).ok()?.operands.pop()?;
        (right.buffer == *buffer).then_some(kind.blocks)
    };
    func.body.blocks().into_iter().find_map(shared_by).unwrap_or(1)
}
