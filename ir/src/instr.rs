//! `Instr`: what a thread of a kernel does at one place, and what that means to everything around it.
//!
//! A pass that has to know what an instruction does asks for its [`Effects`] instead of telling the variants apart. So a
//! new instruction costs its variant and its effects here, its line in the printer of texts, its line in the printer of
//! sources, its step on the virtual GPU, and the passes that it is about.

use crate::{Access, Index, Name, Value, intrin::Intrinsic};

/// An instruction of a [`Kernel`](crate::Kernel).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Instr {
    /// An assignment to `place.lanes` adjacent elements.
    Store(Access, Value),
    /// An assignment that may happen at any time from here to the [`Instr::Wait`] that it is waited for with: a copy
    /// from global to shared memory without a detour through registers (`cp.async`). The value is a load of the same
    /// type, or a [`Value::Select`] between one and zero; until the wait nobody, this thread included, may touch the
    /// place.
    AsyncCopy(Access, Value),
    /// Adds the value to the place in one step that no other thread comes between, as
    /// `place.lanes` additions of their own. The place is in global memory.
    AtomicAdd(Access, Value),
    /// What the threads of a warp compute together.
    Tensor(TensorOp),
    /// Closes the group of copies that this thread started since its last commit; the group may be empty.
    Commit,
    /// This thread waits for its own copies.
    Wait(Wait),
    /// All threads of the block wait for each other; shared and global writes before it are visible after it.
    Barrier(Barrier),
    /// The block waits for its turn among blocks that come one after the other, or ends it: a semaphore in global memory. All
    /// threads of the block wait for each other, too, as at an [`Instr::Barrier`].
    Semaphore(Semaphore),
    /// Nothing: a sentence for the reader of the emitted source.
    Comment(String),
}

/// A tensor intrinsic at work: `place = intrinsic(operands)`, all lanes of a warp together.
///
/// The accesses are each lane's part: registers of its own, or the row of a matrix whose address it gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorOp {
    /// What is computed.
    pub intrinsic: &'static Intrinsic,
    /// The registers that the result goes to.
    pub place: Access,
    /// What it is computed from, the accumulator first.
    pub operands: Vec<Access>,
}

/// Waits until all but the last `in_flight` committed groups of the thread's copies have landed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    /// How many groups, the youngest, may still be under way.
    pub in_flight: u32,
    /// The buffers that it is there for: what of them earlier groups copied is in its place afterwards.
    pub buffers: Vec<Name>,
}

/// A semaphore by which blocks that share a counter take turns (CUTLASS has one for split-k): one end of the turn of a block.
///
/// What a block did before the end of its turn, and what it knew of the blocks before it, is visible to the next one
/// from the beginning of its turn on. A block waits only for blocks that the hardware starts before it: those with a
/// smaller index on one axis, and the same on all others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Semaphore {
    /// Whether it begins or ends.
    pub kind: SemaphoreKind,
    /// Whose turn it is: an `i32` in workspace, zero before and after the kernel.
    pub counter: Access,
    /// Which turn the block has, from zero.
    pub turn: Index,
    /// How many turns there are.
    pub count: Index,
}

/// What a block does at a [`Semaphore`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SemaphoreKind {
    /// Waits until the counter says that it is its turn.
    Acquire,
    /// Sets the counter to the next turn; after the last one to zero.
    Release,
}

/// A barrier: all threads of the block wait for each other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Barrier {
    /// The dependences between threads that no other barrier orders, in words, for readers; of a barrier that somebody wrote by
    /// hand there are none.
    pub proof: Vec<String>,
}

/// What an instruction does, in the terms in which passes ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effects<'a> {
    /// What it reads and writes: the reads first.
    pub accesses: Vec<Effect<'a>>,
    /// When its writes have happened.
    pub completion: Completion,
    /// What it orders.
    pub sync: Option<SyncKind<'a>>,
    /// Who has to come to it together.
    pub participants: Participants,
}

/// An access of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect<'a> {
    /// Where.
    pub access: &'a Access,
    /// How.
    pub mode: Mode,
    /// By which way.
    pub proxy: Proxy,
}

