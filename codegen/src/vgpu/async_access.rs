//! Accesses that order is asked of by clocks: of threads, and of those who work for them.

use std::ops::Range;

use ir::{Group, Scope as Space};

use super::{
    Finding, RaceKind,
    exec::{Machine, Mask},
    program::AsyncCode,
    shadow::{Mark, Written},
    tell::PROXY,
    track::{Order, Past, Track},
};

impl<'p> Machine<'p, '_, '_> {
    /// What deals with those who work for threads.
    pub(crate) fn perform(&mut self, site: u32, code: &'p AsyncCode, mask: Mask) {
        match code {
            AsyncCode::Bulk(it) => self.bulk(site, it, mask),
            AsyncCode::Claim(it) => self.claim(site, it, mask),
            AsyncCode::Take(it) => self.take(site, it, mask),
            AsyncCode::Wgmma(it) => self.wgmma(site, it, mask),
            AsyncCode::Tcgen05(it) => self.tcgen05(site, it, mask),
            AsyncCode::TensorCopy(it) => self.tensor_copy(site, it, mask),
            AsyncCode::Commit(Group::Wgmma) => self.commit_products(),
            AsyncCode::Commit(Group::Tcgen05) => self.commit_tensor(mask),
            AsyncCode::Commit(_) => self.commit_stores(mask),
            AsyncCode::Wait { group, in_flight, reads_only } => {
                self.tally.waits += 1;
                match group {
                    Group::Wgmma => self.wait_products(*in_flight, mask),
                    Group::Tcgen05 => self.wait_tensor(*in_flight, mask),
                    Group::Bulk | Group::CpAsync => self.wait_stores(*in_flight, *reads_only, mask),
                }
            }
            AsyncCode::Arrive(it) => self.arrive(site, it, mask),
            AsyncCode::Fence(it) => self.fence(*it, mask),
            AsyncCode::Turn(it) => self.end_turn(site, it, mask),
            AsyncCode::Await(_) => unreachable!("those who come to it may have to wait"),
        }
    }

