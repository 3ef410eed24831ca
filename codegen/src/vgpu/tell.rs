//! What is told of accesses: kinds of findings, and an access in the past in words.

use super::{
    Access, Finding,
    exec::Machine,
    findings::Key,
    shadow::{Mark, RaceKind},
};

/// Kinds of findings, for [`Key`]; a race is `RACE` and its [`RaceKind`].
pub(crate) const BOUNDS: u8 = 1;
pub(crate) const UNINITIALISED: u8 = 2;
pub(crate) const DIVERGENT: u8 = 3;
pub(crate) const DIVISION: u8 = 4;
pub(crate) const WAIT: u8 = 5;
pub(crate) const NEVER: u8 = 6;
pub(crate) const PARTIAL: u8 = 7;
pub(crate) const DEADLOCK: u8 = 8;
pub(crate) const MISALIGNED: u8 = 9;
pub(crate) const RACE: u8 = 10;
/// Races take four numbers.
pub(crate) const PHASE: u8 = 20;
pub(crate) const BYTES: u8 = 21;
pub(crate) const UNFINISHED: u8 = 22;
pub(crate) const ARRIVALS: u8 = 23;
pub(crate) const REGISTER: u8 = 24;
pub(crate) const FENCE: u8 = 25;
pub(crate) const PROXY: u8 = 26;
pub(crate) const GROUP: u8 = 27;
pub(crate) const OUTSTANDING: u8 = 28;
pub(crate) const MBARRIER_BOUNDS: u8 = 29;
pub(crate) const TURN: u8 = 30;
pub(crate) const ENDED: u8 = 31;
pub(crate) const UNBEGUN: u8 = 32;
pub(crate) const CLAIM: u8 = 33;

impl Machine<'_, '_, '_> {
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
            let (buffer, element) = self.element_name(buffer, at);
            self.run.sink.keep(key, Finding::DataRace { buffer, element, race, first, second });
        }
    }

    #[cold]
    pub(crate) fn uninitialised(&mut self, buffer: usize, at: usize, now: Mark) {
        let key = self.key(UNINITIALISED, now.site(), now.site());
        if !self.run.sink.count(key) {
            let access = self.describe(now);
            let (buffer, element) = self.element_name(buffer, at);
            self.run.sink.keep(key, Finding::Uninitialised { buffer, element, access });
        }
    }

    #[cold]
    pub(crate) fn out_of_bounds(&mut self, site: u32, buffer: usize, element: i64, lane: usize) {
        let key = self.key(BOUNDS, site, site);
        if !self.run.sink.count(key) {
            let access = self.describe(self.mark(site, lane));
            let (element, len) = self.bounds_of_cluster(buffer, element);
            let (buffer, len) = self.name(buffer, len);
            self.run.sink.keep(key, Finding::OutOfBounds { buffer, element, len, access });
        }
    }

    /// The name of a buffer and a number of elements, for a finding.
    pub(crate) fn name(&self, buffer: usize, at: usize) -> (ir::Name, i64) {
        (self.program.buffers[buffer].name.clone(), i64::try_from(at).expect("it is in memory"))
    }

    /// The same of an element of the memory, which each block of a cluster has for itself if it is shared. Of memory of the cluster
    /// the parts of all blocks are counted, one after the other.
    pub(crate) fn element_name(&self, buffer: usize, at: usize) -> (ir::Name, i64) {
        let memory = &self.memory[buffer];
        self.name(buffer, if memory.space == ir::Scope::Shared { at % memory.len } else { at })
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
        let thread = mark.thread() as usize;
        let role = program.role(thread);
        let own = program.cluster.in_block(thread);
        let number = i64::try_from(own - role.threads.start.min(own)).expect("threads are few");
        let in_cluster = program.cluster.place(program.cluster.block_of(thread));
        Access {
            kernel: program.name.clone(),
            line: site.line,
            text: program.lines.get(site.line - 1).cloned().unwrap_or_default(),
            block: split(block, program.grid),
            in_cluster: (program.cluster.blocks() > 1).then_some(in_cluster),
            role: role.name.clone(),
            thread: split(number, role.axes),
            at,
        }
    }
}
