//! Whether the iterations of loops may run in another order, or at the same time.
//!
//! Each element has one value: blocks that do not read what they write may run again, in any order, and write the
//! same. What is left to check is that reductions keep every term once and start before their first term, and that
//! no block uses what another one leaves behind from another iteration.

use ir::{
    Block, CrossBlock, Func, IterKind, Loop, LoopKind, Name, Reducer, Role, Scope, Stmt,
    access::{self, AccessRelation},
    region::{Nest, Way, bounds_of, covers, writes_box},
    thread_group::group_width,
};

use crate::{
    CrossBlockError, ScheduleError, ScheduleState,
    check::{
        affine::is_spatial,
        deeper::DeeperCover,
        once::{are_digits_in_one, never_alike, starts_anew},
        overwrites::expect_one_value,
    },
};

/// Refuses loops of one chain, outermost first, whose iterations may not run in another order.
pub(crate) fn expect_reorderable(state: &ScheduleState, chain: &[&Loop]) -> Result<(), ScheduleError> {
    expect_reorderable_in(&state.func, chain)
}

/// The same of a program.
pub(crate) fn expect_reorderable_in(func: &Func, chain: &[&Loop]) -> Result<(), ScheduleError> {
    let Some(last) = chain.last() else { return Ok(()) };
    let nests = Nest::all(func);
    let inside: Vec<&Nest<'_>> =
        nests.iter().filter(|it| it.loops.iter().any(|it| it.var == last.var)).collect();
    // What an iteration of the loops around the chain repeats of another one stays in its place.
    let Some(first) = inside.first() else { return Ok(()) };
    let fixed = first.loops.iter().take_while(|it| it.var != last.var).count() + 1;
    let top = fixed - chain.len();
    for nest in &inside {
        expect_one_value(func, nest, chain)?;
        if !accumulates(nest.block)? {
            continue;
        }
        for it in chain.iter().filter(|it| it.extent.as_int() != Some(1)) {
            let tells_apart = are_digits_in_one(nest, &it.var, top, &|_| true)
                || is_spatial(nest.block, &it.var, nest.bounds())
                || nest.block.init.is_none() && never_alike(func, nest, &it.var, top, &|_| true);
            if !tells_apart {
                return Err(ScheduleError::NotAffine {
                    name: it.var.clone(),
                    block: nest.block.name.clone(),
                });
            }
        }
    }
    expect_self_contained(func, &inside, fixed, chain, &|_, _| false, &|_, _| false)
}

/// Refuses a loop whose iterations may not run at the same time, as `kind` would run them.
pub(crate) fn expect_independent(func: &Func, it: &Loop, kind: LoopKind) -> Result<(), ScheduleError> {
    let nests = Nest::all(func);
    let at = |nest: &Nest<'_>| nest.loops.iter().position(|other| other.var == it.var);
    let Some(level) = nests.iter().find_map(at) else { return Ok(()) };
    let inside: Vec<&Nest<'_>> = nests.iter().filter(|it| at(it).is_some()).collect();
    let deeper = DeeperCover::new(func, &nests);
    let start = nests.iter().position(|it| at(it).is_some()).unwrap_or(0);
    Parallel { func, nests: &inside, level, kind, before: &[], kept: &[], deeper: &deeper, start }.check()
}

/// A loop that is to run in parallel.
struct Parallel<'a> {
    func: &'a Func,
    /// The blocks in it.
    nests: &'a [&'a Nest<'a>],
    /// Its number among the loops around each of them.
    level: usize,
    /// How it is run.
    kind: LoopKind,
    /// The blocks that were in it when it was checked before; none if it was not.
    before: &'a [&'a Nest<'a>],
    /// Which of the blocks in it are still as they were then.
    kept: &'a [bool],
    /// What is known of loops inside it.
    deeper: &'a DeeperCover<'a>,
    /// How many blocks of the program stand before it.
    start: usize,
}

