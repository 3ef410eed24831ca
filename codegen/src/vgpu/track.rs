//! Who touched an element last, where clocks say what comes before what: see [`super::clock`].

use std::{ops::Range, rc::Rc};

use super::{
    clock::Clock,
    shadow::{Mark, RaceKind, Seen, Since, Written},
};

/// An access in the past, and whose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Past {
    pub(crate) mark: Mark,
    pub(crate) agent: u32,
}

/// What is remembered of one element.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    pub(crate) write: Past,
    /// The last atomic addition of each agent since the last write, unless another comes after it.
    added: Vec<Past>,
    /// The same of reads.
    readers: Vec<Past>,
    /// Whether the last write was one to another buffer with bytes in common.
    over: bool,
}

/// What an access comes after.
pub(crate) struct Order<'a> {
    pub(crate) since: Since,
    /// The epochs of other blocks that this one comes after by its turn.
    pub(crate) seen: &'a Seen,
    /// The threads that make the access, and so come after their own.
    pub(crate) own: Range<u32>,
    /// What they know.
    pub(crate) clocks: &'a [Rc<Clock>],
    /// Who makes it for them, if that does all in order and so comes after its own, too.
    pub(crate) worker: Option<u32>,
}

impl Order<'_> {
    /// Whether nothing orders an access in the past and one now.
    pub(crate) fn races(&self, past: &Past) -> bool {
        let epoch = past.mark.epoch;
        if epoch < self.since.block {
            let unseen = || !self.seen.iter().any(|it| (it.0..=it.1).contains(&epoch));
            return self.since.kernel <= epoch && unseen();
        }
        let is_own = self.own.contains(&past.agent) || self.worker == Some(past.agent);
        !is_own && self.clocks.iter().any(|it| !it.knows(past.agent, epoch))
    }

    /// Whether an access of this block is not before what the asynchronous proxy does now.
    pub(crate) fn is_unfenced(&self, past: &Past) -> bool {
        let epoch = past.mark.epoch;
        epoch >= self.since.block && self.clocks.iter().any(|it| !it.has_proxied(past.agent, epoch))
    }
}

impl Track {
    /// A read: the write that it races with, if any.
    pub(crate) fn read(&mut self, now: Past, order: &Order<'_>) -> Option<Mark> {
        let race = [&self.write].into_iter().chain(&self.added).find(|it| order.races(it)).map(|it| it.mark);
        remember(&mut self.readers, now, order);
        race
    }

    /// A write: the access that it races with, if any, and in which way. `equal` says that it writes what is there.
    pub(crate) fn write(&mut self, now: Past, order: &Order<'_>, equal: bool) -> Written {
        let write = std::mem::replace(&mut self.write, now);
        self.over = false;
        let mut out = Written { race: None, benign: false };
        if order.races(&write) {
            if equal {
                out.benign = true;
            } else {
                out.race = Some((write.mark, RaceKind::WriteAfterWrite));
                return out;
            }
        }
        let added = self.added.iter().find(|it| order.races(it));
        out.race = match added {
            Some(it) => Some((it.mark, RaceKind::WriteAfterWrite)),
            None => self.reader_racing(order),
        };
        out
    }

    /// An atomic addition: the access that it races with, if any, and in which way.
    pub(crate) fn add(&mut self, now: Past, order: &Order<'_>) -> Option<(Mark, RaceKind)> {
        remember(&mut self.added, now, order);
        if order.races(&self.write) {
            return Some((self.write.mark, RaceKind::WriteAfterWrite));
        }
        self.reader_racing(order)
    }

    /// A write to another buffer with bytes in common. Two of those race by what that buffer remembers of them, if at
    /// all: they may be to different bytes.
    pub(crate) fn write_over(&mut self, now: Past, order: &Order<'_>, equal: bool) -> Written {
        if self.over && order.races(&self.write) {
            return Written { race: self.reader_racing(order), benign: false };
        }
        let out = self.write(now, order, equal);
        self.over = true;
        out
    }

    /// The write or a read by a thread that no fence puts before what the asynchronous proxy does now.
    pub(crate) fn unfenced(&self, order: &Order<'_>, is_thread: impl Fn(u32) -> bool) -> Option<Mark> {
        let all = [&self.write].into_iter().chain(&self.readers);
        all.filter(|it| is_thread(it.agent)).find(|it| order.is_unfenced(it)).map(|it| it.mark)
    }

    fn reader_racing(&self, order: &Order<'_>) -> Option<(Mark, RaceKind)> {
        self.readers.iter().find(|it| order.races(it)).map(|it| (it.mark, RaceKind::WriteAfterRead))
    }
}

/// Keeps an access and those that it does not come after; of other blocks one is enough.
fn remember(all: &mut Vec<Past>, now: Past, order: &Order<'_>) {
    let is_own = |it: &&mut Past| it.agent == now.agent && it.mark.epoch >= order.since.block;
    if let Some(own) = all.iter_mut().find(is_own) {
        *own = now;
        return;
    }
    let mut is_first = true;
    all.retain(|it| {
        let is_of_this = it.mark.epoch >= order.since.block;
        order.races(it) && (is_of_this || std::mem::take(&mut is_first))
    });
    all.push(now);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vgpu::clock::Agents;

    fn past(epoch: u32, agent: u32) -> Past {
        Past { mark: Mark::new(0, epoch, 7, agent), agent }
    }

    fn order(clocks: &[Rc<Clock>], thread: u32) -> Order<'_> {
        Order {
            since: Since { kernel: 1, block: 5 },
            seen: &[],
            own: thread..thread + 1,
            clocks,
            worker: None,
        }
    }

    fn knowing(all: &[(u32, u32)]) -> [Rc<Clock>; 1] {
        let mut clock = Clock::new(Agents::of(4));
        for (agent, epoch) in all {
            clock.learn(*agent, *epoch);
        }
        [Rc::new(clock)]
    }

    #[test]
    fn each_reader_has_to_be_known_to_a_writer() {
        let mut track = Track::default();
        let nothing = knowing(&[]);
        for thread in [0, 1, 2] {
            assert_eq!(track.read(past(6, thread), &order(&nothing, thread)), None);
        }
        let two = knowing(&[(0, 6), (1, 6)]);
        let race = Some((past(6, 2).mark, RaceKind::WriteAfterRead));
        assert_eq!(track.clone().write(past(9, 3), &order(&two, 3), false).race, race);
        let all = knowing(&[(0, 6), (1, 6), (2, 6)]);
        assert_eq!(track.write(past(9, 3), &order(&all, 3), false).race, None);
        assert_eq!(track.read(past(9, 0), &order(&nothing, 0)), Some(past(9, 3).mark));
    }

    #[test]
    fn what_is_behind_a_known_read_is_forgotten() {
        let mut track = Track::default();
        track.read(past(6, 0), &order(&knowing(&[]), 0));
        track.read(past(8, 1), &order(&knowing(&[(0, 6)]), 1));
        assert_eq!(track.readers, [past(8, 1)]);
        assert_eq!(track.write(past(9, 3), &order(&knowing(&[(1, 8)]), 3), false).race, None);
    }

    #[test]
    fn blocks_race_unless_turns_order_them() {
        let mut track = Track::default();
        track.write(past(2, 0), &order(&knowing(&[]), 0), false);
        let clocks = knowing(&[]);
        let mut later = order(&clocks, 0);
        assert_eq!(track.read(past(6, 0), &later), Some(past(2, 0).mark));
        later.seen = &[(2, 3)];
        assert_eq!(track.read(past(6, 0), &later), None);
    }
}
