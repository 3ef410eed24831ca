//! Shrinks temporaries to the part that is in use at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ir::{
    Access, Block, Buffer, Func, Index, LoopKind, Name, Role, Scope, Stmt, Store, Target,
    access::{Axes, FuncAccess, accesses},
    arith::Bounds,
    axis_var,
};

use ir::region::{self, Range, Region};

use crate::lower::passes::place_allocs::fixed;

/// ```text
/// temp A_shared: f32[1024, 1024] @shared        temp A_shared: f32[8, 16] @shared
/// for io in 0..128 @blockIdx.x                   for io in 0..128 @blockIdx.x
///   for ko in 0..64                                for ko in 0..64
///     for i in 0..8 @threadIdx.x          ->         for i in 0..8 @threadIdx.x
///       for k in 0..16                                 for k in 0..16
///         block A_shared(..)                             block A_shared(..)
///           A_shared[io*8 + i, ko*16 + k] = ..             A_shared[i, k] = ..
/// ```
///
/// Subscripts lose their least value over one iteration of the allocation scope, and then speak of loop variables where they
/// spoke of iterators: the result is a program to lower, no longer one to schedule. A buffer whose part is not of
/// constant size stays as it is.
pub(crate) fn compact_buffers(func: Func, target: &Target) -> Func {
    let func = apart(func);
    let accesses = accesses(&func.body, Axes::of(target));
    let mut plans = BTreeMap::new();
    for (name, buffer) in func.buffers.iter().filter(|(_, it)| it.role == Role::Temp) {
        let users: Vec<_> = accesses.iter().filter(|it| it.buffer == name).collect();
        if let Some(plan) = plan(&func, &users, buffer, target) {
            plans.insert(name.clone(), plan);
        }
    }
    drop(accesses);

    let mut buffers = func.buffers.clone();
    for (name, plan) in &plans {
        buffers[name].shape = plan.iter().map(Range::count).collect();
    }
    let rewrite = Rewrite { func: &func, plans: &plans, on_gpu: matches!(target, Target::Cuda(_)) };
    let body = rewrite.stmt(
        &func.body,
        &At { env: BTreeMap::new(), axes: BTreeMap::new(), bounds: Bounds::of_dims(&func) },
    );
    Func { body, buffers, ..func }
}

