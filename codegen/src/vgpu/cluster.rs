//! Blocks that run together: the threads of a cluster, numbered through, and what comes from one of its blocks to another.

use super::{
    exec::{Machine, Mask},
    findings::Finding,
    index::WARP,
    shadow::Mark,
    tell::ENDED,
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

/// The last arrival of a thread in another block of its cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) mbarrier: usize,
    pub(crate) epoch: u32,
    pub(crate) mark: Mark,
}

impl Machine<'_, '_, '_> {
    /// The lanes that are threads of the warp whose first thread is `base`.
    pub(crate) fn lanes_of(&self, base: usize) -> Mask {
        let count = self.program.threads() - self.program.cluster.in_block(base);
        if count >= WARP { Mask::MAX } else { (1 << count) - 1 }
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
        for ((block, thread), Visit { mbarrier, epoch, mark }) in std::mem::take(&mut self.visits) {
            let own = block * cluster.stride..block * cluster.stride + self.program.threads();
            let agent = u32::try_from(thread).expect("threads are few");
            let is_seen = self.clocks.distinct(own).iter().any(|it| it.knows(agent, epoch));
            let key = self.key(ENDED, mark.site(), mark.site());
            if !is_seen && !self.run.sink.count(key) {
                let (access, (barrier, slot)) = (self.describe(mark), self.mbarrier_name(mbarrier));
                let ended = cluster.place(block);
                self.run.sink.keep(key, Finding::BlockEnded { barrier, slot, ended, access });
            }
        }
    }
}
