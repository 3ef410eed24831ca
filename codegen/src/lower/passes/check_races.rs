//! Refuses programs whose threads or blocks would exchange data in ways that no barrier can order.

use std::{
    cell::{LazyCell, RefCell},
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use indexmap::IndexMap;
use ir::{
    Block, Func, Index, Loop, LoopKind, Name, Role, Scope, Stmt, Target, ThreadAxis,
    access::{Axes, Disjointness, FuncAccess, accesses, bounds_of_both, has_same},
    arith::Bounds,
    axis_var,
    thread_group::group_width,
};

use crate::lower::{
    LowerError,
    analysis::{
        cross_block::{self, CrossBlockConflicts},
        own_copy::has_own_copy,
        thread_reduction::reduces_over,
    },
    passes::{
        lower_blocks::{kernels, parallel::parallel},
        place_allocs::is_fresh,
    },
};

/// A bound loop means what a serial one means; this pass shows that running its iterations at once does too.
///
/// * Threads have their own local memory, blocks their own shared memory and clusters theirs: what is read there must have been
///   written by the same thread or block. Blocks of one kernel do not wait for each other: the same holds for them
///   and global memory.
/// * Iterations of one bound loop must write different elements, or all the same; and must not read what another
///   iteration writes.
/// * Blocks of a loop that reduces over them may meet in global memory if they take turns or add atomically
///   ([`cross_block`]).
/// * A loop bound to an axis inside another one bound to the same axis must do work that is the same in each
///   iteration of the outer one.
pub(crate) fn check_races(mut func: Func, target: &Target) -> Result<Func, LowerError> {
    let accesses = accesses(&func.body, Axes::of(target));
    let kernels = kernels::kernels(&func, target);
    let roots: Vec<_> = kernels.iter().map(|it| it.1.blocks()).collect();
    // What cannot be launched is refused by `lower_blocks`.
    let launches: Vec<_> =
        kernels.iter().map(|it| kernels::launch(&func, it.1).unwrap_or_default()).collect();
    let kernel = |access: &FuncAccess<'_>| {
        let within = |it: &Vec<&ir::Block>| {
            it.iter().any(|it| access.block().is_some_and(|block| block.name == it.name))
        };
        roots.iter().position(within)
    };
    let check = Check { func: &func, taint: taint(&accesses), conflicts: RefCell::default() };
    for access in &accesses {
        axis_twice(access)?;
    }
    let mut users: BTreeMap<_, Vec<&FuncAccess<'_>>> = BTreeMap::new();
    for access in &accesses {
        users.entry((kernel(access), access.buffer)).or_default().push(access);
    }
    if *target == Target::Cpu {
        // Temporaries are judged when it is known which of them are private memory of an iteration.
        let owned = |it: &&Vec<&FuncAccess<'_>>| func.buffers[it[0].buffer].role != Role::Temp;
        users.values().filter(owned).try_for_each(|it| parallel(&func, it))?;
        users.clear();
    }
    for ((kernel, _), users) in users.iter().filter(|it| it.1.iter().any(|it| it.write)) {
        let launch = kernel.map(|it| launches[it].clone()).unwrap_or_default();
        for write in users.iter().filter(|it| it.write) {
            for other in users {
                check.pair(write, other, users, &launch)?;
            }
        }
    }
    let conflicts = check.conflicts.into_inner();
    drop(accesses);
    for (var, buffers) in conflicts {
        func.replace_loop(&var, |mut it| {
            it.attrs.exchanged = buffers.into_iter().collect();
            Stmt::Loop(Arc::new(it))
        });
    }
    Ok(func)
}

/// For each buffer the loops that its contents may depend on.
fn taint(accesses: &[FuncAccess<'_>]) -> BTreeMap<Name, BTreeSet<Name>> {
    let mut taint: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
    loop {
        let before: usize = taint.values().map(BTreeSet::len).sum();
        for access in accesses.iter().filter(|it| it.write) {
            let mut all = access.mentions().clone();
            for load in &access.loads() {
                all.extend(taint.get(*load).into_iter().flatten().cloned());
            }
            taint.entry(access.buffer.clone()).or_default().extend(all);
        }
        if taint.values().map(BTreeSet::len).sum::<usize>() == before {
            return taint;
        }
    }
}

/// How wide a kernel is launched.
type Launch = IndexMap<ThreadAxis, Index>;

/// Which of the threads or blocks along an axis come somewhere.
#[derive(PartialEq, Eq)]
enum Runs {
    /// The first one.
    First,
    /// Those below a number.
    Below(Index),
    /// All there are.
    All,
}

struct Check<'a> {
    func: &'a Func,
    taint: BTreeMap<Name, BTreeSet<Name>>,
    /// What is found out on the way: where blocks meet that take turns or add atomically.
    conflicts: RefCell<CrossBlockConflicts>,
}

