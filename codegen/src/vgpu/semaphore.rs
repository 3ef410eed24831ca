//! Blocks that take turns, and atomic additions: the two ways in which blocks of one kernel may touch the same elements.
//!
//! Blocks run one after the other, in an order in which each turn comes after the one before it: so a turn that does
//! not come is one that no block gives, in whatever order they run. Whether accesses are ordered is a matter of who
//! passed the counter to whom, and not of the order in which blocks happened to run.

use std::collections::HashMap;

use ir::{SemaphoreKind, number};

use super::{
    Finding,
    exec::{Machine, Mask},
    index::WARP,
    program::{Code, Elements, Program, SemaphoreCode, ValueCode},
    shadow::Mark,
    tell::DEADLOCK,
    value::Lanes,
};

/// For each counter what the next block to take its turn comes after: epochs of other blocks.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    passed: HashMap<(usize, usize), Vec<(u32, u32)>>,
    /// What the present block comes after.
    seen: Vec<(u32, u32)>,
}

/// Puts blocks with earlier turns before those with later ones.
pub(crate) fn sort(program: &Program, blocks: &mut [i64]) {
    if let Some(turn) = first_turn(&program.code) {
        blocks.sort_by_cached_key(|block| {
            let mut slots = vec![0; program.slots];
            slots[..3].copy_from_slice(&place(*block, program.grid));
            turn.turn.uniform(&slots)
        });
    }
}

/// The `blockIdx` of a block.
pub(crate) const fn place(block: i64, [x, y, _]: [i64; 3]) -> [i64; 3] {
    [block % x, block / x % y, block / x / y]
}

fn first_turn(code: &[Code]) -> Option<&SemaphoreCode> {
    code.iter().find_map(|it| match it {
        Code::Semaphore(it) => Some(&**it),
        Code::For(it) => first_turn(&it.body),
        Code::If(it) => first_turn(&it.body),
        Code::Leader(it) => first_turn(&it.body),
        Code::Role(_, body) => first_turn(body),
        Code::Alloc(_)
        | Code::Store(..)
        | Code::Copy(..)
        | Code::AtomicAdd(..)
        | Code::Tensor(..)
        | Code::WarpReduce(..)
        | Code::Commit
        | Code::Wait(_)
        | Code::Async(..)
        | Code::Barrier(..) => None,
    })
}

impl<'p> Machine<'p, '_, '_> {
    /// A new block has not come after any other.
    pub(crate) fn forget_turns(&mut self) {
        if !self.turns.seen.is_empty() {
            self.turns.seen.clear();
            self.memory.iter_mut().for_each(|it| it.seen.clear());
        }
    }

    /// The beginning or the end of a turn, and the barrier in it.
    pub(crate) fn semaphore(&mut self, it: &SemaphoreCode) {
        let element = it.index.uniform(&self.slots);
        let Some(at) = self.element(it.buffer, element) else {
            self.base = 0;
            self.out_of_bounds(it.site, it.buffer, element, 0);
            self.run.report.stopped = true;
            return;
        };
        let (turn, count) = (it.turn.uniform(&self.slots), it.count.uniform(&self.slots));
        match it.kind {
            SemaphoreKind::Acquire => self.acquire(it, at, turn),
            SemaphoreKind::Release => {
                let mut passed = self.turns.seen.clone();
                passed.push((self.since.block, self.epoch));
                self.turns.passed.insert((it.buffer, at), passed);
                let next = if turn + 1 < count { turn + 1 } else { 0 };
                #[expect(clippy::cast_precision_loss, reason = "turns are few")]
                self.put(it.buffer, at, next as f64);
            }
        }
        self.epoch += 1;
        self.tally.barriers += 1;
    }

    fn acquire(&mut self, it: &SemaphoreCode, at: usize, turn: i64) {
        #[expect(clippy::cast_possible_truncation, reason = "counters hold small integers")]
        let counter = self.memory[it.buffer].values[at] as i64;
        if counter != turn {
            let key = self.key(DEADLOCK, it.site, it.site);
            if !self.run.sink.count(key) {
                let access = self.describe(Mark::new(self.stamp, self.epoch, it.site, 0));
                let (buffer, element) = self.name(it.buffer, at);
                self.run.sink.keep(key, Finding::Deadlock { buffer, element, turn, counter, access });
            }
            self.run.report.stopped = true;
            return;
        }
        // The first turn comes after nobody, whoever had the last one of an earlier round.
        let passed = self.turns.passed.get(&(it.buffer, at)).filter(|_| turn > 0).cloned();
        self.turns.seen.extend(passed.unwrap_or_default());
        let seen = &self.turns.seen;
        self.memory.iter_mut().for_each(|it| it.seen.clone_from(seen));
    }

    /// The values of adjacent elements.
    pub(crate) fn parts(
        &mut self,
        site: u32,
        place: &Elements,
        value: &'p ValueCode,
        mask: Mask,
    ) -> Vec<Lanes> {
        let mut parts = vec![[0.0; WARP]; place.lanes as usize];
        for (part, values) in (0..place.lanes).zip(&mut parts) {
            self.value(site, value, part, mask, values);
        }
        parts
    }

    /// Additions of some lanes that nothing comes between.
    pub(crate) fn atomic_add(&mut self, site: u32, place: &'p Elements, value: &'p ValueCode, mask: Mask) {
        let parts = self.parts(site, place, value, mask);
        let mut offsets = [0; WARP];
        self.index(&place.index, &mut offsets);
        self.count(place, &offsets, mask);
        for (part, values) in (0..).zip(&parts) {
            for n in 0..WARP {
                let lane = n ^ self.flip;
                if mask >> lane & 1 == 1 {
                    self.add(site, place.buffer, offsets[lane].wrapping_add(part), lane, values[lane]);
                }
            }
        }
    }

    fn add(&mut self, site: u32, buffer: usize, offset: i64, lane: usize, value: f64) {
        let Some(at) = self.element(buffer, offset) else {
            self.out_of_bounds(site, buffer, offset, lane);
            return;
        };
        let (now, since) = (self.mark(site, lane), self.since_of(buffer));
        let memory = &mut self.memory[buffer];
        let (old, written) = (memory.values[at], memory.written[at] != 0);
        let sum = number::round(memory.dtype, old + value);
        let race = if memory.tracks.is_empty() {
            memory.cells.get_mut(at).and_then(|cell| cell.add(now, since, &memory.seen))
        } else {
            self.clocked_add(buffer, at, now)
        };
        if let Some((earlier, kind)) = race {
            self.race(buffer, at, kind, earlier, now);
        }
        if !written {
            self.uninitialised(buffer, at, now);
        }
        self.put(buffer, at, sum);
    }
}
