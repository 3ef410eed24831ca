//! Bulk copies: boxes between global and shared memory, element by element through the addresses that the hardware makes.
//!
//! The rows of a box stand one behind the other in shared memory, and the swizzle of the map permutes their bytes by their
//! absolute addresses. What a box has beyond the tensor comes as zero, counts in full, and is not written back.

use std::collections::VecDeque;

use ir::{XorSwizzle, number};

use super::{
    Finding, Landing,
    exec::{Machine, Mask, lanes},
    index::{IndexCode, WARP},
    shadow::Mark,
    tell::{MISALIGNED, OUTSTANDING},
    track::Past,
};

/// A tensor map for given sizes.
#[derive(Debug)]
pub(crate) struct MapCode {
    pub(crate) buffer: usize,
    pub(crate) dims: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) tile: Vec<i64>,
    pub(crate) swizzle: Option<XorSwizzle>,
}

/// Which way a copy goes.
#[derive(Debug)]
pub(crate) enum BulkWay {
    /// To shared memory, for a phase of the mbarriers of this number.
    Load {
        barrier: usize,
        slot: IndexCode,
        /// The axis of the cluster along which it goes to all blocks.
        along: Option<usize>,
        /// Whether it counts for the mbarrier of the first block.
        at_first: bool,
    },
    Store,
    Add,
}

/// A bulk copy.
#[derive(Debug)]
pub(crate) struct BulkCode {
    pub(crate) way: BulkWay,
    pub(crate) map: usize,
    pub(crate) coords: Vec<IndexCode>,
    /// The buffer in shared memory, and the first element there.
    pub(crate) buffer: usize,
    pub(crate) first: IndexCode,
}

/// The other end of an element in shared memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Far {
    /// An element of global memory.
    Element(usize),
    /// A number from nowhere: zero beyond the tensor, or one that the GPU says.
    Number(f64),
}

/// An element of a box: where it comes from or goes to, and in which shared buffer where.
pub(crate) type Move = (Far, (usize, usize));

/// A bulk copy under way.
#[derive(Debug)]
pub(crate) struct Bulk {
    pub(crate) mark: Mark,
    /// The buffer in global memory.
    pub(crate) global: usize,
    /// Whether it adds to what is there.
    pub(crate) adds: bool,
    /// Of a load, the mbarrier that it counts for.
    pub(crate) mbarrier: usize,
    pub(crate) moves: Vec<Move>,
}

/// The copies to global memory that a thread has started.
#[derive(Debug, Default)]
pub(crate) struct Stores {
    open: Vec<Bulk>,
    /// The closed groups, oldest first, and how many of them have read what they copy.
    groups: VecDeque<(u32, Vec<Bulk>)>,
    read: usize,
}

impl MapCode {
    /// What a box in shared memory begins at a multiple of.
    fn align(&self) -> i64 {
        self.swizzle.map_or(128, XorSwizzle::period_bytes)
    }

    /// Where the elements of a box are in global memory, in their order in shared memory.
    fn places(&self, coords: &[i64]) -> Vec<Option<i64>> {
        let mut out = vec![Some(0)];
        for (dim, extent) in self.tile.iter().enumerate() {
            let at = |n: i64| coords[dim].checked_add(n).filter(|it| (0..self.dims[dim]).contains(it));
            // An offset past 64 bits is in no buffer.
            let further = |place: Option<i64>, n: i64| {
                Some(place?.saturating_add(at(n)?.saturating_mul(self.strides[dim])))
            };
            out = out.iter().flat_map(|it| (0..*extent).map(move |n| further(*it, n))).collect();
        }
        out
    }
}

