//! Loads and stores: bounds, what was written before, and who else touched it.

use std::ops::Range;

use ir::{DType, Scope as Space, number};

use super::{
    async_access::is_same,
    exec::{Machine, Mask, lanes},
    index::{LaneIndices, WARP},
    memory::Memory,
    program::{Elements, ValueCode},
    shadow::{Mark, RaceKind, Since},
    track::Past,
    value::Lanes,
};

impl Memory {
    /// Reads for the lanes of which nothing needs to be told, and says which are left. `first` is the access by the
    /// first thread of the warp.
    fn quick(
        &mut self,
        offsets: &LaneIndices,
        mask: Mask,
        first: Mark,
        since: Since,
        out: &mut Lanes,
    ) -> Mask {
        // Blocks of clusters, which have shared memory each, have tracks.
        if self.space == Space::Local || !self.tracks.is_empty() {
            return mask;
        }
        let shared = self.space.is_of_blocks();
        let mut left = 0;
        let mut now = first;
        for lane in 0..WARP {
            // Threads are numbered like lanes.
            if lane > 0 {
                now = now.next();
            }
            if mask >> lane & 1 == 0 {
                continue;
            }
            let Some(at) = usize::try_from(offsets[lane]).ok().filter(|at| *at < self.len) else {
                left |= 1 << lane;
                continue;
            };
            let written = self.written[at];
            let mut sound = if shared { written == since.block } else { written != 0 };
            if !self.cells.is_empty() {
                sound = sound && self.cells[at].read_quietly(now, since);
            }
            out[lane] = self.values[at];
            if !sound {
                left |= 1 << lane;
            }
        }
        left
    }
}

impl Memory {
    /// Writes an element if nothing needs to be told of it.
    #[inline]
    fn quick_write(&mut self, offset: i64, value: f64, now: Mark, since: Since) -> bool {
        if !self.tracks.is_empty() {
            return false;
        }
        let Some(at) = usize::try_from(offset).ok().filter(|at| *at < self.cells.len()) else { return false };
        let quiet = self.cells[at].write_quietly(now, since);
        if quiet {
            self.values[at] = value;
            self.written[at] = since.block;
        }
        quiet
    }
}

/// Rounds to a type.
fn round(dtype: DType, values: &mut Lanes) {
    #[expect(clippy::cast_possible_truncation, reason = "rounding is the meaning here")]
    let narrow = |it: f64| f64::from(it as f32);
    if dtype == DType::F32 {
        for it in values {
            *it = narrow(*it);
        }
    } else {
        for it in values {
            *it = number::round(dtype, *it);
        }
    }
}

impl<'p> Machine<'p, '_, '_> {
    /// The contents of a place for some lanes.
    pub(crate) fn load(&mut self, site: u32, place: &'p Elements, part: u32, mask: Mask, out: &mut Lanes) {
        let further = if place.lanes > 1 { i64::from(part) } else { 0 };
        if part == 0 {
            self.expect_aligned(site, place, mask);
        }
        if let Some(row) = self.local_row(place, further) {
            self.touch_registers(site, place.buffer, row, mask);
            let memory = &self.memory[place.buffer];
            if memory.written[row] & mask == mask {
                out.copy_from_slice(&memory.values[row * WARP..][..WARP]);
                return;
            }
        }
        let mut offsets = [0; WARP];
        self.index(&place.index, &mut offsets);
        if part == 0 {
            self.count(place, &offsets, mask);
        }
        if further != 0 {
            for it in &mut offsets {
                *it = it.wrapping_add(further);
            }
        }
        let (now, since) = (self.mark(site, 0), self.since_of(place.buffer));
        let left = self.memory[place.buffer].quick(&offsets, mask, now, since, out);
        for lane in lanes(left) {
            out[lane] = self.read(site, place.buffer, offsets[lane], lane);
        }
    }

    /// Where all lanes of the warp have an element of local memory side by side, if they access the same one.
    fn local_row(&self, place: &Elements, further: i64) -> Option<usize> {
        let memory = &self.memory[place.buffer];
        if memory.space != Space::Local || !place.index.is_uniform() {
            return None;
        }
        let at = usize::try_from(place.index.uniform(&self.slots).wrapping_add(further)).ok()?;
        (at < memory.len).then(|| self.base / WARP * memory.len + at)
    }

    /// An assignment of some lanes: first all values, then all side effects.
    pub(crate) fn store(&mut self, site: u32, place: &'p Elements, value: &'p ValueCode, mask: Mask) {
        if place.lanes == 1 {
            let mut values = [0.0; WARP];
            self.value(site, value, 0, mask, &mut values);
            self.assign(site, place, std::slice::from_mut(&mut values), mask);
            return;
        }
        let mut parts = self.parts(site, place, value, mask);
        self.assign(site, place, &mut parts, mask);
    }

