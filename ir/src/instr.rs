//! `Instr`: what a thread of a kernel does at one place, and what that means to everything around it.
//!
//! A pass that has to know what an instruction does asks for its [`Effects`] instead of telling the variants apart. So a
//! new instruction costs its variant and its effects here, its line in the printer of texts, its line in the printer of
//! sources, its step on the virtual GPU, and the passes that it is about.

mod rewrite;

use crate::{
    Access, Arrival, Barrier, BulkCopy, BulkKind, Claim, Completion, Effect, Effects, Factor, Fence, Fill,
    Group, Mode, Participants, Phase, Proxy, Semaphore, SyncKind, Take, Tcgen05, Tile, Turn, Value, Wait,
    WarpReduce, Wgmma, intrin::Intrinsic,
};

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
    /// What lanes of a warp reduce together.
    WarpReduce(WarpReduce),
    /// What a warpgroup computes together, while it goes on: until it has waited, nobody may touch the place.
    Wgmma(Wgmma),
    /// What the tensor core computes for a thread, while all go on.
    Tcgen05(Box<Tcgen05>),
    /// A copy of a box, which the copy engine makes while the thread goes on.
    Bulk(BulkCopy),
    /// A claim for the work of a block that has not begun, which the GPU answers while the thread goes on.
    Claim(Claim),
    /// The thread stands for the block that an answer names, if it names one.
    Take(Take),
    /// Closes the group of what this thread started of a kind since its last commit; the group may be empty.
    Commit(Group),
    /// This thread waits for groups of its own.
    Wait(Wait),
    /// The participants wait for each other; shared and global writes before it are visible after it.
    Barrier(Barrier),
    /// The thread waits until a phase of an mbarrier is over: what counted for it is visible then.
    Await(Phase),
    /// The thread arrives at an mbarrier, and may say how many bytes the phase waits for besides.
    Arrive(Arrival),
    /// What the thread did comes before what it does by another proxy.
    Fence(Fence),
    /// The block waits for its turn among blocks that come one after the other, or ends it: a semaphore in global memory. All
    /// threads of the block wait for each other, too, as at an [`Instr::Barrier`].
    Semaphore(Semaphore),
    /// The warpgroup waits for its turn among those of its role, or ends it.
    Turn(Turn),
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

impl Instr {
    /// A barrier of the block that gives no reason.
    pub const fn barrier() -> Instr {
        Instr::Barrier(Barrier { among: Participants::Block, proof: vec![] })
    }