    /// Looks at an element as some threads do; nothing where epochs alone tell the order.
    fn ordered<T>(
        &mut self,
        buffer: usize,
        at: usize,
        threads: Range<usize>,
        f: impl FnOnce(&mut Track, &Order<'_>) -> T,
    ) -> Option<T> {
        self.ordered_for(buffer, at, threads, None, f)
    }

    /// The same of somebody who works for them: see [`Order::worker`].
    fn ordered_for<T>(
        &mut self,
        buffer: usize,
        at: usize,
        threads: Range<usize>,
        worker: Option<u32>,
        f: impl FnOnce(&mut Track, &Order<'_>) -> T,
    ) -> Option<T> {
        if !self.program.resumes {
            return None;
        }
        let since = self.since_of(buffer);
        let own = u32::try_from(threads.start).ok()?..u32::try_from(threads.end).ok()?;
        let one;
        let many;
        let clocks = if threads.len() == 1 {
            one = std::slice::from_ref(self.clocks.of(threads.start));
            one
        } else {
            many = self.clocks.distinct(threads);
            &many
        };
        let memory = &mut self.memory[buffer];
        let order = Order { since, seen: &memory.seen, own, clocks, worker };
        memory.tracks.get_mut(at).map(|it| f(it, &order))
    }

    /// A read by a thread: the write that it races with, if any.
    pub(crate) fn clocked_read(&mut self, buffer: usize, at: usize, mark: Mark) -> Option<Mark> {
        let (now, thread) = own(mark);
        self.ordered(buffer, at, thread, |it, order| it.read(now, order))?
    }

    /// A write by a thread: what it came upon.
    pub(crate) fn clocked_write(&mut self, buffer: usize, at: usize, mark: Mark, equal: bool) -> Written {
        let (now, thread) = own(mark);
        let found = self.ordered(buffer, at, thread, |it, order| it.write(now, order, equal));
        found.unwrap_or(Written { race: None, benign: false })
    }

    /// A write that threads have made or started to bytes that another buffer has, too.
    pub(crate) fn clocked_write_over(
        &mut self,
        buffer: usize,
        at: usize,
        now: Past,
        threads: Range<usize>,
        equal: bool,
    ) -> Written {
        let found = self.ordered(buffer, at, threads, |it, order| it.write_over(now, order, equal));
        found.unwrap_or(Written { race: None, benign: false })
    }

    /// An atomic addition by a thread: the access that it races with, if any.
    pub(crate) fn clocked_add(&mut self, buffer: usize, at: usize, mark: Mark) -> Option<(Mark, RaceKind)> {
        let (now, thread) = own(mark);
        self.ordered(buffer, at, thread, |it, order| it.add(now, order))?
    }

    /// Whether nothing orders an access of a thread and one now.
    pub(crate) fn is_unordered(&mut self, buffer: usize, at: usize, earlier: Mark, now: Mark) -> bool {
        let (_, thread) = own(now);
        let past = Past { mark: earlier, agent: earlier.thread() };
        self.ordered(buffer, at, thread, |_, order| order.races(&past)).unwrap_or(false)
    }

    /// A copy by `cp.async` has landed: its thread wrote now.
    pub(crate) fn clocked_landed(&mut self, buffer: usize, at: usize, mark: Mark) {
        if let Some(it) = self.memory[buffer].tracks.get_mut(at) {
            it.write = own(mark).0;
        }
    }

    /// Reads by an agent that threads have started.
    pub(crate) fn async_reads(&mut self, places: &[(usize, usize)], now: Past, threads: Range<usize>) {
        let clocks = self.clocks.distinct(threads.clone());
        let number = |it: usize| u32::try_from(it).expect("threads are few");
        let own = number(threads.start)..number(threads.end);
        for &(buffer, at) in places {
            if self.memory[buffer].cells.get(at).is_some_and(|it| it.flights > 0) {
                self.touch_in_flight(buffer, at, now.mark, RaceKind::ReadAfterWrite);
            }
            let (since, agents) = (self.since_of(buffer), self.agents);
            let memory = &mut self.memory[buffer];
            if memory.space == Space::Global && memory.written[at] == 0 {
                self.uninitialised(buffer, at, now.mark);
                continue;
            }
            let Some(track) = memory.tracks.get_mut(at) else { continue };
            let (own, seen, worker) = (own.clone(), &memory.seen, agents.worker(now.agent));
            let order = Order { since, seen, own, clocks: &clocks, worker };
            let write = track.write;
            let is_unfenced = agents.is_thread(write.agent) && order.is_unfenced(&write);
            if let Some(earlier) = track.read(now, &order) {
                self.race(buffer, at, RaceKind::ReadAfterWrite, earlier, now.mark);
            } else if is_unfenced {
                self.missing_proxy_fence(buffer, at, write.mark, now.mark);
            }
        }
    }

    /// A write by such an agent, of a number if it is known, which harms nobody who writes the same.
    pub(crate) fn async_write(
        &mut self,
        buffer: usize,
        at: usize,
        now: Past,
        threads: Range<usize>,
        value: Option<f64>,
    ) {
        if self.memory[buffer].cells.get(at).is_some_and(|it| it.flights > 0) {
            self.touch_in_flight(buffer, at, now.mark, RaceKind::WriteAfterWrite);
        }
        let agents = self.agents;
        let equal = value.is_some_and(|value| {
            let raced = |it: &mut Track, order: &Order<'_>| order.races(&it.write).then_some(it.write);
            let worker = agents.worker(now.agent);
            let earlier = self.ordered_for(buffer, at, threads.clone(), worker, raced).flatten();
            earlier.is_some_and(|it| is_same(value, self.arriving(buffer, at, it.agent)))
        });
        let worker = agents.worker(now.agent);
        let found = self.ordered_for(buffer, at, threads.clone(), worker, |it, order| {
            let unfenced = it.unfenced(order, |agent| agents.is_thread(agent));
            (it.write(now, order, equal), unfenced)
        });
        if let Some((written, unfenced)) = found {
            self.run.report.benign_writes += u64::from(written.benign);
            if let Some((earlier, kind)) = written.race {
                self.race(buffer, at, kind, earlier, now.mark);
            } else if let Some(earlier) = unfenced {
                self.missing_proxy_fence(buffer, at, earlier, now.mark);
            }
        }
        self.overwrite_by(buffer, at, now, threads, false);
    }

    /// An addition by such an agent.
    pub(crate) fn async_add(&mut self, buffer: usize, at: usize, now: Past, threads: Range<usize>) {
        let race = self.ordered(buffer, at, threads, |it, order| it.add(now, order));
        if let Some((earlier, kind)) = race.flatten() {
            self.race(buffer, at, kind, earlier, now.mark);
        }
        if self.memory[buffer].written[at] == 0 {
            self.uninitialised(buffer, at, now.mark);
        }
    }

    #[cold]
    fn missing_proxy_fence(&mut self, buffer: usize, at: usize, first: Mark, second: Mark) {
        if self.memory[buffer].space != Space::Shared {
            return;
        }
        let key = self.key(PROXY, first.site(), second.site());
        if !self.run.sink.count(key) {
            let (first, second) = (self.describe(first), self.describe(second));
            let (buffer, element) = self.element_name(buffer, at);
            self.run.sink.keep(key, Finding::MissingProxyFence { buffer, element, first, second });
        }
    }
}

/// Whether two numbers are the same.
pub(crate) fn is_same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// The access of a thread, and the thread.
fn own(mark: Mark) -> (Past, Range<usize>) {
    let thread = mark.thread() as usize;
    (Past { mark, agent: mark.thread() }, thread..thread + 1)
}
