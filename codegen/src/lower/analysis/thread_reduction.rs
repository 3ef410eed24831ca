//! Which blocks threads reduce together, each bringing a part.

use ir::{Block, IterKind, Loop, LoopKind, Name, ThreadAxis};

/// Whether a block reduces over a loop.
pub(crate) fn reduces_over(block: &Block, var: &Name) -> bool {
    let mut reduced = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
    reduced.any(|it| it.binding.any_var(&|name| name == var))
}

/// The axis of threads that a loop is bound to, if it is.
pub(crate) fn thread_axis(it: &Loop) -> Option<ThreadAxis> {
    match it.kind {
        LoopKind::Bound(axis) if axis.is_thread() => Some(axis),
        LoopKind::Bound(_)
        | LoopKind::Serial
        | LoopKind::Parallel
        | LoopKind::Vectorized
        | LoopKind::Unrolled => None,
    }
}
