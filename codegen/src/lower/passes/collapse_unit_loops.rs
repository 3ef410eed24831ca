//! Removes loops of one iteration.

use std::sync::Arc;

use ir::{For, Index, Module, Name, Op, Target};

/// Puts zero for the variable of each loop that runs once, and what it repeats in its place.
///
/// ```text
/// for i in 0..1 { C[i + j] = 0 }   ->   C[j] = 0
/// ```
///
/// A parallel loop goes as well: one iteration needs no threads. Launch axes of extent 1 stay.
pub(crate) fn collapse_unit_loops(module: Module, _target: &Target) -> Module {
    module.map_bodies(&mut |_, body| collapse(body))
}

fn collapse(ops: Vec<Op>) -> Vec<Op> {
    ops.into_iter().flat_map(collapse_op).collect()
}

fn collapse_op(op: Op) -> Vec<Op> {
    match op {
        Op::For(it) if it.extent.as_int() == Some(1) => {
            let zero = |name: &Name| (*name == it.var).then(|| Index::int(0));
            collapse(it.body.iter().map(|op| op.subst(&zero)).collect())
        }
        Op::For(it) => {
            let it = Arc::unwrap_or_clone(it);
            vec![Op::For(Arc::new(For { body: collapse(it.body), ..it }))]
        }
        op => vec![op.map_children(&mut collapse)],
    }
}
