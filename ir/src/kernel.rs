//! `Kernel`: the lowered form. Launch dimensions, allocations, barriers; flat subscripts; no blocks.
//!
//! Only `lower_blocks` (in `codegen`) makes kernels out of a `Func`; passes after it map kernels to kernels and
//! printers read them.

use std::sync::{Arc, LazyLock};

use indexmap::IndexMap;

use crate::{
    DType, Index, Instr, Layout, Mbarriers, Name, Op, Role, Scope, Storage, StorageAlign, TensorMap,
    ThreadAxis,
};

/// A program ready to print: its kernels run one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// The name of the `Func` it came from.
    pub name: Name,
    /// The symbolic dimensions, passed by value to every kernel in this order.
    pub dims: Vec<Name>,
    /// The global buffers: inputs and outputs in parameter order, then the workspace that kernels share.
    pub args: IndexMap<Name, Arg>,
    /// The kernels in the order they run.
    pub kernels: Vec<Kernel>,
}

/// A global buffer as a kernel sees it: a pointer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arg {
    /// The type of its elements.
    pub dtype: DType,
    /// Its size in each dimension, over the symbolic dimensions: from the pass `flatten` on one, in elements.
    pub shape: Vec<Index>,
    /// How elements are laid out: from `flatten` on row-major.
    pub layout: Layout,
    /// Who owns it; a `Temp` is workspace that the caller allocates.
    pub role: Role,
    /// Whether the caller fills it with zeros before the first run; every run leaves it so.
    pub zeroed: bool,
    /// What each element is assumed to be less than, of an input that is a table ([`crate::Buffer::below`]).
    pub below: Option<Index>,
}

/// One launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The name of the emitted function.
    pub name: Name,
    /// The arguments it uses, by name, in the order of the module's, and whether it writes them.
    pub args: IndexMap<Name, bool>,
    /// The number of blocks (over the symbolic dimensions) or threads on each bound axis. Empty on a CPU.
    pub launch: IndexMap<ThreadAxis, Index>,
    /// How many of its blocks a multiprocessor shall be able to hold at once, if that matters: the compiler then
    /// gives each thread no more registers than that leaves it.
    pub blocks_per_sm: Option<i64>,
    /// Whether it starts before what is ahead of it in the stream has ended, and waits for that before it touches global
    /// memory: `griddepcontrol` and programmatic stream serialization.
    pub programmatic_launch: bool,
    /// Whether its indices take 64 bits on a GPU and not 32: the pass `index_width` decides it.
    pub wide: bool,
    /// The tensors that the copy engine reads and writes, by name, as parameters of the kernel.
    pub maps: IndexMap<Name, TensorMap>,
    /// The mbarriers in the shared memory of a block, by name.
    pub mbarriers: IndexMap<Name, Mbarriers>,
    /// The variable that counts for how many blocks of its grid a block has stood, where blocks take over others that have not begun
    /// ([`crate::Claim`]): 1 at first.
    pub claims: Option<Name>,
    /// The roles that the warps of a block have, in their order; none where all threads do the same. The launch has no thread
    /// axes then.
    pub roles: IndexMap<Name, WarpRole>,
    /// What each thread does.
    pub body: Vec<Op>,
}

/// Warps of a block that do something of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WarpRole {
    /// How many threads there are on each axis: whole warps in all.
    pub axes: IndexMap<ThreadAxis, i64>,
    /// How many registers each of its threads gets (`setmaxnreg`), if that is said.
    pub registers: Option<u32>,
}

impl WarpRole {
    /// How many threads it has, or as many as can be counted.
    pub fn threads(&self) -> i64 {
        self.axes.values().copied().fold(1, i64::saturating_mul)
    }
}

impl Kernel {
    /// A kernel that does nothing yet, all of whose threads do the same.
    pub fn new(name: Name, launch: IndexMap<ThreadAxis, Index>) -> Kernel {
        Kernel {
            name,
            args: IndexMap::new(),
            launch,
            blocks_per_sm: None,
            programmatic_launch: false,
            wide: false,
            maps: IndexMap::new(),
            mbarriers: IndexMap::new(),
            claims: None,
            roles: IndexMap::new(),
            body: vec![],
        }
    }

    /// How many blocks of threads the launch has on x, y and z: where there are clusters, those of all of them.
    pub fn grid(&self) -> [Index; 3] {
        ThreadAxis::GRID.map(|(clusters, blocks)| self.extent(clusters) * self.extent(blocks))
    }

    /// How many threads a block has on x, y and z: those of roles are all on x.
    pub fn block(&self) -> [Index; 3] {
        if !self.roles.is_empty() {
            return [self.threads(), 1, 1].map(Index::int);
        }
        [ThreadAxis::ThreadX, ThreadAxis::ThreadY, ThreadAxis::ThreadZ].map(|it| self.extent(it))
    }

