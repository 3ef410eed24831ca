//! Vector clocks: what each thread knows of the others, where barriers of a block are not all there is.
//!
//! *Agents* are the threads of a block, or of all blocks of a cluster, and those that work for them: one an mbarrier for the copies to shared memory, one a warp
//! for its products, two a thread for its copies to global memory, since they are waited for twice, and one a thread for its products
//! into tensor memory, which come in order. An agent's accesses have
//! the epoch in which they were made, and epochs go on whenever somebody tells something to others. So a thread knows all
//! accesses of an agent up to the epoch that its clock has for it, and races with the later ones. What a thread did
//! itself it need not know.

use std::rc::Rc;

use super::{
    exec::{Machine, Mask, lanes},
    index::WARP,
    program::Program,
};

/// What somebody knows of all agents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Clock {
    /// The last epoch of each agent that is known.
    seen: Vec<u32>,
    /// The last epoch whose accesses are behind a fence between the proxies, too.
    proxied: Vec<u32>,
}

/// The numbers of the agents of a kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Agents {
    threads: usize,
    mbarriers: usize,
}

/// What each thread knows. Lanes that know the same share it.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    of: Vec<Rc<Clock>>,
}

impl Agents {
    pub(crate) fn new(program: &Program) -> Agents {
        let mbarriers = program.mbarriers_of_block() * program.cluster.blocks();
        Agents { threads: program.scope.count, mbarriers }
    }

    /// Those of so many threads without mbarriers.
    #[cfg(test)]
    pub(crate) fn of(threads: usize) -> Agents {
        Agents { threads, mbarriers: 0 }
    }

    fn count(self) -> usize {
        4 * self.threads + self.mbarriers + self.threads / WARP
    }

    /// Whether it is a thread, and so uses the generic proxy.
    pub(crate) fn is_thread(self, agent: u32) -> bool {
        (agent as usize) < self.threads
    }

    fn number(at: usize) -> u32 {
        u32::try_from(at).expect("agents are few")
    }

    /// That which copies to shared memory and tells an mbarrier.
    pub(crate) fn load(self, mbarrier: usize) -> u32 {
        Agents::number(self.threads + mbarrier)
    }

    /// That which reads shared memory for a warp's products.
    pub(crate) fn product(self, base: usize) -> u32 {
        Agents::number(self.threads + self.mbarriers + base / WARP)
    }

    /// That which reads shared memory for a thread's copies to global memory.
    pub(crate) fn store_read(self, thread: usize) -> u32 {
        Agents::number(self.threads + self.mbarriers + self.threads / WARP + thread)
    }

    /// That which multiplies into tensor memory for a thread.
    pub(crate) fn tensor(self, thread: usize) -> u32 {
        Agents::number(3 * self.threads + self.mbarriers + self.threads / WARP + thread)
    }

    /// An agent that does all that it does in the order in which it was told to, if it is one.
    pub(crate) fn worker(self, agent: u32) -> Option<u32> {
        let first = 3 * self.threads + self.mbarriers + self.threads / WARP;
        Some(agent).filter(|it| *it as usize >= first)
    }

    /// That which writes global memory for them.
    pub(crate) fn store_write(self, thread: usize) -> u32 {
        Agents::number(2 * self.threads + self.mbarriers + self.threads / WARP + thread)
    }
}

impl Clock {
    pub(crate) fn new(agents: Agents) -> Clock {
        Clock { seen: vec![0; agents.count()], proxied: vec![0; agents.count()] }
    }

    /// Whether it knows what an agent did in an epoch.
    pub(crate) fn knows(&self, agent: u32, epoch: u32) -> bool {
        self.seen[agent as usize] >= epoch
    }

    /// Whether that is behind a fence between the proxies.
    pub(crate) fn has_proxied(&self, agent: u32, epoch: u32) -> bool {
        self.proxied[agent as usize] >= epoch
    }

    /// Knows what another knows, too.
    pub(crate) fn join(&mut self, other: &Clock) {
        let both = |own: &mut Vec<u32>, other: &[u32]| {
            own.iter_mut().zip(other).for_each(|(own, it)| *own = (*own).max(*it));
        };
        both(&mut self.seen, &other.seen);
        both(&mut self.proxied, &other.proxied);
    }

    /// What it knows of those who work for threads.
    pub(crate) fn of_workers(&self, agents: Agents) -> Clock {
        let mut out = self.clone();
        for it in [&mut out.seen, &mut out.proxied] {
            it[..agents.threads].fill(0);
        }
        out
    }

    /// Knows what an agent did up to an epoch.
    pub(crate) fn learn(&mut self, agent: u32, epoch: u32) {
        let own = &mut self.seen[agent as usize];
        *own = (*own).max(epoch);
    }

    /// All that it knows, and what threads did up to an epoch, is behind a fence.
    fn fence(&mut self, threads: impl Iterator<Item = usize>, epoch: u32) {
        let Clock { seen, proxied } = self;
        proxied.iter_mut().zip(&*seen).for_each(|(own, it)| *own = (*own).max(*it));
        threads.for_each(|it| proxied[it] = epoch);
    }
}

impl Clocks {
    /// What all know when a block begins: nothing of it.
    pub(crate) fn new(agents: Agents) -> Clocks {
        let nothing = Rc::new(Clock::new(agents));
        Clocks { of: (0..agents.threads).map(|_| Rc::clone(&nothing)).collect() }
    }

