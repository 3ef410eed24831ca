//! What passes before `lower_blocks` leave in programs for later ones.

use std::sync::Arc;

use ir::{Block, BlockAttrs, Func, Instr, Mechanism, Name, Origin, Stmt, Swizzle};

/// The program without what passes find out for later ones: a program that a user wrote may have it in its text.
pub fn without_findings(mut func: Func) -> Func {
    func.map_blocks(&mut |block| {
        block.attrs.mechanism = None;
        block.attrs.multicast = None;
        block.attrs.origin = Origin::default();
    });
    func.mbarriers.clear();
    func.body.walk_mut(&mut |stmt| {
        if let Stmt::Loop(it) = stmt
            && (!it.attrs.exchanged.is_empty() || it.attrs.is_independent)
        {
            let it = Arc::make_mut(it);
            it.attrs.exchanged.clear();
            it.attrs.is_independent = false;
        }
        true
    });
    for buffer in func.buffers.values_mut() {
        buffer.alloc_scope = None;
        buffer.layout.panel = None;
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

/// The statement with a role for its blocks.
pub(crate) fn in_role(stmt: Stmt, role: Option<&Name>) -> Stmt {
    with_attrs(stmt, &|it| it.role = role.cloned())
}

/// The statement, for the thread alone that starts products into tensor memory.
pub(crate) fn by_one(stmt: Stmt) -> Stmt {
    with_attrs(stmt, &|it| it.mechanism = Some(Mechanism::Tcgen05))
}

/// The statement with a place that its blocks come from.
pub(crate) fn at(stmt: Stmt, origin: &Origin) -> Stmt {
    with_attrs(stmt, &|it| it.origin = origin.clone())
}

fn with_attrs(mut stmt: Stmt, set: &dyn Fn(&mut BlockAttrs)) -> Stmt {
    stmt.walk_mut(&mut |stmt| {
        if let Stmt::Block(it) = stmt {
            set(&mut Arc::make_mut(it).attrs);
        }
        true
    });
    stmt
}

/// Whether a block orders something and computes nothing.
pub(crate) fn is_sync(block: &Block) -> bool {
    matches!(&block.body, Stmt::Instr(it) if it.effects().accesses.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a user writes into a text is not taken for what a pass found out.
    #[test]
    fn texts_of_users_have_no_findings() {
        let text = |temp: &str, attached: &str, block: &str| {
            let text = format!(
                "func f
  in A: f32[4]
  out C: f32[4]
  temp S: f32[4] @shared{temp}

  for t in 0..4 @threadIdx.x{attached}
    block S(v: 4 = t){block}
      S[v] = A[v]
  for u in 0..4 @threadIdx.x
    block C(v: 4 = u)
      C[v] = S[3 - v]
"
            );
            ir::text::parse(&text).unwrap_or_else(|err| panic!("{err}\n{text}"))
        };
        let found = text(
            " swizzle(none) panel 2 once",
            " #{cross_block_buffers: {C: 1}}",
            " #{asynchronous: \"cp_async\", multicast: \"cluster.x\", origin: \"C @t steady 0\"}",
        );
        assert_eq!(without_findings(found), text("", "", ""));
    }
}
