//! What statements of a kernel touch of the memory that threads share.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use ir::{
    Access, Arg, DType, Effect, Index, Instr, Kernel, Layout, Less, Name, Op, Participants, Proxy, Role,
    Scope, Storage, SyncKind, ThreadAxis, arith::Bounds, axis_var,
};

/// Limits that conditions put on axes.
pub(crate) type Limits = BTreeMap<Name, i64>;

/// An access to shared or global memory, with what is known around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KernelAccess {
    pub(crate) buffer: Name,
    pub(crate) indices: Vec<Index>,
    pub(crate) lanes: u32,
    pub(crate) write: bool,
    /// The variables of the loops around, with their extents, outermost first.
    pub(crate) vars: IndexMap<Name, Index>,
    /// What holds there: the conditions around.
    pub(crate) conditions: Vec<Less>,
    /// For axes below a constant by a condition: that constant.
    pub(crate) limits: Limits,
    /// Whether it stands for the beginning or the end of the block that has the memory, and not for a statement.
    pub(crate) is_life: bool,
}

/// What conditions say of each axis: that only threads below a number come.
fn limits(conditions: &[Less]) -> Limits {
    let mut out = Limits::new();
    for less in conditions {
        if let (Some(axis), Some(limit)) = (less.lhs.as_var(), less.rhs.as_int()) {
            let known = out.entry(axis.clone()).or_insert(limit);
            *known = limit.min(*known);
        }
    }
    out
}

impl KernelAccess {
    /// The one thread of an axis that comes here, if a condition lets only one.
    pub(crate) fn only(&self, axis: &Name) -> Option<i64> {
        (self.limits.get(axis) == Some(&1)).then_some(0)
    }

    /// The touch where a condition on one of its loops holds as well.
    pub(crate) fn where_holds(mut self, var: &Name, condition: &Less) -> KernelAccess {
        if self.vars.contains_key(var) && !self.conditions.contains(condition) {
            self.conditions.push(condition.clone());
        }
        self
    }

    /// The touch in any iteration of the loops around it, but for common ones, whatever their iteration elsewhere.
    pub(crate) fn in_any_iteration(&self, common: &[Name]) -> KernelAccess {
        let fresh = |name: &Name| {
            let own = self.vars.contains_key(name) && !common.contains(name);
            own.then(|| Name::new(format!("{name}~")))
        };
        let with = |name: &Name| fresh(name).map(|it| Index::var(&it));
        let var = |name: &Name| fresh(name).unwrap_or_else(|| name.clone());
        KernelAccess {
            indices: self.indices.iter().map(|it| it.subst(&with)).collect(),
            vars: self.vars.iter().map(|(name, extent)| (var(name), extent.subst(&with))).collect(),
            conditions: self.conditions.iter().map(|it| it.subst(&with)).collect(),
            ..self.clone()
        }
    }
}

/// What is known in a kernel.
pub(crate) struct KernelFacts {
    pub(crate) dims: Vec<Name>,
    /// The axes in which the threads of a block do not differ: those of the grid, and those with one thread.
    pub(crate) common: BTreeMap<Name, Index>,
    memory: BTreeMap<Name, (Scope, Storage)>,
    read_only: BTreeSet<Name>,
    /// The buffers that some wait is there for.
    waited: BTreeSet<Name>,
    /// The buffers that threads write themselves.
    by_threads: BTreeSet<Name>,
    /// The variables of the axes that threads of a block differ in.
    threads: Vec<Name>,
    mbarriers: BTreeSet<Name>,
}

