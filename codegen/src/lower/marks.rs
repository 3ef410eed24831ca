//! What passes before `lower_blocks` leave in programs for later ones.

use std::sync::Arc;

use ir::{Annotations, Block, Func, Instr, Name, Stmt};

/// On a block: its stores are copies that may land later.
pub(crate) const COPY: &str = "async_copy";

/// The program without the marks that passes leave on blocks for later ones: a program that a user wrote may have any
/// annotation, and has to have none of these.
pub fn without_marks(mut func: Func) -> Func {
    func.map_blocks(&mut |block| {
        block.annotations.retain(|key, _| key != COPY);
    });
    func
}

/// An instruction as a statement of a program of blocks: a block of its own, which may come under guards.
pub(crate) fn instruction(name: &str, it: Instr) -> Stmt {
    let (name, iters, guards, annotations) = (Name::new(name), vec![], vec![], Annotations::new());
    let body = Stmt::Instr(Arc::new(it));
    Stmt::Block(Arc::new(Block { name, iters, guards, annotations, init: None, body }))
}

/// Whether a block orders something and computes nothing.
pub(crate) fn is_sync(block: &Block) -> bool {
    matches!(&block.body, Stmt::Instr(it) if it.effects().accesses.is_empty())
}

/// Whether a block does nothing.
pub(crate) fn is_remark(block: &Block) -> bool {
    matches!(&block.body, Stmt::Instr(it) if it.is_remark())
}
