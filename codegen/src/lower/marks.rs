//! What passes before `lower_blocks` leave in programs for later ones.

use std::sync::Arc;

use ir::{Block, BlockAttrs, Func, Instr, Name, Stmt, Swizzle};

/// The program without what passes find out for later ones: a program that a user wrote may have it in its text.
pub fn without_findings(mut func: Func) -> Func {
    func.map_blocks(&mut |block| block.attrs.is_copy = false);
    func.body.walk_mut(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && !it.attrs.exchanged.is_empty()
        {
            Arc::make_mut(it).attrs.exchanged.clear();
        }
        true
    });
    for buffer in func.buffers.values_mut() {
        buffer.alloc_scope = None;
        if buffer.layout.swizzle == Some(Swizzle::None) {
            buffer.layout.swizzle = None;
        }
    }
    func
}

/// An instruction as a statement of a program of blocks: a block of its own, which may come under guards.
pub(crate) fn instruction(name: &str, it: Instr) -> Stmt {
    let (name, iters, guards, attrs) = (Name::new(name), vec![], vec![], BlockAttrs::default());
    let body = Stmt::Instr(Arc::new(it));
    Stmt::Block(Arc::new(Block { name, iters, guards, attrs, init: None, body }))
}

/// Whether a block orders something and computes nothing.
pub(crate) fn is_sync(block: &Block) -> bool {
    matches!(&block.body, Stmt::Instr(it) if it.effects().accesses.is_empty())
}

/// Whether a block does nothing.
pub(crate) fn is_remark(block: &Block) -> bool {
    matches!(&block.body, Stmt::Instr(it) if it.is_remark())
}