/// What an access does to a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It reads and writes in one step, with which other such accesses have no race.
    Atomic,
}

impl Mode {
    /// Whether the place has another value afterwards.
    pub const fn writes(self) -> bool {
        match self {
            Mode::Read => false,
            Mode::Write | Mode::Atomic => true,
        }
    }
}

/// By which way an access goes to memory (PTX ISA, *Proxies*): accesses by different ways are ordered by a fence only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proxy {
    /// Loads and stores of threads, `cp.async` among them.
    Generic,
}

/// When the writes of an instruction have happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// When the thread goes on.
    AtOnce,
    /// When the thread has waited for the group that its next [`Instr::Commit`] closes.
    WithGroup,
}

/// What an instruction orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncKind<'a> {
    /// It closes the group of what the thread has under way.
    Commit,
    /// The thread waits for groups of its own.
    Wait(&'a Wait),
    /// The participants wait for each other, and see what the others wrote before.
    Barrier,
}

/// Who has to come to an instruction together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Participants {
    /// Any thread comes by itself.
    Thread,
    /// All threads of a warp.
    Warp,
    /// All threads of a block.
    Block,
}

impl Instr {
    /// A barrier that gives no reason.
    pub const fn barrier() -> Instr {
        Instr::Barrier(Barrier { proof: vec![] })
    }