    /// Assigns adjacent elements.
    pub(crate) fn assign(&mut self, site: u32, place: &Elements, parts: &mut [Lanes], mask: Mask) {
        self.expect_aligned(site, place, mask);
        let last = i64::from(place.lanes) - 1;
        if let (Some(row), Some(_)) = (self.local_row(place, 0), self.local_row(place, last)) {
            for row in (row..).take(parts.len()) {
                self.touch_registers(site, place.buffer, row, mask);
            }
            let memory = &mut self.memory[place.buffer];
            for (row, values) in (row..).zip(parts) {
                round(memory.dtype, values);
                let old = &mut memory.values[row * WARP..][..WARP];
                if mask == Mask::MAX {
                    old.copy_from_slice(values);
                } else {
                    lanes(mask).for_each(|lane| old[lane] = values[lane]);
                }
                memory.written[row] |= mask;
            }
            return;
        }
        let mut offsets = [0; WARP];
        self.index(&place.index, &mut offsets);
        self.count(place, &offsets, mask);
        for values in parts {
            round(self.memory[place.buffer].dtype, values);
            self.write_lanes(site, place.buffer, &offsets, values, mask);
            for it in &mut offsets {
                *it = it.wrapping_add(1);
            }
        }
    }

    fn write_lanes(&mut self, site: u32, buffer: usize, offsets: &[i64; WARP], values: &Lanes, mask: Mask) {
        let since = self.since_of(buffer);
        let quick = self.program.buffers[buffer].aliases.is_empty();
        for n in 0..WARP {
            let lane = n ^ self.flip;
            if mask >> lane & 1 == 0 {
                continue;
            }
            let now = self.mark(site, lane);
            if !(quick && self.memory[buffer].quick_write(offsets[lane], values[lane], now, since)) {
                self.write(site, buffer, offsets[lane], lane, values[lane]);
            }
        }
    }

    /// An element as a lane reads it.
    pub(crate) fn read(&mut self, site: u32, buffer: usize, offset: i64, lane: usize) -> f64 {
        let Some(at) = self.element(buffer, offset) else {
            self.out_of_bounds(site, buffer, offset, lane);
            return f64::NAN;
        };
        let now = self.mark(site, lane);
        let since = self.since_of(buffer);
        let thread = self.base + lane;
        self.visit(buffer, at, now);
        if self.memory[buffer].space == Space::Local {
            self.touch_registers(site, buffer, thread / WARP * self.memory[buffer].len + at, 1 << lane);
        }
        let memory = &mut self.memory[buffer];
        let (value, written) = match memory.space {
            Space::Fragment | Space::Local => {
                let row = thread / WARP * memory.len + at;
                (memory.values[row * WARP + lane], memory.written[row] >> lane & 1 == 1)
            }
            Space::Cluster | Space::Shared | Space::Tensor => {
                (memory.values[at], memory.written[at] == since.block)
            }
            Space::Global => (memory.values[at], memory.written[at] != 0),
        };
        if let Some(cell) = memory.cells.get_mut(at) {
            if cell.flights > 0 {
                self.touch_in_flight(buffer, at, now, RaceKind::ReadAfterWrite);
                return value;
            }
            let race = if memory.tracks.is_empty() {
                cell.read(now, since, &memory.seen)
            } else {
                self.clocked_read(buffer, at, now)
            };
            if let Some(write) = race {
                self.race(buffer, at, RaceKind::ReadAfterWrite, write, now);
            }
        }
        if !written {
            self.uninitialised(buffer, at, now);
        }
        value
    }

    /// Writes an element for a lane.
    fn write(&mut self, site: u32, buffer: usize, offset: i64, lane: usize, value: f64) {
        let Some(at) = self.element(buffer, offset) else {
            self.out_of_bounds(site, buffer, offset, lane);
            return;
        };
        if self.memory[buffer].space == Space::Local {
            let row = (self.base + lane) / WARP * self.memory[buffer].len + at;
            self.touch_registers(site, buffer, row, 1 << lane);
            let memory = &mut self.memory[buffer];
            memory.values[row * WARP + lane] = value;
            memory.written[row] |= 1 << lane;
            return;
        }
        let now = self.mark(site, lane);
        self.visit(buffer, at, now);
        if self.memory[buffer].cells.get(at).is_some_and(|it| it.flights > 0) {
            self.touch_in_flight(buffer, at, now, RaceKind::WriteAfterWrite);
        } else {
            self.mark_write(buffer, at, now, value);
        }
        self.put(buffer, at, value);
    }

