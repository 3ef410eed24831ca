//! Rewrites that several primitives share.

use std::sync::Arc;

use ir::{Block, Func, Index, Iter, Less, Name, Stmt, arith::Bounds};

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
        Stmt::Store(_) | Stmt::Instr(_) => false,
    });
}

/// Brings bindings and guards to their simplest form, and drops each guard that the loops around it prove.
///
/// Does not look into the bodies of blocks, and changes neither loops nor what any block computes.
pub fn simplify_bindings(func: &mut Func) {
    let mut bounds = Bounds::of_dims(func);
    simplify(&mut func.body, &mut bounds);
}

/// As [`simplify_bindings`], but for a loop alone and what is in it.
pub(crate) fn simplify_loop(func: &mut Func, name: &Name) {
    let Some(path) = func.path_to_loop(name) else { return };
    let mut around = ir::region::bounds_of(func, &path[..path.len() - 1]);
    func.replace_loop(name, |it| {
        let mut stmt = Stmt::Loop(Arc::new(it));
        simplify(&mut stmt, &mut around);
        stmt
    });
}

/// What is simple already stays the object that it is, so that later checks see that it did not change.
fn simplify(stmt: &mut Stmt, bounds: &mut Bounds) {
    match stmt {
        Stmt::Loop(it) => {
            let extent = bounds.simplify(&it.extent);
            bounds.insert(&it.var, &extent);
            let it = Arc::make_mut(it);
            it.extent = extent;
            simplify(&mut it.body, bounds);
            bounds.forget(&it.var);
        }
        Stmt::Block(it) => {
            if let Some(block) = simplified(it, bounds) {
                *it = Arc::new(block);
            }
        }
        Stmt::Seq(stmts) => stmts.iter_mut().for_each(|it| simplify(it, bounds)),
        Stmt::Store(_) | Stmt::Instr(_) => {}
    }
}

/// The block with simple bindings and guards, if that is another one.
fn simplified(block: &Block, bounds: &Bounds) -> Option<Block> {
    let bindings: Vec<Index> = block.iters.iter().map(|iter| bounds.simplify(&iter.binding)).collect();
    // A guard is judged under the guards kept before it, so that of two equal ones the first stays.
    let mut known = if block.guards.is_empty() { Bounds::default() } else { bounds.clone() };
    let mut guards: Vec<Less> = Vec::new();
    for guard in &block.guards {
        let guard = bounds.simplify_less(guard);
        if !guards.contains(&guard) && known.prove(&guard) != Some(true) {
            known.assume(&guard);
            guards.push(guard);
        }
    }
    if guards == block.guards && bindings.iter().eq(block.iters.iter().map(|it| &it.binding)) {
        return None;
    }
    let iters = block.iters.iter().zip(bindings).map(|(iter, binding)| Iter { binding, ..iter.clone() });
    Some(Block { iters: iters.collect(), guards, ..block.clone() })
}
