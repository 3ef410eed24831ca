//! Loads and stores: bounds, what was written before, and who else touched it.

use ir::{DType, Scope as Space, number};

use super::{
    Access, Finding,
    exec::{Machine, Mask, Memory, lanes},
    findings::Key,
    index::{LaneIndices, WARP},
    program::{Elements, ValueCode},
    shadow::{Mark, RaceKind, Since},
    value::Lanes,
};

/// Kinds of findings, for [`Key`]; a race is `RACE` and its [`RaceKind`].
const BOUNDS: u8 = 1;
const UNINITIALISED: u8 = 2;
pub(crate) const DIVERGENT: u8 = 3;
pub(crate) const DIVISION: u8 = 4;
pub(crate) const WAIT: u8 = 5;
pub(crate) const NEVER: u8 = 6;
pub(crate) const PARTIAL: u8 = 7;
pub(crate) const DEADLOCK: u8 = 8;
pub(crate) const MISALIGNED: u8 = 9;
const RACE: u8 = 10;

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
        if self.space == Space::Local {
            return mask;
        }
        let shared = self.space == Space::Shared;
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
        let memory = &mut self.memory[buffer];
        let (value, written) = match memory.space {
            Space::Fragment | Space::Local => {
                let row = thread / WARP * memory.len + at;
                (memory.values[row * WARP + lane], memory.written[row] >> lane & 1 == 1)
            }
            Space::Shared => (memory.values[at], memory.written[at] == since.block),
            Space::Global => (memory.values[at], memory.written[at] != 0),
        };
        if let Some(cell) = memory.cells.get_mut(at) {
            if cell.flights > 0 {
                self.touch_in_flight(buffer, at, now, RaceKind::ReadAfterWrite);
                return value;
            }
            if let Some(write) = cell.read(now, since, &memory.seen) {
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
        let memory = &mut self.memory[buffer];
        if memory.space == Space::Local {
            let row = (self.base + lane) / WARP * memory.len + at;
            memory.values[row * WARP + lane] = value;
            memory.written[row] |= 1 << lane;
            return;
        }
        let now = self.mark(site, lane);
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
        let old = memory.values[at];
        let Some(cell) = memory.cells.get_mut(at) else { return };
        let equal = old.to_bits() == value.to_bits() || (old.is_nan() && value.is_nan());
        let written = cell.write(now, since, &memory.seen, equal);
        self.run.report.benign_writes += u64::from(written.benign);
        if let Some((earlier, kind)) = written.race {
            self.race(buffer, at, kind, earlier, now);
        }
        self.overwrite(buffer, at, now, equal);
    }

    /// A write ends what other buffers hold in the same bytes. `equal` says that it changes none of them.
    pub(crate) fn overwrite(&mut self, buffer: usize, at: usize, now: Mark, equal: bool) {
        let (program, since) = (self.program, self.since_of(buffer));
        for &(other, later) in &program.buffers[buffer].aliases {
            let (own, size) = (self.memory[buffer].dtype.bytes(), self.memory[other].dtype.bytes());
            let signed = |it: usize| i64::try_from(it).expect("it is in memory");
            let first = signed(at * own) - later;
            let Ok(last) = usize::try_from(first + signed(own) - 1) else { continue };
            let first = usize::try_from(first.max(0)).expect("it is not negative");
            for at in first / size..(last / size + 1).min(self.memory[other].len) {
                if self.memory[other].cells[at].flights > 0 {
                    self.touch_in_flight(other, at, now, RaceKind::WriteAfterWrite);
                } else {
                    let written = self.memory[other].cells[at].write_over(now, since, equal);
                    if let Some((earlier, kind)) = written.race {
                        self.race(other, at, kind, earlier, now);
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
        usize::try_from(offset).ok().filter(|it| *it < self.memory[buffer].len)
    }

    /// An access now.
    pub(crate) fn mark(&self, site: u32, lane: usize) -> Mark {
        let thread = u32::try_from(self.base + lane).expect("threads are few");
        Mark::new(self.stamp, self.epoch, site, thread)
    }

    /// Other blocks do not see shared memory.
    pub(crate) fn since_of(&self, buffer: usize) -> Since {
        match self.memory[buffer].space {
            Space::Shared | Space::Fragment | Space::Local => {
                Since { kernel: self.since.block, ..self.since }
            }
            Space::Global => self.since,
        }
    }

    pub(crate) fn key(&self, kind: u8, first: u32, second: u32) -> Key {
        let line =
            |site: u32| u32::try_from(self.program.sites[site as usize].line).expect("a line of a text");
        Key { kind, kernel: self.kernel, sites: [line(first), line(second)] }
    }

    #[cold]
    pub(crate) fn race(&mut self, buffer: usize, at: usize, race: RaceKind, first: Mark, second: Mark) {
        let key = self.key(RACE + race as u8, first.site(), second.site());
        if !self.run.sink.count(key) {
            let (first, second) = (self.describe(first), self.describe(second));
            let (buffer, element) = self.name(buffer, at);
            self.run.sink.keep(key, Finding::DataRace { buffer, element, race, first, second });
        }
    }

    #[cold]
    pub(crate) fn uninitialised(&mut self, buffer: usize, at: usize, now: Mark) {
        let key = self.key(UNINITIALISED, now.site(), now.site());
        if !self.run.sink.count(key) {
            let access = self.describe(now);
            let (buffer, element) = self.name(buffer, at);
            self.run.sink.keep(key, Finding::Uninitialised { buffer, element, access });
        }
    }

    #[cold]
    pub(crate) fn out_of_bounds(&mut self, site: u32, buffer: usize, element: i64, lane: usize) {
        let key = self.key(BOUNDS, site, site);
        if !self.run.sink.count(key) {
            let access = self.describe(self.mark(site, lane));
            let (buffer, len) = self.name(buffer, self.memory[buffer].len);
            self.run.sink.keep(key, Finding::OutOfBounds { buffer, element, len, access });
        }
    }

    /// The name of a buffer and a number of elements, for a finding.
    pub(crate) fn name(&self, buffer: usize, at: usize) -> (ir::Name, i64) {
        (self.program.buffers[buffer].name.clone(), i64::try_from(at).expect("it is in memory"))
    }

    /// An access in the past as a finding tells of it.
    pub(crate) fn describe(&self, mark: Mark) -> Access {
        let program = self.program;
        let site = &program.sites[mark.site() as usize];
        let (mut at, mut stamp, mut used) = (vec![], mark.stamp, 0);
        for (name, bits) in site.loops.iter().rev() {
            used += bits;
            if used > u64::BITS {
                break;
            }
            let value = stamp & (1u64.checked_shl(*bits).unwrap_or(0).wrapping_sub(1));
            at.push((name.clone(), i64::try_from(value).expect("iterations are counted so")));
            stamp = stamp.checked_shr(*bits).unwrap_or(0);
        }
        at.reverse();
        let split = |n: i64, [x, y, _]: [i64; 3]| [n % x, n / x % y, n / x / y];
        let block = self.blocks.partition_point(|it| it.0 <= mark.epoch).checked_sub(1);
        let block = block.map_or(0, |it| self.blocks[it].1);
        Access {
            kernel: program.name.clone(),
            line: site.line,
            text: program.lines.get(site.line - 1).cloned().unwrap_or_default(),
            block: split(block, program.grid),
            thread: split(i64::from(mark.thread()), program.block),
            at,
        }
    }
}
