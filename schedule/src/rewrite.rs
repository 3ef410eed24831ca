//! Rewrites that several primitives share.

use std::sync::Arc;

use ir::{Block, Func, Index, Less, Loop, Name, Stmt, arith::Bounds};

/// Replaces loop variables where `with` answers: in extents, bindings and guards, not in the bodies of blocks,
/// which read no loop variable.
pub(crate) fn subst_loops(stmt: &mut Stmt, with: &dyn Fn(&Name) -> Option<Index>) {
    stmt.walk_mut(&mut |stmt| match stmt {
        Stmt::Loop(it) => {
            let it = Arc::make_mut(it);
            it.extent = it.extent.subst(with);
            true
        }
        Stmt::Block(it) => {
            let block = Arc::make_mut(it);
            block.iters.iter_mut().for_each(|iter| iter.binding = iter.binding.subst(with));
            block.guards.iter_mut().for_each(|guard| *guard = guard.subst(with));
            false
        }
        Stmt::Seq(_) => true,
        Stmt::Store(_) => false,
    });
}

/// Brings bindings and guards to their simplest form, and drops each guard that the loops around it prove.
///
/// Does not look into the bodies of blocks, and changes neither loops nor what any block computes.
pub fn simplify_bindings(func: &mut Func) {
    let bounds = Bounds::of_dims(func);
    simplify(&mut func.body, &bounds);
}

fn simplify(stmt: &mut Stmt, bounds: &Bounds) {
    match stmt {
        Stmt::Loop(it) => {
            let Loop { var, extent, body, .. } = Arc::make_mut(it);
            *extent = bounds.simplify(extent);
            let mut inner = bounds.clone();
            inner.insert(var, extent);
            simplify(body, &inner);
        }
        Stmt::Block(it) => simplify_block(Arc::make_mut(it), bounds),
        Stmt::Seq(stmts) => stmts.iter_mut().for_each(|it| simplify(it, bounds)),
        Stmt::Store(_) => {}
    }
}

fn simplify_block(block: &mut Block, bounds: &Bounds) {
    block.iters.iter_mut().for_each(|iter| iter.binding = bounds.simplify(&iter.binding));
    // A guard is judged under the guards kept before it, so that of two equal ones the first stays.
    let mut known = bounds.clone();
    let mut kept: Vec<Less> = Vec::new();
    for guard in std::mem::take(&mut block.guards) {
        let guard = bounds.simplify_less(&guard);
        if !kept.contains(&guard) && known.prove(&guard) != Some(true) {
            known.assume(&guard);
            kept.push(guard);
        }
    }
    block.guards = kept;
}
