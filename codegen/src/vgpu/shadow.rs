//! Who touched an element last: what is remembered of accesses, and when two of them race.
//!
//! *Epochs* count the barriers of a block, and go on counting from block to block and kernel to kernel, so that an
//! epoch belongs to one block. Two accesses of one element by different threads, at least one of them a write, are
//! a race if they are in the same epoch, or in different blocks of one kernel. This is happens-before for programs
//! that synchronise by block-wide barriers, and so it does not depend on the order in which the threads happen to run.
//! Blocks that take turns are ordered by those: what one did before the end of its turn, a later one has [`Seen`] from
//! the beginning of its own on. Atomic additions do not race with each other.

use ir::Arch;
use serde::Serialize;

/// An access in the past: which statement, which thread, when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mark {
    /// The values of the loops around the statement, packed.
    pub(crate) stamp: u64,
    /// When; 0 for never.
    pub(crate) epoch: u32,
    /// The statement, times [`Mark::THREADS`], and the thread.
    packed: u32,
}

/// What is remembered of one element.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    /// The last write.
    pub(crate) write: Mark,
    /// The last atomic addition, and the last one by another thread than that.
    added: [Mark; 2],
    /// The first reader of the last epoch with one.
    reader: Mark,
    /// Another reader of the same epoch.
    second: Mark,
    /// A reader in an earlier block.
    earlier: Mark,
    /// How many asynchronous copies to this element are under way.
    pub(crate) flights: u32,
    /// The last of them.
    pub(crate) flight: u32,
    /// Whether the last write was one to another buffer with bytes in common.
    over: bool,
}

/// When the present kernel and block began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Since {
    /// The first epoch of the kernel; of the block for memory that other blocks do not see.
    pub(crate) kernel: u32,
    /// The first epoch of the block.
    pub(crate) block: u32,
}

/// The epochs of other blocks, from one to another, that the present block comes after by its turn.
pub(crate) type Seen = [(u32, u32)];

/// The order of the two accesses of a race, as they happened to run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RaceKind {
    /// A read of what another thread wrote.
    ReadAfterWrite,
    /// A write of what another thread read.
    WriteAfterRead,
    /// Two writes of different numbers.
    WriteAfterWrite,
    /// A write of what an asynchronous copy was reading.
    SourceInFlight,
}

impl Mark {
    /// How many threads a cluster may have.
    pub(crate) const THREADS: u32 = Arch::MAX_THREADS * Arch::MAX_CLUSTER;
    /// How many statements a kernel may have.
    pub(crate) const SITES: u32 = u32::MAX / Mark::THREADS;

    pub(crate) fn new(stamp: u64, epoch: u32, site: u32, thread: u32) -> Mark {
        Mark { stamp, epoch, packed: site * Mark::THREADS + thread }
    }

    /// The same access by the next thread.
    #[inline]
    pub(crate) fn next(self) -> Mark {
        Mark { packed: self.packed + 1, ..self }
    }

    #[inline]
    pub(crate) fn thread(self) -> u32 {
        self.packed % Mark::THREADS
    }

    pub(crate) fn site(self) -> u32 {
        self.packed / Mark::THREADS
    }

    /// Whether nothing orders an access in the past and one now.
    #[inline]
    pub(crate) fn races(self, now: Mark, since: Since) -> bool {
        (self.epoch == now.epoch && self.thread() != now.thread())
            || (since.kernel <= self.epoch && self.epoch < since.block)
    }

    /// The same, where the block has taken turns.
    fn races_unseen(self, now: Mark, since: Since, seen: &Seen) -> bool {
        self.races(now, since) && !seen.iter().any(|it| (it.0..=it.1).contains(&self.epoch))
    }
}

impl Cell {
    /// A read: the write that it races with, if any.
    pub(crate) fn read(&mut self, now: Mark, since: Since, seen: &Seen) -> Option<Mark> {
        self.remember(now, since);
        let [last, other] = self.added;
        [self.write, last, other].into_iter().find(|it| it.races_unseen(now, since, seen))
    }

    /// A read that no write can race with; `false` if that takes a closer look.
    #[inline]
    pub(crate) fn read_quietly(&mut self, now: Mark, since: Since) -> bool {
        let [last, other] = self.added;
        let earlier = [self.write, last, other];
        if self.flights > 0 || earlier.into_iter().any(|it| it.races(now, since)) {
            return false;
        }
        self.remember(now, since);
        true
    }

    /// A write that nothing can race with; `false` if that takes a closer look.
    #[inline]
    pub(crate) fn write_quietly(&mut self, now: Mark, since: Since) -> bool {
        let races = |it: Mark| it.races(now, since);
        let [last, other] = self.added;
        let earlier = [self.write, last, other, self.reader, self.second, self.earlier];
        if self.flights > 0 || earlier.into_iter().any(races) {
            return false;
        }
        self.write = now;
        self.over = false;
        true
    }

    #[inline]
    fn remember(&mut self, now: Mark, since: Since) {
        if self.reader.epoch != now.epoch {
            if since.kernel <= self.reader.epoch && self.reader.epoch < since.block {
                self.earlier = self.reader;
            }
            self.reader = now;
        } else if self.second.epoch != now.epoch && self.reader.thread() != now.thread() {
            self.second = now;
        }
    }

