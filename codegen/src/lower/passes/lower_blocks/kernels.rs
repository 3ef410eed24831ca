//! Which statements become kernels, and how wide they are launched.

use indexmap::IndexMap;
use ir::{
    Feature, Func, Index, LoopKind, Name, Stmt, Target, ThreadAxis, arith::Bounds, axis_var,
    intrin::Intrinsic,
};

use crate::lower::{LowerError, marks};

/// The statements that become kernels, with the names of those.
///
/// A CPU runs the whole program as one kernel. A single kernel is named as the program, one of several after the
/// last block in it too.
pub(crate) fn kernels<'a>(func: &'a Func, target: &Target) -> Vec<(Name, &'a Stmt)> {
    let stmts: Vec<&Stmt> = match (&func.body, target) {
        (Stmt::Seq(stmts), Target::Cuda(_)) => stmts.iter().collect(),
        (
            Stmt::Seq(_) | Stmt::Loop(_) | Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_),
            Target::Cuda(_) | Target::Cpu,
        ) => {
            vec![&func.body]
        }
    };
    let mut out: Vec<(Name, &Stmt)> = Vec::new();
    // What computes nothing names no kernel.
    let last = |stmt: &'a Stmt| stmt.blocks().into_iter().rev().find(|it| !marks::is_sync(it));
    let single = stmts.len() == 1;
    for stmt in stmts {
        let stem = match last(stmt) {
            Some(block) if !single => format!("{}_{}", func.name, block.name),
            Some(_) | None => func.name.to_string(),
        };
        let name = Name::fresh(&stem, |name| out.iter().any(|it| it.0 == *name));
        out.push((name, stmt));
    }
    out
}

/// Refuses bound loops on a CPU, unbound statements on a GPU, and names that stand for axes.
pub(crate) fn check_axes(func: &Func, target: &Target) -> Result<(), LowerError> {
    let bound = |stmt: &Stmt| {
        let mut found = None;
        stmt.walk(&mut |stmt| {
            if let Stmt::Loop(it) = stmt
                && let LoopKind::Bound(axis) = it.kind
            {
                found.get_or_insert((it.var.clone(), axis));
            }
        });
        found
    };
    if *target == Target::Cpu {
        return match bound(&func.body) {
            Some((var, axis)) => Err(LowerError::BoundOnCpu { var, axis }),
            None => Ok(()),
        };
    }
    if let Some(axis) = ThreadAxis::ALL.into_iter().find(|&axis| func.is_taken(&axis_var(axis))) {
        return Err(LowerError::ReservedName { name: axis_var(axis) });
    }
    for (_, stmt) in kernels(func, target) {
        if let (None, Some(block)) = (bound(stmt), stmt.blocks().first()) {
            return Err(LowerError::Unbound { block: block.name.clone() });
        }
    }
    Ok(())
}

/// How many blocks of a kernel a multiprocessor shall hold: the most that one of its loops asks for.
pub(crate) fn blocks_per_sm(stmt: &Stmt) -> Option<i64> {
    let mut most = None;
    stmt.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt {
            most = most.max(it.attrs.blocks_per_sm);
        }
    });
    most
}

/// The dimension that stands for how many blocks one of the kernel takes the place of, if blocks do.
pub(crate) fn claims(stmt: &Stmt) -> Option<Name> {
    let (mut claims, mut count) = (false, None);
    stmt.walk(&mut |stmt| {
        let Stmt::Loop(it) = stmt else { return };
        claims |= it.attrs.claims;
        if it.attrs.is_independent && count.is_none() {
            count = it.extent.as_var().cloned();
        }
    });
    count.filter(|_| claims)
}

/// Whether a kernel starts before what is ahead of it has ended: one of its loops asks for it, and the target can do it.
pub(crate) fn programmatic_launch(stmt: &Stmt, target: &Target) -> bool {
    let mut asked = false;
    stmt.walk(&mut |stmt| asked |= matches!(stmt, Stmt::Loop(it) if it.attrs.programmatic_launch));
    asked && matches!(target, Target::Cuda(arch) if arch.has(Feature::ProgrammaticLaunch))
}

/// The axes of a kernel in the order of declaration, each as wide as the widest loop bound to it. Where none is bound to
/// `threadIdx.x`, it is as wide as tensorised blocks need it.
pub(crate) fn launch(func: &Func, stmt: &Stmt) -> Result<IndexMap<ThreadAxis, Index>, LowerError> {
    let bounds = Bounds::of_dims(func);
    let mut launch: IndexMap<ThreadAxis, Index> = IndexMap::new();
    let mut error = None;
    stmt.walk(&mut |stmt| {
        let Stmt::Loop(it) = stmt else { return };
        let LoopKind::Bound(axis) = it.kind else { return };
        let (var, extent) = (it.var.clone(), bounds.simplify(&it.extent));
        if extent.any_var(&|name| !func.dims.contains(name)) {
            error.get_or_insert(LowerError::GridExtent { var, axis, extent });
        } else if (axis.is_thread() || axis.is_cluster()) && extent.as_int().is_none() {
            error.get_or_insert(LowerError::ThreadExtent { var, axis, extent });
        } else {
            let widest = match launch.get(&axis) {
                Some(known) if bounds.at_most(&extent, known) => known.clone(),
                Some(known) if !bounds.at_most(known, &extent) => known.maximum(&extent),
                Some(_) | None => extent,
            };
            launch.insert(axis, widest);
        }
    });
    let lanes = stmt.blocks().into_iter().filter_map(|it| it.attrs.tensorize).map(Intrinsic::lanes).max();
    // A kernel that binds nothing is of a CPU.
    if let (Some(lanes), false) = (lanes, launch.is_empty()) {
        launch.entry(ThreadAxis::ThreadX).or_insert_with(|| Index::int(lanes));
    }
    launch.sort_keys();
    error.map_or(Ok(launch), Err)
}
