//! What the tensor core has still to do of what threads started: products, copies of scales, and arrivals behind them, each in the order in which its
//! thread started it.

use std::collections::VecDeque;

use super::{
    Landing,
    clock::Clock,
    exec::{Machine, Mask, lanes},
    index::WARP,
    mbarrier::ArriveCode,
    shadow::Mark,
    tcgen05::Product,
};

/// What a thread has under way, oldest first.
#[derive(Debug, Default)]
pub(crate) struct TensorProducts(VecDeque<Pending>);

/// What happens when all before it has.
#[derive(Debug)]
pub(crate) enum Pending {
    /// A product arrives in tensor memory.
    Product(Product),
    /// Scales arrive there: which, and where.
    Copy(Mark, Vec<(usize, usize)>, Vec<(usize, usize)>),
    /// A group is over that was closed in this epoch.
    Group(u32),
    /// The thread has arrived at mbarriers, and what it knew then of copies that its products read.
    Arrival(Vec<usize>, Mark, Clock),
}

impl TensorProducts {
    fn groups(&self) -> usize {
        self.0.iter().filter(|it| matches!(it, Pending::Group(_))).count()
    }
}

impl Machine<'_, '_, '_> {
    /// What a thread starts is done when all that it started before is.
    pub(crate) fn leave_to_tensor_core(&mut self, thread: usize, it: Pending) {
        self.tensor_products.entry(thread).or_default().0.push_back(it);
    }

    /// Some lanes close their groups of products.
    pub(crate) fn commit_tensor(&mut self, mask: Mask) {
        for lane in lanes(mask) {
            self.leave_to_tensor_core(self.base + lane, Pending::Group(self.epoch));
        }
        self.epoch += 1;
    }

    /// Some lanes wait for all but their youngest groups.
    pub(crate) fn wait_tensor(&mut self, in_flight: usize, mask: Mask) {
        for lane in lanes(mask) {
            let thread = self.base + lane;
            while self.tensor_products.get(&thread).is_some_and(|it| it.groups() > in_flight) {
                if let Some(Pending::Group(epoch)) = self.land_tensor(thread) {
                    self.learn(1 << lane, self.agents.tensor(thread), epoch);
                }
            }
        }
    }

    /// Some lanes arrive at mbarriers when their products so far are over.
    pub(crate) fn arrive_late(&mut self, site: u32, code: &ArriveCode, slots: &[i64; WARP], active: Mask) {
        for lane in lanes(active) {
            let blocks = self.told_blocks(&code.along, code.at_first).into_iter();
            let at: Option<Vec<_>> =
                blocks.map(|it| self.mbarrier(site, code.barrier, (slots[lane], it), lane)).collect();
            let Some(at) = at else { continue };
            let mark = self.mark(site, lane);
            let thread = self.base + lane;
            let told = self.clocks.of(thread).of_workers(self.agents);
            self.leave_to_tensor_core(thread, Pending::Arrival(at, mark, told));
            self.epoch += 1;
            while self.run.landing == Landing::Earliest && self.land_tensor(thread).is_some() {}
        }
    }

    /// What comes next of a thread's products happens.
    fn land_tensor(&mut self, thread: usize) -> Option<Pending> {
        let next = self.tensor_products.get_mut(&thread)?.0.pop_front()?;
        match &next {
            Pending::Product(it) if self.run.landing == Landing::Latest => self.multiply_into(it),
            Pending::Copy(mark, from, to) if self.run.landing == Landing::Latest => {
                self.arrive_scales(*mark, from, to);
            }
            Pending::Arrival(at, mark, told) => {
                for at in at {
                    self.arrive_for(*at, self.agents.tensor(thread), *mark, told);
                }
            }
            Pending::Product(_) | Pending::Copy(..) | Pending::Group(_) => {}
        }
        Some(next)
    }

    /// Lets a product land that somebody may wait for, of any thread; `false` if there is none.
    pub(crate) fn land_any_tensor(&mut self) -> bool {
        let arrives = |it: &TensorProducts| it.0.iter().any(|it| matches!(it, Pending::Arrival(..)));
        let found = self.tensor_products.iter().find(|it| arrives(it.1)).map(|it| *it.0);
        found.is_some_and(|thread| self.land_tensor(thread).is_some())
    }

    /// The blocks of a cluster end: arrivals in another one that are still to come nobody has waited for.
    pub(crate) fn leave_arrivals(&mut self) {
        let of_block = self.program.mbarriers_of_block();
        for (thread, it) in &self.tensor_products {
            let own = self.program.cluster.block_of(*thread);
            for it in &it.0 {
                let Pending::Arrival(all, mark, _) = it else { continue };
                for at in all.iter().filter(|it| **it / of_block != own) {
                    self.visits.late.insert(*at, (i64::MAX, *mark));
                }
            }
        }
    }

    /// The block ends: products that nobody waited for.
    pub(crate) fn end_tensor(&mut self) {
        for (_, it) in std::mem::take(&mut self.tensor_products) {
            for it in it.0 {
                if let Pending::Product(Product { mark, .. }) | Pending::Copy(mark, ..) = it {
                    self.outstanding(mark);
                }
            }
        }
    }
}