impl Check<'_> {
    /// Whether an assignment does the same in each iteration of a loop around it.
    fn is_repeated(&self, access: &FuncAccess<'_>, around: &Loop) -> bool {
        if access.write && access.block().is_some_and(|it| reduces_over(it, &around.var)) {
            // What threads reduce together, all of them have, unless others of them have other results.
            let whole = around.extent.as_int();
            return access
                .block()
                .is_some_and(|it| group_width(it, &around.var, whole.unwrap_or(1)) == whole);
        }
        let depends = |name: &&Name| self.taint.get(*name).is_some_and(|it| it.contains(&around.var));
        !access.mentions().contains(&around.var) && !access.updates() && !access.loads().iter().any(depends)
    }

    fn pair(
        &self,
        write: &FuncAccess<'_>,
        other: &FuncAccess<'_>,
        users: &[&FuncAccess<'_>],
        launch: &Launch,
    ) -> Result<(), LowerError> {
        let scope = self.func.buffers[write.buffer].scope;
        let bounds = LazyCell::new(|| bounds_of_both(self.func, write, other));
        let separated = LazyCell::new(|| separated(self.func, write, other, &bounds));
        // Bound loops go by their axes: only the others around tell one answer from the next.
        let mut inside: Vec<(usize, BTreeSet<Name>)> = Vec::new();
        let mut apart_inside = |depth: usize| {
            let unbound = write.loops[..depth].iter().filter(|it| !matches!(it.kind, LoopKind::Bound(_)));
            let unbound = unbound.count();
            if let Some((_, known)) = inside.iter().find(|it| it.0 == unbound) {
                return known.clone();
            }
            let found = separated_inside(self.func, write, other, depth, &bounds);
            inside.push((unbound, found.clone()));
            found
        };
        for axis in ThreadAxis::ALL {
            if launch.get(&axis).is_none_or(|it| it.as_int() == Some(1)) {
                continue;
            }
            if reduce_together(write, other, axis) {
                continue;
            }
            let alone = [write, other].into_iter().all(|it| self.runs(it, axis) == Runs::First);
            let is_apart = |var: &Name| separated.contains(var) || self.has_same(write, other, var);
            let apart = || other.bound(axis).is_some() && is_apart(&axis_var(axis));
            if scope == Scope::Global
                && !axis.is_thread()
                && let Some(around) = cross_block::settled(write, other, axis, &self.func.buffers)
            {
                if !(other.bound(axis).is_some() && separated.contains(&axis_var(axis))) {
                    self.meet(write, other, around)?;
                }
                continue;
            }
            // Lanes meet in fragments by tensor intrinsics alone, which `lower_tensors` sees to.
            if scope == Scope::Fragment && scope.is_shared_along(axis) {
                continue;
            }
            if scope == Scope::Global && !axis.is_thread() {
                if !(alone
                    || write.bound(axis).is_some() && apart()
                    || self.repeats(write, other, axis, &is_apart))
                {
                    return Err(self.exchange(write, other, axis));
                }
                continue;
            }
            let private = !scope.is_shared_along(axis) && !other.write && !alone;
            if private
                && !self.sees(write, other, axis, launch)
                && !self.lives_in(write, axis)
                && !apart()
                && !has_own_copy(self.func, write, other, axis)
            {
                return Err(self.exchange(write, other, axis));
            }
            if scope.meets_along(axis) {
                self.race(write, other, users, axis, &mut apart_inside)?;
            }
        }
        Ok(())
    }

    /// Whether two accesses are by the same iteration of a variable wherever they meet.
    pub(crate) fn has_same(&self, a: &FuncAccess<'_>, b: &FuncAccess<'_>, var: &Name) -> bool {
        has_same(self.func, a, b, var, &|_| false)
    }

    /// Which of the threads or blocks along an axis come to a place.
    fn runs(&self, access: &FuncAccess<'_>, axis: ThreadAxis) -> Runs {
        match access.bound(axis) {
            Some(it) if it.extent.as_int() == Some(1) => Runs::First,
            Some(it) => Runs::Below(it.extent.clone()),
            None if self.func.buffers[access.writes_to()].scope.is_shared_along(axis) => Runs::First,
            None => Runs::All,
        }
    }

    /// Whether all blocks along an axis write the same to global memory at the same time, as it were: what one of them
    /// writes to an element is what any other writes there, whichever is the last.
    fn repeats(
        &self,
        write: &FuncAccess<'_>,
        other: &FuncAccess<'_>,
        axis: ThreadAxis,
        is_apart: &dyn Fn(&Name) -> bool,
    ) -> bool {
        let Some(bound) = write.bound(axis).filter(|_| write.order == other.order) else { return false };
        let loads = write.loads().into_iter().filter_map(|it| self.taint.get(it)).flatten();
        let depends: BTreeSet<_> = write.mentions().iter().chain(loads).collect();
        let inner = write.loops.iter().zip(write.variables()).filter(|it| depends.contains(&it.0.var));
        self.is_repeated(write, bound) && inner.into_iter().all(|it| is_apart(&it.1.0))
    }

    /// Whether all that come to a read of private memory have come to the write too, which does the same for each.
    fn sees(&self, write: &FuncAccess<'_>, read: &FuncAccess<'_>, axis: ThreadAxis, launch: &Launch) -> bool {
        let Some(bound) = write.bound(axis) else { return true };
        let bounds = Bounds::of_dims(self.func);
        let reaches = |most: &Index| bounds.at_most(most, &bound.extent);
        let come = match self.runs(read, axis) {
            Runs::First => true,
            Runs::Below(extent) => reaches(&extent),
            Runs::All => launch.get(&axis).is_none_or(reaches),
        };
        come && self.is_repeated(write, bound)
    }

    /// Remembers that blocks meet in a buffer.
    fn meet(&self, write: &FuncAccess<'_>, other: &FuncAccess<'_>, around: &Loop) -> Result<(), LowerError> {
        let is_inside = |it: &&FuncAccess<'_>| it.loops.iter().any(|it| it.var == around.var);
        let repeats =
            [write, other].into_iter().find(is_inside).and_then(|it| cross_block::repeats(it, around));
        if let Some(it) = repeats {
            return Err(LowerError::TurnsRepeat { var: around.var.clone(), around: it.var.clone() });
        }
        let mut conflicts = self.conflicts.borrow_mut();
        conflicts.entry(around.var.clone()).or_default().insert(write.buffer.clone());
        Ok(())
    }

    /// Whether the memory is taken anew in each iteration of a loop bound to the axis.
    fn lives_in(&self, access: &FuncAccess<'_>, axis: ThreadAxis) -> bool {
        let scope = self.func.buffers[access.buffer].alloc_loop();
        let depth = scope.and_then(|scope| access.loops.iter().position(|it| it.var == *scope));
        let bound = access.loops.iter().position(|it| it.kind == LoopKind::Bound(axis));
        matches!((bound, depth), (Some(bound), Some(depth)) if bound <= depth)
    }

    /// Judges the iterations of a loop over threads, or blocks of a cluster, that both accesses stand in, which may meet.
    fn race(
        &self,
        write: &FuncAccess<'_>,
        other: &FuncAccess<'_>,
        users: &[&FuncAccess<'_>],
        axis: ThreadAxis,
        apart_inside: &mut dyn FnMut(usize) -> BTreeSet<Name>,
    ) -> Result<(), LowerError> {
        if write.is_first_only(axis) && other.is_first_only(axis) {
            return Ok(());
        }
        let shared = write.shared_loops(other);
        let both = write.loops[..shared].iter().enumerate().filter(|it| it.1.kind == LoopKind::Bound(axis));
        for (depth, around) in both.filter(|it| it.1.extent.as_int() != Some(1)) {
            let fresh =
                || is_fresh(self.func, other, users, depth + 1, self.func.buffers[write.buffer].scope);
            if apart_inside(depth).contains(&axis_var(axis)) {
                continue;
            }
            let fine = self.is_repeated(write, around)
                && if other.write { self.is_repeated(other, around) } else { fresh() };
            if !fine && !self.has_same_inside(write, other, depth, axis) {
                let (block, buffer) = (write.block_name(), write.buffer.clone());
                return Err(LowerError::Race { block, buffer, axis });
            }
        }
        Ok(())
    }

    /// Whether two accesses in one iteration of the outer loops are by the same thread wherever they meet.
    fn has_same_inside(
        &self,
        a: &FuncAccess<'_>,
        b: &FuncAccess<'_>,
        depth: usize,
        axis: ThreadAxis,
    ) -> bool {
        let scope = self.func.buffers[a.buffer].scope;
        let apart = |it: &ThreadAxis| !it.is_thread() && !scope.meets_along(*it);
        let blocks: Vec<_> = ThreadAxis::ALL.into_iter().filter(apart).map(axis_var).collect();
        let outer = |name: &Name| a.loops[..depth].iter().any(|it| it.var == *name);
        has_same(self.func, a, b, &axis_var(axis), &|name| blocks.contains(name) || outer(name))
    }

    fn exchange(&self, write: &FuncAccess<'_>, read: &FuncAccess<'_>, axis: ThreadAxis) -> LowerError {
        if read.write {
            let (block, buffer) = (write.block_name(), write.buffer.clone());
            return LowerError::Race { block, buffer, axis };
        }
        LowerError::Exchange {
            buffer: write.buffer.clone(),
            scope: self.func.buffers[write.buffer].scope.as_str(),
            writer: write.block_name(),
            reader: read.block_name(),
            axis,
        }
    }
}

/// Whether two accesses are of one block that threads along an axis reduce together: they are ordered by that.
fn reduce_together(a: &FuncAccess<'_>, b: &FuncAccess<'_>, axis: ThreadAxis) -> bool {
    let reduces = |block: &Block| a.bound(axis).is_some_and(|it| reduces_over(block, &it.var));
    let (Some(block), Some(other)) = (a.block(), b.block()) else { return false };
    axis.is_thread() && block.name == other.name && reduces(block)
}

/// Refuses a loop bound inside another to the same axis unless it repeats the same work.
fn axis_twice(access: &FuncAccess<'_>) -> Result<(), LowerError> {
    for axis in access.axes() {
        let bound: Vec<_> = access.loops.iter().filter(|it| it.kind == LoopKind::Bound(axis)).collect();
        let Some((inner, outer)) = bound.split_last() else { continue };
        for outer in outer {
            if access.mentions().contains(&outer.var) || outer.extent != inner.extent {
                let (outer, inner, block) = (outer.var.clone(), inner.var.clone(), access.block_name());
                return Err(LowerError::AxisTwice { outer, inner, axis, block });
            }
        }
    }
    Ok(())
}

/// The axes on which two accesses must be the same thread or block to meet.
fn separated(func: &Func, a: &FuncAccess<'_>, b: &FuncAccess<'_>, bounds: &Bounds) -> BTreeSet<Name> {
    let axes = ThreadAxis::ALL.map(axis_var);
    let pair =
        Disjointness { a: &a.indices, b: &b.indices, bounds, is_common: &|name| func.dims.contains(name) };
    if pair.disjoint() { axes.into_iter().collect() } else { pair.separated() }
}

/// The thread axes on which two accesses must be the same thread to meet in one iteration of the outer loops.
fn separated_inside(
    func: &Func,
    a: &FuncAccess<'_>,
    b: &FuncAccess<'_>,
    depth: usize,
    bounds: &Bounds,
) -> BTreeSet<Name> {
    let (threads, blocks): (Vec<_>, Vec<_>) = ThreadAxis::ALL.into_iter().partition(|it| it.is_thread());
    let names = |axes: Vec<ThreadAxis>| axes.into_iter().map(axis_var).collect::<Vec<_>>();
    let (threads, blocks) = (names(threads), names(blocks));
    let outer = |name: &Name| a.loops[..depth].iter().any(|it| it.var == *name);
    let pair = Disjointness {
        a: &a.indices,
        b: &b.indices,
        bounds,
        is_common: &|name| func.dims.contains(name) || blocks.contains(name) || outer(name),
    };
    if pair.disjoint() { threads.into_iter().collect() } else { pair.separated() }
}