    /// What it does.
    pub fn effects(&self) -> Effects<'_> {
        let mut accesses = Vec::new();
        self.each_access(&mut |access, mode| accesses.push(Effect { access, mode, proxy: Proxy::Generic }));
        let (completion, participants) = match self {
            Instr::Store(..) | Instr::AtomicAdd(..) | Instr::Commit | Instr::Wait(_) | Instr::Comment(_) => {
                (Completion::AtOnce, Participants::Thread)
            }
            Instr::AsyncCopy(..) => (Completion::WithGroup, Participants::Thread),
            Instr::Tensor(_) => (Completion::AtOnce, Participants::Warp),
            Instr::Barrier(_) | Instr::Semaphore(_) => (Completion::AtOnce, Participants::Block),
        };
        Effects { accesses, completion, sync: self.sync(), participants }
    }

    /// What it orders, for those who ask for nothing else of its effects.
    pub const fn sync(&self) -> Option<SyncKind<'_>> {
        match self {
            Instr::Commit => Some(SyncKind::Commit),
            Instr::Wait(it) => Some(SyncKind::Wait(it)),
            Instr::Barrier(_) | Instr::Semaphore(_) => Some(SyncKind::Barrier),
            Instr::Store(..)
            | Instr::AsyncCopy(..)
            | Instr::AtomicAdd(..)
            | Instr::Tensor(_)
            | Instr::Comment(_) => None,
        }
    }

    /// Whether it does nothing, and is there for readers only.
    pub fn is_remark(&self) -> bool {
        let it = self.effects();
        it.accesses.is_empty() && it.sync.is_none()
    }

    /// Calls `f` with each access to memory: what is read, then what is written.
    pub fn each_access<'a>(&'a self, f: &mut dyn FnMut(&'a Access, Mode)) {
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) => {
                value.each_load(&mut |it| f(it, Mode::Read));
                f(place, Mode::Write);
            }
            Instr::AtomicAdd(place, value) => {
                value.each_load(&mut |it| f(it, Mode::Read));
                f(place, Mode::Atomic);
            }
            Instr::Tensor(it) => {
                it.operands.iter().for_each(|it| f(it, Mode::Read));
                f(&it.place, Mode::Write);
            }
            Instr::Semaphore(it) => f(&it.counter, Mode::Atomic),
            Instr::Commit | Instr::Wait(_) | Instr::Barrier(_) | Instr::Comment(_) => {}
        }
    }

    /// Calls `f` with each index expression.
    pub fn each_index<'a>(&'a self, f: &mut dyn FnMut(&'a Index)) {
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) | Instr::AtomicAdd(place, value) => {
                place.indices.iter().for_each(&mut *f);
                value.each_index(f);
            }
            Instr::Tensor(it) => {
                it.operands.iter().chain([&it.place]).flat_map(|it| &it.indices).for_each(f);
            }
            Instr::Semaphore(it) => it.counter.indices.iter().chain([&it.turn, &it.count]).for_each(f),
            Instr::Commit | Instr::Wait(_) | Instr::Barrier(_) | Instr::Comment(_) => {}
        }
    }

    /// The instruction with every access rewritten by `f`.
    #[must_use]
    pub fn map_accesses(&self, f: &mut dyn FnMut(&Access) -> Access) -> Instr {
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) | Instr::AtomicAdd(place, value) => {
                let value = value.map_loads(&mut |it| Value::Load(f(it)));
                self.with_assignment(f(place), value)
            }
            Instr::Tensor(it) => {
                let operands = it.operands.iter().map(&mut *f).collect();
                Instr::Tensor(TensorOp { intrinsic: it.intrinsic, place: f(&it.place), operands })
            }
            Instr::Semaphore(it) => Instr::Semaphore(Semaphore { counter: f(&it.counter), ..it.clone() }),
            Instr::Commit | Instr::Wait(_) | Instr::Barrier(_) | Instr::Comment(_) => self.clone(),
        }
    }

    /// The instruction with every index expression rewritten by `f`.
    #[must_use]
    pub fn map_indices(&self, f: &mut dyn FnMut(&Index) -> Index) -> Instr {
        let mut access = |it: &Access| it.map_indices(f);
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) | Instr::AtomicAdd(place, value) => {
                let place = access(place);
                self.with_assignment(place, value.map_indices(f))
            }
            Instr::Tensor(it) => {
                let place = access(&it.place);
                let operands = it.operands.iter().map(access).collect();
                Instr::Tensor(TensorOp { intrinsic: it.intrinsic, place, operands })
            }
            Instr::Semaphore(it) => {
                let counter = access(&it.counter);
                Instr::Semaphore(Semaphore { kind: it.kind, counter, turn: f(&it.turn), count: f(&it.count) })
            }
            Instr::Commit | Instr::Wait(_) | Instr::Barrier(_) | Instr::Comment(_) => self.clone(),
        }
    }

    /// The instruction with every variable in its indices replaced where `with` answers.
    #[must_use]
    pub fn subst(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Instr {
        self.map_indices(&mut |index| index.subst(with))
    }

    /// What a store or a copy assigns or an atomic addition adds, and where.
    pub const fn assignment(&self) -> Option<(&Access, &Value)> {
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) | Instr::AtomicAdd(place, value) => {
                Some((place, value))
            }
            Instr::Tensor(_)
            | Instr::Commit
            | Instr::Wait(_)
            | Instr::Barrier(_)
            | Instr::Semaphore(_)
            | Instr::Comment(_) => None,
        }
    }

    /// The assignment with another place and value; other instructions are left as they are.
    #[must_use]
    pub fn with_assignment(&self, place: Access, value: Value) -> Instr {
        match self {
            Instr::Store(..) => Instr::Store(place, value),
            Instr::AsyncCopy(..) => Instr::AsyncCopy(place, value),
            Instr::AtomicAdd(..) => Instr::AtomicAdd(place, value),
            Instr::Tensor(_)
            | Instr::Commit
            | Instr::Wait(_)
            | Instr::Barrier(_)
            | Instr::Semaphore(_)
            | Instr::Comment(_) => self.clone(),
        }
    }

    /// What it is called in messages.
    pub const fn word(&self) -> &'static str {
        match self {
            Instr::Store(..) => "store",
            Instr::AsyncCopy(..) => "asynchronous copy",
            Instr::AtomicAdd(..) => "atomic addition",
            Instr::Tensor(it) => it.intrinsic.name,
            Instr::Commit => "commit",
            Instr::Wait(_) => "wait",
            Instr::Barrier(_) => "barrier",
            Instr::Semaphore(it) => match it.kind {
                SemaphoreKind::Acquire => "acquire",
                SemaphoreKind::Release => "release",
            },
            Instr::Comment(_) => "comment",
        }
    }
}