    /// A write: the access that it races with, if any, and in which way. `equal` says that it writes what is there.
    pub(crate) fn write(&mut self, now: Mark, since: Since, seen: &Seen, equal: bool) -> Written {
        let write = std::mem::replace(&mut self.write, now);
        self.over = false;
        let mut out = Written { race: None, benign: false };
        if write.races_unseen(now, since, seen) {
            if equal {
                out.benign = true;
            } else {
                out.race = Some((write, RaceKind::WriteAfterWrite));
                return out;
            }
        }
        let added = self.added.into_iter().find(|it| it.races_unseen(now, since, seen));
        out.race = match added {
            Some(it) => Some((it, RaceKind::WriteAfterWrite)),
            None => self.reader_racing(now, since, seen),
        };
        out
    }

    /// An atomic addition: the access that it races with, if any, and in which way.
    pub(crate) fn add(&mut self, now: Mark, since: Since, seen: &Seen) -> Option<(Mark, RaceKind)> {
        let own = self.added[0].thread() == now.thread() && self.added[0].epoch >= since.block;
        self.added = [now, self.added[usize::from(own)]];
        if self.write.races_unseen(now, since, seen) {
            return Some((self.write, RaceKind::WriteAfterWrite));
        }
        self.reader_racing(now, since, seen)
    }

    /// A write to another buffer with bytes in common. Two of those race by what that buffer remembers of them, if at
    /// all: they may be to different bytes.
    pub(crate) fn write_over(&mut self, now: Mark, since: Since, equal: bool) -> Written {
        if self.over && self.write.races(now, since) {
            return Written { race: self.reader_racing(now, since, &[]), benign: false };
        }
        let out = self.write(now, since, &[], equal);
        self.over = true;
        out
    }

    fn reader_racing(&self, now: Mark, since: Since, seen: &Seen) -> Option<(Mark, RaceKind)> {
        let readers = [self.reader, self.second, self.earlier];
        readers
            .into_iter()
            .find(|it| it.races_unseen(now, since, seen))
            .map(|it| (it, RaceKind::WriteAfterRead))
    }
}

/// What a write came upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Written {
    /// Another access that it races with.
    pub(crate) race: Option<(Mark, RaceKind)>,
    /// Whether another thread wrote the same number and nothing orders them, which harms nobody.
    pub(crate) benign: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Since = Since { kernel: 1, block: 5 };

    fn mark(epoch: u32, thread: u32) -> Mark {
        Mark::new(0, epoch, 7, thread)
    }

    #[test]
    fn threads_race_within_an_epoch() {
        let mut cell = Cell::default();
        assert!(cell.write(mark(5, 0), SINCE, &[], false).race.is_none());
        assert!(cell.read(mark(5, 0), SINCE, &[]).is_none());
        assert_eq!(cell.read(mark(5, 1), SINCE, &[]), Some(mark(5, 0)));
        assert!(cell.read(mark(6, 1), SINCE, &[]).is_none(), "a barrier is between them");
        let race = cell.write(mark(6, 0), SINCE, &[], true).race;
        assert_eq!(race, Some((mark(6, 1), RaceKind::WriteAfterRead)));
    }

    #[test]
    fn the_own_read_does_not_hide_that_of_another_thread() {
        for readers in [[0, 1], [1, 0]] {
            let mut cell = Cell::default();
            for it in readers {
                assert!(cell.read(mark(5, it), SINCE, &[]).is_none());
            }
            let race = cell.write(mark(5, 0), SINCE, &[], false).race;
            assert_eq!(race, Some((mark(5, 1), RaceKind::WriteAfterRead)));
        }
    }

    #[test]
    fn equal_writes_are_benign() {
        let mut cell = Cell::default();
        cell.write(mark(5, 0), SINCE, &[], false);
        assert_eq!(cell.write(mark(5, 1), SINCE, &[], true), Written { race: None, benign: true });
        let race = Some((mark(5, 1), RaceKind::WriteAfterWrite));
        assert_eq!(cell.write(mark(5, 2), SINCE, &[], false), Written { race, benign: false });
    }

    #[test]
    fn blocks_race_whatever_the_epoch() {
        let mut cell = Cell::default();
        cell.read(mark(2, 3), SINCE, &[]);
        cell.read(mark(5, 3), SINCE, &[]);
        let race = cell.write(mark(6, 3), SINCE, &[], true).race;
        assert_eq!(race, Some((mark(2, 3), RaceKind::WriteAfterRead)));
        let shared = Since { kernel: 5, block: 5 };
        assert!(
            Cell { earlier: Mark::default(), ..cell }.write(mark(7, 3), shared, &[], false).race.is_none()
        );
        let later = Since { kernel: 8, block: 8 };
        assert!(cell.read(mark(8, 0), later, &[]).is_none(), "kernels run one after the other");
    }

    #[test]
    fn turns_order_blocks_and_atomic_additions_need_no_order() {
        let mut cell = Cell::default();
        cell.write(mark(2, 3), SINCE, &[], false);
        cell.read(mark(3, 3), SINCE, &[]);
        assert!(cell.write(mark(6, 3), SINCE, &[(2, 3)], false).race.is_none());
        assert_eq!(cell.read(mark(9, 0), Since { kernel: 1, block: 8 }, &[(2, 5)]), Some(mark(6, 3)));

        let mut cell = Cell::default();
        assert_eq!(cell.add(mark(2, 3), SINCE, &[]), None);
        assert_eq!(cell.add(mark(6, 1), SINCE, &[]), None);
        assert_eq!(cell.add(mark(6, 2), SINCE, &[]), None);
        assert_eq!(cell.read(mark(6, 3), SINCE, &[]), Some(mark(6, 2)));
        assert!(!cell.write_quietly(mark(6, 4), SINCE));
    }
}
