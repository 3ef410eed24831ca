//! Blocks that run together: the threads of a cluster, numbered through, and what comes from one of its blocks to another.

use std::collections::BTreeMap;

use ir::{Access, Index, Participants, Scope as Space};

use super::{
    exec::{Machine, Mask},
    findings::Finding,
    index::WARP,
    shadow::Mark,
    tell::{ENDED, UNBEGUN},
};

/// The blocks of a cluster. Their threads are numbered through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cluster {
    /// How many there are on each axis.
    pub(crate) axes: [i64; 3],
    /// How far apart the first threads of neighbours are: whole warps.
    pub(crate) stride: usize,
}

impl Cluster {
    /// How many blocks there are.
    pub(crate) fn blocks(&self) -> usize {
        usize::try_from(self.axes.iter().product::<i64>()).expect("the compiler has looked that they are few")
    }

    /// How many numbers of threads there are.
    pub(crate) fn count(&self) -> usize {
        self.blocks() * self.stride
    }

    /// The block of a thread.
    pub(crate) const fn block_of(&self, thread: usize) -> usize {
        thread / self.stride
    }

    /// The number of a thread in its block.
    pub(crate) const fn in_block(&self, thread: usize) -> usize {
        thread % self.stride
    }

    /// Where a block is on each axis.
    pub(crate) fn place(&self, block: usize) -> [i64; 3] {
        let ([x, y, _], block) = (self.axes, i64::try_from(block).expect("blocks are few"));
        [block % x, block / x % y, block / x / y]
    }

    /// The blocks that differ from one along some axes at most, by number.
    pub(crate) fn along(&self, block: usize, axes: &[usize]) -> Vec<usize> {
        let own = self.place(block);
        let is_along = |other: &usize| {
            let place = self.place(*other);
            (0..3).all(|axis| axes.contains(&axis) || place[axis] == own[axis])
        };
        (0..self.blocks()).filter(is_along).collect()
    }
}

/// What was done in other blocks of a cluster than that of who did it.
#[derive(Debug, Default)]
pub(crate) struct Visits {
    /// By the block, and the thread: its last time.
    pub(crate) by_threads: BTreeMap<(usize, usize), Visit>,
    /// By the mbarrier: the last arrival there behind products, and the phase that it counted for.
    pub(crate) late: BTreeMap<usize, (i64, Mark)>,
}

/// The last time that a thread did something in another block of its cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) to: Visited,
    pub(crate) epoch: u32,
    pub(crate) mark: Mark,
}

/// What a thread touched in another block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Visited {
    /// It arrived at an mbarrier.
    Mbarrier(usize),
    /// It accessed an element of a buffer.
    Element(usize, usize),
}

/// How far apart the addresses of the same element in two blocks of a cluster are. No buffer has as many elements.
const WINDOW: i64 = 1 << 32;

/// The address of the element of an access to a flat buffer: of memory of a cluster, that in the part of a block.
pub(crate) fn address(access: &Access, space: Space) -> Option<Index> {
    match (access.indices.as_slice(), space) {
        ([block, element], Space::Cluster) => Some(block * WINDOW + element.clone()),
        (_, Space::Cluster) => None,
        ([element], _) => Some(element.clone()),
        _ => None,
    }
}