    /// What a thread knows.
    pub(crate) fn of(&self, thread: usize) -> &Rc<Clock> {
        &self.of[thread]
    }

    /// What some threads know, each once.
    pub(crate) fn distinct(&self, threads: impl Iterator<Item = usize>) -> Vec<Rc<Clock>> {
        let mut out: Vec<Rc<Clock>> = vec![];
        for thread in threads {
            let clock = &self.of[thread];
            if !out.iter().any(|it| Rc::ptr_eq(it, clock)) {
                out.push(Rc::clone(clock));
            }
        }
        out
    }

    /// What threads know and did up to an epoch.
    fn published(&self, threads: &[usize], epoch: u32) -> Clock {
        let mut all = self.distinct(threads.iter().copied()).into_iter();
        let mut out = all.next().map_or_else(Clock::default, |it| Clock::clone(&it));
        all.for_each(|it| out.join(&it));
        for it in threads {
            out.seen[*it] = epoch;
        }
        out
    }

    /// Changes what threads know; those that knew the same still do.
    fn change(&mut self, threads: &[usize], mut f: impl FnMut(&mut Clock)) {
        let mut changed: Vec<(Rc<Clock>, Rc<Clock>)> = vec![];
        for &thread in threads {
            let old = &self.of[thread];
            let known = changed.iter().find(|it| Rc::ptr_eq(&it.0, old)).map(|it| Rc::clone(&it.1));
            let new = known.unwrap_or_else(|| {
                let mut clock = Clock::clone(old);
                f(&mut clock);
                let clock = Rc::new(clock);
                changed.push((Rc::clone(old), Rc::clone(&clock)));
                clock
            });
            self.of[thread] = new;
        }
    }
}

impl Machine<'_, '_, '_> {
    /// The threads of some lanes.
    fn threads_of(&self, mask: Mask) -> Vec<usize> {
        lanes(mask).map(|lane| self.base + lane).collect()
    }

    /// What some lanes tell others: what they know, and what they did so far.
    pub(crate) fn publish(&mut self, mask: Mask) -> Clock {
        let out = self.clocks.published(&self.threads_of(mask), self.epoch);
        self.epoch += 1;
        out
    }

    /// Some lanes hear what somebody told.
    pub(crate) fn hear(&mut self, mask: Mask, from: &Clock) {
        let threads = self.threads_of(mask);
        self.clocks.change(&threads, |it| it.join(from));
    }

    /// Some lanes know what an agent did up to an epoch.
    pub(crate) fn learn(&mut self, mask: Mask, agent: u32, epoch: u32) {
        let threads = self.threads_of(mask);
        self.clocks.change(&threads, |it| it.learn(agent, epoch));
    }

    /// Threads wait for each other: each knows what all know and did.
    pub(crate) fn meet(&mut self, threads: impl IntoIterator<Item = usize>) {
        let threads: Vec<usize> = threads.into_iter().collect();
        let all = Rc::new(self.clocks.published(&threads, self.epoch));
        for it in threads {
            self.clocks.of[it] = Rc::clone(&all);
        }
        self.epoch += 1;
    }

    /// Some lanes put what they know and did before what is done by the asynchronous proxy.
    pub(crate) fn fence_proxies(&mut self, mask: Mask) {
        let threads = self.threads_of(mask);
        let epoch = self.epoch;
        self.clocks.change(&threads, |it| it.fence(threads.iter().copied(), epoch));
        self.epoch += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENTS: Agents = Agents { threads: 64, mbarriers: 2 };

    #[test]
    fn agents_have_numbers_of_their_own() {
        let of_threads =
            (0..64).flat_map(|it| [AGENTS.store_read(it), AGENTS.store_write(it), AGENTS.tensor(it)]);
        let of_others = [AGENTS.load(0), AGENTS.load(1), AGENTS.product(0), AGENTS.product(32)];
        let mut all: Vec<u32> = (0..64).chain(of_others).chain(of_threads).collect();
        all.sort_unstable();
        assert_eq!(all, (0..u32::try_from(AGENTS.count()).unwrap()).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_told_is_known_and_what_came_later_is_not() {
        let mut clocks = Clocks::new(AGENTS);
        let told = clocks.published(&[0, 1], 5);
        clocks.change(&[40], |it| it.join(&told));
        assert!(clocks.of(40).knows(0, 5) && clocks.of(40).knows(1, 4) && !clocks.of(40).knows(0, 6));
        assert!(!clocks.of(40).knows(2, 1) && !clocks.of(41).knows(0, 1));
        let further = clocks.published(&[40], 7);
        clocks.change(&[50, 51], |it| it.join(&further));
        assert!(clocks.of(50).knows(0, 5) && clocks.of(50).knows(40, 7));
        assert_eq!(clocks.distinct(50..52).len(), 1, "they share what they know");
    }

    #[test]
    fn a_fence_is_for_what_came_before_it() {
        let mut clocks = Clocks::new(AGENTS);
        let told = clocks.published(&[0], 5);
        clocks.change(&[40], |it| it.join(&told));
        clocks.change(&[40], |it| it.fence([40].into_iter(), 6));
        let clock = clocks.of(40);
        assert!(clock.has_proxied(0, 5) && clock.has_proxied(40, 6) && !clock.has_proxied(40, 7));
        assert!(!clock.has_proxied(1, 1));
    }
}
