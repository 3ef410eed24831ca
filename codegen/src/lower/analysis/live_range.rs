//! From where to where in a kernel the contents of each shared buffer are of use.

use std::collections::BTreeSet;

use ir::{
    Alloc, Completion, Effect, ForKind, Group, Index, Instr, Kernel, Name, Op, SyncKind, Wait, axis_var,
};

/// The live range of a shared buffer. Statements count from the top of the kernel, outer before inner.
#[derive(Debug)]
pub(crate) struct LiveRange {
    /// The buffer.
    pub(crate) alloc: Alloc,
    /// The first and the last statement of it, if anything touches it.
    range: Option<(usize, usize)>,
    /// The loops around its touches in which threads cannot wait for each other.
    apart: BTreeSet<usize>,
}

impl LiveRange {
    /// Whether two buffers need bytes of their own: they are in use at once, or no barrier could stand between
    /// the use of the one and the use of the other.
    pub(crate) fn conflicts(&self, other: &LiveRange) -> bool {
        let overlap = match (self.range, other.range) {
            (Some((start, end)), Some((other_start, other_end))) => start <= other_end && other_start <= end,
            (None, _) | (_, None) => false,
        };
        overlap || !self.apart.is_disjoint(&other.apart)
    }
}

/// The live ranges of the shared buffers of a kernel, in the order of their allocation.
///
/// A buffer is in use from its first touch to its last. A loop around a touch makes that the whole loop, since the
/// next iteration may read what this one left, unless every iteration fills what it reads: then the loop is the
/// buffer's allocation scope, or is around it. Copies keep their destination in use until they have surely landed.
pub(crate) fn live_ranges(kernel: &Kernel) -> Vec<LiveRange> {
    let mut scan = Scan::default();
    for &axis in kernel.launch.keys().filter(|axis| axis.is_thread()) {
        scan.threads.push(axis_var(axis));
    }
    scan.ops(&kernel.body, None);
    let allocs = std::mem::take(&mut scan.allocs);
    allocs.into_iter().map(|alloc| scan.live_range(alloc)).collect()
}

/// The statements of a kernel, numbered.
#[derive(Default)]
struct Scan {
    threads: Vec<Name>,
    count: usize,
    scopes: Vec<Block>,
    events: Vec<Event>,
    allocs: Vec<Alloc>,
}

/// A loop or a condition.
struct Block {
    parent: Option<usize>,
    /// Its variable, if it is a loop.
    var: Option<Name>,
    first: usize,
    last: usize,
    /// Whether no barrier may stand in it.
    apart: bool,
}

struct Event {
    at: usize,
    scope: Option<usize>,
    what: What,
}

enum What {
    Access(Name),
    Copy(Name),
    Commit,
    Wait(Wait),
}

impl Scan {
    fn ops(&mut self, ops: &[Op], scope: Option<usize>) {
        for op in ops {
            let at = self.count;
            self.count += 1;
            match op {
                Op::Alloc(it) => {
                    if it.scope.is_of_blocks() {
                        self.allocs.push(it.clone());
                    }
                }
                Op::For(it) => {
                    let apart = it.kind == ForKind::Vectorized || self.is_divergent(&it.extent);
                    self.block(at, scope, Some(it.var.clone()), apart, &it.body);
                }
                Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => {
                    self.block(at, scope, None, false, body);
                }
                Op::Instr(it, _) => self.instr(at, scope, it),
            }
        }
    }

    fn block(&mut self, first: usize, parent: Option<usize>, var: Option<Name>, apart: bool, body: &[Op]) {
        let at = self.scopes.len();
        self.scopes.push(Block { parent, var, first, last: first, apart });
        self.ops(body, Some(at));
        self.scopes[at].last = self.count - 1;
    }

