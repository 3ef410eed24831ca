//! Statements that all threads of a block come to together, and what is found where not all of them do.

use super::{
    Finding,
    exec::Machine,
    index::WARP,
    program::{ForCode, IfCode},
    shadow::Mark,
    tell::DIVERGENT,
};

impl<'p> Machine<'p, '_, '_> {
    pub(crate) fn for_together(&mut self, it: &'p ForCode) {
        let mut extents = vec![];
        for base in self.bases() {
            self.base = base;
            let mut lanes = [0; WARP];
            self.index(&it.extent, &mut lanes);
            extents.extend(lanes);
        }
        extents.truncate(self.program.threads());
        if !self.agree(it.site, &extents) {
            return;
        }
        let outside = self.stamp;
        for n in 0..extents[0] {
            it.begin(n, &mut self.slots);
            self.stamp = it.stamp(outside, n);
            self.together(&it.body);
            if self.run.report.stopped {
                break;
            }
        }
        self.stamp = outside;
    }

    pub(crate) fn if_together(&mut self, it: &'p IfCode) {
        let mut holds = vec![];
        for base in self.bases() {
            self.base = base;
            let mask = self.holds(&it.cond, self.all());
            holds.extend((0..WARP).map(|lane| mask >> lane & 1));
        }
        holds.truncate(self.program.threads());
        if self.agree(it.site, &holds) && holds[0] == 1 {
            self.together(&it.body);
        }
    }

    /// Whether all threads have the same number; else the run ends.
    fn agree<T: PartialOrd>(&mut self, site: u32, numbers: &[T]) -> bool {
        let Some(other) = numbers.iter().position(|it| *it != numbers[0]) else { return true };
        let (more, less) = if numbers[0] > numbers[other] { (0, other) } else { (other, 0) };
        let mark = |thread: usize| {
            Mark::new(self.stamp, self.epoch, site, u32::try_from(thread).expect("at most 1024"))
        };
        let (access, other) = (self.describe(mark(more)), self.describe(mark(less)));
        let key = self.key(DIVERGENT, site, site);
        if !self.run.sink.count(key) {
            self.run.sink.keep(key, Finding::DivergentBarrier { access, other });
        }
        self.run.report.stopped = true;
        false
    }

    /// Not all threads come to a barrier: one that does, and one that does not.
    pub(crate) fn divergent(&mut self, access: (u64, u32, usize), other: (u64, u32, usize)) {
        let mark = |(stamp, site, thread): (u64, u32, usize)| {
            Mark::new(stamp, self.epoch, site, u32::try_from(thread).expect("at most 1024"))
        };
        let key = self.key(DIVERGENT, access.1, other.1);
        if !self.run.sink.count(key) {
            let (access, other) = (self.describe(mark(access)), self.describe(mark(other)));
            self.run.sink.keep(key, Finding::DivergentBarrier { access, other });
        }
        self.run.report.stopped = true;
    }
}