impl Parallel<'_> {
    fn check(&self) -> Result<(), ScheduleError> {
        let Some(first) = self.nests.first() else { return Ok(()) };
        let it = first.loops[self.level];
        if it.extent.as_int() == Some(1) {
            return Ok(()); // One iteration waits for nobody.
        }
        for (n, nest) in self.nests.iter().enumerate() {
            if self.kept.get(n) != Some(&true) {
                self.expect_told_apart(it, nest)?;
            }
        }
        let settled =
            |buffer: &Name, users: &[usize]| self.is_settled(buffer, users) || self.takes_turns(it, buffer);
        let covered = |buffer: &Name, users: &[usize]| {
            let users: Vec<_> = users.iter().map(|n| self.start + n).collect();
            self.deeper.holds(buffer, &users, self.level)
        };
        expect_self_contained(self.func, self.nests, self.level + 1, &[it], &settled, &covered)
    }

    /// Whether all blocks that use a buffer used it in the same way before, the same one first.
    fn is_settled(&self, buffer: &Name, users: &[usize]) -> bool {
        let first_before = self.before.iter().find(|it| it.uses(buffer)).map(|it| &it.block.name);
        let uses_as_before = |n: &usize| {
            let nest = self.nests[*n];
            let was = || self.before.iter().find(|was| was.block.name == nest.block.name);
            self.kept.get(*n) == Some(&true) || was().is_some_and(|was| was.uses_alike(nest, buffer))
        };
        users.first().map(|n| &self.nests[*n].block.name) == first_before && users.iter().all(uses_as_before)
    }

    /// How blocks of threads reduce over the loop together, if they do.
    fn cross_block(&self, it: &Loop) -> Option<CrossBlock> {
        match self.kind {
            LoopKind::Bound(axis) if !axis.is_thread() => it.attrs.cross_block,
            LoopKind::Bound(_)
            | LoopKind::Serial
            | LoopKind::Parallel
            | LoopKind::Vectorized
            | LoopKind::Unrolled => None,
        }
    }

    /// Whether threads may reduce over the loop together: the block is a reducer over it, for all of them or for groups of lanes that follow
    /// each other.
    fn reduces_together(&self, it: &Loop, block: &Block) -> bool {
        let is_by_threads = matches!(self.kind, LoopKind::Bound(axis) if axis.is_thread());
        let in_groups = group_width(block, &it.var, it.extent.as_int().unwrap_or(1)).is_some();
        let place = Reducer::of(block).and_then(|it| self.func.buffers.get(&it.place.buffer));
        let is_apart = block.attrs.tensorize.is_none() && in_groups;
        is_by_threads && is_apart && place.is_some_and(|it| it.scope != Scope::Fragment)
    }

    /// Whether what iterations do to a buffer is done in their order.
    fn takes_turns(&self, it: &Loop, buffer: &Name) -> bool {
        let is_global = self.func.buffers.get(buffer).is_some_and(|it| it.scope == Scope::Global);
        is_global && self.cross_block(it) == Some(CrossBlock::Semaphore)
    }

    /// Refuses a block that reduces over the loop in a way that blocks of threads cannot do together.
    fn expect_combinable(
        &self,
        it: &Loop,
        block: &Block,
        mechanism: CrossBlock,
    ) -> Result<(), ScheduleError> {
        accumulates(block)?;
        let (name, block_name) = (it.var.clone(), block.name.clone());
        for access in block.writes() {
            let Some(buffer) = self.func.buffers.get(&access.buffer) else { continue };
            if buffer.scope != Scope::Global {
                let (block, buffer) = (block_name, access.buffer.clone());
                return Err(CrossBlockError::Scope { name, block, buffer }.into());
            }
            if mechanism == CrossBlock::Atomic && !CrossBlock::can_add(buffer.dtype) {
                let (block, buffer) = (block_name, access.buffer.clone());
                return Err(CrossBlockError::NotAtomic { block, buffer }.into());
            }
        }
        if mechanism == CrossBlock::Semaphore {
            return Ok(());
        }
        if block.init.is_some() {
            return Err(ScheduleError::StartsInside { name, block: block_name });
        }
        let mut other = None;
        block.body.each_store(&mut |store| {
            if ir::added(store).is_none() {
                other = Some(store.place.buffer.clone());
            }
        });
        match other {
            Some(buffer) => Err(CrossBlockError::NotAtomic { block: block_name, buffer }.into()),
            None => Ok(()),
        }
    }

    /// Whether each iteration of the loop starts the sums of a block anew, in temporaries that it can have for its own, since
    /// nothing else uses them.
    fn has_own(&self, nest: &Nest<'_>) -> bool {
        let is_inside = |block: &Block| self.nests.iter().any(|it| it.block.name == block.name);
        let is_own = |buffer: &Name| {
            let users = self.func.readers(buffer).into_iter().chain(self.func.writers(buffer));
            self.func.buffers.get(buffer).is_some_and(|it| it.role == Role::Temp)
                && users.into_iter().all(is_inside)
        };
        self.kind == LoopKind::Parallel
            && starts_anew(nest) > self.level
            && nest.accesses(Way::Write).iter().all(|it| is_own(&it.buffer))
    }

    /// Refuses a block of which two iterations of the loop must not be confused and may be.
    fn expect_told_apart(&self, it: &Loop, nest: &Nest<'_>) -> Result<(), ScheduleError> {
        let block = nest.block;
        for iter in block.iters.iter().filter(|iter| iter.binding.any_var(&|name| *name == it.var)) {
            if iter.kind == IterKind::Reduce {
                if let Some(mechanism) = self.cross_block(it) {
                    return self.expect_combinable(it, block, mechanism);
                }
                if self.reduces_together(it, block) {
                    return Ok(());
                }
                let (block, iter) = (block.name.clone(), iter.var.clone());
                return Err(ScheduleError::ReductionLoop { name: it.var.clone(), block, iter });
            }
        }
        if it.extent.as_int() == Some(1) {
            return accumulates(block).map(|_| ());
        }
        expect_one_value(self.func, nest, &[it])?;
        if !accumulates(block)? {
            return Ok(());
        }
        let private =
            nest.accesses(Way::Write).iter().all(|access| is_private(self.func, &access.buffer, self.kind));
        let spatial = |iter: &ir::Iter| iter.kind == IterKind::Spatial;
        let tells_apart = || {
            are_digits_in_one(nest, &it.var, self.level, &spatial)
                || is_spatial(block, &it.var, nest.bounds())
                || never_alike(self.func, nest, &it.var, self.level, &spatial)
        };
        if !private && !self.has_own(nest) && !tells_apart() {
            return Err(ScheduleError::NotAffine { name: it.var.clone(), block: block.name.clone() });
        }
        Ok(())
    }
}

