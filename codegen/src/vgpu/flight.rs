//! Asynchronous copies: groups of each thread, and what happens to elements while a copy to them is under way.

use std::collections::VecDeque;

use super::{
    Finding, Landing, RaceKind,
    exec::{Machine, Mask, lanes},
    index::WARP,
    program::{CopyCode, Elements},
    shadow::Mark,
    tell::{NEVER, WAIT},
};

/// A copy to one element that is under way.
#[derive(Debug)]
struct Flight {
    /// Who started it, where and when.
    mark: Mark,
    buffer: usize,
    at: usize,
    /// The element that it reads, and the last write of that when it started.
    source: Option<(usize, usize, Mark)>,
    /// What it carries, if it does not read memory.
    value: f64,
    /// The first access to its destination meanwhile.
    touched: Option<Mark>,
}

/// All copies under way.
#[derive(Debug)]
pub(crate) struct Flights {
    all: Vec<Flight>,
    free: Vec<u32>,
    /// The group that each thread adds to.
    open: Vec<Vec<u32>>,
    /// The closed groups of each thread, oldest first.
    groups: Vec<VecDeque<Vec<u32>>>,
}

impl Flights {
    pub(crate) fn new(threads: usize) -> Flights {
        let (open, groups) = (vec![vec![]; threads], vec![VecDeque::new(); threads]);
        Flights { all: vec![], free: vec![], open, groups }
    }

    fn start(&mut self, thread: usize, flight: Flight) -> u32 {
        let at = if let Some(at) = self.free.pop() {
            self.all[at as usize] = flight;
            at
        } else {
            self.all.push(flight);
            u32::try_from(self.all.len() - 1).expect("memory ends before")
        };
        self.open[thread].push(at);
        at
    }
}

impl<'p> Machine<'p, '_, '_> {
    /// Starts copies of some lanes.
    pub(crate) fn copy(&mut self, site: u32, place: &'p Elements, code: &'p CopyCode, mask: Mask) {
        self.expect_aligned(site, place, mask);
        let mut offsets = [0; WARP];
        self.index(&place.index, &mut offsets);
        self.count(place, &offsets, mask);
        for part in 0..place.lanes {
            let mut values = [0.0; WARP];
            let mut sources = [0; WARP];
            let (reading, buffer) = match code {
                CopyCode::Source(cond, source, other) => {
                    let reading = self.holds(cond, mask);
                    self.index(&source.index, &mut sources);
                    if part == 0 {
                        self.expect_aligned(site, source, reading);
                        self.count(source, &sources, reading);
                    }
                    let part = if source.lanes > 1 { i64::from(part) } else { 0 };
                    for it in &mut sources {
                        *it = it.wrapping_add(part);
                    }
                    if mask & !reading != 0 {
                        self.value(site, other, 0, mask & !reading, &mut values);
                    }
                    for lane in lanes(reading) {
                        values[lane] = self.read(site, source.buffer, sources[lane], lane);
                    }
                    (reading, source.buffer)
                }
                CopyCode::Value(value) => {
                    self.value(site, value, part, mask, &mut values);
                    (0, 0)
                }
            };
            for n in 0..WARP {
                let lane = n ^ self.flip;
                if mask >> lane & 1 == 1 {
                    let source = (reading >> lane & 1 == 1).then_some((buffer, sources[lane]));
                    self.start(
                        site,
                        place.buffer,
                        offsets[lane].wrapping_add(i64::from(part)),
                        lane,
                        values[lane],
                        source,
                    );
                }
            }
        }
    }

    fn start(
        &mut self,
        site: u32,
        buffer: usize,
        offset: i64,
        lane: usize,
        value: f64,
        source: Option<(usize, i64)>,
    ) {
        let Some(at) = self.element(buffer, offset) else {
            self.out_of_bounds(site, buffer, offset, lane);
            return;
        };
        let now = self.mark(site, lane);
        let source = source.and_then(|(buffer, offset)| {
            let at = self.element(buffer, offset)?;
            let write = self.memory[buffer].cells.get(at).map_or(Mark::default(), |it| it.write);
            Some((buffer, at, write))
        });
        let thread = self.base + lane;
        if let Some(cell) = self.memory[buffer].cells.get(at) {
            if cell.flights > 0 {
                let other = &self.flights.all[cell.flight as usize];
                // Threads that bring the same number harm nobody.
                if other.mark.thread() != now.thread() && other.value.to_bits() == value.to_bits() {
                    self.run.report.benign_writes += 1;
                } else {
                    self.touch_in_flight(buffer, at, now, RaceKind::WriteAfterWrite);
                }
            } else {
                // The write may begin at once.
                self.mark_write(buffer, at, now, value);
            }
        }
        let flight =
            self.flights.start(thread, Flight { mark: now, buffer, at, source, value, touched: None });
        if let Some(cell) = self.memory[buffer].cells.get_mut(at) {
            cell.flights += 1;
            cell.flight = flight;
        }
        if self.run.landing == Landing::Earliest {
            self.put(buffer, at, value);
        }
    }

