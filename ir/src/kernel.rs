//! `Kernel`: the lowered form. Launch dimensions, allocations, barriers; flat subscripts; no blocks.
//!
//! Only `lower_blocks` (in `codegen`) makes kernels out of a `Func`; passes after it map kernels to kernels and
//! printers read them.

use std::sync::{Arc, LazyLock};

use indexmap::IndexMap;

use crate::{Access, DType, Index, Less, Name, Role, Scope, ThreadAxis, Value};

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
    /// How many elements, over the symbolic dimensions.
    pub len: Index,
    /// Who owns it; a `Temp` is workspace that the caller allocates.
    pub role: Role,
    /// Whether the caller fills it with zeros before the first run; every run leaves it so.
    pub zeroed: bool,
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
    /// What each thread does.
    pub body: Vec<Op>,
}

/// A statement of a kernel. Thread axes are variables with the names of [`axis_var`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// Memory that exists for the rest of the list it stands in (`Shared`: one for the block, at the top).
    Alloc(Alloc),
    /// A loop.
    For(Arc<For>),
    /// A list of statements under conditions that must all hold.
    If(Vec<Less>, Vec<Op>),
    /// An assignment to `place.lanes` adjacent elements.
    Store(Access, Value),
    /// An assignment that may happen at any time from here to the [`Op::Wait`] that it is waited for with: a copy
    /// from global to shared memory without a detour through registers. The value is a load of the same type, or a
    /// [`Value::Select`] between one and zero; until the wait nobody, this thread included, may touch the place.
    Copy(Access, Value),
    /// Closes the group of copies that this thread started since its last commit; the group may be empty.
    Commit,
    /// This thread waits for its own copies.
    Wait(Wait),
    /// All threads of the block wait for each other; shared and global writes before it are visible after it.
    Barrier,
    /// Adds the value to the place in one step that no other thread comes between, as
    /// `place.lanes` additions of their own. The place is in global memory.
    AtomicAdd(Access, Value),
    /// The block waits for its turn among blocks that come one after the other, or ends it. All threads of the block
    /// wait for each other, too, as at a [`Op::Barrier`].
    Turn(Turn),
    /// A sentence for the reader of the emitted source.
    Comment(String),
}

/// Waits until all but the last `in_flight` committed groups of the thread's copies have landed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    /// How many groups, the youngest, may still be under way.
    pub in_flight: u32,
    /// The buffers that it is there for: what of them earlier groups copied is in its place afterwards.
    pub buffers: Vec<Name>,
}

/// The turn of a block among those that share a counter.
///
/// What a block did before the end of its turn, and what it knew of the blocks before it, is visible to the next one
/// from the beginning of its turn on. A block waits only for blocks that the hardware starts before it: those with a
/// smaller index on one axis, and the same on all others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Whether it begins or ends.
    pub kind: TurnKind,
    /// Whose turn it is: an `i32` in workspace, zero before and after the kernel.
    pub counter: Access,
    /// Which turn the block has, from zero.
    pub turn: Index,
    /// How many turns there are.
    pub count: Index,
}

/// What a block does at a [`Turn`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TurnKind {
    /// Waits until the counter says that it is its turn.
    Acquire,
    /// Sets the counter to the next turn; after the last one to zero.
    Release,
}

/// Memory of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alloc {
    /// The name.
    pub name: Name,
    /// The type of its elements.
    pub dtype: DType,
    /// How many elements: a constant.
    pub len: i64,
    /// Which memory. `Global` is private memory of one thread of a CPU, too large for registers.
    pub scope: Scope,
    /// Where it starts in the shared memory of the block, in bytes, where buffers share bytes: those that are never
    /// in use at once may overlap. Without it, a buffer has bytes of its own.
    pub offset: Option<i64>,
    /// What its start in shared memory is a multiple of, in bytes: a power of two, at least 16.
    pub align: i64,
}