/// Refuses where blocks under the innermost of the outermost `fixed` loops exchange data across iterations of `loops`,
/// which are among those: what one of them reads or overwrites has to be written first in the same iteration.
///
/// `settled` knows buffers for which the answer is known to be yes, given the numbers of the blocks that use them, and
/// `covered` those of which the first block surely writes what the others touch.
pub(super) fn expect_self_contained(
    func: &Func,
    nests: &[&Nest<'_>],
    fixed: usize,
    loops: &[&Loop],
    settled: &dyn Fn(&Name, &[usize]) -> bool,
    covered: &dyn Fn(&Name, &[usize]) -> bool,
) -> Result<(), ScheduleError> {
    if nests.len() < 2 {
        return Ok(());
    }
    for buffer in func.buffers.iter().filter(|(_, it)| it.role != Role::Input).map(|(name, _)| name) {
        let users: Vec<usize> = (0..nests.len()).filter(|n| nests[*n].uses(buffer)).collect();
        let [first, others @ ..] = users.as_slice() else { continue };
        let written = users.iter().any(|n| nests[*n].reaches(buffer, Way::Write));
        if others.is_empty() || !written || settled(buffer, &users) {
            continue;
        }
        let is_covered = covered(buffer, &users);
        let first = nests[*first];
        let others: Vec<&Nest<'_>> = others.iter().map(|n| nests[*n]).collect();
        let partial = first.block.iters.iter().any(|iter| {
            iter.kind == IterKind::Reduce
                && iter.binding.any_var(&|name| loops.iter().any(|it| it.var == *name))
        });
        let other = if is_covered { None } else { uncovered(func, fixed, first, &others, buffer) };
        if let Some(other) = other.or(partial.then(|| others[0])) {
            let (first, second) = (first.block.name.clone(), other.block.name.clone());
            let (name, buffer) = (loops[0].var.clone(), buffer.clone());
            return Err(ScheduleError::Carried { name, first, second, buffer });
        }
    }
    Ok(())
}

/// The first of `others` that touches elements of a buffer which `first` does not write in the same iteration of
/// the outermost `fixed` loops, which are around all of them.
pub(crate) fn uncovered<'n, 'a>(
    func: &Func,
    fixed: usize,
    first: &Nest<'_>,
    others: &[&'n Nest<'a>],
    buffer: &Name,
) -> Option<&'n Nest<'a>> {
    let shape = &func.buffers.get(buffer)?.shape;
    if !first.reaches(buffer, Way::Write) {
        return others.first().copied();
    }
    let bounds = bounds_of(func, &first.loops[..fixed]);
    let whole = first.touched_in_one(buffer, fixed, Way::Write);
    let covered = |it: &Nest<'_>, way: Way| {
        !it.reaches(buffer, way) || covers(&whole, &it.touched_in_one(buffer, fixed, way), shape, &bounds)
    };
    others.iter().copied().find(|it| {
        let is_box = writes_box(first, it.block, buffer, fixed);
        let by_boxes = is_box && covered(it, Way::Read) && covered(it, Way::Write);
        !by_boxes && !covered_exactly(func, first, it, buffer)
    })
}

