//! Finds where each temporary lives.

use ir::{
    AllocScope, Func, Name, Role, Scope, Target,
    access::{Axes, FuncAccess, accesses},
    axis_var,
    pipeline::is_pipeline,
    region::{self, Nest, Write},
};

/// The allocation scope of a temporary is the innermost loop around all its accesses that does not carry its value from one
/// iteration to the next; without one, the whole program.
///
/// A loop carries a value when an iteration may read what that iteration has not written: an accumulator lives
/// outside its reduction loop. What cannot be shown to be written first counts as carried.
pub(crate) fn place_allocs(mut func: Func, target: &Target) -> Func {
    for (name, scope) in alloc_scopes(&func, target) {
        func.buffers[&name].alloc_scope = Some(scope);
    }
    func
}

/// The allocation scopes of all temporaries that are used.
fn alloc_scopes(func: &Func, target: &Target) -> Vec<(Name, AllocScope)> {
    let accesses = accesses(&func.body, Axes::of(target));
    let mut alloc_scopes = Vec::new();
    for (name, buffer) in func.buffers.iter().filter(|(_, it)| it.role == Role::Temp) {
        let users: Vec<_> = accesses.iter().filter(|it| it.buffer == name).collect();
        let Some(first) = users.first() else { continue };
        let shared = users.iter().map(|it| first.shared_loops(it)).min().unwrap_or(0);
        let shared = copied_at(&users).map_or(shared, |depth| shared.min(depth));
        let alloc_scope = (1..=shared).rev().find(|&depth| {
            users.iter().filter(|it| !it.write).all(|read| is_fresh(func, read, &users, depth, buffer.scope))
        });
        let alloc_scope = alloc_scope.map(|depth| AllocScope::Loop(first.loops[depth - 1].var.clone()));
        alloc_scopes.push((name.clone(), alloc_scope.unwrap_or(AllocScope::Program)));
    }
    alloc_scopes
}

/// How many loops there are around and with the pipelined one that copies to a buffer, if copies may land later than where
/// they stand: loops inside must not take the memory anew.
fn copied_at(users: &[&FuncAccess<'_>]) -> Option<usize> {
    let copies = |it: &&&FuncAccess<'_>| it.block().is_some_and(|it| it.attrs.mechanism.is_some());
    let copy = users.iter().find(copies)?;
    copy.loops.iter().rposition(|it| is_pipeline(it)).map(|at| at + 1)
}

/// Whether what is read was written before in the same iteration of the outer `depth` loops.
pub(crate) fn is_fresh(
    func: &Func,
    read: &FuncAccess<'_>,
    users: &[&FuncAccess<'_>],
    depth: usize,
    scope: Scope,
) -> bool {
    if read.updates() && read.block().is_some_and(|it| it.init.is_some()) {
        let start = read.block().and_then(|block| region::starts_anew(&Nest::of(func, block)));
        return start.is_some_and(|start| start >= depth);
    }
    let starts = |it: &FuncAccess<'_>| !it.updates() || it.block().is_some_and(|it| it.init.is_some());
    let writes = users.iter().copied().filter(|it| it.write && it.order < read.order && starts(it));
    let writes: Vec<(&FuncAccess<'_>, _)> =
        writes.map(|it| (it, fixed(func, &read.loops[..it.shared_loops(read)], scope))).collect();
    let writes = writes.iter().map(|(it, is_common)| Write {
        place: it.relation(),
        bounds: it.bounds(func),
        is_common,
    });
    let writes: Vec<_> = writes.collect();
    let shape = &func.buffers[read.buffer].shape;
    region::any_covers(&func.dims, shape, &writes, (&read.relation(), read.bounds(func)))
}

/// The variables that have one value while memory of that scope is in use inside the given loops.
///
/// A thread has local memory of its own, so its axes are fixed; the threads of a block share shared memory and the lanes
/// of a warp its fragments, so all of them count together; blocks share neither.
pub(crate) fn fixed<'a>(
    func: &'a Func,
    loops: &'a [&'a ir::Loop],
    scope: Scope,
) -> impl Fn(&Name) -> bool + 'a {
    let axes = ir::ThreadAxis::ALL.into_iter().filter(move |axis| !scope.is_shared_along(*axis));
    let axes: Vec<_> = axes.map(axis_var).collect();
    move |name| func.dims.contains(name) || axes.contains(name) || loops.iter().any(|it| it.var == *name)
}