    fn instr(&mut self, at: usize, scope: Option<usize>, it: &Instr) {
        let effects = it.effects();
        for Effect { access, mode, .. } in &effects.accesses {
            let mut add = |what| self.events.push(Event { at, scope, what });
            add(What::Access(access.buffer.clone()));
            if mode.writes() && effects.completion == Completion::WithGroup(Group::CpAsync) {
                add(What::Copy(access.buffer.clone()));
            }
        }
        let what = match effects.sync {
            Some(SyncKind::Commit(Group::CpAsync)) => What::Commit,
            Some(SyncKind::Wait(it)) if it.group == Group::CpAsync => What::Wait(it.clone()),
            Some(_) | None => return,
        };
        self.events.push(Event { at, scope, what });
    }

    fn is_divergent(&self, index: &Index) -> bool {
        index.any_var(&|name| self.threads.contains(name))
    }

    fn live_range(&self, alloc: Alloc) -> LiveRange {
        let per = alloc.per.clone();
        let alloc_scope = per.as_ref();
        let mut out = LiveRange { alloc, range: None, apart: BTreeSet::new() };
        let of = |it: &&Event| match &it.what {
            What::Access(name) | What::Copy(name) => *name == out.alloc.name,
            What::Commit | What::Wait(_) => false,
        };
        let touches: Vec<_> = self.events.iter().filter(of).collect();
        let is_copy = |it: &&&Event| matches!(it.what, What::Copy(_));
        let landed: Option<Vec<_>> =
            touches.iter().filter(is_copy).map(|it| self.landed(it, alloc_scope)).collect();
        // What may still be under way at the end of an iteration is not over with it, and what no wait covers
        // may happen at any time to the end of the kernel.
        let alloc_scope =
            alloc_scope.filter(|it| landed.is_some() && touches.iter().all(|touch| self.is_under(touch, it)));
        let mut add = |start: usize, end: usize| {
            let (first, last) = out.range.unwrap_or((start, end));
            out.range = Some((first.min(start), last.max(end)));
        };
        for event in touches.iter().copied().chain(landed.iter().flatten().copied()) {
            let mut range = (event.at, event.at);
            for scope in self
                .around(event.scope)
                .take_while(|it| self.scopes[*it].var.as_ref() != alloc_scope || alloc_scope.is_none())
            {
                let it = &self.scopes[scope];
                if it.var.is_some() {
                    range = (it.first, it.last);
                }
            }
            add(range.0, range.1);
        }
        if landed.is_none() {
            add(self.count, self.count);
        }
        let around = touches.iter().flat_map(|it| self.around(it.scope));
        out.apart = around.filter(|it| self.scopes[*it].apart).collect();
        out
    }

    /// The loops and conditions around a place, innermost first.
    fn around(&self, scope: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(scope, |it| self.scopes[*it].parent)
    }

    fn is_under(&self, event: &Event, alloc_scope: &Name) -> bool {
        self.around(event.scope).any(|it| self.scopes[it].var.as_ref() == Some(alloc_scope))
    }

    /// The first wait for the buffer of a copy that surely covers it: later in the list of the copy or in one around
    /// it, in the same iteration of the allocation scope, with more groups closed since than may be under way.
    fn landed(&self, copy: &Event, alloc_scope: Option<&Name>) -> Option<&Event> {
        let What::Copy(buffer) = &copy.what else { return None };
        let around: Vec<_> = self.around(copy.scope).collect();
        let passes = |it: &&Event| it.at > copy.at && it.scope.is_none_or(|scope| around.contains(&scope));
        let mut closed = 0;
        for event in self.events.iter().filter(passes) {
            match &event.what {
                What::Commit => closed += 1,
                What::Wait(wait) if closed > wait.in_flight && wait.buffers.contains(buffer) => {
                    return Some(event)
                        .filter(|it| alloc_scope.is_none_or(|alloc_scope| self.is_under(it, alloc_scope)));
                }
                What::Wait(_) | What::Access(_) | What::Copy(_) => {}
            }
        }
        None
    }
}