impl Machine<'_, '_, '_> {
    /// The lanes that are threads of the warp whose first thread is `base`.
    pub(crate) fn lanes_of(&self, base: usize) -> Mask {
        let count = self.program.threads() - self.program.cluster.in_block(base);
        if count >= WARP { Mask::MAX } else { (1 << count) - 1 }
    }

    /// The lane that leads, among some that came to it: the first of its team.
    pub(crate) fn leading(&self, of: Participants, mask: Mask) -> Mask {
        // Of a cluster whose blocks have roles, the first thread of the role in the first block.
        let part = if of == Participants::Cluster && self.program.role(self.base).name.is_some() {
            if self.program.cluster.block_of(self.base) > 0 {
                return 0;
            }
            Participants::Role
        } else {
            of
        };
        if self.program.team(self.base, part).start == self.base { mask & 1 } else { 0 }
    }

    /// The first threads of the warps.
    pub(crate) fn bases(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let (stride, threads) = (self.program.cluster.stride, self.program.threads());
        let of_block = move |block: usize| (0..threads).step_by(WARP).map(move |it| block * stride + it);
        (0..self.program.cluster.blocks()).flat_map(of_block)
    }

    /// The role of a warp, and its number there.
    pub(crate) fn warp_name(&self, base: usize) -> (Option<ir::Name>, i64) {
        let role = self.program.role(base);
        let own = self.program.cluster.in_block(base);
        let number = i64::try_from((own - role.threads.start) / WARP).expect("warps are few");
        (role.name.clone(), number)
    }

    /// The blocks of a cluster end: none does before it surely has seen the last arrival of each thread of another. What that arrives at
    /// afterwards is somebody else's memory. Copies that come too late have been found by those who should have waited for them.
    pub(crate) fn expect_visits_over(&mut self) {
        let cluster = self.program.cluster;
        // Which of several arrivals behind products comes first, nobody says: each has to be waited for.
        self.leave_arrivals();
        let Visits { by_threads, late } = std::mem::take(&mut self.visits);
        for (at, (phase, mark)) in late {
            if self.mbarriers[at].passed < phase {
                self.block_ended(Visited::Mbarrier(at), at / self.program.mbarriers_of_block(), mark);
            }
        }
        for ((block, thread), Visit { to, epoch, mark }) in by_threads {
            let own = block * cluster.stride..block * cluster.stride + self.program.threads();
            let agent = u32::try_from(thread).expect("threads are few");
            let is_seen = self.clocks.distinct(own).iter().any(|it| it.knows(agent, epoch));
            if !is_seen {
                self.block_ended(to, block, mark);
            }
        }
    }

    /// Something is done in a block that may have ended.
    fn block_ended(&mut self, to: Visited, block: usize, mark: Mark) {
        let key = self.key(ENDED, mark.site(), mark.site());
        if self.run.sink.count(key) {
            return;
        }
        let (access, ended) = (self.describe(mark), self.program.cluster.place(block));
        let finding = match to {
            Visited::Mbarrier(it) => {
                let (barrier, slot) = self.mbarrier_name(it);
                Finding::BlockEnded { barrier, slot, ended, access }
            }
            Visited::Element(buffer, at) => {
                let (buffer, element) = self.element_name(buffer, at);
                Finding::MemoryGone { buffer, element, of: ended, has_begun: true, access }
            }
        };
        self.run.sink.keep(key, finding);
    }

    /// The place of an element in the memory of a cluster, whose blocks have their parts one after the other.
    pub(crate) fn element_of_cluster(&self, buffer: usize, address: i64) -> Option<usize> {
        let (block, at) = (address.div_euclid(WINDOW), address.rem_euclid(WINDOW));
        let block = usize::try_from(block).ok().filter(|it| *it < self.program.cluster.blocks())?;
        let len = self.memory[buffer].len;
        Some(block * len + usize::try_from(at).ok().filter(|it| *it < len)?)
    }

    /// The element that an address outside a buffer stands for, and how many there are: of memory of a cluster, in the part of a block
    /// if there is such a block.
    pub(crate) fn bounds_of_cluster(&self, buffer: usize, address: i64) -> (i64, usize) {
        let (len, blocks) = (self.memory[buffer].len, self.program.cluster.blocks());
        if self.memory[buffer].space != Space::Cluster {
            return (address, len);
        }
        // A subscript below zero borrows from the block.
        let block = (address + WINDOW / 2).div_euclid(WINDOW);
        let at = address - block * WINDOW;
        if usize::try_from(block).is_ok_and(|it| it < blocks) {
            return (at, len);
        }
        (block * i64::try_from(len).expect("it is in memory") + at, len * blocks)
    }

    /// A thread accesses an element that another block may have: that must have begun, and not end before.
    pub(crate) fn visit(&mut self, buffer: usize, at: usize, now: Mark) {
        if self.memory[buffer].space != Space::Cluster {
            return;
        }
        let cluster = self.program.cluster;
        let (block, thread) = (at / self.memory[buffer].len, now.thread() as usize);
        if block == cluster.block_of(thread) {
            return;
        }
        let visit = Visit { to: Visited::Element(buffer, at), epoch: now.epoch, mark: now };
        self.visits.by_threads.insert((block, thread), visit);
        let clock = self.clocks.of(thread);
        let mut agents = (block * cluster.stride..(block + 1) * cluster.stride)
            .map(|it| u32::try_from(it).expect("threads are few"));
        // Blocks with mbarriers wait for each other when those are initialised.
        let has_begun =
            !self.program.mbarriers.is_empty() || agents.any(|it| clock.knows(it, self.since.block));
        let key = self.key(UNBEGUN, now.site(), now.site());
        if !has_begun && !self.run.sink.count(key) {
            let (access, of) = (self.describe(now), cluster.place(block));
            let (buffer, element) = self.element_name(buffer, at);
            self.run.sink.keep(key, Finding::MemoryGone { buffer, element, of, has_begun, access });
        }
    }
}
