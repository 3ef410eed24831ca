//! What must hold when a block moves: the checks that `compute_at` and `reverse_compute_at` share.

use ir::{Func, LoopKind, Name, deps, region};

use crate::BlockError;

/// The loop is not yet around the block, and the loops that the move leaves empty carry no marks.
pub(crate) fn expect_movable(func: &Func, block: &Name, target: &Name) -> Result<(), BlockError> {
    let loops = func.loops_of(block).unwrap_or_default();
    if loops.iter().any(|it| it.var == *target) {
        return Err(BlockError::AlreadyUnder { block: block.clone(), loop_name: target.clone() });
    }
    let alone = loops.iter().filter(|it| it.body.blocks().len() == 1);
    let mut marked = alone.filter(|it| it.kind != LoopKind::Serial || !it.annotations.is_empty());
    match marked.next() {
        None => Ok(()),
        Some(it) => Err(BlockError::MarkedLoop { block: block.clone(), loop_name: it.var.clone() }),
    }
}

/// Every block that depends on the moved one, or on which it depends, is still on the same side of it.
pub(crate) fn expect_same_order(old: &Func, new: &Func, moved: &Name) -> Result<(), BlockError> {
    let position = |func: &Func, name: &Name| func.body.blocks().iter().position(|it| it.name == *name);
    let Some(block) = old.find_block(moved) else { return Ok(()) };
    for other in old.body.blocks() {
        let was_first = position(old, &other.name) < position(old, moved);
        let is_first = position(new, &other.name) < position(new, moved);
        let (src, dst) = if was_first { (other, block) } else { (block, other) };
        if let Some(dep) = deps::between(src, dst).first().filter(|_| was_first != is_first) {
            let (block, other) = (dst.name.clone(), src.name.clone());
            return Err(BlockError::OutOfOrder { block, other, buffer: dep.buffer.clone() });
        }
    }
    Ok(())
}

/// The moved block reads, and its readers read, only what is written in the same iteration; and nothing it reads
/// is overwritten after it, since it may now run later or more than once.
pub(crate) fn expect_covered(new: &Func, moved: &Name) -> Result<(), BlockError> {
    if let Some(it) = region::uncovered(new) {
        return Err(BlockError::Uncovered { reader: it.reader, writer: it.writer, buffer: it.buffer });
    }
    let Some(block) = new.find_block(moved) else { return Ok(()) };
    let blocks = new.body.blocks();
    let after = blocks.iter().skip_while(|it| it.name != *moved).skip(1);
    for other in after {
        let war = deps::between(block, other).into_iter().find(|it| it.kind == deps::DepKind::War);
        let own = |buffer: &Name| block.writes().iter().any(|it| it.buffer == *buffer);
        if let Some(dep) = war.filter(|it| !own(&it.buffer)) {
            let (block, other) = (moved.clone(), other.name.clone());
            return Err(BlockError::OverwrittenLater { block, buffer: dep.buffer, other });
        }
    }
    Ok(())
}