    /// What it does.
    pub fn effects(&self) -> Effects<'_> {
        let mut accesses = Vec::new();
        self.each_effect(&mut |it| accesses.push(it));
        Effects {
            accesses,
            completion: self.completion(),
            sync: self.sync(),
            participants: self.participants(),
        }
    }

    /// When its accesses have happened.
    pub const fn completion(&self) -> Completion {
        match self {
            Instr::AsyncCopy(..) => Completion::WithGroup(Group::CpAsync),
            Instr::Wgmma(_) => Completion::WithGroup(Group::Wgmma),
            Instr::Tcgen05(_) => Completion::WithGroup(Group::Tcgen05),
            Instr::Bulk(BulkCopy { kind: BulkKind::Load { .. }, .. }) | Instr::Claim(_) => {
                Completion::WithPhase
            }
            Instr::Bulk(_) => Completion::WithGroup(Group::Bulk),
            Instr::Store(..)
            | Instr::AtomicAdd(..)
            | Instr::Tensor(_)
            | Instr::WarpReduce(_)
            | Instr::Take(_)
            | Instr::Commit(_)
            | Instr::Wait(_)
            | Instr::Barrier(_)
            | Instr::Await(_)
            | Instr::Arrive(_)
            | Instr::Fence(_)
            | Instr::Semaphore(_)
            | Instr::Turn(_)
            | Instr::Comment(_) => Completion::AtOnce,
        }
    }

    /// Who has to come to it together.
    pub const fn participants(&self) -> Participants {
        match self {
            Instr::Tensor(_) | Instr::WarpReduce(_) => Participants::Warp,
            Instr::Wgmma(_)
            | Instr::Commit(Group::Wgmma)
            | Instr::Wait(Wait { group: Group::Wgmma, .. })
            | Instr::Fence(Fence::Wgmma)
            | Instr::Turn(_) => Participants::Warpgroup,
            Instr::Barrier(it) => it.among,
            Instr::Semaphore(_) => Participants::Block,
            Instr::Store(..)
            | Instr::AsyncCopy(..)
            | Instr::AtomicAdd(..)
            | Instr::Tcgen05(_)
            | Instr::Bulk(_)
            | Instr::Claim(_)
            | Instr::Take(_)
            | Instr::Commit(_)
            | Instr::Wait(_)
            | Instr::Await(_)
            | Instr::Arrive(_)
            | Instr::Fence(_)
            | Instr::Comment(_) => Participants::Thread,
        }
    }

    /// What it orders, for those who ask for nothing else of its effects.
    pub const fn sync(&self) -> Option<SyncKind<'_>> {
        match self {
            Instr::Commit(group) => Some(SyncKind::Commit(*group)),
            Instr::Wait(it) => Some(SyncKind::Wait(it)),
            Instr::Barrier(_) | Instr::Semaphore(_) => Some(SyncKind::Barrier),
            Instr::Await(it) => Some(SyncKind::Await(it)),
            Instr::Arrive(it) => Some(SyncKind::Arrive(it)),
            Instr::Fence(it) => Some(SyncKind::Fence(*it)),
            Instr::Turn(it) => Some(SyncKind::Turn(it)),
            Instr::Store(..)
            | Instr::AsyncCopy(..)
            | Instr::AtomicAdd(..)
            | Instr::Tensor(_)
            | Instr::WarpReduce(_)
            | Instr::Wgmma(_)
            | Instr::Tcgen05(_)
            | Instr::Bulk(_)
            | Instr::Claim(_)
            | Instr::Take(_)
            | Instr::Comment(_) => None,
        }
    }

    /// What it brings to shared memory for a phase of an mbarrier, if it does.
    pub fn fill(&self) -> Option<Fill<'_>> {
        match self {
            Instr::Bulk(BulkCopy {
                kind: BulkKind::Load { barrier, slot, along, at_first }, shared, ..
            }) => {
                let (place, extents) = (&shared.first, &*shared.extents);
                Some(Fill { barrier, slot, along: *along, at_first: *at_first, place, extents })
            }
            Instr::Claim(Claim { answer: place, barrier, slot }) => {
                Some(Fill { barrier, slot, along: None, at_first: false, place, extents: &[] })
            }
            _ => None,
        }
    }

    /// Whether it does nothing, and is there for readers only.
    pub const fn is_remark(&self) -> bool {
        matches!(self, Instr::Comment(_))
    }

    /// Calls `f` with each access to memory and how it is made: what is read, then what is written.
    pub fn each_effect<'a>(&'a self, f: &mut dyn FnMut(Effect<'a>)) {
        let element = |access, mode| Effect { access, extents: &[], mode, proxy: Proxy::Generic };
        let tile = |it: &'a Tile, mode| Effect {
            access: &it.first,
            extents: &it.extents,
            mode,
            proxy: Proxy::Async,
        };
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) => {
                value.each_load(&mut |it| f(element(it, Mode::Read)));
                f(element(place, Mode::Write));
            }
            Instr::AtomicAdd(place, value) => {
                value.each_load(&mut |it| f(element(it, Mode::Read)));
                f(element(place, Mode::Atomic));
            }
            Instr::Tensor(it) => {
                it.operands.iter().for_each(|it| f(element(it, Mode::Read)));
                f(element(&it.place, Mode::Write));
            }
            Instr::WarpReduce(it) => {
                f(element(&it.operand, Mode::Read));
                f(element(&it.place, Mode::Write));
            }
            Instr::Wgmma(it) => {
                if it.starts.as_ref().is_none_or(|it| !it.is_empty()) {
                    f(element(&it.place, Mode::Read));
                }
                match &it.left {
                    Factor::Shared(it) => f(tile(it, Mode::Read)),
                    Factor::Registers(it) => f(element(it, Mode::Read)),
                }
                f(tile(&it.right, Mode::Read));
                f(element(&it.place, Mode::Write));
            }
            Instr::Tcgen05(it) => it.touched().for_each(|(of, mode)| f(tile(of, mode))),
            Instr::Bulk(it) => {
                let (from, to) = it.kind.modes();
                let global = |mode| Effect { access: &it.global, mode, ..tile(&it.shared, mode) };
                match it.kind {
                    BulkKind::Load { .. } => [global(from), tile(&it.shared, to)].map(f),
                    BulkKind::Store | BulkKind::Add => [tile(&it.shared, from), global(to)].map(f),
                };
            }
            Instr::Claim(it) => {
                f(Effect { access: &it.answer, extents: &[], mode: Mode::Write, proxy: Proxy::Async });
            }
            Instr::Take(it) => f(element(&it.answer, Mode::Read)),
            Instr::Semaphore(it) => f(element(&it.counter, Mode::Atomic)),
            Instr::Commit(_)
            | Instr::Wait(_)
            | Instr::Barrier(_)
            | Instr::Await(_)
            | Instr::Arrive(_)
            | Instr::Fence(_)
            | Instr::Turn(_)
            | Instr::Comment(_) => {}
        }
    }

    /// Calls `f` with each access to memory: what is read, then what is written.
    pub fn each_access<'a>(&'a self, f: &mut dyn FnMut(&'a Access, Mode)) {
        self.each_effect(&mut |it| f(it.access, it.mode));
    }

    /// What a store or a copy assigns or an atomic addition adds, and where.
    pub const fn assignment(&self) -> Option<(&Access, &Value)> {
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) | Instr::AtomicAdd(place, value) => {
                Some((place, value))
            }
            _ => None,
        }
    }

    /// The assignment with another place and value; other instructions are left as they are.
    #[must_use]
    pub fn with_assignment(&self, place: Access, value: Value) -> Instr {
        match self {
            Instr::Store(..) => Instr::Store(place, value),
            Instr::AsyncCopy(..) => Instr::AsyncCopy(place, value),
            Instr::AtomicAdd(..) => Instr::AtomicAdd(place, value),
            _ => self.clone(),
        }
    }

    /// What it is called in messages.
    pub fn word(&self) -> &'static str {
        match self {
            Instr::Store(..) => "store",
            Instr::AsyncCopy(..) => "asynchronous copy",
            Instr::AtomicAdd(..) => "atomic addition",
            Instr::Tensor(it) => it.intrinsic.name,
            Instr::WarpReduce(it) => it.word(),
            Instr::Wgmma(it) => it.intrinsic.name,
            Instr::Tcgen05(it) => it.intrinsic.name,
            Instr::Bulk(_) => "bulk copy",
            Instr::Claim(_) => "claim",
            Instr::Take(_) => "take",
            Instr::Commit(_) => "commit",
            Instr::Wait(_) => "wait",
            Instr::Barrier(_) => "barrier",
            Instr::Await(_) => "await",
            Instr::Arrive(Arrival { bytes: Some(_), .. }) => "expect",
            Instr::Arrive(_) => "arrive",
            Instr::Fence(_) => "fence",
            Instr::Semaphore(Semaphore { kind, .. }) | Instr::Turn(Turn { kind, .. }) => kind.as_str(),
            Instr::Comment(_) => "comment",
        }
    }
}