impl KernelFacts {
    pub(crate) fn new(dims: &[Name], args: &IndexMap<Name, Arg>, kernel: &Kernel) -> KernelFacts {
        let common =
            kernel.launch.iter().filter(|(axis, count)| !axis.is_thread() || count.as_int() == Some(1));
        let common = common.map(|(&axis, extent)| (axis_var(axis), extent.clone())).collect();
        let read_only = kernel.args.iter().filter(|it| !it.1).map(|it| it.0.clone()).collect();
        let args = args.iter().map(|(name, it)| (name.clone(), (Scope::Global, it.storage())));
        let mut memory: BTreeMap<_, _> = args.collect();
        memory.extend(kernel.mbarriers.iter().map(|(name, it)| {
            let shape = [Index::int(it.slots)];
            (name.clone(), (Scope::Shared, Storage::new(DType::I64, &shape, &Layout::default(), Role::Temp)))
        }));
        let (mut waited, mut by_threads) = (BTreeSet::new(), BTreeSet::new());
        for op in &kernel.body {
            op.walk(&mut |op| match op {
                Op::Alloc(it) => {
                    memory.insert(it.name.clone(), (it.scope, it.storage()));
                }
                Op::Instr(it, _) => {
                    if let Some(SyncKind::Wait(it)) = it.sync() {
                        waited.extend(it.buffers.iter().cloned());
                    }
                    it.each_effect(&mut |it| {
                        if it.proxy == Proxy::Generic && it.mode.writes() {
                            by_threads.insert(it.access.buffer.clone());
                        }
                    });
                }
                Op::For(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => {}
            });
        }
        let threads = kernel.launch.keys().filter(|it| it.is_thread()).map(|it| axis_var(*it)).collect();
        let mbarriers = kernel.mbarriers.keys().cloned().collect();
        let dims = dims.to_vec();
        KernelFacts { dims, common, memory, read_only, waited, by_threads, threads, mbarriers }
    }

    /// Whether a wait says when copies to a buffer have happened; if none does, they are as good as stores.
    pub(crate) fn is_waited_for(&self, buffer: &Name) -> bool {
        self.waited.contains(buffer)
    }

    /// Whether a variable has one value for all threads of a block, all the time.
    pub(crate) fn is_uniform(&self, name: &Name) -> bool {
        self.dims.contains(name) || self.common.contains_key(name)
    }

    /// What is known of dimensions and of the axes that the threads have in common.
    pub(crate) fn dims(&self) -> Bounds {
        let mut bounds = Bounds::default();
        self.dims.iter().for_each(|it| bounds.insert_dim(it));
        for (name, extent) in &self.common {
            bounds.insert(name, extent);
        }
        bounds
    }

    /// What is known under loops.
    pub(crate) fn bounds(&self, around: &[Op]) -> Bounds {
        let mut bounds = self.dims();
        for op in around {
            if let Op::For(it) = op {
                bounds.insert(&it.var, &it.extent);
            }
        }
        bounds
    }

    /// The touches of an instruction under the given loops and conditions: what it reads, then what it writes.
    pub(crate) fn touches(&self, op: &Op, around: &[Op]) -> Vec<KernelAccess> {
        let Op::Instr(it, _) = op else { return vec![] };
        let mut vars = IndexMap::new();
        let mut conditions: Vec<Less> = Vec::new();
        let mut of_leader: Vec<Less> = Vec::new();
        for op in around {
            match op {
                Op::For(it) => {
                    vars.insert(it.var.clone(), it.extent.clone());
                }
                Op::If(all, _) => conditions.extend(all.iter().cloned()),
                // Whoever it is, it is the same one every time: the first thread as well as any.
                Op::Leader(of, _) => {
                    let lanes = axis_var(ThreadAxis::ThreadX);
                    let is_alone = |it: &&Name| match of {
                        Participants::Cluster | Participants::Block | Participants::Role => true,
                        Participants::Warpgroup => **it == lanes,
                        // Several along the lanes, unless those are one warp.
                        Participants::Warp | Participants::Thread => false,
                    };
                    let alone = self.threads.iter().filter(is_alone);
                    of_leader.extend(alone.map(|it| Less::new(Index::var(it), Index::int(1))));
                }
                Op::Alloc(_) | Op::Instr(..) | Op::Role(..) => {}
            }
        }
        let led = [&*conditions, &of_leader].concat();
        let mut out: Vec<KernelAccess> = Vec::new();
        let everywhere = |buffer: &Name, indices, lanes, write, vars, conditions: &[Less]| KernelAccess {
            buffer: buffer.clone(),
            indices,
            lanes,
            write,
            vars,
            conditions: conditions.to_vec(),
            limits: limits(conditions),
            is_life: false,
        };
        out.extend(
            mbarrier(it).map(|(name, slot, write)| {
                everywhere(name, vec![slot.clone()], 1, write, vars.clone(), &led)
            }),
        );
        it.each_effect(&mut |Effect { access, extents, mode, proxy }| {
            if self.scope_of(access) != Scope::Local && !self.read_only.contains(&access.buffer) {
                let (mut vars, mut indices) = (vars.clone(), access.indices.clone());
                // A box is what its first element is, moved by so much in each dimension.
                let moved = indices.iter_mut().zip(extents).enumerate().filter(|it| *it.1.1 != 1);
                for (dim, (index, extent)) in moved {
                    let var = Name::new(format!("{}~{dim}", access.buffer));
                    *index = index.clone() + Index::var(&var);
                    vars.insert(var, Index::int(*extent));
                }
                // Hardware is none of the threads: not even what its leader wrote is there for it without a fence, which stands at barriers.
                let is_met = proxy == Proxy::Async && self.by_threads.contains(&access.buffer);
                let conditions = if is_met { &conditions } else { &led };
                let touch =
                    everywhere(&access.buffer, indices, access.lanes, mode.writes(), vars, conditions);
                if !out.contains(&touch) {
                    out.push(touch);
                }
            }
        });
        out
    }

    /// The place of a touch among the elements of its buffer, and how many bytes an element has.
    pub(crate) fn flat(&self, touch: &KernelAccess) -> Option<(Index, i64)> {
        let (_, storage) = self.memory.get(&touch.buffer)?;
        Some((storage.linear(&touch.indices), storage.element_bytes()))
    }

    /// Whether blocks of a cluster see a buffer as one.
    pub(crate) fn is_of_cluster(&self, buffer: &Name) -> bool {
        self.memory.get(buffer).is_some_and(|it| it.0 == Scope::Cluster)
    }

    /// Whether a buffer is in global memory.
    pub(crate) fn is_global(&self, buffer: &Name) -> bool {
        self.memory.get(buffer).is_none_or(|it| it.0 == Scope::Global)
    }

    /// Whether a name is one of mbarriers, and not of data.
    pub(crate) fn is_mbarrier(&self, name: &Name) -> bool {
        self.mbarriers.contains(name)
    }

    /// The scope of a buffer that the kernel touches.
    fn scope_of(&self, access: &Access) -> Scope {
        self.memory.get(&access.buffer).map_or(Scope::Global, |it| it.0)
    }
}

/// The mbarrier that an instruction touches, as memory, and whether it writes it: who waits reads it, and who lets its next phase
/// expect bytes writes it.
fn mbarrier(it: &Instr) -> Option<(&Name, &Index, bool)> {
    match it.sync() {
        Some(SyncKind::Await(it)) => Some((&it.barrier, &it.slot, false)),
        Some(SyncKind::Arrive(it)) if it.bytes.is_some() => Some((&it.barrier, &it.slot, true)),
        _ => None,
    }
}
