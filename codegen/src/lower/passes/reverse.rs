//! Lets blocks of threads take the iterations of a loop from the last to the first.

use std::sync::Arc;

use ir::{Func, Index, Loop, LoopKind, Name, Stmt};

/// ```text
/// for q in 0..32 @blockIdx.x #{reverse: 1}
///   for k in 0..q + 1
///     s[q, k]
/// ->
/// for q in 0..32 @blockIdx.x
///   for k in 0..32 - q
///     s[31 - q, k]
/// ```
///
/// Iterations of a grid run in any order, as has been proved before of the loop as it counts. Blocks that reduce in turns wait for those with smaller numbers,
/// which have to be started first: their order is left as it is.
pub(crate) fn reverse(mut func: Func) -> Func {
    let asked = func.loops().into_iter().filter(|it| it.attrs.is_reversed);
    let asked: Vec<Name> = asked.map(|it| it.var.clone()).collect();
    for var in asked {
        func.replace_loop(&var, |mut old: Loop| {
            old.attrs.is_reversed = false;
            if matches!(old.kind, LoopKind::Bound(_)) && old.attrs.cross_block.is_none() {
                let last = &old.extent - &Index::var(&var) + -1;
                let from_last = |it: &Name| (*it == var).then(|| last.clone());
                old.body = old.body.map_indices(&mut |it| it.subst(&from_last));
            }
            Stmt::Loop(Arc::new(old))
        });
    }
    func
}
