//! Runs kernels: blocks, warps from barrier to barrier, statements with lane masks.

use std::collections::BTreeMap;

use super::{
    Contents, Landing, Progress, Report, Settings, ThreadOrder,
    bulk::{Bulk, Stores},
    claim::Claims,
    clock::{Agents, Clocks},
    cluster::Visits,
    counters::Tally,
    findings::Sink,
    flight::Flights,
    index::{IndexCode, LaneIndices, WARP},
    mbarrier::Mbarrier,
    memory::Memory,
    program::{Code, ForCode, LessCode, Program},
    random::Random,
    semaphore::{self, Turns},
    shadow::Since,
    tensor_pending::TensorProducts,
    turn,
    wgmma::Products,
};

/// Which lanes of a warp do something: one bit each.
pub(crate) type Mask = u32;

/// What outlives a kernel.
pub(crate) struct Run<'s> {
    pub(crate) report: Report,
    pub(crate) sink: Sink,
    pub(crate) random: Random,
    pub(crate) order: ThreadOrder,
    pub(crate) landing: Landing,
    pub(crate) lockstep: bool,
    seen: &'s mut dyn FnMut(Progress<'_>),
    /// The last epoch.
    epoch: u32,
}

/// A kernel under way.
pub(crate) struct Machine<'p, 'r, 's> {
    pub(crate) program: &'p Program,
    pub(crate) run: &'r mut Run<'s>,
    /// Which kernel of the module it is.
    pub(crate) kernel: usize,
    pub(crate) memory: Vec<Memory>,
    pub(crate) slots: Vec<i64>,
    /// The loops' variables, packed.
    pub(crate) stamp: u64,
    pub(crate) epoch: u32,
    pub(crate) since: Since,
    /// The first thread of the warp.
    pub(crate) base: usize,
    /// By what the number of a lane is changed to vary the order of side effects.
    pub(crate) flip: usize,
    /// The first epochs of the blocks so far, and which block it was.
    pub(crate) blocks: Vec<(u32, i64)>,
    pub(crate) flights: Flights,
    pub(crate) turns: Turns,
    pub(crate) tally: Tally,
    pub(crate) agents: Agents,
    /// What the threads of the block know, where clocks tell the order; all below is of those kernels, too.
    pub(crate) clocks: Clocks,
    pub(crate) mbarriers: Vec<Mbarrier>,
    /// The turns of warpgroups.
    pub(crate) team_turns: Vec<turn::Turns>,
    /// Copies to shared memory under way.
    pub(crate) loads: Vec<Bulk>,
    /// Copies to global memory, by the thread that started them.
    pub(crate) stores: BTreeMap<usize, Stores>,
    /// The blocks of the grid that have not begun, and what this one knows of that.
    pub(crate) claims: Claims,
    /// What was done in other blocks of the cluster.
    pub(crate) visits: Visits,
    /// What each warp has under way.
    pub(crate) products: Vec<Products<'p>>,
    /// Products into tensor memory, by the thread that started them.
    pub(crate) tensor_products: BTreeMap<usize, TensorProducts>,
}

impl<'s> Run<'s> {
    pub(crate) fn new(settings: &Settings, seen: &'s mut dyn FnMut(Progress<'_>)) -> Run<'s> {
        let sink = Sink { limit: settings.max_findings, ..Sink::default() };
        let random = Random(settings.seed);
        let &Settings { order, landing, lockstep, .. } = settings;
        Run { report: Report::default(), sink, random, order, landing, lockstep, seen, epoch: 0 }
    }

    /// The numbers below `count` in the order that was asked for.
    fn order<T>(&mut self, all: impl DoubleEndedIterator<Item = T>) -> Vec<T> {
        match self.order {
            ThreadOrder::Forward => all.collect(),
            ThreadOrder::Reversed => all.rev().collect(),
            ThreadOrder::Shuffled => {
                let mut all: Vec<T> = all.collect();
                self.random.shuffle(&mut all);
                all
            }
        }
    }

    pub(crate) fn flip(&mut self) -> usize {
        match self.order {
            ThreadOrder::Forward => 0,
            ThreadOrder::Reversed => WARP - 1,
            ThreadOrder::Shuffled => self.random.below(WARP),
        }
    }
}

