//! From `Func` to `Kernel`: blocks become conditions and stores, bound loops become launch axes.

pub(crate) mod bulk;
mod claims;
pub(crate) mod kernels;
pub(crate) mod memory;
pub(crate) mod parallel;
mod role;
mod scoped;
mod thread_reduction;

use std::sync::Arc;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use indexmap::IndexMap;
use ir::{
    Alloc, Arg, Arrival, Block, CrossBlock, For, ForKind, Func, Group, Independence, Index, Instr, IterKind,
    Kernel, Less, Loop, LoopKind, Mechanism, Module, Name, Op, Origin, Participants, Role, Scope, Stmt,
    Storage, Target, TensorMap, ThreadAxis, Wait,
    access::{Axes, accesses},
    arith::Bounds,
    axis_var,
};

use self::scoped::{Led, Scoped};
use crate::lower::{
    LowerError,
    analysis::{cross_block, roles},
};

/// ```text
/// for i in 0..n @threadIdx.x              kernel f<<<threadIdx.x: 32>>>(A, mut B)
///   for k in 0..8                           for k in 0..8
///     block B(vi: n = i, vk: reduce 8 = k)    if k < 1
///       init                          ->        B[threadIdx_x] = 0.0f32
///         B[vi] = 0.0f32                      B[threadIdx_x] = B[threadIdx_x] + A[threadIdx_x, k]
///       B[vi] = B[vi] + A[vi, vk]
/// ```
///
/// Each top-level statement becomes a kernel on a GPU, the whole program one on a CPU. A loop narrower than the
/// launch is guarded. A statement that writes shared or global memory under fewer axes than the launch has runs
/// once: in the first thread of each missing axis. Subscripts stay one a dimension, for `flatten`.
///
/// Stores of blocks that are copies ([`ir::BlockAttrs::mechanism`]) become [`Instr::AsyncCopy`]. Groups of copies belong to a thread: a block that holds a commit
/// or a wait is under no condition but its own guards, and a thread that copies nothing closes an empty group.
pub(crate) fn lower_blocks(func: Func, target: &Target) -> Result<Module, LowerError> {
    kernels::check_axes(&func, target)?;
    let accesses = accesses(&func.body, Axes::of(target));
    let alloc_scopes = memory::places(&func, &accesses, target)?;
    let shared_alloc_scopes = memory::shared_alloc_scopes(&func, target, &accesses);
    drop(accesses);
    let conflicts = cross_block::conflicts(&func);
    let mut args = args(&func, &alloc_scopes);

    let mut kernels = Vec::new();
    for (name, stmt) in kernels::kernels(&func, target) {
        let launch = kernels::launch(&func, stmt)?;
        let turns = cross_block::counters(stmt, &launch, &conflicts, |it| func.is_taken(it));
        for (name, buffer) in turns.values() {
            args.insert(name.clone(), Arg { zeroed: true, ..arg(buffer) });
        }
        let storing = bulk::storing(&func, stmt, &launch);
        let mut to_kernel = FuncToKernel {
            func: &func,
            storing,
            alloc_scopes: &alloc_scopes,
            shared_alloc_scopes: &shared_alloc_scopes,
            launch,
            conflicts: &conflicts,
            turns,
            maps: RefCell::default(),
            exchanged: RefCell::default(),
            given: RefCell::default(),
            refused: RefCell::default(),
        };
        let roles = roles::roles(stmt);
        let mut kernel = if roles.is_empty() {
            let body = to_kernel.body(stmt, false);
            Kernel { body, ..Kernel::new(name, to_kernel.launch) }
        } else {
            to_kernel.by_role(name, stmt, &roles)
        };
        if let Some(error) = to_kernel.refused.take() {
            return Err(error);
        }
        memory::expect_dealt_out(&kernel)?;
        bulk::align(&mut kernel.body);
        let maps = to_kernel.maps.into_inner();
        let mbarriers = bulk::mbarriers(&func, &kernel.body);
        let (args, blocks_per_sm) = (used(&kernel.body, &args), kernels::blocks_per_sm(stmt));
        let programmatic_launch = kernels::programmatic_launch(stmt, target);
        let claims = kernels::claims(stmt);
        kernels.push(Kernel { args, blocks_per_sm, programmatic_launch, maps, mbarriers, claims, ..kernel });
    }
    claims::placed(Module { name: func.name, dims: func.dims, args, kernels })
}

/// Where each temporary is allocated: at a loop or the top of its kernel, or nowhere, being a global argument.
pub(crate) type Places = IndexMap<Name, Option<Name>>;

