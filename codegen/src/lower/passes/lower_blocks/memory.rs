//! Which memory each temporary gets, and where that memory is taken.

use std::collections::BTreeSet;

use ir::{
    AllocScope, Buffer, Func, Kernel, LoopKind, Name, Op, Role, Scope, Stmt, Target, access::FuncAccess,
};

use crate::lower::{
    LowerError,
    passes::lower_blocks::{Places, kernels, parallel::parallel},
};

/// Where to allocate the temporaries that are not arguments.
///
/// On a GPU, global temporaries are arguments, since kernels share them; shared memory is taken at the top of the
/// kernel, local memory at its allocation scope. On a CPU, a temporary of constant size that no parallel loop shares is
/// private memory at its allocation scope; any other is an argument.
pub(crate) fn places(
    func: &Func,
    accesses: &[FuncAccess<'_>],
    target: &Target,
) -> Result<Places, LowerError> {
    let mut places = Places::new();
    for (name, buffer) in func.buffers.iter().filter(|(_, it)| it.role == Role::Temp) {
        let users: Vec<_> = accesses.iter().filter(|it| it.buffer == name).collect();
        if users.is_empty() {
            continue;
        }
        let alloc_scope = alloc_scope(&users, buffer);
        let constant = buffer.shape.iter().position(|it| it.as_int().is_none());
        match (target, buffer.scope) {
            (Target::Cuda(_), Scope::Global) => {}
            (
                Target::Cuda(_),
                Scope::Cluster | Scope::Shared | Scope::Tensor | Scope::Fragment | Scope::Local,
            ) => {
                one_kernel(func, target, name, buffer.scope)?;
                if let Some(axis) = constant {
                    let (buffer, scope, extent) =
                        (name.clone(), buffer.scope.as_str(), buffer.shape[axis].clone());
                    return Err(LowerError::NotConstant { buffer, scope, axis, extent });
                }
                let at = if buffer.scope.is_per_block() { None } else { alloc_scope };
                places.insert(name.clone(), at);
            }
            (Target::Cpu, _) => {
                let private = alloc_scope.is_some() || buffer.scope.is_registers();
                if constant.is_none()
                    && private
                    && !users.iter().any(|it| meets_parallel(it, alloc_scope.as_ref()))
                {
                    places.insert(name.clone(), alloc_scope);
                } else {
                    parallel(func, &users)?;
                }
            }
        }
    }
    Ok(places)
}

/// Refuses memory of a cluster whose first dimension is not that of the cluster's blocks, each of which has the elements of one
/// subscript.
pub(crate) fn expect_dealt_out(kernel: &Kernel) -> Result<(), LowerError> {
    let blocks = kernel.cluster_blocks();
    for op in &kernel.body {
        if let Op::Alloc(it) = op
            && it.scope == Scope::Cluster
            && it.blocks() != Some(blocks)
        {
            return Err(LowerError::ClusterParts { buffer: it.name.clone(), parts: it.blocks(), blocks });
        }
    }
    Ok(())
}

/// The allocation scopes of shared buffers among the loops that a kernel still has: not those bound to axes.
pub(crate) fn shared_alloc_scopes(func: &Func, target: &Target, accesses: &[FuncAccess<'_>]) -> Places {
    let mut alloc_scopes = Places::new();
    if *target == Target::Cpu {
        // There it is private memory, taken anew where it lives.
        return alloc_scopes;
    }
    for (name, buffer) in func.buffers.iter().filter(|(_, it)| it.scope.is_of_blocks()) {
        let users: Vec<_> = accesses.iter().filter(|it| it.buffer == name).collect();
        let Some(first) = users.first() else { continue };
        let alloc_scope = alloc_scope(&users, buffer);
        let depth =
            first.loops.iter().position(|it| Some(&it.var) == alloc_scope.as_ref()).map_or(0, |at| at + 1);
        let plain = first.loops[..depth].iter().rev().find(|it| !matches!(it.kind, LoopKind::Bound(_)));
        alloc_scopes.insert(name.clone(), plain.map(|it| it.var.clone()));
    }
    alloc_scopes
}

/// The innermost loop around all users, but not inside the allocation scope that was derived before loops were copied.
fn alloc_scope(users: &[&FuncAccess<'_>], buffer: &Buffer) -> Option<Name> {
    let shared = users.iter().map(|it| users[0].shared_loops(it)).min().unwrap_or(0);
    let around = &users[0].loops[..shared];
    let at = match &buffer.alloc_scope {
        Some(AllocScope::Loop(var)) => {
            around.iter().position(|it| it.var == *var).map_or(shared, |at| at + 1)
        }
        Some(AllocScope::Program) => 0,
        None => shared,
    };
    around[..at].last().map(|it| it.var.clone())
}

/// Whether a parallel loop stands between the allocation scope and the place.
fn meets_parallel(access: &FuncAccess<'_>, alloc_scope: Option<&Name>) -> bool {
    let inside = alloc_scope
        .and_then(|alloc_scope| access.loops.iter().position(|it| it.var == *alloc_scope))
        .map_or(0, |at| at + 1);
    access.loops[inside..].iter().any(|it| it.kind == LoopKind::Parallel)
}

/// Refuses memory of a kernel that two kernels use.
fn one_kernel(func: &Func, target: &Target, buffer: &Name, scope: Scope) -> Result<(), LowerError> {
    let mut users =
        kernels::kernels(func, target).into_iter().filter(|(_, stmt)| buffers_of(stmt).contains(buffer));
    match (users.next(), users.next()) {
        (Some((first, _)), Some((second, _))) => {
            let (buffer, scope) = (buffer.clone(), scope.as_str());
            Err(LowerError::SpansKernels { buffer, scope, first, second })
        }
        (None | Some(_), _) => Ok(()),
    }
}

/// The buffers that a statement touches.
pub(crate) fn buffers_of(stmt: &Stmt) -> BTreeSet<Name> {
    let mut out = BTreeSet::new();
    stmt.each_access(&mut |access, _| {
        out.insert(access.buffer.clone());
    });
    out
}