/// Runs a kernel on the module's buffers.
pub(crate) fn kernel(program: &Program, number: usize, contents: &mut [Contents], run: &mut Run<'_>) {
    let memory = program.buffers.iter().map(|it| Memory::new(program, it, contents)).collect();
    let epoch = run.epoch;
    let mut machine = Machine {
        program,
        kernel: number,
        memory,
        slots: vec![0; program.slots],
        stamp: 0,
        epoch,
        since: Since { kernel: epoch + 1, block: epoch + 1 },
        base: 0,
        flip: 0,
        blocks: vec![],
        flights: Flights::new(program.scope.count),
        turns: Turns::default(),
        tally: Tally::new(program),
        agents: Agents::new(program),
        clocks: Clocks::default(),
        mbarriers: vec![],
        team_turns: vec![],
        loads: vec![],
        claims: Claims::default(),
        visits: Visits::default(),
        stores: BTreeMap::new(),
        products: vec![],
        tensor_products: BTreeMap::new(),
        run,
    };
    machine.grid();
    let Machine { memory, epoch, tally, .. } = machine;
    run.epoch = epoch;
    if run.lockstep {
        run.report.counters.push(tally.counters(program));
    }
    for (it, memory) in program.buffers.iter().zip(memory) {
        if let Some((at, _)) = it.arg {
            contents[at] = Contents { values: memory.values, written: memory.written };
        }
    }
}

impl<'p> Machine<'p, '_, '_> {
    fn grid(&mut self) {
        let program = self.program;
        let [x, y, z] = program.grid;
        let of = x * y * z;
        let mut blocks = self.run.order(0..of);
        semaphore::sort(program, &mut blocks);
        self.claims = Claims::new(blocks);
        while let Some((block, done)) = self.claims.next(of) {
            (self.run.seen)(Progress { kernel: &program.name, done, of });
            self.epoch += 1;
            self.since.block = self.epoch;
            self.blocks.push((self.epoch, block));
            self.slots[..3].copy_from_slice(&semaphore::place(block, program.grid));
            self.begin_claims();
            self.forget_turns();
            if program.resumes {
                self.block();
            } else {
                self.together(&program.code);
            }
            self.drop_flights();
            if self.run.report.stopped {
                return;
            }
        }
    }

    /// Runs a list that all threads come to: up to each barrier warp by warp.
    pub(crate) fn together(&mut self, code: &'p [Code]) {
        let mut rest = code;
        while !rest.is_empty() && !self.run.report.stopped {
            let alone = rest.iter().take_while(|it| !it.meets()).count();
            if alone > 0 {
                self.alone(&rest[..alone]);
            }
            let Some(op) = rest.get(alone) else { return };
            match op {
                Code::For(it) => self.for_together(it),
                Code::If(it) => self.if_together(it),
                Code::Barrier(..) => {
                    self.epoch += 1;
                    self.tally.barriers += 1;
                }
                Code::Semaphore(it) => self.semaphore(it),
                Code::Alloc(_)
                | Code::Store(..)
                | Code::Copy(..)
                | Code::AtomicAdd(..)
                | Code::Tensor(..)
                | Code::WarpReduce(..)
                | Code::Commit
                | Code::Wait(_)
                | Code::Leader(_)
                | Code::Role(..)
                | Code::Async(..) => unreachable!("nothing is to be waited for inside"),
            }
            rest = &rest[alone + 1..];
        }
    }

    /// Runs a list without a barrier.
    fn alone(&mut self, code: &'p [Code]) {
        for base in self.warps() {
            self.base = base;
            let all = self.all();
            if self.run.lockstep {
                self.list(code, all);
                continue;
            }
            self.apart(code, all);
        }
    }

