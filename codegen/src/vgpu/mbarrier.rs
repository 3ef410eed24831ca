//! Mbarriers: arrivals, bytes and phases, and what threads learn of each other by them.
//!
//! A phase is over when all arrivals of it and all bytes that were expected in it have come. The hardware answers by the parity
//! of the phase under way; here phases have numbers, so that an answer for another phase is a finding.

use ir::Name;

use super::{
    Finding,
    clock::{Agents, Clock},
    cluster::{Visit, Visited},
    exec::{Machine, Mask, lanes},
    index::{IndexCode, WARP},
    program::Program,
    shadow::Mark,
    tell::{ARRIVALS, BYTES, MBARRIER_BOUNDS, PHASE, UNFINISHED},
};

/// Mbarriers of one name.
#[derive(Debug)]
pub(crate) struct MbarrierInfo {
    pub(crate) name: Name,
    pub(crate) slots: usize,
    pub(crate) arrivals: i64,
    /// The number of the first among all mbarriers.
    pub(crate) first: usize,
}

/// A wait for a phase.
#[derive(Debug)]
pub(crate) struct AwaitCode {
    /// Which mbarriers.
    pub(crate) barrier: usize,
    pub(crate) slot: IndexCode,
    pub(crate) phase: IndexCode,
}

/// An arrival.
#[derive(Debug)]
pub(crate) struct ArriveCode {
    pub(crate) barrier: usize,
    pub(crate) slot: IndexCode,
    /// The bytes that the phase waits for besides.
    pub(crate) bytes: Option<IndexCode>,
    /// Whether it arrives when the products into tensor memory that the thread has started are over.
    pub(crate) is_late: bool,
    /// The axes of the cluster along which it arrives in all blocks.
    pub(crate) along: Vec<usize>,
    /// Whether it arrives in the first block.
    pub(crate) at_first: bool,
}

/// One mbarrier.
#[derive(Debug)]
pub(crate) struct Mbarrier {
    /// Which mbarriers it is one of.
    info: usize,
    /// The phase under way.
    pub(crate) phase: i64,
    /// How many arrivals are still to come.
    pending: i64,
    /// The bytes that were expected in this phase, and those that came.
    expected: i64,
    got: i64,
    /// The last arrival or copy that counted.
    last: Mark,
    /// The last copy and the phase that it counted for, and the last phase that somebody has waited for.
    copied: Option<(i64, Mark)>,
    pub(crate) passed: i64,
    /// What those who arrived tell.
    told: Clock,
    /// What those told who arrived in the phase before.
    over: Clock,
}

/// A phase of an mbarrier that somebody waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Awaited {
    pub(crate) mbarrier: usize,
    pub(crate) phase: i64,
}

impl Mbarrier {
    fn is_over(&self) -> bool {
        self.pending == 0 && self.expected == self.got
    }

    /// Whether something of the phase under way has come.
    fn has_begun(&self, arrivals: i64) -> bool {
        self.pending < arrivals || self.expected != 0 || self.got != 0
    }
}

/// The mbarriers of the blocks of a cluster, one block after the other, when they begin.
pub(crate) fn initialised(program: &Program, agents: Agents) -> Vec<Mbarrier> {
    let one = |(info, it): (usize, &MbarrierInfo)| {
        let (told, over) = (Clock::new(agents), Clock::new(agents));
        let (phase, pending, expected, got, last) = (0, it.arrivals, 0, 0, Mark::default());
        Mbarrier { info, phase, pending, expected, got, last, copied: None, passed: -1, told, over }
    };
    let of_block =
        || program.mbarriers.iter().enumerate().flat_map(|it| (0..it.1.slots).map(move |_| one(it)));
    (0..program.cluster.blocks()).flat_map(|_| of_block()).collect()
}