impl Machine<'_, '_, '_> {
    /// Some lanes start a copy each.
    pub(crate) fn bulk(&mut self, site: u32, code: &BulkCode, mask: Mask) {
        let mut coords = vec![[0; WARP]; code.coords.len()];
        for (out, it) in coords.iter_mut().zip(&code.coords) {
            self.index(it, out);
        }
        let (mut first, mut slots) = ([0; WARP], [0; WARP]);
        self.index(&code.first, &mut first);
        if let BulkWay::Load { slot, .. } = &code.way {
            self.index(slot, &mut slots);
        }
        for lane in lanes(mask) {
            let coords: Vec<i64> = coords.iter().map(|it| it[lane]).collect();
            let own = self.program.cluster.block_of(self.base);
            let begun = self.mark(site, lane);
            let (global, adds) = (self.program.maps[code.map].buffer, matches!(code.way, BulkWay::Add));
            let BulkWay::Load { barrier, along, at_first, .. } = code.way else {
                let Some(moves) = self.moves(site, code, &coords, (first[lane], own), lane) else { continue };
                self.start_store(Bulk { mark: begun, global, adds, mbarrier: 0, moves }, lane);
                continue;
            };
            for block in self.program.cluster.along(own, along.as_slice()) {
                let to = (first[lane], block);
                let Some(moves) = self.moves(site, code, &coords, to, lane) else { continue };
                let told = if at_first { 0 } else { block };
                let Some(mbarrier) = self.mbarrier(site, barrier, (slots[lane], told), lane) else {
                    continue;
                };
                self.start_load(Bulk { mark: begun, global, adds, mbarrier, moves }, lane);
            }
        }
    }

    /// The elements that a copy moves from or to the shared memory of a block.
    fn moves(
        &mut self,
        site: u32,
        code: &BulkCode,
        coords: &[i64],
        (first, block): (i64, usize),
        lane: usize,
    ) -> Option<Vec<Move>> {
        let program = self.program;
        let (map, buffer) = (&program.maps[code.map], &program.buffers[code.buffer]);
        let each = buffer.dtype.bytes_i64();
        let start = first.wrapping_mul(each).wrapping_add(buffer.start);
        self.expect_box(site, (code.buffer, first), start, map.align(), lane);
        let mut out = vec![];
        for (n, from) in (0..).zip(map.places(coords)) {
            let byte = start.wrapping_add(each * n);
            let byte = map.swizzle.map_or(byte, |it| it.byte(byte));
            let Some(to) = self.at_byte(code.buffer, byte, block) else {
                self.out_of_bounds(site, code.buffer, first.wrapping_add(n), lane);
                return None;
            };
            let from = match from.map(|it| (it, self.element(map.buffer, it))) {
                None => Far::Number(0.0),
                Some((_, Some(at))) => Far::Element(at),
                Some((element, None)) => {
                    self.out_of_bounds(site, map.buffer, element, lane);
                    return None;
                }
            };
            out.push((from, to));
        }
        Some(out)
    }

    /// Looks whether something in shared memory begins where hardware wants it.
    pub(crate) fn expect_box(&mut self, site: u32, at: (usize, i64), byte: i64, align: i64, lane: usize) {
        if byte & (align - 1) == 0 {
            return;
        }
        let key = self.key(MISALIGNED, site, site);
        if !self.run.sink.count(key) {
            let access = self.describe(self.mark(site, lane));
            let buffer = self.program.buffers[at.0].name.clone();
            let finding = Finding::Misaligned { buffer, element: at.1, byte, shared: true, align, access };
            self.run.sink.keep(key, finding);
        }
    }

    /// The element of a shared buffer at a byte of a block of the cluster: of this buffer, or of another that has that byte.
    pub(crate) fn at_byte(&self, buffer: usize, byte: i64, block: usize) -> Option<(usize, usize)> {
        let buffers = &self.program.buffers;
        let element = |at: usize| {
            let it = &buffers[at];
            // Sizes of elements are powers of two.
            let each = it.dtype.bytes_i64();
            let from = byte.wrapping_sub(it.start);
            let offset = usize::try_from(from >> each.trailing_zeros()).ok()?;
            (offset < it.len && from & (each - 1) == 0).then(|| (at, self.origin(at, block) + offset))
        };
        let is_like = |at: &usize| {
            buffers[*at].space == ir::Scope::Shared && buffers[*at].dtype == buffers[buffer].dtype
        };
        element(buffer).or_else(|| (0..buffers.len()).filter(is_like).find_map(element))
    }

    /// A copy to shared memory begins.
    pub(crate) fn start_load(&mut self, copy: Bulk, lane: usize) {
        let now = Past { mark: copy.mark, agent: self.agents.load(copy.mbarrier) };
        let from = copy.global;
        let thread = self.base + lane..self.base + lane + 1;
        for (source, (buffer, at)) in &copy.moves {
            if let Far::Element(source) = *source {
                self.async_reads(&[(from, source)], now, thread.clone());
            }
            // It may be written at once.
            self.async_write(*buffer, *at, now, thread.clone(), None);
        }
        self.epoch += 1;
        if self.run.landing == Landing::Earliest {
            self.land_load(&copy);
        } else {
            self.loads.push(copy);
        }
    }

    /// A copy to shared memory arrives: it takes what is in memory now.
    pub(crate) fn land_load(&mut self, copy: &Bulk) {
        let mut bytes = 0;
        for (source, (buffer, at)) in &copy.moves {
            let value = match *source {
                Far::Element(it) => self.memory[copy.global].values[it],
                Far::Number(it) => it,
            };
            self.put(*buffer, *at, value);
            bytes += self.memory[*buffer].dtype.bytes_i64();
        }
        self.count_bytes(copy.mbarrier, bytes, self.agents.load(copy.mbarrier), copy.mark);
    }

    fn start_store(&mut self, copy: Bulk, lane: usize) {
        let thread = self.base + lane;
        let global = copy.global;
        let reads = Past { mark: copy.mark, agent: self.agents.store_read(thread) };
        let writes = Past { mark: copy.mark, agent: self.agents.store_write(thread) };
        for (to, (buffer, at)) in &copy.moves {
            let Far::Element(to) = *to else { continue };
            self.async_reads(&[(*buffer, *at)], reads, thread..thread + 1);
            // It may be written at once.
            if copy.adds {
                self.async_add(global, to, writes, thread..thread + 1);
            } else {
                let value = self.memory[*buffer].values[*at];
                self.async_write(global, to, writes, thread..thread + 1, Some(value));
            }
        }
        self.epoch += 1;
        if self.run.landing == Landing::Earliest {
            self.land_store(&copy);
        }
        self.stores.entry(thread).or_default().open.push(copy);
    }

    /// The number that an element of global memory has when what its last writer copies there has arrived.
    pub(crate) fn arriving(&self, buffer: usize, at: usize, writer: u32) -> f64 {
        let under_way = self.stores.iter().filter(|(thread, _)| self.agents.store_write(**thread) == writer);
        let mut under_way = under_way.flat_map(|(_, it)| {
            let groups = it.groups.iter().skip(it.read).flat_map(|it| &it.1);
            groups.chain(&it.open).collect::<Vec<_>>().into_iter().rev()
        });
        let found = under_way.find_map(|copy| {
            let is_it = |it: &&Move| it.0 == Far::Element(at) && copy.global == buffer;
            copy.moves.iter().find(is_it)
        });
        found.map_or(self.memory[buffer].values[at], |(_, (from, at))| self.memory[*from].values[*at])
    }

    /// A copy to global memory reads what is in shared memory now, and arrives.
    fn land_store(&mut self, copy: &Bulk) {
        let to = copy.global;
        for (place, (buffer, at)) in &copy.moves {
            let Far::Element(place) = *place else { continue };
            if self.memory[*buffer].written[*at] != self.since.block {
                self.uninitialised(*buffer, *at, copy.mark);
            }
            let value = self.memory[*buffer].values[*at];
            let value = if copy.adds {
                number::round(self.memory[to].dtype, self.memory[to].values[place] + value)
            } else {
                value
            };
            self.put(to, place, value);
        }
    }

    /// Some lanes close their groups of copies to global memory.
    pub(crate) fn commit_stores(&mut self, mask: Mask) {
        for lane in lanes(mask) {
            let it = self.stores.entry(self.base + lane).or_default();
            let group = std::mem::take(&mut it.open);
            it.groups.push_back((self.epoch, group));
        }
        self.epoch += 1;
    }

    /// Some lanes wait for all but their youngest groups: until they have read what they copy, or until that is in its place.
    pub(crate) fn wait_stores(&mut self, in_flight: usize, reads_only: bool, mask: Mask) {
        for lane in lanes(mask) {
            let thread = self.base + lane;
            let mut it = self.stores.remove(&thread).unwrap_or_default();
            let done = it.groups.len().saturating_sub(in_flight);
            let mut last = None;
            for (n, (epoch, group)) in it.groups.iter().take(done).enumerate() {
                last = Some(*epoch);
                if n >= it.read && self.run.landing == Landing::Latest {
                    for copy in group {
                        self.land_store(copy);
                    }
                }
            }
            it.read = it.read.max(done);
            if let Some(epoch) = last {
                self.learn(1 << lane, self.agents.store_read(thread), epoch);
                if !reads_only {
                    self.learn(1 << lane, self.agents.store_write(thread), epoch);
                    it.groups.drain(..done);
                    it.read -= done;
                }
            }
            self.stores.insert(thread, it);
        }
    }

    /// The block ends: copies that may still touch its shared memory.
    pub(crate) fn end_bulk(&mut self) {
        for it in std::mem::take(&mut self.loads) {
            self.land_load(&it);
        }
        self.expect_copies_over();
        for (_, it) in std::mem::take(&mut self.stores) {
            let groups = it.groups.into_iter().skip(it.read).flat_map(|it| it.1);
            for copy in groups.chain(it.open) {
                self.outstanding(copy.mark);
                if self.run.landing == Landing::Latest {
                    self.land_store(&copy);
                }
            }
        }
    }

    /// What a thread started and nobody waited for.
    #[cold]
    pub(crate) fn outstanding(&mut self, mark: Mark) {
        let key = self.key(OUTSTANDING, mark.site(), mark.site());
        if !self.run.sink.count(key) {
            let access = self.describe(mark);
            self.run.sink.keep(key, Finding::Outstanding { access });
        }
    }
}
