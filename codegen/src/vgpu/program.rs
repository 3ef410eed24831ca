//! A kernel with its names resolved: what the machine runs. [`super::compile`] makes it.

use std::ops::Range;

use ir::{BinaryOp, DType, Fence, Group, Kernel, Name, Participants, Scope as Space, SemaphoreKind, UnaryOp};

use super::{
    bulk::{BulkCode, MapCode},
    claim::{ClaimCode, TakeCode},
    cluster::Cluster,
    index::{IndexCode, Scope, WARP},
    mbarrier::{ArriveCode, AwaitCode, MbarrierInfo},
    tcgen05::{Tcgen05Code, TensorCopyCode},
    tensor::TensorCode,
    turn::TurnCode,
    warp_reduce::WarpReduceCode,
    wgmma::WgmmaCode,
};
use crate::launch::shared_layout;

/// A kernel for given sizes.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: Name,
    pub(crate) code: Vec<Code>,
    /// The statements that findings and counters are about.
    pub(crate) sites: Vec<Site>,
    /// Arguments, then allocations.
    pub(crate) buffers: Vec<Buffer>,
    /// The accesses to memory that others see.
    pub(crate) places: Vec<PlaceInfo>,
    pub(crate) scope: Scope,
    pub(crate) slots: usize,
    /// The blocks that run together: one, or those of a cluster.
    pub(crate) cluster: Cluster,
    /// Whether two of them compute products together.
    pub(crate) multiplies_in_pairs: bool,
    /// How many clusters there are on each axis, and how many threads a block has there.
    pub(crate) grid: [i64; 3],
    pub(crate) block: [i64; 3],
    /// The lines of the kernel's text.
    pub(crate) lines: Vec<String>,
    /// The roles, in the order of their threads; one without a name where all threads do the same.
    pub(crate) roles: Vec<RoleInfo>,
    pub(crate) mbarriers: Vec<MbarrierInfo>,
    /// The loops that warpgroups run in turn.
    pub(crate) turns: Vec<Name>,
    pub(crate) maps: Vec<MapCode>,
    /// The slot of the variable that counts for how many blocks one stands.
    pub(crate) claims: Option<usize>,
    /// The products that warpgroups come to together: the statement and the intrinsic.
    pub(crate) products: Vec<(u32, &'static str)>,
    /// Whether warps have to be able to stop anywhere: it is for the engine of [`super::step`].
    pub(crate) resumes: bool,
}

/// Threads that do the same.
#[derive(Debug)]
pub(crate) struct RoleInfo {
    pub(crate) name: Option<Name>,
    pub(crate) threads: Range<usize>,
    /// How many there are on each axis.
    pub(crate) axes: [i64; 3],
}

/// A statement.
#[derive(Debug)]
pub(crate) struct Site {
    /// Its line, from 1.
    pub(crate) line: usize,
    /// The loops around it, and in how many bits of a stamp their variables are.
    pub(crate) loops: Vec<(Name, u32)>,
}

/// An access to shared or global memory.
#[derive(Debug)]
pub(crate) struct PlaceInfo {
    pub(crate) site: u32,
    pub(crate) buffer: usize,
    pub(crate) writes: bool,
    /// The bytes that one thread touches.
    pub(crate) width: i64,
}

/// Memory of a kernel.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) name: Name,
    pub(crate) dtype: DType,
    pub(crate) len: usize,
    pub(crate) space: Space,
    /// Where it starts in the shared memory of the block, in bytes; 0 for other memory, which starts at a multiple of
    /// every alignment.
    pub(crate) start: i64,
    /// Which of the module's arguments it is, and whether the kernel writes it.
    pub(crate) arg: Option<(usize, bool)>,
    /// Other buffers that have bytes in common with it, and by how many bytes they start later.
    pub(crate) aliases: Vec<(usize, i64)>,
}

#[derive(Debug)]
pub(crate) enum Code {
    Alloc(usize),
    For(Box<ForCode>),
    If(Box<IfCode>),
    Store(u32, Elements, ValueCode),
    Copy(u32, Elements, CopyCode),
    Commit,
    Wait(usize),
    Barrier(u32, Participants),
    AtomicAdd(u32, Elements, ValueCode),
    Semaphore(Box<SemaphoreCode>),
    Tensor(u32, Elements, Box<TensorCode>),
    WarpReduce(u32, Elements, Box<WarpReduceCode>),
    Leader(Box<LeaderCode>),
    /// The number of the role, and what it does.
    Role(usize, Vec<Code>),
    Async(u32, Box<AsyncCode>),
}