    fn extent(&self, axis: ThreadAxis) -> Index {
        self.launch.get(&axis).cloned().unwrap_or_else(|| Index::int(1))
    }

    /// How many threads a block has, or as many as can be counted.
    pub fn threads(&self) -> i64 {
        if !self.roles.is_empty() {
            return self.roles.values().map(WarpRole::threads).fold(0, i64::saturating_add);
        }
        let axes = self.launch.iter().filter(|(axis, _)| axis.is_thread());
        axes.filter_map(|(_, extent)| extent.as_int()).fold(1, i64::saturating_mul)
    }

    /// How many blocks of threads a cluster has: 1 where there are none. The most that 64 bits count where there are more.
    pub fn cluster_blocks(&self) -> i64 {
        self.blocks_along(self.launch.keys().filter(|it| it.is_cluster()))
    }

    /// The number of a block in its cluster (PTX ISA, `%cluster_ctarank`), over the variables of the axes.
    pub fn block_in_cluster(&self) -> Index {
        let (mut out, mut step) = (Index::int(0), 1);
        for axis in ThreadAxis::GRID.map(|it| it.1) {
            let extent = self.blocks_along([&axis]);
            if extent > 1 {
                out = out + Index::var(&axis_var(axis)) * step;
            }
            step *= extent;
        }
        out
    }

    /// Whether its clusters are pairs of blocks that the tensor core can work for together: the numbers of their blocks differ in the last
    /// bit (PTX ISA, *CTA Pair*). Of larger clusters it would be several pairs.
    pub fn has_pairs(&self) -> bool {
        self.cluster_blocks() == 2 && self.blocks_along(&[ThreadAxis::ClusterX]) == 2
    }

    /// Whether two blocks compute products together in it.
    pub fn multiplies_in_pairs(&self) -> bool {
        let mut found = false;
        let is_of_pair = |it: &Instr| matches!(it, Instr::Tcgen05(it) if it.intrinsic.is_of_pair());
        self.body.iter().for_each(|op| op.each_instr(&mut |it| found |= is_of_pair(it)));
        found
    }

    /// How many blocks of threads a cluster has along some of its axes, each of which is named once.
    pub fn blocks_along<'a>(&self, axes: impl IntoIterator<Item = &'a ThreadAxis>) -> i64 {
        let extents = axes.into_iter().filter_map(|it| self.launch.get(it)?.as_int());
        extents.fold(1, i64::saturating_mul)
    }
}

/// Memory of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alloc {
    /// The name.
    pub name: Name,
    /// The type of its elements.
    pub dtype: DType,
    /// Its size in each dimension: from the pass `flatten` on one, in elements.
    pub shape: Vec<i64>,
    /// How elements are laid out: from `flatten` on row-major.
    pub layout: Layout,
    /// Which memory. `Global` is private memory of one thread of a CPU, too large for registers.
    pub scope: Scope,
    /// For shared memory, which is there for the whole kernel: the innermost loop whose every iteration fills what it reads
    /// of it. From the pass `merge_shared` on nobody wants to know.
    pub per: Option<Name>,
    /// Where it starts in the shared memory of the block, in bytes, where buffers share bytes: those that are never
    /// in use at once may overlap. Without it, a buffer has bytes of its own.
    pub offset: Option<i64>,
    /// Whether it is a variable, which has no address: the pass `promote_registers` decides it.
    pub is_register: bool,
    /// What its start in shared memory is a multiple of, in bytes: a power of two, at least 16.
    pub align: i64,
}

impl Arg {
    /// Where its elements lie.
    pub fn storage(&self) -> Storage {
        Storage::new(self.dtype, &self.shape, &self.layout, self.role)
    }

    /// How many elements it takes.
    pub fn elements(&self) -> Index {
        match &*self.shape {
            [flat] if self.layout == Layout::default() => flat.clone(),
            _ => self.storage().len,
        }
    }
}

impl Alloc {
    /// What shared buffers start at multiples of where nothing else is said: the widest vector access.
    pub const ALIGN: i64 = 16;

    /// Memory of so many elements, with nothing special about it.
    pub fn new(name: Name, dtype: DType, elements: i64, scope: Scope) -> Alloc {
        let (shape, layout) = (vec![elements], Layout::default());
        let (per, offset, is_register, align) = (None, None, false, Alloc::ALIGN);
        Alloc { name, dtype, shape, layout, scope, per, offset, is_register, align }
    }

    /// How many blocks of a cluster have a part of it, in the order of the first subscript; nothing for memory that each block, or
    /// thread, has for itself.
    pub fn blocks(&self) -> Option<i64> {
        self.shape.first().copied().filter(|_| self.scope == Scope::Cluster)
    }