fn args(func: &Func, places: &Places) -> IndexMap<Name, Arg> {
    let rank = |role| match role {
        Role::Input | Role::Output => 0,
        Role::Temp => 1,
    };
    let mut buffers: Vec<_> = func.buffers.iter().filter(|(name, _)| !places.contains_key(*name)).collect();
    buffers.sort_by_key(|(_, it)| rank(it.role));
    buffers.into_iter().map(|(name, it)| (name.clone(), arg(it))).collect()
}

/// A buffer as an argument of kernels.
fn arg(it: &ir::Buffer) -> Arg {
    let (shape, layout) = (it.shape.clone(), it.layout.clone());
    Arg { dtype: it.dtype, shape, layout, role: it.role, zeroed: false, below: it.below.clone() }
}

/// The arguments that a body touches, in the order of the module's, and whether it writes them.
fn used(body: &[Op], args: &IndexMap<Name, Arg>) -> IndexMap<Name, bool> {
    let mut tables = BTreeSet::new();
    for op in body {
        op.tables(&mut tables);
    }
    let mut written: BTreeMap<Name, bool> = tables.into_iter().map(|it| (it, false)).collect();
    for op in body {
        op.each_access(&mut |access, mode| {
            *written.entry(access.buffer.clone()).or_insert(false) |= mode.writes();
        });
    }
    args.keys().filter_map(|name| Some((name.clone(), *written.get(name)?))).collect()
}

struct FuncToKernel<'a> {
    func: &'a Func,
    alloc_scopes: &'a Places,
    shared_alloc_scopes: &'a Places,
    launch: IndexMap<ThreadAxis, Index>,
    conflicts: &'a cross_block::CrossBlockConflicts,
    /// For each loop whose blocks take turns the counter of those.
    turns: IndexMap<Name, (Name, ir::Buffer)>,
    /// Who starts its copies to global memory.
    storing: Participants,
    /// The tensor maps that its copies need.
    maps: RefCell<IndexMap<Name, TensorMap>>,
    /// The shared memory in which warps tell each other what they have reduced.
    exchanged: RefCell<Vec<Op>>,
    /// The names of what was made up.
    given: RefCell<Vec<Name>>,
    /// Why a block cannot be reduced by threads together.
    refused: RefCell<Option<LowerError>>,
}

