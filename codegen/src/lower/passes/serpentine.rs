//! Lets loops run backwards in every other iteration of a loop around them.

use std::sync::Arc;

use ir::{Func, Index, Loop, LoopKind, Name, Stmt};

/// ```text
/// for i in 0..8 @unrolled                          for i in 0..8 @unrolled
///   for j in 0..4 @unrolled #{serpentine: 1}         for j in 0..4 @unrolled
///     block C(vi: 8 = i, vj: 4 = j)           ->       block C(vi: 8 = i, vj: 4 = j + (i mod 2)*(3 - 2*j))
///       C[vi, vj] = A[vi] * B[vj]                        C[vi, vj] = A[vi] * B[vj]
/// ```
///
/// The schedule has proved that the iterations may run in any order, so a loop that is not where the annotation
/// thinks it is costs speed and nothing else; one that is not written out is left out of it. This comes after the
/// passes that reason about regions, to whom the new subscripts would be opaque.
pub(crate) fn serpentine(mut func: Func) -> Func {
    if func.loops().iter().any(|it| it.attrs.serpentine.is_some()) {
        func.body = turned(&func.body, &mut Vec::new());
    }
    func
}

/// The statement, whose loops around are `around`.
fn turned(stmt: &Stmt, around: &mut Vec<Arc<Loop>>) -> Stmt {
    match stmt {
        Stmt::Loop(it) => {
            around.push(it.clone());
            let mut new = Loop { body: turned(&it.body, around), ..Loop::clone(it) };
            around.pop();
            if let Some(further) = new.attrs.serpentine.take()
                && let Some(index) = index(it, further, around)
            {
                new.body = new.body.subst(&|name: &Name| (*name == it.var).then(|| index.clone()));
            }
            Stmt::Loop(Arc::new(new))
        }
        Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|it| turned(it, around)).collect()),
        Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_) => stmt.clone(),
    }
}

/// What the variable of the loop becomes.
fn index(it: &Loop, further: i64, around: &[Arc<Loop>]) -> Option<Index> {
    let at = around.len().checked_sub(usize::try_from(further).ok()?)?;
    let outer = around.get(at)?;
    let written_out = match outer.kind {
        LoopKind::Serial | LoopKind::Unrolled => outer.extent.as_int().is_some(),
        LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Bound(_) => false,
    };
    let (extent, var) = (it.extent.as_int().filter(|_| written_out)?, Index::var(&it.var));
    let odd = Index::var(&outer.var).floor_mod(&Index::int(2));
    Some(var.clone() + odd * (Index::int(extent - 1) - var * 2))
}