/// Whether the solver finds that what one block touches of a buffer was written before by another one, in the same
/// iteration of all loops around both.
pub(crate) fn covered_exactly(func: &Func, first: &Nest<'_>, then: &Nest<'_>, buffer: &Name) -> bool {
    let shared = &first.loops[..first.shared_loops(then)];
    let is_common = |name: &Name| shared.iter().any(|it| it.var == *name);
    let writes = first.places(buffer, Way::Write);
    let shape = &func.buffers[buffer].shape;
    let is_written = |place: &AccessRelation| {
        writes.iter().any(|it| access::covers(&func.dims, shape, it, place, &is_common))
    };
    [Way::Read, Way::Write].into_iter().all(|way| then.places(buffer, way).iter().all(is_written))
}

/// Whether a block reads what it writes, or reduces: then it must run once for each of its points.
///
/// Refuses blocks that do so in a way that is neither a reduction nor an update in place.
pub(crate) fn accumulates(block: &Block) -> Result<bool, ScheduleError> {
    let reduces = block.iters.iter().any(|it| it.kind == IterKind::Reduce);
    let writes = block.writes();
    let mut reads_own = false;
    let mut refused = None;
    block.body.each_store(&mut |store| {
        let mut own = false;
        store.value.each_load(&mut |access| {
            own |= *access == store.place;
            if *access != store.place && writes.iter().any(|it| it.buffer == access.buffer) {
                refused = Some(access.buffer.clone());
            }
        });
        if reduces && Reducer::of_store(store).is_none() {
            refused = Some(store.place.buffer.clone());
        }
        reads_own |= own;
    });
    match refused {
        Some(buffer) => Err(ScheduleError::NotAReduction { block: block.name.clone(), buffer }),
        None => Ok(reduces || reads_own),
    }
}

/// Whether iterations of a loop of that kind each have their own copy of a buffer.
fn is_private(func: &Func, buffer: &Name, kind: LoopKind) -> bool {
    let Some(buffer) = func.buffers.get(buffer) else { return false };
    match kind {
        LoopKind::Bound(axis) => !buffer.scope.is_shared_along(axis),
        LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled => false,
    }
}

/// Checks again every loop that is run in parallel, for a step may have changed what is inside it.
///
/// Where the program `before` the step was checked, what only depends on blocks that the step has `kept`
/// ([`ir::unchanged_blocks()`]) is not checked again.
pub(crate) fn check_parallel_loops(
    func: &Func,
    before: Option<&Func>,
    kept: &[bool],
) -> Result<(), ScheduleError> {
    let mut any = false;
    func.body.walk(&mut |stmt| any |= matches!(stmt, Stmt::Loop(it) if is_parallel(it.kind)));
    if !any {
        return Ok(());
    }
    let nests = Nest::all(func);
    let old = before.map(Nest::all).unwrap_or_default();
    let deeper = DeeperCover::new(func, &nests);
    for (start, nest) in nests.iter().enumerate() {
        for (level, it) in nest.loops.iter().enumerate() {
            let is_in =
                |nest: &Nest<'_>| nest.loops.get(level).is_some_and(|other| std::ptr::eq(*other, *it));
            if !is_parallel(it.kind) || start > 0 && is_in(&nests[start - 1]) {
                continue;
            }
            let inside: Vec<&Nest<'_>> = nests[start..].iter().take_while(|it| is_in(it)).collect();
            let was_in =
                |nest: &&Nest<'_>| nest.loops.iter().any(|was| was.var == it.var && was.kind == it.kind);
            let inside_before: Vec<&Nest<'_>> = old.iter().filter(was_in).collect();
            let kept = if inside_before.is_empty() { &[] } else { kept.get(start..).unwrap_or_default() };
            let (nests, before, kind) = (inside.as_slice(), inside_before.as_slice(), it.kind);
            Parallel { func, nests, level, kind, before, kept, deeper: &deeper, start }.check()?;
        }
    }
    Ok(())
}

pub(super) fn is_parallel(kind: LoopKind) -> bool {
    match kind {
        LoopKind::Serial | LoopKind::Unrolled => false,
        LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Bound(_) => true,
    }
}