    /// The dimensions that say who has an element, before those that say where he has it.
    fn owners(&self) -> usize {
        usize::from(self.blocks().is_some())
    }

    /// Where its elements lie: of memory of a cluster, those that a block has, by the subscripts behind the first.
    pub fn storage(&self) -> Storage {
        let owners = self.owners();
        let shape: Vec<_> = self.shape[owners..].iter().map(|it| Index::int(*it)).collect();
        let own = self.layout.align.iter().filter(|it| it.axis >= owners);
        let align = own.map(|it| StorageAlign { axis: it.axis - owners, ..*it }).collect();
        Storage::new(self.dtype, &shape, &Layout { align, ..self.layout.clone() }, Role::Temp)
    }

    /// How many elements it takes: of memory of a cluster, in each block.
    pub fn elements(&self) -> i64 {
        match &self.shape[self.owners()..] {
            [flat] if self.layout == Layout::default() => *flat,
            _ => self.storage().len.as_int().expect("the shape is constant"),
        }
    }
}

/// A loop from zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct For {
    /// The variable.
    pub var: Name,
    /// How often the body runs.
    pub extent: Index,
    /// How the iterations are run.
    pub kind: ForKind,
    /// Variables that go round with the iterations: the pass `ring_counters` makes them.
    pub counters: Vec<RingCounter>,
    /// Whose runs of the body do not meet in global memory.
    pub independent: Independence,
    /// What is repeated.
    pub body: Vec<Op>,
}

/// What is known of the runs of a loop's body, as was proved when each was a block of a grid.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Independence {
    /// Nothing.
    #[default]
    Unknown,
    /// Those of different iterations do not meet in global memory.
    Iterations,
    /// Nor do those of threads that differ on this axis, in whatever iterations.
    Along(ThreadAxis),
}

/// A variable of a loop that stands for a slot of a ring: `(iteration + start) mod count`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingCounter {
    /// Its name.
    pub var: Name,
    /// What it is in the first iteration.
    pub start: i64,
    /// How many slots there are: after the last comes the first.
    pub count: i64,
}

impl RingCounter {
    /// What it is in an iteration of its loop.
    pub fn slot(&self, iteration: &Index) -> Index {
        (iteration + self.start).floor_mod(&Index::int(self.count))
    }
}

impl For {
    /// A loop.
    pub const fn new(var: Name, extent: Index, kind: ForKind, body: Vec<Op>) -> For {
        For { var, extent, kind, counters: vec![], independent: Independence::Unknown, body }
    }
}

/// How the iterations of a kernel's loop are run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ForKind {
    /// One after the other; the compiler is asked to leave it a loop.
    Serial,
    /// By the threads of a CPU.
    Parallel,
    /// As lanes; the pass `vectorize` leaves none of these.
    Vectorized,
    /// Written out by the compiler (CUDA) or by the pass `unroll` (C).
    Unrolled,
}

/// The variable that stands for a thread axis in a kernel: `blockIdx_x` for `blockIdx.x`.
pub fn axis_var(axis: ThreadAxis) -> Name {
    static VARS: LazyLock<[Name; 9]> =
        LazyLock::new(|| ThreadAxis::ALL.map(|it| Name::new(it.as_str().replace('.', "_"))));
    VARS[axis as usize].clone()
}

impl Module {
    /// Rewrites the body of each kernel.
    #[must_use]
    pub fn map_bodies(mut self, f: &mut dyn FnMut(&Kernel, Vec<Op>) -> Vec<Op>) -> Module {
        for kernel in &mut self.kernels {
            let body = std::mem::take(&mut kernel.body);
            kernel.body = f(kernel, body);
        }
        self
    }
}

impl Module {
    /// The program with remainders in the place of ring counters, for those who reason about slots.
    #[must_use]
    pub fn with_remainders(self) -> Module {
        self.map_bodies(&mut |_, body| body.into_iter().map(with_remainders).collect())
    }
}

fn with_remainders(op: Op) -> Op {
    let counters = if let Op::For(it) = &op { it.counters.clone() } else { vec![] };
    let op = op.map_children(&mut |body| body.into_iter().map(with_remainders).collect());
    match op {
        Op::For(it) if !counters.is_empty() => {
            let it = Arc::unwrap_or_clone(it);
            let iteration = Index::var(&it.var);
            let slot = |name: &Name| counters.iter().find(|it| it.var == *name).map(|it| it.slot(&iteration));
            let body = it.body.iter().map(|op| op.subst(&slot)).collect();
            Op::For(Arc::new(For { counters: vec![], body, ..it }))
        }
        op => op,
    }
}