/// What one thread does for others.
#[derive(Debug)]
pub(crate) struct LeaderCode {
    pub(crate) of: Participants,
    pub(crate) body: Vec<Code>,
    /// Whether a warp may stop inside.
    pub(crate) meets: bool,
}

/// What deals with agents beside the threads.
#[derive(Debug)]
pub(crate) enum AsyncCode {
    Bulk(BulkCode),
    Claim(ClaimCode),
    Take(TakeCode),
    Wgmma(Box<WgmmaCode>),
    Tcgen05(Box<Tcgen05Code>),
    TensorCopy(Box<TensorCopyCode>),
    /// Of bulk copies, or of products.
    Commit(Group),
    Wait {
        group: Group,
        in_flight: usize,
        reads_only: bool,
    },
    Await(AwaitCode),
    Arrive(ArriveCode),
    Fence(Fence),
    Turn(TurnCode),
}

/// The beginning or the end of a block's turn. All indices are the same for all threads.
#[derive(Debug)]
pub(crate) struct SemaphoreCode {
    pub(crate) site: u32,
    pub(crate) kind: SemaphoreKind,
    pub(crate) buffer: usize,
    pub(crate) index: IndexCode,
    pub(crate) turn: IndexCode,
    pub(crate) count: IndexCode,
}

#[derive(Debug)]
pub(crate) struct ForCode {
    pub(crate) site: u32,
    pub(crate) slot: usize,
    /// The variables that go round with the iterations.
    pub(crate) counters: Vec<CounterCode>,
    pub(crate) bits: u32,
    pub(crate) extent: IndexCode,
    pub(crate) body: Vec<Code>,
    /// Whether there is a barrier inside.
    pub(crate) meets: bool,
    /// Whether there is something inside that a warp does together.
    pub(crate) converges: bool,
    /// Whether there are more iterations as often as a block is taken over inside.
    pub(crate) grows: bool,
}

impl ForCode {
    /// Sets the variables of the loop at the beginning of an iteration; counters go on from the one before.
    pub(crate) fn begin(&self, iteration: i64, slots: &mut [i64]) {
        slots[self.slot] = iteration;
        for CounterCode { slot, start, count } in &self.counters {
            let next = slots[*slot] + 1;
            let going_on = if next == *count { 0 } else { next };
            slots[*slot] = if iteration == 0 { *start } else { going_on };
        }
    }

    /// The stamp of an iteration.
    pub(crate) fn stamp(&self, outside: u64, iteration: i64) -> u64 {
        let iteration = iteration.cast_unsigned() & ((1 << self.bits.min(63)) - 1);
        outside.checked_shl(self.bits).unwrap_or(0) | iteration
    }
}

/// A ring counter: where it is, where it begins, and how many slots there are.
#[derive(Debug)]
pub(crate) struct CounterCode {
    pub(crate) slot: usize,
    pub(crate) start: i64,
    pub(crate) count: i64,
}

#[derive(Debug)]
pub(crate) struct IfCode {
    pub(crate) site: u32,
    pub(crate) cond: Vec<LessCode>,
    pub(crate) body: Vec<Code>,
    pub(crate) meets: bool,
    pub(crate) converges: bool,
}

/// What an asynchronous copy assigns.
#[derive(Debug)]
pub(crate) enum CopyCode {
    /// What is in memory when it lands, where the conditions hold, else the value.
    Source(Vec<LessCode>, Elements, ValueCode),
    /// Anything else, which is computed at once.
    Value(ValueCode),
}

#[derive(Debug)]
pub(crate) struct LessCode {
    pub(crate) lhs: IndexCode,
    pub(crate) rhs: IndexCode,
}

/// Adjacent elements of a buffer.
#[derive(Debug)]
pub(crate) struct Elements {
    pub(crate) buffer: usize,
    pub(crate) index: IndexCode,
    pub(crate) lanes: u32,
    /// What its first byte must be at a multiple of: a power of two, 1 where nothing is asked.
    pub(crate) align: i64,
    /// Its number among the accesses that are counted; `u32::MAX` for local memory.
    pub(crate) counted: u32,
}

#[derive(Debug)]
pub(crate) enum ValueCode {
    Const(f64),
    Load(Elements),
    Index(DType, IndexCode),
    Cast(DType, DType, Box<ValueCode>),
    Unary(UnaryOp, DType, Box<ValueCode>),
    Binary(BinaryOp, DType, Box<[ValueCode; 2]>),
    Select(Vec<LessCode>, Box<[ValueCode; 2]>),
    Where(Box<[ValueCode; 3]>),
}

