//! The engine that can stop a warp anywhere: for kernels in which warps wait for more than the barriers of their block.
//!
//! A warp has loop variables and a stack of lists of its own, and runs until it has to wait: at a barrier for others, at an
//! mbarrier for a phase. Then another warp goes on, by [`ThreadOrder`](super::ThreadOrder) the first that can, the last, or any.
//! Warps are numbered through the roles of a kernel, so that the first role is as far ahead as it can be in one order, and as
//! far behind in the other. The lanes of a warp run in lockstep here.
//!
//! A copy to shared memory lands at once, or when nobody can go on without it; in a shuffled order at any time between.

use ir::{Participants, SemaphoreKind};

use super::{
    Finding, ThreadOrder,
    clock::Clocks,
    exec::{Machine, Mask},
    findings::{Waiting, WaitingTurn},
    index::{LaneIndices, WARP},
    mbarrier::{self, Awaited},
    program::{AsyncCode, Code, ForCode, SemaphoreCode},
    shadow::Mark,
    tell::DEADLOCK,
    turn::{self, AwaitedTurn},
    wgmma::Products,
};

/// A warp under way.
struct Warp<'p> {
    base: usize,
    slots: Vec<i64>,
    stamp: u64,
    frames: Vec<Frame<'p>>,
    waits: Option<Wait<'p>>,
}

/// A list that a warp is in.
struct Frame<'p> {
    code: &'p [Code],
    next: usize,
    mask: Mask,
    round: Option<Round<'p>>,
}

/// The loop whose body a list is.
struct Round<'p> {
    code: &'p ForCode,
    n: i64,
    extents: LaneIndices,
    /// The lanes that came to the loop, and the stamp there.
    mask: Mask,
    outside: u64,
}

/// What a warp waits for.
enum Wait<'p> {
    Phases { site: u32, mask: Mask, all: Vec<Awaited> },
    Turn { site: u32, mask: Mask, it: AwaitedTurn },
    Others { site: u32, of: Participants, turn: Option<&'p SemaphoreCode> },
}

impl<'p> Machine<'p, '_, '_> {
    /// Runs a block, or those of a cluster.
    pub(crate) fn block(&mut self) {
        let program = self.program;
        self.clocks = Clocks::new(self.agents);
        self.mbarriers = mbarrier::initialised(program, self.agents);
        self.team_turns = turn::begun(program, self.agents);
        drop(std::mem::take(&mut self.visits));
        let warps = program.scope.count / WARP;
        self.products = (0..warps).map(|_| Products::new(program.products.len())).collect();
        self.memory.iter_mut().for_each(|it| it.touched.fill(0));
        let begun = |base: usize| {
            let (slots, stamp, waits) = (self.slots.clone(), 0, None);
            let frames = vec![Frame { code: &program.code, next: 0, mask: self.lanes_of(base), round: None }];
            Warp { base, slots, stamp, frames, waits }
        };
        let mut all: Vec<Warp<'p>> = self.bases().map(begun).collect();
        while !self.run.report.stopped && self.round(&mut all) {}
        if !self.run.report.stopped {
            (self.base, self.stamp) = (0, 0);
            self.end_bulk();
            self.expect_visits_over();
            self.end_products();
            self.end_tensor();
            self.expect_phases_over(true);
        }
    }

