//! Cluster launch control: blocks that take over others which have not begun.
//!
//! A claim is answered when it is made: by a block that waits to begin, the next one, the last or any, as [`ThreadOrder`](super::ThreadOrder) has it, or in a
//! shuffled order sometimes by none, as a GPU does that has other work. The answer lands as a bulk copy does. It says whether there is a block, and the
//! place of that in the grid.

use std::collections::VecDeque;

use super::{
    Finding, ThreadOrder,
    bulk::{Bulk, Far, Move},
    exec::{Machine, Mask, lanes},
    index::{IndexCode, WARP},
    program::Elements,
    semaphore,
    tell::CLAIM,
};

/// A claim.
#[derive(Debug)]
pub(crate) struct ClaimCode {
    /// Where the answer goes.
    pub(crate) buffer: usize,
    pub(crate) first: IndexCode,
    /// The mbarrier for which it counts.
    pub(crate) barrier: usize,
    pub(crate) slot: IndexCode,
}

/// An answer that is read.
#[derive(Debug)]
pub(crate) struct TakeCode {
    pub(crate) answer: Elements,
}

/// The blocks of a grid, or clusters, that have not begun, and what the one that runs knows of them.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    waiting: VecDeque<i64>,
    /// Whether a thread of it has read that none is left for it.
    is_last: bool,
}

impl Claims {
    pub(crate) fn new(blocks: Vec<i64>) -> Claims {
        Claims { waiting: blocks.into(), is_last: false }
    }

    /// The next block that begins, and how many of so many have begun or were taken over before.
    pub(crate) fn next(&mut self, of: i64) -> Option<(i64, i64)> {
        let block = self.waiting.pop_front()?;
        let left = i64::try_from(self.waiting.len()).expect("there are no more than `of`");
        Some((block, of - 1 - left))
    }
}

impl Machine<'_, '_, '_> {
    /// A block begins, and stands for itself.
    pub(crate) fn begin_claims(&mut self) {
        self.claims.is_last = false;
        if let Some(count) = self.program.claims {
            self.slots[count] = 1;
        }
    }

    /// Some lanes claim a block: in a cluster, those of the first one for all.
    pub(crate) fn claim(&mut self, site: u32, code: &ClaimCode, mask: Mask) {
        let (mut first, mut slots) = ([0; WARP], [0; WARP]);
        self.index(&code.first, &mut first);
        self.index(&code.slot, &mut slots);
        if self.program.cluster.block_of(self.base) > 0 {
            return;
        }
        for lane in lanes(mask) {
            let begun = self.mark(site, lane);
            let key = self.key(CLAIM, site, site);
            if self.claims.is_last && !self.run.sink.count(key) {
                let access = self.describe(begun);
                self.run.sink.keep(key, Finding::ClaimedAgain { access });
            }
            let answer = self.answer();
            for block in 0..self.program.cluster.blocks() {
                let Some(moves) = self.moves_of_answer(site, code, (first[lane], block), answer, lane) else {
                    continue;
                };
                let Some(mbarrier) = self.mbarrier(site, code.barrier, (slots[lane], block), lane) else {
                    continue;
                };
                self.start_load(
                    Bulk { mark: begun, global: code.buffer, adds: false, mbarrier, moves },
                    lane,
                );
            }
        }
    }

    /// What the GPU says: whether there is a block, and where.
    fn answer(&mut self) -> [i64; 4] {
        let count = self.claims.waiting.len();
        let at = match self.run.order {
            ThreadOrder::Forward => 0,
            ThreadOrder::Reversed => count.saturating_sub(1),
            ThreadOrder::Shuffled if self.run.random.below(4) == 0 => count,
            ThreadOrder::Shuffled => self.run.random.below(count.max(1)),
        };
        match self.claims.waiting.remove(at) {
            Some(block) => {
                let [x, y, z] = semaphore::place(block, self.program.grid);
                [1, x, y, z]
            }
            None => [0; 4],
        }
    }

    fn moves_of_answer(
        &mut self,
        site: u32,
        code: &ClaimCode,
        (first, block): (i64, usize),
        answer: [i64; 4],
        lane: usize,
    ) -> Option<Vec<Move>> {
        let buffer = &self.program.buffers[code.buffer];
        let (each, bytes) = (buffer.dtype.bytes_i64(), ir::Claim::BYTES);
        let start = first.wrapping_mul(each).wrapping_add(buffer.start);
        self.expect_box(site, (code.buffer, first), start, bytes, lane);
        let mut out = vec![];
        for (n, number) in (0..).zip(answer) {
            let Some(to) = self.at_byte(code.buffer, start.wrapping_add(each * n), block) else {
                self.out_of_bounds(site, code.buffer, first.wrapping_add(n), lane);
                return None;
            };
            #[expect(clippy::cast_precision_loss, reason = "grids have fewer blocks")]
            out.push((Far::Number(number as f64), to));
        }
        Some(out)
    }
}

impl<'p> Machine<'p, '_, '_> {
    /// Lanes of a warp read an answer, and the warp stands for the block that it names.
    pub(crate) fn take(&mut self, site: u32, code: &'p TakeCode, mask: Mask) {
        let mut answer = [0; 4];
        for (part, number) in (0..).zip(&mut answer) {
            let mut out = [0.0; WARP];
            self.load(site, &code.answer, part, mask, &mut out);
            #[expect(clippy::cast_possible_truncation, reason = "an answer is a bit, and a place in a grid")]
            let read = out[mask.trailing_zeros() as usize % WARP] as i64;
            *number = read;
        }
        let Some(count) = self.program.claims else { return };
        // A grid has so many blocks; whoever stands for more has read an answer twice.
        let has_room = self.slots[count] < self.program.grid.iter().product();
        match answer {
            [1, x, y, z] if has_room => {
                self.slots[..3].copy_from_slice(&[x, y, z]);
                self.slots[count] += 1;
            }
            _ => self.claims.is_last = true,
        }
    }
}