impl Program {
    /// How many threads a block has.
    pub(crate) fn threads(&self) -> usize {
        usize::try_from(self.block.iter().product::<i64>()).expect("it is positive")
    }

    /// How many mbarriers a block has.
    pub(crate) fn mbarriers_of_block(&self) -> usize {
        self.mbarriers.iter().map(|it| it.slots).sum()
    }

    /// The role of a thread.
    pub(crate) fn role(&self, thread: usize) -> &RoleInfo {
        let thread = self.cluster.in_block(thread);
        let found = self.roles.iter().find(|it| it.threads.contains(&thread));
        found.unwrap_or(&self.roles[0])
    }

    /// The threads that come to something together with those of a warp.
    pub(crate) fn team(&self, base: usize, of: Participants) -> Range<usize> {
        let of_block = self.cluster.block_of(base) * self.cluster.stride;
        let own = &self.role(base).threads;
        let role = of_block + own.start..of_block + own.end;
        let part = |size: usize| {
            let first = role.start + (base - role.start) / size * size;
            first..(first + size).min(role.end)
        };
        match of {
            Participants::Thread | Participants::Warp => part(WARP),
            Participants::Warpgroup => part(4 * WARP),
            Participants::Role => role,
            Participants::Block => of_block..of_block + self.threads(),
            Participants::Cluster => 0..self.cluster.count(),
        }
    }
}

impl Code {
    /// Whether there is a barrier in it, or something else that a warp has to wait for.
    pub(crate) fn meets(&self) -> bool {
        match self {
            Code::Barrier(..) | Code::Semaphore(_) | Code::Role(..) => true,
            Code::For(it) => it.meets,
            Code::If(it) => it.meets,
            Code::Leader(it) => it.meets,
            Code::Async(_, it) => match &**it {
                AsyncCode::Await(_) => true,
                AsyncCode::Turn(it) => it.kind == SemaphoreKind::Acquire,
                _ => false,
            },
            Code::Alloc(_)
            | Code::Store(..)
            | Code::Copy(..)
            | Code::AtomicAdd(..)
            | Code::Tensor(..)
            | Code::WarpReduce(..)
            | Code::Commit
            | Code::Wait(_) => false,
        }
    }

    /// How many elements each thread assigns by itself.
    pub(crate) fn assigned(&self) -> u64 {
        match self {
            Code::Store(_, place, _)
            | Code::Copy(_, place, _)
            | Code::AtomicAdd(_, place, _)
            | Code::Tensor(_, place, _)
            | Code::WarpReduce(_, place, _) => place.lanes.into(),
            Code::Async(_, it) => match &**it {
                AsyncCode::Wgmma(it) => it.place.lanes.into(),
                _ => 0,
            },
            Code::Alloc(_)
            | Code::For(_)
            | Code::If(_)
            | Code::Leader(_)
            | Code::Role(..)
            | Code::Commit
            | Code::Wait(_)
            | Code::Barrier(..)
            | Code::Semaphore(_) => 0,
        }
    }

    /// Whether there is something in it that a warp does together.
    pub(crate) fn converges(&self) -> bool {
        match self {
            Code::Tensor(..) | Code::WarpReduce(..) => true,
            Code::For(it) => it.converges,
            Code::If(it) => it.converges,
            Code::Alloc(_)
            | Code::Store(..)
            | Code::Copy(..)
            | Code::AtomicAdd(..)
            | Code::Commit
            | Code::Wait(_)
            | Code::Barrier(..)
            | Code::Leader(_)
            | Code::Role(..)
            | Code::Async(..)
            | Code::Semaphore(_) => false,
        }
    }
}

/// Finds where shared buffers start, and which of them have bytes in common.
pub(crate) fn place_shared(kernel: &Kernel, buffers: &mut [Buffer]) {
    let (offsets, _) = shared_layout(kernel);
    let range = |it: &Buffer| {
        let start = *offsets.get(&it.name).filter(|_| it.space.is_of_blocks())?;
        Some((start, start + i64::try_from(it.len * it.dtype.bytes()).ok()?))
    };
    let ranges: Vec<_> = buffers.iter().map(range).collect();
    for (at, buffer) in buffers.iter_mut().enumerate() {
        let Some((start, end)) = ranges[at] else { continue };
        buffer.start = start;
        let others = ranges.iter().enumerate().filter(|it| it.0 != at);
        let common = |(other, range): (usize, &Option<(i64, i64)>)| {
            range.filter(|it| it.0 < end && start < it.1).map(|it| (other, it.0 - start))
        };
        buffer.aliases = others.filter_map(common).collect();
    }
}