    /// Lets one warp go on, or something land; `false` if all is done.
    fn round(&mut self, all: &mut [Warp<'p>]) -> bool {
        self.meetings(all);
        if self.run.report.stopped {
            return false;
        }
        if self.run.order == ThreadOrder::Shuffled {
            self.land_some();
        }
        let ready = (0..all.len()).filter(|n| self.is_ready(&all[*n])).collect::<Vec<_>>();
        let chosen = match self.run.order {
            ThreadOrder::Forward => ready.first(),
            ThreadOrder::Reversed => ready.last(),
            ThreadOrder::Shuffled => ready.get(self.run.random.below(ready.len().max(1))),
        };
        if let Some(n) = chosen {
            self.resume(&mut all[*n]);
            return true;
        }
        if all.iter().all(Warp::is_done) {
            return false;
        }
        if self.land_one(all) {
            return true;
        }
        self.stuck(all);
        false
    }

    fn is_ready(&self, warp: &Warp<'p>) -> bool {
        match &warp.waits {
            None => !warp.is_done(),
            Some(Wait::Phases { all, .. }) => all.iter().all(|it| self.has_passed(*it)),
            Some(Wait::Turn { it, .. }) => self.is_turn(*it),
            Some(Wait::Others { .. }) => false,
        }
    }

    /// Lets copies land, some that nobody may wait for yet.
    fn land_some(&mut self) {
        let mut at = 0;
        while at < self.loads.len() {
            if self.run.random.below(4) == 0 {
                let load = self.loads.swap_remove(at);
                self.land_load(&load);
            } else {
                at += 1;
            }
        }
        while self.run.random.below(2) == 0 && self.land_any_tensor() {}
    }

    /// Lets a copy land that a warp waits for, else any.
    fn land_one(&mut self, all: &[Warp<'p>]) -> bool {
        let awaited = |mbarrier: usize| {
            let phases = all.iter().filter_map(|it| match &it.waits {
                Some(Wait::Phases { all, .. }) => Some(all),
                _ => None,
            });
            phases.flatten().any(|it| it.mbarrier == mbarrier)
        };
        let first = self.loads.iter().position(|it| awaited(it.mbarrier));
        let Some(at) = first.or((!self.loads.is_empty()).then_some(0)) else {
            return self.land_any_tensor();
        };
        let load = self.loads.remove(at);
        self.land_load(&load);
        true
    }

    /// Lets those go on who have all come to their barrier.
    fn meetings(&mut self, all: &mut [Warp<'p>]) {
        for n in 0..all.len() {
            let Some(Wait::Others { site, of, turn }) = all[n].waits else { continue };
            let team = self.program.team(all[n].base, of);
            let comes = |it: &usize| team.contains(&all[*it].base) && all[*it].can_meet(of);
            let members: Vec<usize> = (0..all.len()).filter(comes).collect();
            let is_there =
                |it: &usize| matches!(all[*it].waits, Some(Wait::Others { of: theirs, .. }) if theirs == of);
            if !members.iter().all(is_there) {
                continue;
            }
            let differs = |it: &&usize| {
                let same =
                    matches!(all[**it].waits, Some(Wait::Others { site: theirs, .. }) if theirs == site);
                !same || all[**it].stamp != all[n].stamp
            };
            if let Some(other) = members.iter().find(differs) {
                self.divergent(
                    (all[n].stamp, site, all[n].base),
                    (all[*other].stamp, site, all[*other].base),
                );
                return;
            }
            match turn {
                Some(it) => {
                    std::mem::swap(&mut self.slots, &mut all[n].slots);
                    self.stamp = all[n].stamp;
                    self.semaphore(it);
                    std::mem::swap(&mut self.slots, &mut all[n].slots);
                }
                None => self.tally.barriers += u64::from(of >= Participants::Block),
            }
            self.meet(members.iter().flat_map(|it| all[*it].base..all[*it].base + WARP));
            for it in members {
                all[it].waits = None;
            }
        }
    }

    /// Nobody can go on.
    fn stuck(&mut self, all: &[Warp<'p>]) {
        self.expect_phases_over(false);
        let (mut waits, mut turns): (Vec<Waiting>, Vec<WaitingTurn>) = Default::default();
        let mut first = None;
        for warp in all {
            let (role, number) = self.warp_name(warp.base);
            let (site, mask) = match &warp.waits {
                Some(Wait::Phases { site, mask, all }) => {
                    let Some(it) = all.iter().find(|it| !self.has_passed(**it)) else { continue };
                    let new = self.waiting(*it, role, number);
                    match waits.iter_mut().find(|it| it.is_same(&new)) {
                        Some(it) => it.warps.push(number),
                        None => waits.push(new),
                    }
                    (*site, *mask)
                }
                Some(Wait::Turn { site, mask, it }) => {
                    let new = self.waiting_turn(*it, role, number);
                    match turns.iter_mut().find(|it| it.is_same(&new)) {
                        Some(it) => it.warps.push(number),
                        None => turns.push(new),
                    }
                    (*site, *mask)
                }
                Some(Wait::Others { .. }) | None => continue,
            };
            first.get_or_insert_with(|| {
                let thread = warp.base + mask.trailing_zeros() as usize % WARP;
                Mark::new(warp.stamp, self.epoch, site, u32::try_from(thread).expect("at most 1024"))
            });
        }
        match first {
            Some(mark) => {
                let key = self.key(DEADLOCK, mark.site(), mark.site());
                if !self.run.sink.count(key) {
                    let access = self.describe(mark);
                    self.run.sink.keep(key, Finding::Stuck { waits, turns, access });
                }
                self.run.report.stopped = true;
            }
            None => self.never_met(all),
        }
    }

    /// What is told of a warp that waits for a phase.
    fn waiting(&self, it: Awaited, role: Option<ir::Name>, warp: i64) -> Waiting {
        let (barrier, slot) = self.mbarrier_name(it.mbarrier);
        let under_way = self.mbarriers[it.mbarrier].phase;
        let [came, arrivals, got, expected] = self.progress(it.mbarrier);
        let (warps, phase) = (vec![warp], it.phase);
        Waiting { role, warps, barrier, slot, phase, under_way, came, arrivals, got, expected }
    }

    /// Some wait at a barrier that others do not come to.
    fn never_met(&mut self, all: &[Warp<'p>]) {
        let waiting = all.iter().find_map(|it| match it.waits {
            Some(Wait::Others { site, of, .. }) => Some((it, site, of)),
            _ => None,
        });
        let Some((warp, site, of)) = waiting else { return };
        let team = self.program.team(warp.base, of);
        let is_missing = |it: &&Warp<'p>| {
            let is_there = matches!(it.waits, Some(Wait::Others { of: theirs, .. }) if theirs == of);
            team.contains(&it.base) && it.can_meet(of) && !is_there
        };
        let missing = all.iter().find(is_missing).unwrap_or(warp);
        self.divergent((warp.stamp, site, warp.base), (missing.stamp, site, missing.base));
    }

    /// Runs a warp until it has to wait.
    fn resume(&mut self, warp: &mut Warp<'p>) {
        self.base = warp.base;
        self.flip = self.run.flip();
        self.stamp = warp.stamp;
        std::mem::swap(&mut self.slots, &mut warp.slots);
        match warp.waits.take() {
            Some(Wait::Phases { site, mask, all }) => {
                for it in all {
                    self.pass(site, it, mask);
                }
            }
            Some(Wait::Turn { mask, it, .. }) => self.begin_turn(it, mask),
            Some(Wait::Others { .. }) | None => {}
        }
        while warp.waits.is_none() && !self.run.report.stopped && !warp.is_done() {
            self.step(warp);
        }
        std::mem::swap(&mut self.slots, &mut warp.slots);
        warp.stamp = self.stamp;
    }

    /// A statement of a warp, or the end of a list.
    fn step(&mut self, warp: &mut Warp<'p>) {
        let Some(frame) = warp.frames.last_mut() else { return };
        let mask = frame.mask;
        let Some(op) = frame.code.get(frame.next) else {
            if frame.round.as_mut().is_some_and(|it| self.next_round(it, &mut frame.mask)) {
                frame.next = 0;
            } else {
                warp.frames.pop();
            }
            return;
        };
        frame.next += 1;
        let mut enter = |code: &'p [Code], mask: Mask| {
            if mask != 0 {
                warp.frames.push(Frame { code, next: 0, mask, round: None });
            }
        };
        match op {
            Code::For(it) if it.meets => {
                let mut extents = [0; WARP];
                self.index(&it.extent, &mut extents);
                let round = Round { code: it, n: -1, extents, mask, outside: self.stamp };
                // The list is at its end, from where the next iteration begins.
                let (code, next) = (it.body.as_slice(), it.body.len());
                warp.frames.push(Frame { code, next, mask, round: Some(round) });
            }
            Code::If(it) if it.meets => enter(&it.body, self.holds(&it.cond, mask)),
            Code::Leader(it) if it.meets => enter(&it.body, self.leading(it.of, mask)),
            Code::Role(number, body) => {
                let own = self.program.cluster.in_block(self.base);
                let is_own = self.program.roles[*number].threads.contains(&own);
                enter(body, if is_own { mask } else { 0 });
            }
            Code::Barrier(site, of) => warp.waits = self.come(*site, *of, None, mask),
            Code::Semaphore(it) => warp.waits = self.come(it.site, Participants::Block, Some(&**it), mask),
            Code::Async(site, it) => match &**it {
                AsyncCode::Await(it) => {
                    let all = self.awaited(*site, it, mask);
                    warp.waits = Some(Wait::Phases { site: *site, mask, all });
                }
                AsyncCode::Turn(it) if it.kind == SemaphoreKind::Acquire => {
                    let it = self.turn_of(it, mask);
                    warp.waits = Some(Wait::Turn { site: *site, mask, it });
                }
                _ => self.list(std::slice::from_ref(op), mask),
            },
            _ => self.list(std::slice::from_ref(op), mask),
        }
    }

    /// Begins the next iteration of a loop, if there is one for some lanes.
    fn next_round(&mut self, it: &mut Round<'p>, mask: &mut Mask) -> bool {
        it.n += 1;
        if it.code.grows {
            self.index(&it.code.extent, &mut it.extents);
        }
        *mask = super::exec::lanes(it.mask)
            .filter(|lane| it.n < it.extents[*lane])
            .fold(0, |mask, lane| mask | 1 << lane);
        if *mask == 0 {
            self.stamp = it.outside;
            return false;
        }
        it.code.begin(it.n, &mut self.slots);
        self.stamp = it.code.stamp(it.outside, it.n);
        true
    }

    /// A warp comes to a barrier.
    fn come(
        &mut self,
        site: u32,
        of: Participants,
        turn: Option<&'p SemaphoreCode>,
        mask: Mask,
    ) -> Option<Wait<'p>> {
        let all = self.lanes_of(self.base);
        if mask != all {
            let thread = |mask: Mask| self.base + mask.trailing_zeros() as usize % WARP;
            self.divergent((self.stamp, site, thread(mask)), (self.stamp, site, thread(all & !mask)));
            return None;
        }
        if of == Participants::Warp {
            self.meet(self.program.team(self.base, of));
            return None;
        }
        Some(Wait::Others { site, of, turn })
    }
}

impl Warp<'_> {
    fn is_done(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether a barrier waits for it: that of a cluster does not wait for threads that have ended.
    fn can_meet(&self, of: Participants) -> bool {
        of != Participants::Cluster || !self.is_done()
    }
}
