//! Pairs: two blocks of threads of a cluster, for which the tensor core multiplies together.
//!
//! Each of them has its own rows of the left factor and of the sum. The right factor is the same for both: so each copies half of its columns,
//! and keeps them in its own shared memory, where the tensor core of the other reads them, too (PTX ISA, *CTA Pair* and `tcgen05.mma`).
//! One thread of the first block starts the products of both, and has all copies told to it.

use ir::{
    Block, Func, Instr, LoopKind, Major, Mechanism, Name, Stmt, ThreadAxis,
    intrin::{self, Intrinsic},
};

use crate::lower::LowerError;

/// The axis of the cluster along which the blocks of a pair are.
pub(crate) const AXIS: ThreadAxis = ThreadAxis::ClusterX;

/// How many blocks a pair has.
pub(crate) const BLOCKS: i64 = 2;

/// Whether a block is products of pairs.
pub(crate) fn is_of_pair(block: &Block) -> bool {
    block.attrs.tensorize.is_some_and(Intrinsic::is_of_pair)
}

/// Whether a statement has some.
pub(crate) fn has_pairs(stmt: &Stmt) -> bool {
    stmt.blocks().into_iter().any(is_of_pair)
}

/// The dimension of a buffer of which each block of a pair keeps half of what its copy brings, when products have taken the places of their
/// blocks: that of the columns of a right factor.
pub(crate) fn halved(func: &Func, buffer: &Name) -> Option<usize> {
    let mut out = None;
    func.body.walk(&mut |stmt| {
        if let Stmt::Instr(it) = stmt
            && let Instr::Tcgen05(it) = &**it
            && it.intrinsic.is_of_pair()
            && let Some([_, right]) = it.factors()
            && right.first.buffer == *buffer
        {
            let is_last = right.matrix.is_some_and(|it| it.major == Major::Mn);
            out = (right.extents.len() - usize::from(!is_last)).checked_sub(1);
        }
    });
    out
}

/// Refuses products of pairs where there is no such pair, or where it does not share what it has to.
pub(crate) fn expect_pairs(func: &Func) -> Result<(), LowerError> {
    func.body.blocks().into_iter().filter(|it| is_of_pair(it)).try_for_each(|it| expect_pair(func, it))
}

fn expect_pair(func: &Func, block: &Block) -> Result<(), LowerError> {
    let refused =
        |why: String, help: &'static str| Err(LowerError::Pair { block: block.name.clone(), why, help });
    let Some(path) = func.loops_of(&block.name) else { return Ok(()) };
    let of_cluster = |it: &&&ir::Loop| matches!(it.kind, LoopKind::Bound(axis) if axis.is_cluster());
    let found: Vec<_> = path.iter().filter(of_cluster).map(|it| (it.kind, it.extent.as_int())).collect();
    if found != [(LoopKind::Bound(AXIS), Some(BLOCKS))] {
        return refused("no cluster of two blocks along cluster.x runs it".to_owned(), CLUSTER);
    }
    if block.attrs.role.is_none() || block.attrs.mechanism != Some(Mechanism::Tcgen05) {
        return refused("no role of its own starts it".to_owned(), ROLES);
    }
    let Some(tensorize) = block.attrs.tensorize else { return Ok(()) };
    let Ok(matched) = intrin::matched(tensorize, func, block) else { return Ok(()) };
    for (at, operand) in matched.operands.iter().enumerate().skip(1) {
        let writes = |it: &&Block| it.writes().iter().any(|it| it.buffer == operand.buffer);
        let filling = func.body.blocks().into_iter().find(writes);
        let Some(filling) = filling.filter(|it| it.attrs.mechanism == Some(Mechanism::Tma)) else {
            return refused(format!("the copy engine does not bring `{}`", operand.buffer), ROLES);
        };
        let is_common = filling.attrs.multicast == Some(AXIS);
        if is_common != (at == 2) {
            let which =
                if at == 1 { "is the same for both blocks" } else { "is not the same for both blocks" };
            return refused(format!("`{}` {which}", operand.buffer), ROWS);
        }
    }
    Ok(())
}

/// What to do where there is no pair.
const CLUSTER: &str = "bind a loop of 2 iterations over rows of the result to cluster.x, and no other to an axis of the cluster, or take `tcgen05`";

/// What to do where threads would wait for each other.
const ROLES: &str = "let `warp_specialize` give the copies of both factors a role, and the products another";

/// What to do where the blocks do not have what they should.
const ROWS: &str = "let the loop bound to cluster.x run over rows of the left factor, so that both blocks read the same columns of the right one";