impl FuncToKernel<'_> {
    /// What threads do that are launched as the kernel is, with the memory that is there for all of it.
    fn body(&self, stmt: &Stmt, is_led: bool) -> Vec<Op> {
        let bounds = self.bounds();
        let (env, under, threads, origin, ring) = Default::default();
        let scope = Scoped {
            env,
            under,
            threads,
            bounds,
            is_async: false,
            adds: false,
            led: if is_led { Led::All } else { Led::No },
            origin,
            ring,
        };
        let mut body = self.allocs(None, stmt);
        let ops = bulk::together(self.stmt(stmt, &scope));
        body.append(&mut self.exchanged.borrow_mut());
        body.extend(ops);
        body
    }

    /// What is known of dimensions and of the axes of the launch, wherever a thread is.
    fn bounds(&self) -> Bounds {
        let mut bounds = Bounds::of_dims(self.func);
        for (&axis, extent) in &self.launch {
            bounds.insert(&axis_var(axis), extent);
        }
        bounds
    }

    fn stmt(&self, stmt: &Stmt, at: &Scoped) -> Vec<Op> {
        match stmt {
            Stmt::Loop(it) => match it.kind {
                LoopKind::Bound(axis) => self.bound(it, axis, at),
                LoopKind::Serial => vec![self.plain(it, ForKind::Serial, at)],
                LoopKind::Parallel => vec![self.plain(it, ForKind::Parallel, at)],
                LoopKind::Vectorized => vec![self.plain(it, ForKind::Vectorized, at)],
                LoopKind::Unrolled => vec![self.plain(it, ForKind::Unrolled, at)],
            },
            Stmt::Block(it) => self.block(it, at),
            Stmt::Seq(stmts) => self.sequence(stmts, at),
            Stmt::Store(it) => {
                let place = it.place.map_indices(&mut |it| at.resolve(it));
                if let Some(term) = ir::added(it).filter(|_| at.adds) {
                    return vec![Op::Instr(Instr::AtomicAdd(place, at.value(term)), at.origin.clone())];
                }
                let value = at.value(&it.value);
                let it = if at.is_async { Instr::AsyncCopy } else { Instr::Store };
                vec![Op::Instr(it(place, value), at.origin.clone())]
            }
            Stmt::Instr(it) => {
                let it = it.map_indices(&mut |it| at.resolve(it));
                let leader = match it {
                    Instr::Await(_) => (at.led == Led::Waits).then_some(Participants::Block),
                    Instr::Arrive(Arrival { bytes: Some(_), .. } | Arrival { is_late: true, .. })
                    | Instr::Tcgen05(_)
                    | Instr::Commit(Group::Tcgen05)
                    | Instr::Wait(Wait { group: Group::Tcgen05, .. }) => Some(Participants::Block),
                    Instr::Arrive(_) => Some(Participants::Warp),
                    Instr::Commit(Group::Bulk) | Instr::Wait(Wait { group: Group::Bulk, .. }) => {
                        Some(self.storing)
                    }
                    _ => None,
                };
                let op = Op::Instr(it, at.origin.clone());
                let leader = leader.filter(|_| at.led != Led::All);
                vec![leader.map_or(op.clone(), |of| Op::Leader(of, vec![op]))]
            }
        }
    }

    /// Statements in order. What stands behind a loop whose blocks take turns is for the block with the last one.
    fn sequence(&self, stmts: &[Stmt], at: &Scoped) -> Vec<Op> {
        let (mut out, mut behind, mut at) = (Vec::new(), Vec::new(), at.clone());
        for stmt in stmts {
            if let Some(it) = bulk::expected(stmt) {
                at.ring = Some(Arrival { slot: at.resolve(&it.slot), ..it.clone() });
            }
            out.extend(guarded(behind.clone(), self.stmt(stmt, &at)));
            for (it, axis) in cross_block::turning(stmt, self.conflicts) {
                behind.extend(at.condition(&cross_block::is_last(it, axis)));
                at.under.push(axis);
            }
        }
        out
    }

    fn plain(&self, it: &Loop, kind: ForKind, at: &Scoped) -> Op {
        let extent = at.resolve(&it.extent);
        let mut inner = at.clone();
        inner.bounds.insert(&it.var, &extent);
        let mut body = self.allocs(Some(&it.var), &it.body);
        body.extend(self.stmt(&it.body, &inner));
        // The program of one role has only the members of that.
        let is_in_turn = it.attrs.ping_pong.is_some() && at.under.contains(&roles::MEMBER_AXIS);
        let independent = match it.attrs.is_independent {
            false => Independence::Unknown,
            true if is_in_turn => Independence::Along(roles::MEMBER_AXIS),
            true => Independence::Iterations,
        };
        Op::For(Arc::new(For { independent, ..For::new(it.var.clone(), extent, kind, body) }))
    }

    /// A bound loop is its body, guarded where the launch is wider.
    fn bound(&self, it: &Loop, axis: ThreadAxis, at: &Scoped) -> Vec<Op> {
        let mut inner = at.clone();
        let var = Index::var(&axis_var(axis));
        let is_only = it.extent.as_int() == Some(1);
        inner.env.insert(it.var.clone(), if is_only { Index::int(0) } else { var.clone() });
        inner.under.push(axis);
        inner.threads.bound.push((it.var.clone(), axis));
        let widest = self.launch[&axis] == inner.bounds.simplify(&it.extent);
        let guard = if widest { None } else { at.condition(&Less::new(var, it.extent.clone())) };
        if guard.is_some() {
            inner.bounds.insert(&axis_var(axis), &it.extent);
        }
        // Where threads reduce together, those beyond come too.
        let mut guard = guard;
        if axis.is_thread() && Self::only_reduces_together(&it.body, &inner) {
            inner.threads.pending.extend(guard.take());
        }
        inner.threads.is_divergent |= axis.is_thread() && guard.is_some();
        let mut body = self.allocs(Some(&it.var), &it.body);
        body.extend(self.stmt(&it.body, &inner));
        if let (Some((counter, _)), Some(buffers)) = (self.turns.get(&it.var), self.conflicts.get(&it.var)) {
            body = cross_block::in_turn(body, buffers, counter, (axis, &it.extent), &self.launch);
        }
        guarded(guard.into_iter().collect(), body)
    }

    fn block(&self, block: &Block, at: &Scoped) -> Vec<Op> {
        let mut inner = at.clone();
        for guard in &block.guards {
            inner.bounds.assume(&guard.subst(&|name| at.env.get(name).cloned()));
        }
        let values: Vec<_> = block.iters.iter().map(|it| inner.resolve(&it.binding)).collect();
        inner.env.extend(block.iters.iter().map(|it| it.var.clone()).zip(values.iter().cloned()));

        inner.adds = self.meets(block, CrossBlock::Atomic);
        inner.is_async |= block.attrs.mechanism == Some(Mechanism::CpAsync);
        if inner.led == Led::No && block.attrs.mechanism == Some(Mechanism::Tcgen05) {
            inner.led = Led::Waits;
        }
        let origin = &block.attrs.origin;
        inner.origin = if origin.is_unknown() { Origin::of(&block.name) } else { origin.clone() };

        let along = Self::reduced_axes(block, at);
        if !along.is_empty() {
            return self.reduce_together(block, &along, at, &inner);
        }
        let mut ops = Vec::new();
        if let Some(init) = &block.init {
            let reduces = block.iters.iter().zip(&values).filter(|(it, _)| it.kind == IterKind::Reduce);
            let first =
                reduces.filter_map(|(_, value)| inner.condition(&Less::new(value.clone(), Index::int(1))));
            ops.extend(guarded(first.collect(), self.stmt(init, &inner)));
        }
        if block.attrs.mechanism == Some(Mechanism::Tma) {
            ops.extend(self.bulk_copies(block, &inner));
        } else {
            ops.extend(self.stmt(&block.body, &inner));
        }
        if self.meets(block, CrossBlock::Semaphore) {
            ops = cross_block::started(ops);
        }
        // One thread for all is under no axis.
        let once = if at.led == Led::All { ops } else { once_only(ops, &|op| self.missing_axes(op, at)) };
        let guards = block.guards.iter().filter_map(|it| at.condition(it)).collect();
        guarded(guards, once)
    }

    /// Whether a block reduces into a buffer over blocks of threads that meet there in this way.
    fn meets(&self, block: &Block, way: CrossBlock) -> bool {
        let writes = block.writes();
        let meets = |var: &Name| {
            self.conflicts.get(var).is_some_and(|it| writes.iter().any(|write| it.contains(&write.buffer)))
        };
        let in_turn = way == CrossBlock::Semaphore;
        cross_block::reduces_over(block, |var| meets(var) && self.turns.contains_key(var) == in_turn)
    }

    /// The conditions under which one thread of those that would all do the same writes what others can see.
    fn missing_axes(&self, op: &Op, at: &Scoped) -> Vec<Less> {
        let mut scope = Scope::Local;
        if matches!(op, Op::Leader(..)) {
            return vec![];
        }
        op.each_access(&mut |access, mode| {
            if mode.writes() {
                scope = scope.min(self.func.buffers[&access.buffer].scope);
            }
        });
        // What lanes do together, all of them do.
        let by_lanes =
            matches!(op.instr().map(Instr::participants), Some(Participants::Warp | Participants::Warpgroup));
        let is_missing =
            |axis: &&ThreadAxis| !(at.under.contains(axis) || by_lanes && **axis == ThreadAxis::ThreadX);
        let missing = self.launch.keys().filter(is_missing);
        let missing = missing.filter(|axis| scope.is_shared_along(**axis));
        missing
            .filter_map(|&axis| at.condition(&Less::new(Index::var(&axis_var(axis)), Index::int(1))))
            .collect()
    }

    /// The memory whose allocation scope is this loop (or the top of the kernel), if the statement uses it.
    fn allocs(&self, alloc_scope: Option<&Name>, stmt: &Stmt) -> Vec<Op> {
        let used = memory::buffers_of(stmt);
        let here =
            self.alloc_scopes.iter().filter(|(name, at)| at.as_ref() == alloc_scope && used.contains(*name));
        let alloc = |(name, _): (&Name, &Option<Name>)| {
            let buffer = &self.func.buffers[name];
            let extent = |it: &Index| it.as_int().expect("places are given to constant sizes only");
            let (shape, layout) = (buffer.shape.iter().map(extent).collect(), buffer.layout.clone());
            let per = self.shared_alloc_scopes.get(name).cloned().flatten();
            let align = Storage::of(buffer).alignment();
            // A CPU has no clusters that this could be dealt out to.
            let scope = if self.launch.is_empty() && buffer.scope == Scope::Cluster {
                Scope::Shared
            } else {
                buffer.scope
            };
            Op::Alloc(Alloc { shape, layout, per, align, ..Alloc::new(name.clone(), buffer.dtype, 0, scope) })
        };
        here.map(alloc).collect()
    }
}

/// The statements under conditions, or as they are under none.
fn guarded(conditions: Vec<Less>, body: Vec<Op>) -> Vec<Op> {
    if conditions.is_empty() || body.is_empty() { body } else { vec![Op::If(conditions, body)] }
}

/// Puts neighbours with equal conditions under one `If`.
fn once_only(ops: Vec<Op>, conditions: &dyn Fn(&Op) -> Vec<Less>) -> Vec<Op> {
    let mut out: Vec<(Vec<Less>, Vec<Op>)> = Vec::new();
    for op in ops {
        let now = conditions(&op);
        match out.last_mut() {
            Some((last, group)) if *last == now => group.push(op),
            Some(_) | None => out.push((now, vec![op])),
        }
    }
    out.into_iter().flat_map(|(conditions, ops)| guarded(conditions, ops)).collect()
}