impl Alloc {
    /// What shared buffers start at multiples of where nothing else is said: the widest vector access.
    pub const ALIGN: i64 = 16;
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
    /// What is repeated.
    pub body: Vec<Op>,
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
    static VARS: LazyLock<[Name; 6]> =
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

impl Op {
    /// Calls `f` with this statement and each one below it, outer before inner, in program order.
    pub fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Op)) {
        f(self);
        match self {
            Op::For(it) => it.body.iter().for_each(|op| op.walk(f)),
            Op::If(_, body) => body.iter().for_each(|op| op.walk(f)),
            Op::Alloc(_)
            | Op::Store(..)
            | Op::Copy(..)
            | Op::Commit
            | Op::Wait(_)
            | Op::Barrier
            | Op::AtomicAdd(..)
            | Op::Turn(_)
            | Op::Comment(_) => {}
        }
    }

    /// The statement without the statements below it.
    #[must_use]
    pub fn head(&self) -> Op {
        match self {
            Op::For(it) => {
                let For { var, extent, kind, body: _ } = &**it;
                Op::For(Arc::new(For { var: var.clone(), extent: extent.clone(), kind: *kind, body: vec![] }))
            }
            Op::If(conditions, _) => Op::If(conditions.clone(), vec![]),
            Op::Alloc(_)
            | Op::Store(..)
            | Op::Copy(..)
            | Op::Commit
            | Op::Wait(_)
            | Op::Barrier
            | Op::AtomicAdd(..)
            | Op::Turn(_)
            | Op::Comment(_) => self.clone(),
        }
    }

    /// What a store or a copy assigns or an atomic addition adds, and where.
    pub const fn assignment(&self) -> Option<(&Access, &Value)> {
        match self {
            Op::Store(place, value) | Op::Copy(place, value) | Op::AtomicAdd(place, value) => {
                Some((place, value))
            }
            Op::Alloc(_)
            | Op::For(_)
            | Op::If(..)
            | Op::Commit
            | Op::Wait(_)
            | Op::Barrier
            | Op::Turn(_)
            | Op::Comment(_) => None,
        }
    }

    /// The assignment with another place and value; other statements are left as they are.
    #[must_use]
    pub fn with_assignment(&self, place: Access, value: Value) -> Op {
        match self {
            Op::Store(..) => Op::Store(place, value),
            Op::Copy(..) => Op::Copy(place, value),
            Op::AtomicAdd(..) => Op::AtomicAdd(place, value),
            Op::Alloc(_)
            | Op::For(_)
            | Op::If(..)
            | Op::Commit
            | Op::Wait(_)
            | Op::Barrier
            | Op::Turn(_)
            | Op::Comment(_) => self.clone(),
        }
    }

    /// The statement with every index expression in it rewritten by `f`.
    #[must_use]
    pub fn map_indices(&self, f: &mut dyn FnMut(&Index) -> Index) -> Op {
        match self {
            Op::Alloc(_) | Op::Commit | Op::Wait(_) | Op::Barrier | Op::Comment(_) => self.clone(),
            Op::For(it) => Op::For(Arc::new(For {
                extent: f(&it.extent),
                body: it.body.iter().map(|op| op.map_indices(f)).collect(),
                ..For::clone(it)
            })),
            Op::If(cond, body) => Op::If(
                cond.iter().map(|it| Less::new(f(&it.lhs), f(&it.rhs))).collect(),
                body.iter().map(|op| op.map_indices(f)).collect(),
            ),
            Op::Store(place, value) | Op::Copy(place, value) | Op::AtomicAdd(place, value) => {
                let indices = place.indices.iter().map(&mut *f).collect();
                self.with_assignment(Access { indices, ..place.clone() }, value.map_indices(f))
            }
            Op::Turn(it) => {
                let indices = it.counter.indices.iter().map(&mut *f).collect();
                let counter = Access { indices, ..it.counter.clone() };
                Op::Turn(Turn { kind: it.kind, counter, turn: f(&it.turn), count: f(&it.count) })
            }
        }
    }

    /// The statement with every variable in its indices replaced where `with` answers.
    #[must_use]
    pub fn subst(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Op {
        self.map_indices(&mut |index| index.subst(with))
    }
}