    /// Remembers a write and looks for races with it.
    pub(crate) fn mark_write(&mut self, buffer: usize, at: usize, now: Mark, value: f64) {
        let since = self.since_of(buffer);
        let memory = &mut self.memory[buffer];
        let equal = is_same(memory.values[at], value);
        let Some(cell) = memory.cells.get_mut(at) else { return };
        let written = if memory.tracks.is_empty() {
            cell.write(now, since, &memory.seen, equal)
        } else {
            cell.write = now;
            self.clocked_write(buffer, at, now, equal)
        };
        self.run.report.benign_writes += u64::from(written.benign);
        if let Some((earlier, kind)) = written.race {
            self.race(buffer, at, kind, earlier, now);
        }
        self.overwrite(buffer, at, now, equal);
    }

    /// A write by a thread ends what other buffers hold in the same bytes. `equal` says that it changes none of them.
    pub(crate) fn overwrite(&mut self, buffer: usize, at: usize, now: Mark, equal: bool) {
        let thread = now.thread() as usize;
        self.overwrite_by(buffer, at, Past { mark: now, agent: now.thread() }, thread..thread + 1, equal);
    }

    /// The same of a write that threads have started.
    pub(crate) fn overwrite_by(
        &mut self,
        buffer: usize,
        at: usize,
        now: Past,
        threads: Range<usize>,
        equal: bool,
    ) {
        let (program, since, mark) = (self.program, self.since_of(buffer), now.mark);
        for &(other, later) in &program.buffers[buffer].aliases {
            let (own, size) = (self.memory[buffer].dtype.bytes(), self.memory[other].dtype.bytes());
            let signed = |it: usize| i64::try_from(it).expect("it is in memory");
            let (block, at) = (at / self.memory[buffer].len, at % self.memory[buffer].len);
            let first = signed(at * own) - later;
            let Ok(last) = usize::try_from(first + signed(own) - 1) else { continue };
            let first = usize::try_from(first.max(0)).expect("it is not negative");
            let len = self.memory[other].len;
            for at in (first / size..(last / size + 1).min(len)).map(|it| block * len + it) {
                let cell = &mut self.memory[other].cells[at];
                if cell.flights > 0 {
                    self.touch_in_flight(other, at, mark, RaceKind::WriteAfterWrite);
                } else {
                    let written = if program.resumes {
                        self.clocked_write_over(other, at, now, threads.clone(), equal)
                    } else {
                        cell.write_over(mark, since, equal)
                    };
                    if let Some((earlier, kind)) = written.race {
                        self.race(other, at, kind, earlier, mark);
                    }
                }
                self.memory[other].values[at] = f64::NAN;
                self.memory[other].written[at] = 0;
            }
        }
    }

    /// Puts a number into shared or global memory.
    pub(crate) fn put(&mut self, buffer: usize, at: usize, value: f64) {
        let memory = &mut self.memory[buffer];
        memory.values[at] = value;
        memory.written[at] = self.since.block;
    }

    /// An allocation: what local memory held before is gone.
    pub(crate) fn forget(&mut self, buffer: usize, mask: Mask) {
        let memory = &mut self.memory[buffer];
        if memory.space == Space::Local {
            let row = self.base / WARP * memory.len;
            memory.written[row..row + memory.len].iter_mut().for_each(|it| *it &= !mask);
        }
    }

    /// The offset of an element, if it is one of the buffer's.
    pub(crate) fn element(&self, buffer: usize, offset: i64) -> Option<usize> {
        if self.memory[buffer].space == Space::Cluster {
            return self.element_of_cluster(buffer, offset);
        }
        let at = usize::try_from(offset).ok().filter(|it| *it < self.memory[buffer].len)?;
        let block = self.program.cluster.block_of(self.base);
        Some(self.origin(buffer, block) + at)
    }

    /// Where the memory of a buffer begins that a block of a cluster has: each has shared and tensor memory of its own.
    pub(crate) fn origin(&self, buffer: usize, block: usize) -> usize {
        let memory = &self.memory[buffer];
        if matches!(memory.space, Space::Shared | Space::Tensor) { block * memory.len } else { 0 }
    }

    /// An access now.
    pub(crate) fn mark(&self, site: u32, lane: usize) -> Mark {
        let thread = u32::try_from(self.base + lane).expect("threads are few");
        Mark::new(self.stamp, self.epoch, site, thread)
    }

    /// Other blocks do not see shared memory.
    pub(crate) fn since_of(&self, buffer: usize) -> Since {
        match self.memory[buffer].space {
            Space::Cluster | Space::Shared | Space::Tensor | Space::Fragment | Space::Local => {
                Since { kernel: self.since.block, ..self.since }
            }
            Space::Global => self.since,
        }
    }
}