    /// Closes the groups of some lanes.
    pub(crate) fn commit(&mut self, mask: Mask) {
        for lane in lanes(mask) {
            let thread = self.base + lane;
            let group = std::mem::take(&mut self.flights.open[thread]);
            self.flights.groups[thread].push_back(group);
        }
    }

    /// Lands all but the youngest groups of some lanes.
    pub(crate) fn wait(&mut self, in_flight: usize, mask: Mask) {
        for n in 0..WARP {
            let lane = n ^ self.flip;
            if mask >> lane & 1 == 0 {
                continue;
            }
            while self.flights.groups[self.base + lane].len() > in_flight {
                let group = self.flights.groups[self.base + lane].pop_front().unwrap_or_default();
                for it in group {
                    self.land(it);
                }
            }
        }
    }

    /// A copy arrives: it takes what is in memory now.
    fn land(&mut self, number: u32) {
        let flight = &self.flights.all[number as usize];
        let (mark, buffer, at, source, touched) =
            (flight.mark, flight.buffer, flight.at, flight.source, flight.touched);
        let mut value = flight.value;
        self.flights.free.push(number);
        let now = Mark::new(mark.stamp, self.epoch, mark.site(), mark.thread());
        if let Some((from, place, before)) = source {
            value = self.memory[from].values[place];
            let since = self.since_of(from);
            if let Some(cell) = self.memory[from].cells.get_mut(place) {
                let write = cell.write;
                // It may have read until now.
                cell.read(now, since, &[]);
                self.clocked_read(from, place, now);
                if write != before {
                    self.race(from, place, RaceKind::SourceInFlight, mark, write);
                }
            }
        }
        if let Some(cell) = self.memory[buffer].cells.get_mut(at) {
            cell.flights -= 1;
            cell.write = now;
        }
        self.clocked_landed(buffer, at, now);
        self.overwrite(buffer, at, now, true);
        if self.run.landing == Landing::Latest {
            self.put(buffer, at, value);
        }
        if let Some(access) = touched {
            self.missing_wait(WAIT, buffer, at, mark, access);
        }
    }

    /// An access to an element that a copy is on its way to.
    #[cold]
    pub(crate) fn touch_in_flight(&mut self, buffer: usize, at: usize, now: Mark, kind: RaceKind) {
        let flight = self.memory[buffer].cells[at].flight;
        let mark = self.flights.all[flight as usize].mark;
        let races = if self.program.resumes {
            self.is_unordered(buffer, at, mark, now)
        } else {
            mark.thread() != now.thread() && mark.epoch == now.epoch
        };
        if races {
            self.race(buffer, at, kind, mark, now);
        } else {
            let flight = &mut self.flights.all[flight as usize];
            flight.touched.get_or_insert(now);
        }
    }

    /// The block ends: copies that nothing waited for are gone, which matters if something relied on them.
    pub(crate) fn drop_flights(&mut self) {
        let left = self.flights.open.iter_mut().flat_map(std::mem::take);
        let left: Vec<u32> =
            left.chain(self.flights.groups.iter_mut().flat_map(std::mem::take).flatten()).collect();
        for number in left {
            let flight = &self.flights.all[number as usize];
            let (mark, buffer, at, touched) = (flight.mark, flight.buffer, flight.at, flight.touched);
            if let Some(cell) = self.memory[buffer].cells.get_mut(at) {
                cell.flights = 0;
            }
            self.flights.free.push(number);
            if let Some(access) = touched {
                self.missing_wait(NEVER, buffer, at, mark, access);
            }
        }
    }

    fn missing_wait(&mut self, kind: u8, buffer: usize, at: usize, copy: Mark, access: Mark) {
        let key = self.key(kind, copy.site(), access.site());
        if self.run.sink.count(key) {
            return;
        }
        let (copy, access) = (self.describe(copy), self.describe(access));
        let (buffer, element) = self.name(buffer, at);
        let finding = if kind == NEVER {
            Finding::NeverLanded { buffer, element, copy, access }
        } else {
            Finding::MissingWait { buffer, element, copy, access }
        };
        self.run.sink.keep(key, finding);
    }
}