impl Machine<'_, '_, '_> {
    /// The number of an mbarrier of a block among all.
    pub(crate) fn mbarrier(
        &mut self,
        site: u32,
        barrier: usize,
        (slot, block): (i64, usize),
        lane: usize,
    ) -> Option<usize> {
        let info = &self.program.mbarriers[barrier];
        let first = block * self.program.mbarriers_of_block() + info.first;
        let found = usize::try_from(slot).ok().filter(|it| *it < info.slots).map(|it| first + it);
        if found.is_none() {
            let key = self.key(MBARRIER_BOUNDS, site, site);
            if !self.run.sink.count(key) {
                let access = self.describe(self.mark(site, lane));
                let len = i64::try_from(info.slots).expect("the kernel says it as such a number");
                let buffer = info.name.clone();
                self.run.sink.keep(key, Finding::OutOfBounds { buffer, element: slot, len, access });
            }
        }
        found
    }

    /// The phases that some lanes wait for.
    pub(crate) fn awaited(&mut self, site: u32, code: &AwaitCode, mask: Mask) -> Vec<Awaited> {
        let (mut slots, mut phases) = ([0; WARP], [0; WARP]);
        self.index(&code.slot, &mut slots);
        self.index(&code.phase, &mut phases);
        let mut out = vec![];
        for lane in lanes(mask) {
            let block = self.program.cluster.block_of(self.base);
            if let Some(mbarrier) = self.mbarrier(site, code.barrier, (slots[lane], block), lane) {
                out.push(Awaited { mbarrier, phase: phases[lane] });
            }
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Whether the hardware says that a phase is over: the one under way has another parity. Where a later one is over, too,
    /// it may say either; the wait ends here, as [`Machine::pass`] tells it in any case.
    pub(crate) fn has_passed(&self, it: Awaited) -> bool {
        let under_way = self.mbarriers[it.mbarrier].phase;
        under_way > it.phase || under_way.wrapping_sub(it.phase).rem_euclid(2) == 1
    }

    /// Some lanes go on after a wait.
    pub(crate) fn pass(&mut self, site: u32, it: Awaited, mask: Mask) {
        let mbarrier = &self.mbarriers[it.mbarrier];
        if mbarrier.phase.checked_sub(1) != Some(it.phase) {
            self.phase_ahead(site, it, mask);
        }
        let mbarrier = &mut self.mbarriers[it.mbarrier];
        mbarrier.passed = mbarrier.passed.max(it.phase);
        let over = std::mem::take(&mut mbarrier.over);
        self.hear(mask, &over);
        self.mbarriers[it.mbarrier].over = over;
    }

    /// A wait for a phase that the parity cannot tell from another.
    #[cold]
    pub(crate) fn phase_ahead(&mut self, site: u32, it: Awaited, mask: Mask) {
        let key = self.key(PHASE, site, site);
        if !self.run.sink.count(key) {
            let access = self.describe(self.mark(site, mask.trailing_zeros() as usize % WARP));
            let (barrier, slot) = self.mbarrier_name(it.mbarrier);
            let under_way = self.mbarriers[it.mbarrier].phase;
            let finding = Finding::PhaseAhead { barrier, slot, phase: it.phase, under_way, access };
            self.run.sink.keep(key, finding);
        }
    }

    /// Some lanes arrive.
    pub(crate) fn arrive(&mut self, site: u32, code: &ArriveCode, mask: Mask) {
        let (mut slots, mut bytes) = ([0; WARP], [0; WARP]);
        self.index(&code.slot, &mut slots);
        if let Some(it) = &code.bytes {
            self.index(it, &mut bytes);
        }
        if code.is_late {
            return self.arrive_late(site, code, &slots, mask);
        }
        let told = self.publish(mask);
        for n in 0..WARP {
            let lane = n ^ self.flip;
            if mask >> lane & 1 == 0 {
                continue;
            }
            for block in self.told_blocks(&code.along, code.at_first) {
                let to = (slots[lane], block);
                let Some(at) = self.mbarrier(site, code.barrier, to, lane) else { continue };
                self.arrive_at(site, at, bytes[lane], &told, lane);
            }
        }
    }

    /// The blocks of the cluster that something is told to: its own, those along some axes, or the first.
    pub(crate) fn told_blocks(&self, along: &[usize], at_first: bool) -> Vec<usize> {
        let own = self.program.cluster.block_of(self.base);
        if at_first { vec![0] } else { self.program.cluster.along(own, along) }
    }

    /// A lane arrives at an mbarrier.
    fn arrive_at(&mut self, site: u32, at: usize, bytes: i64, told: &Clock, lane: usize) {
        let last = self.mark(site, lane);
        let block = at / self.program.mbarriers_of_block();
        // Blocks with tensor memory of a pair meet before they give it back.
        if block != self.program.cluster.block_of(self.base) && !self.program.multiplies_in_pairs {
            // What it told ended the epoch before.
            let visit = Visit { to: Visited::Mbarrier(at), epoch: self.epoch - 1, mark: last };
            self.visits.by_threads.insert((block, self.base + lane), visit);
        }
        let it = &mut self.mbarriers[at];
        it.told.join(told);
        it.last = last;
        it.expected = it.expected.wrapping_add(bytes);
        if it.pending == 0 {
            self.arrivals(site, at, lane);
        } else {
            it.pending -= 1;
        }
        self.complete(at);
    }

    /// What an agent did up to an epoch is over, which came behind what it was told of then: it arrives.
    pub(crate) fn arrive_for(&mut self, at: usize, agent: u32, mark: Mark, told: &Clock) {
        let block = at / self.program.mbarriers_of_block();
        if block != self.program.cluster.block_of(mark.thread() as usize) {
            self.visits.late.insert(at, (self.mbarriers[at].phase, mark));
        }
        let it = &mut self.mbarriers[at];
        it.told.join(told);
        it.told.learn(agent, mark.epoch);
        it.last = mark;
        if it.pending == 0 {
            let lane = mark.thread() as usize - self.base.min(mark.thread() as usize);
            self.arrivals(mark.site(), at, lane % WARP);
        } else {
            it.pending -= 1;
        }
        self.complete(at);
    }

    /// A copy has landed, which counts for the phase under way.
    pub(crate) fn count_bytes(&mut self, at: usize, bytes: i64, agent: u32, mark: Mark) {
        let it = &mut self.mbarriers[at];
        it.got += bytes;
        it.told.learn(agent, mark.epoch);
        it.last = mark;
        it.copied = Some((it.phase, mark));
        self.complete(at);
    }

    /// Begins the next phase, if this one is over.
    fn complete(&mut self, at: usize) {
        let it = &mut self.mbarriers[at];
        if it.is_over() {
            it.phase += 1;
            it.pending = self.program.mbarriers[it.info].arrivals;
            (it.expected, it.got) = (0, 0);
            it.over = std::mem::replace(&mut it.told, Clock::new(self.agents));
        }
    }

    /// The name of mbarriers, and which of them.
    pub(crate) fn mbarrier_name(&self, at: usize) -> (Name, i64) {
        let info = &self.program.mbarriers[self.mbarriers[at].info];
        let own = at % self.program.mbarriers_of_block();
        (info.name.clone(), i64::try_from(own - info.first).expect("slots are few"))
    }

    /// How many arrivals there were of how many, and how many bytes of how many.
    pub(crate) fn progress(&self, at: usize) -> [i64; 4] {
        let it = &self.mbarriers[at];
        let arrivals = self.program.mbarriers[it.info].arrivals;
        [arrivals - it.pending, arrivals, it.got, it.expected]
    }

    #[cold]
    fn arrivals(&mut self, site: u32, at: usize, lane: usize) {
        let key = self.key(ARRIVALS, site, site);
        if !self.run.sink.count(key) {
            let access = self.describe(self.mark(site, lane));
            let ((barrier, slot), phase) = (self.mbarrier_name(at), self.mbarriers[at].phase);
            let [_, arrivals, ..] = self.progress(at);
            self.run.sink.keep(key, Finding::Arrivals { barrier, slot, phase, arrivals, access });
        }
    }

    /// Looks for copies whose phase nobody has waited for.
    pub(crate) fn expect_copies_over(&mut self) {
        for at in 0..self.mbarriers.len() {
            let it = &self.mbarriers[at];
            if let Some((_, mark)) = it.copied.filter(|copied| copied.0 > it.passed) {
                self.outstanding(mark);
            }
        }
    }

    /// Looks for phases that have begun and can no longer end: those in which all arrived, and at the end of the block the others.
    pub(crate) fn expect_phases_over(&mut self, is_end: bool) {
        for at in 0..self.mbarriers.len() {
            let [came, arrivals, got, expected] = self.progress(at);
            let it = &self.mbarriers[at];
            let is_counted = came == arrivals;
            if !it.has_begun(arrivals) || !(is_counted || is_end) {
                continue;
            }
            let (phase, last) = (it.phase, it.last);
            let key = self.key(if is_counted { BYTES } else { UNFINISHED }, last.site(), last.site());
            if self.run.sink.count(key) {
                continue;
            }
            let ((barrier, slot), access) = (self.mbarrier_name(at), self.describe(last));
            let finding = if is_counted {
                Finding::PhaseBytes { barrier, slot, phase, expected, got, access }
            } else {
                Finding::PhaseUnfinished { barrier, slot, phase, came, arrivals, access }
            };
            self.run.sink.keep(key, finding);
        }
    }
}