    /// Runs a list some lanes before the others, but for what the warp does together.
    fn apart(&mut self, code: &'p [Code], all: Mask) {
        let mut rest = code;
        while !rest.is_empty() {
            let alone = rest.iter().take_while(|it| !it.converges()).count();
            let some = all & self.run.random.bits();
            for mask in [some, all & !some].into_iter().filter(|it| *it != 0 && alone > 0) {
                self.list(&rest[..alone], mask);
            }
            match rest.get(alone) {
                Some(Code::For(it)) => self.for_alone(it, all, &mut Self::apart),
                Some(Code::If(it)) => {
                    let mask = self.holds(&it.cond, all);
                    if mask != 0 {
                        self.apart(&it.body, mask);
                    }
                }
                Some(_) => self.list(&rest[alone..=alone], all),
                None => return,
            }
            rest = &rest[alone + 1..];
        }
    }

    /// Runs a list for some lanes of a warp.
    pub(crate) fn list(&mut self, code: &'p [Code], mask: Mask) {
        for it in code {
            self.tally.steps += it.assigned() * u64::from(mask.count_ones());
            match it {
                Code::Alloc(buffer) => self.forget(*buffer, mask),
                Code::For(it) => self.for_alone(it, mask, &mut Self::list),
                Code::If(it) => {
                    let mask = self.holds(&it.cond, mask);
                    if mask != 0 {
                        self.list(&it.body, mask);
                    }
                }
                Code::Store(site, place, value) => self.store(*site, place, value, mask),
                Code::Tensor(site, place, it) => self.tensor(*site, place, it, mask),
                Code::WarpReduce(site, place, it) => self.warp_reduce(*site, place, it, mask),
                Code::Copy(site, place, value) => self.copy(*site, place, value, mask),
                Code::AtomicAdd(site, place, value) => self.atomic_add(*site, place, value, mask),
                Code::Commit => self.commit(mask),
                Code::Wait(in_flight) => {
                    self.tally.waits += 1;
                    self.wait(*in_flight, mask);
                }
                Code::Leader(it) => {
                    let mask = self.leading(it.of, mask);
                    if mask != 0 {
                        self.list(&it.body, mask);
                    }
                }
                Code::Async(site, it) => self.perform(*site, it, mask),
                Code::Barrier(..) | Code::Semaphore(_) | Code::Role(..) => {
                    unreachable!("those who come to them may have to wait")
                }
            }
        }
    }

    fn for_alone(&mut self, it: &'p ForCode, mask: Mask, run: &mut dyn FnMut(&mut Self, &'p [Code], Mask)) {
        let outside = self.stamp;
        let mut extents = [0; WARP];
        self.index(&it.extent, &mut extents);
        for n in 0.. {
            let mask = if it.extent.is_uniform() {
                if n < extents[0] { mask } else { 0 }
            } else {
                lanes(mask).filter(|lane| n < extents[*lane]).fold(0, |mask, lane| mask | 1 << lane)
            };
            if mask == 0 {
                break;
            }
            it.begin(n, &mut self.slots);
            self.stamp = it.stamp(outside, n);
            run(self, &it.body, mask);
        }
        self.stamp = outside;
    }

    /// The lanes among some for which all conditions hold.
    pub(crate) fn holds(&self, cond: &[LessCode], mut mask: Mask) -> Mask {
        for it in cond {
            if it.lhs.is_uniform() && it.rhs.is_uniform() {
                if it.lhs.uniform(&self.slots) >= it.rhs.uniform(&self.slots) {
                    return 0;
                }
                continue;
            }
            let (mut a, mut b) = ([0; WARP], [0; WARP]);
            self.index(&it.lhs, &mut a);
            self.index(&it.rhs, &mut b);
            for (lane, (a, b)) in a.iter().zip(&b).enumerate() {
                if a >= b {
                    mask &= !(1 << lane);
                }
            }
        }
        mask
    }

    pub(crate) fn index(&self, code: &IndexCode, out: &mut LaneIndices) {
        code.eval(&self.slots, &self.program.scope.tables, self.base, out);
    }

    /// The lanes of the warp that are threads.
    pub(crate) fn all(&self) -> Mask {
        self.lanes_of(self.base)
    }

    /// The first threads of the warps, in the order that was asked for.
    fn warps(&mut self) -> Vec<usize> {
        self.flip = self.run.flip();
        let bases = self.bases();
        self.run.order(bases)
    }
}

/// The lanes of a mask, from the first.
pub(crate) fn lanes(mask: Mask) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |lane| mask >> lane & 1 == 1)
}