fn plan(func: &Func, users: &[&FuncAccess<'_>], buffer: &Buffer, target: &Target) -> Option<Region> {
    let first = users.first()?;
    let depth = buffer.alloc_loop().map_or(0, |alloc_scope| {
        first.loops.iter().position(|it| it.var == *alloc_scope).map_or(0, |at| at + 1)
    });
    let on_gpu = matches!(target, Target::Cuda(_));
    match buffer.scope {
        Scope::Global if on_gpu => return None,
        Scope::Global | Scope::Cluster | Scope::Shared | Scope::Tensor | Scope::Fragment | Scope::Local => {}
    }
    let parallel = |it: &&&FuncAccess<'_>| it.loops[depth..].iter().any(|it| it.kind == LoopKind::Parallel);
    if !on_gpu && ((depth == 0 && !buffer.scope.is_registers()) || users.iter().any(|it| parallel(&it))) {
        return None;
    }
    let is_fixed = fixed(func, &first.loops[..depth], buffer.scope);
    let part = |axis: usize| {
        let whole = Range::new(Index::int(0), buffer.shape[axis].clone());
        let found = steps(func, users, axis, &is_fixed).or_else(|| touched(func, users, axis, &is_fixed));
        // What no iteration ever touches has no part of its own.
        let found = found.filter(|it| match (it.count().as_int(), whole.extent.as_int()) {
            (Some(few), Some(all)) => (1..all).contains(&few),
            (Some(few), None) => few > 0,
            (None, _) => false,
        });
        found.unwrap_or(whole)
    };
    let parts: Vec<_> = (0..buffer.shape.len()).map(part).collect();
    (on_gpu || parts.iter().all(|it| it.count().as_int().is_some())).then_some(parts)
}

/// The elements of a dimension that every user touches at the same steps, as a thread does that owns every 16th row.
fn steps(
    func: &Func,
    users: &[&FuncAccess<'_>],
    axis: usize,
    is_fixed: &dyn Fn(&Name) -> bool,
) -> Option<Range> {
    let ranges = users.iter().map(|user| {
        let bounds = user.bounds(func);
        let is_inner = |name: &Name| !is_fixed(name) && bounds.extent(name).is_some();
        let range = region::range_of(&user.indices[axis], &[], &Index::int(0), bounds, &is_inner);
        Some(range).filter(|it| !it.steps.is_empty())
    });
    let ranges = ranges.collect::<Option<Vec<_>>>()?;
    ranges.iter().all(|it| *it == ranges[0]).then(|| ranges[0].clone())
}

/// The least subscript in a dimension and how many there are from it on, if that is a constant.
fn touched(
    func: &Func,
    users: &[&FuncAccess<'_>],
    axis: usize,
    is_fixed: &dyn Fn(&Name) -> bool,
) -> Option<Range> {
    let first = users.iter().find(|it| it.write).or(users.first())?;
    let bounds = first.bounds(func);
    let is_inner = |name: &Name| !is_fixed(name) && bounds.extent(name).is_some();
    // A loop of one iteration keeps no part of a quotient from being the same in all others.
    let (base, _) =
        bounds.split(&bounds.simplify(&without_unit_loops(&first.indices[axis], bounds)), &is_inner);
    let (mut least, mut most) = (i64::MAX, i64::MIN);
    for user in users {
        let mut bounds = user.bounds(func).clone();
        user.guards.iter().for_each(|guard| bounds.assume(guard));
        let (low, high) = bounds.interval(&(without_unit_loops(&user.indices[axis], &bounds) - base.clone()));
        least = least.min(low?);
        most = most.max(high?);
    }
    let extent = most.checked_sub(least)?.checked_add(1)?;
    Some(Range::new(bounds.simplify(&(base + least)), Index::int(extent)))
}

/// An expression with the only value of each loop of one iteration in its place.
fn without_unit_loops(index: &Index, bounds: &Bounds) -> Index {
    let is_unit = |name: &Name| bounds.extent(name).and_then(Index::as_int) == Some(1);
    index.subst(&|name| is_unit(name).then(|| Index::int(0)))
}

/// Renames the iterators that are called as a loop is, since subscripts will speak of loops.
fn apart(mut func: Func) -> Func {
    let loops: BTreeSet<_> = func.loops().iter().map(|it| it.var.clone()).collect();
    func.map_blocks(&mut |block| {
        let taken: Vec<_> = block.iters.iter().map(|it| it.var.clone()).collect();
        for var in taken.iter().filter(|it| loops.contains(*it)) {
            let fresh = Name::fresh(&format!("v_{var}"), |name| loops.contains(name) || taken.contains(name));
            let with = |name: &Name| (name == var).then(|| Index::var(&fresh));
            block.init = block.init.as_ref().map(|it| it.subst(&with));
            block.body = block.body.subst(&with);
            block.iters.iter_mut().filter(|it| it.var == *var).for_each(|it| it.var = fresh.clone());
        }
    });
    func
}

struct Rewrite<'a> {
    func: &'a Func,
    plans: &'a BTreeMap<Name, Region>,
    on_gpu: bool,
}

/// What holds at a place of the tree.
#[derive(Clone)]
struct At {
    /// What iterators stand for, over loop variables.
    env: BTreeMap<Name, Index>,
    /// The loop that is innermost bound to each axis.
    axes: BTreeMap<Name, Name>,
    bounds: Bounds,
}

impl Rewrite<'_> {
    fn stmt(&self, stmt: &Stmt, at: &At) -> Stmt {
        match stmt {
            Stmt::Loop(it) => {
                let mut inner = at.clone();
                inner.bounds.insert(&it.var, &it.extent);
                if let (LoopKind::Bound(axis), true) = (it.kind, self.on_gpu) {
                    inner.axes.insert(axis_var(axis), it.var.clone());
                }
                Stmt::Loop(Arc::new(ir::Loop { body: self.stmt(&it.body, &inner), ..ir::Loop::clone(it) }))
            }
            Stmt::Block(it) => Stmt::Block(Arc::new(self.block(it, at))),
            Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|it| self.stmt(it, at)).collect()),
            Stmt::Store(it) => {
                let Store { place, value } = &**it;
                let value = value.map_loads(&mut |access| ir::Value::Load(self.access(access, at)));
                Stmt::store(self.access(place, at), value)
            }
            Stmt::Instr(it) => Stmt::Instr(Arc::new(it.map_accesses(&mut |access| self.access(access, at)))),
        }
    }

    fn block(&self, block: &Block, at: &At) -> Block {
        let mut inner = at.clone();
        let resolve = |index: &Index| index.subst(&|name| at.env.get(name).cloned());
        inner.env.extend(block.iters.iter().map(|it| (it.var.clone(), resolve(&it.binding))));
        Block {
            init: block.init.as_ref().map(|it| self.stmt(it, &inner)),
            body: self.stmt(&block.body, &inner),
            ..block.clone()
        }
    }

    fn access(&self, access: &Access, at: &At) -> Access {
        let Some(parts) = self.plans.get(&access.buffer) else { return access.clone() };
        debug_assert!(
            self.func.buffers.contains_key(&access.buffer),
            "plans are made for buffers of the program"
        );
        let rebase = |(index, part): (&Index, &Range)| {
            if part.min.as_int() == Some(0) && part.steps.is_empty() {
                return index.clone();
            }
            let min = part.min.subst(&|name| at.axes.get(name).map(Index::var));
            // The least subscript has no loops of one iteration either, and what is left of one would hide how far apart boxes are.
            let index = without_unit_loops(&index.subst(&|name| at.env.get(name).cloned()), &at.bounds);
            let index = at.bounds.simplify(&index);
            at.bounds.simplify(&Range { min, ..part.clone() }.position(&index))
        };
        Access { indices: access.indices.iter().zip(parts).map(rebase).collect(), ..access.clone() }
    }
}
