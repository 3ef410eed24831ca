//! What the programs of a kernel do at each of its mbarriers, by numbers that are counted.
//!
//! The arrivals of a program at the mbarriers of a name are numbered in the order in which it makes them; number `n` has to be at slot
//! `n mod V`, and counts for phase `n floordiv V` of it then. Waits have numbers of their own: number `w` has to be for the phase of
//! arrival `w`, or, where it is for a slot that is free at first, for that of arrival `w - V`.

use std::collections::BTreeSet;

use ir::{
    Access, Alloc, Arrival, Fill, Index, Instr, Kernel, Mbarriers, Name, Op, Participants, Phase, Scope,
    SyncKind, ThreadAxis, Tile, arith::Bounds,
};

use super::{
    error::PhaseError,
    program::{ActiveThreads, Program},
};

/// A kernel with what is known of its mbarriers.
pub(super) struct Survey<'a> {
    pub(super) programs: Vec<Program<'a>>,
    /// For each of the mbarriers, what each program does there; of a kernel with turns, whose fills are not numbered one by one, none.
    pub(super) barriers: Vec<Barrier<'a>>,
    allocs: Vec<&'a Alloc>,
    kernel: &'a Kernel,
}

/// The mbarriers of a name.
pub(super) struct Barrier<'a> {
    pub(super) name: &'a Name,
    /// The sums in tensor memory that other roles touch when a phase is over: see [`sums`].
    pub(super) sums: Vec<&'a Name>,
    pub(super) slots: i64,
    /// By program.
    pub(super) uses: Vec<Use>,
}

/// What a program does at the mbarriers of a name.
#[derive(Default)]
pub(super) struct Use {
    /// The arrivals, and how many were before.
    pub(super) arrivals: Vec<Event>,
    /// How many arrivals each of them is, together with those of other blocks of the cluster.
    pub(super) times: i64,
    /// Who arrives, or asks for boxes.
    pub(super) arriving: Option<Who>,
    /// The axes of the cluster along which arrivals go, and those along which some boxes do.
    pub(super) along: Option<Vec<ThreadAxis>>,
    pub(super) sent: Vec<ThreadAxis>,
    /// Whether arrivals are at the mbarrier of the first block of the cluster, and whether one thread makes them for all its blocks.
    pub(super) at_first: bool,
    pub(super) for_cluster: bool,
    /// The waits, and how many were before.
    pub(super) awaits: Vec<Event>,
    /// Who waits.
    pub(super) waiting: Option<Who>,
    /// The number of the phase that a wait is for, less its own: 0 or minus the number of slots.
    pub(super) offset: i64,
    /// What fills slots in its phases: boxes, and how many arrivals were before, that of their phase among them; products whose sums other
    /// roles touch, and one more than there were.
    pub(super) loads: Vec<Event>,
}

/// Who does something: the threads that come to it, and which of them do it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Who {
    pub(super) active: ActiveThreads,
    /// Of which threads one does it for all; none where each does it.
    pub(super) leader: Option<Participants>,
    /// How many of them do it.
    pub(super) times: i64,
}

impl Who {
    /// Those who do a statement; `None` where that cannot be said.
    pub(super) fn at(program: &Program<'_>, node: usize) -> Option<Who> {
        let active = program.active_threads(node)?;
        Some(Who { times: program.times(node, &active), leader: program.leader(node), active })
    }

    /// Those who may do a statement: all, where conditions ask for more than the number of a thread.
    pub(super) fn perhaps_at(program: &Program<'_>, node: usize) -> Who {
        let active = program.active_threads(node).unwrap_or(ActiveThreads::All);
        Who { times: program.times(node, &active), leader: program.leader(node), active }
    }

    fn includes(&self, other: &Who) -> bool {
        self.active == ActiveThreads::All || self.active == other.active
    }

    /// Whether what they have waited for, each of those others has.
    pub(super) fn waits_on_behalf_of(&self, other: &Who) -> bool {
        self.includes(other) && (self.leader.is_none() || self.leader == other.leader)
    }

    /// Whether one of them arrives for each of those others, if it stands behind what these do together.
    pub(super) fn arrives_on_behalf_of(&self, other: &Who) -> bool {
        self.includes(other)
            && (self.leader == other.leader
                || matches!(self.leader, None | Some(Participants::Warp)) && other.leader.is_none())
    }
}

/// Something that is done at an mbarrier.
pub(super) struct Event {
    pub(super) node: usize,
    pub(super) number: Index,
    pub(super) bounds: Bounds,
}

impl<'a> Survey<'a> {
    pub(super) fn new(kernel: &'a Kernel, known: &Bounds) -> Result<Survey<'a>, PhaseError> {
        let programs = Program::all(kernel, known);
        let one = |(name, it): (&'a Name, &Mbarriers)| {
            let sums = sums(&programs, name);
            let uses = programs.iter().map(|program| Use::new(program, name, it.slots, &sums));
            let mut uses = uses.collect::<Result<Vec<_>, _>>()?;
            for (program, it) in programs.iter().zip(&mut uses) {
                // The first block of a cluster claims, and its answer comes to all.
                let claims = |it: &Event| matches!(program.op(it.node).instr(), Some(Instr::Claim(_)));
                if it.loads.iter().any(claims) {
                    let axes = kernel.launch.keys().filter(|it| it.is_cluster());
                    it.sent.extend(axes.filter(|it| kernel.blocks_along([*it]) > 1));
                }
                it.times *= if it.at_first {
                    kernel.cluster_blocks()
                } else {
                    kernel.blocks_along(it.along.iter().flatten())
                };
                // Each block has the statement, and one of them does it.
                it.times /= if it.for_cluster { kernel.cluster_blocks() } else { 1 };
            }
            let come = uses.iter().map(|it| it.times).sum();
            let arrivals = it.arrivals;
            if come != arrivals {
                return Err(PhaseError::Arrivals { barrier: name.clone(), arrivals, come });
            }
            Ok(Barrier { name, sums, slots: it.slots, uses })
        };
        let numbered = kernel.mbarriers.iter().filter(|_| !programs.iter().any(has_turns));
        let barriers = numbered.map(one).collect::<Result<_, _>>()?;
        let mut allocs = vec![];
        for op in &kernel.body {
            op.walk(&mut |op| {
                if let Op::Alloc(it) = op {
                    allocs.push(it);
                }
            });
        }
        Ok(Survey { programs, barriers, allocs, kernel })
    }

    /// Whether two blocks compute products together: they meet at the end then.
    pub(super) fn multiplies_in_pairs(&self) -> bool {
        self.kernel.multiplies_in_pairs()
    }

    /// The memory of a name.
    pub(super) fn alloc(&self, name: &Name) -> Option<&'a Alloc> {
        self.allocs.iter().find(|it| it.name == *name).copied()
    }

    /// How many bytes come: those that are asked for here, and those that the other blocks send by the same statement.
    pub(super) fn bytes(&self, it: &Fill<'_>) -> i64 {
        let element = self.alloc(&it.place.buffer).map_or(0, |it| it.dtype.bytes_i64());
        it.elements() * element * self.kernel.blocks_along(it.along.as_slice())
    }

    /// Which of so many slots of a buffer a box of an access is in: the first subscript, or what stands for it in a flat one.
    pub(super) fn slot(
        &self,
        access: &Access,
        extents: &[i64],
        slots: i64,
        bounds: &Bounds,
    ) -> Option<Index> {
        if slots == 1 {
            return Some(Index::int(0));
        }
        let alloc = self.alloc(&access.buffer)?;
        let wide = |index: &Index, extent: i64| {
            Some(bounds.simplify(&index.floor_div(&Index::int((extent / slots).max(1)))))
        };
        match &*access.indices {
            // Slots of tensor memory stand beside each other.
            [_, column] if alloc.scope == Scope::Tensor => wide(column, alloc.shape[1]),
            [flat] => wide(flat, alloc.elements()),
            [slot, ..] => {
                let is_one = extents.first().is_none_or(|it| *it == 1);
                (is_one && alloc.shape.first() == Some(&slots)).then(|| slot.clone())
            }
            [] => None,
        }
    }
}

/// Whether warpgroups take turns: each of them skips the numbers of the others then.
fn has_turns(program: &Program<'_>) -> bool {
    program.instrs().any(|(_, it)| matches!(it.sync(), Some(SyncKind::Turn(_))))
}

impl Use {
    /// Whether something of it comes from other blocks of the cluster.
    pub(super) fn is_remote(&self) -> bool {
        self.at_first || !self.sent.is_empty() || self.along.as_ref().is_some_and(|it| !it.is_empty())
    }

    fn new(program: &Program<'_>, barrier: &Name, slots: i64, sums: &[&Name]) -> Result<Use, PhaseError> {
        let arrives = |it: &Instr| i64::from(arrival(it, barrier).is_some());
        let waits = |it: &Instr| i64::from(phase(it, barrier).is_some());
        let mut out = Use::default();
        for (node, it) in program.instrs() {
            let uncounted = || PhaseError::Uncounted { barrier: barrier.clone(), instr: it.word() };
            let event = |weight: &dyn Fn(&Instr) -> i64| {
                let bounds = program.bounds(node);
                let number = program.before(node, weight, &bounds).ok_or_else(uncounted)?;
                Ok(Event { node, number, bounds })
            };
            // All sites of a kind are for the same threads, so that one count is that of each of them.
            let alike = |known: &mut Option<Who>| {
                let own = Who::at(program, node).ok_or_else(uncounted)?;
                let known = known.get_or_insert_with(|| own.clone());
                if *known == own { Ok(own.times) } else { Err(uncounted()) }
            };
            if let Some(arrival) = arrival(it, barrier) {
                let event = event(&arrives)?;
                event.in_step(barrier, "arrival", &arrival.slot, None, slots, 0)?;
                let times = alike(&mut out.arriving)?;
                let for_cluster = program.is_led_for_cluster(node);
                if out.arrivals.is_empty() {
                    (out.at_first, out.for_cluster) = (arrival.at_first, for_cluster);
                }
                let is_alike = (out.at_first, out.for_cluster) == (arrival.at_first, for_cluster);
                if out.along.get_or_insert_with(|| arrival.along.clone()) != &arrival.along || !is_alike {
                    return Err(uncounted());
                }
                out.times = times;
                out.arrivals.push(event);
            } else if let Some(phase) = phase(it, barrier) {
                let event = event(&waits)?;
                if out.awaits.is_empty() && event.is_in_step(&phase.slot, Some(&phase.phase), slots, -slots) {
                    out.offset = -slots;
                }
                event.in_step(barrier, "wait", &phase.slot, Some(&phase.phase), slots, out.offset)?;
                alike(&mut out.waiting)?;
                out.awaits.push(event);
            } else if let Some(fill) = fill(it, barrier) {
                out.sent.extend(fill.along);
                let event = event(&arrives)?;
                event.in_step(barrier, "copy", fill.slot, None, slots, -1)?;
                alike(&mut out.arriving)?;
                out.loads.push(event);
            } else if sum(it, sums).is_some() {
                let event = event(&arrives)?;
                alike(&mut out.arriving)?;
                out.loads.push(Event { number: event.number + 1, ..event });
            }
        }
        Ok(out)
    }
}

/// The sums in tensor memory that one role has computed, and another touches behind a wait for these mbarriers, at which the end of products
/// arrives.
fn sums<'a>(programs: &[Program<'a>], barrier: &Name) -> Vec<&'a Name> {
    let is_late = |it: &Instr| arrival(it, barrier).is_some_and(|it| it.is_late);
    let mut out = BTreeSet::new();
    for (at, program) in programs.iter().enumerate().filter(|it| it.1.instrs().any(|it| is_late(it.1))) {
        let others = programs.iter().enumerate().filter(|it| it.0 != at).map(|it| it.1);
        let waiting = others.filter(|it| it.instrs().any(|it| phase(it.1, barrier).is_some()));
        let mut touched = BTreeSet::new();
        for (_, it) in waiting.flat_map(Program::instrs) {
            it.each_effect(&mut |it| {
                touched.insert(&it.access.buffer);
            });
        }
        let products = program.instrs().filter_map(|(_, it)| match it {
            Instr::Tcgen05(it) => Some(&it.place.first.buffer),
            _ => None,
        });
        out.extend(products.filter(|it| touched.contains(it)));
    }
    out.into_iter().collect()
}

/// Where the sum of a product goes, if it is to one of some buffers.
pub(super) fn sum<'i>(it: &'i Instr, sums: &[&Name]) -> Option<&'i Tile> {
    match it {
        Instr::Tcgen05(it) => Some(&it.place).filter(|it| sums.contains(&&it.first.buffer)),
        _ => None,
    }
}

impl Event {
    /// Whether it is for the slot, and the phase, of its number and so much more.
    fn is_in_step(&self, slot: &Index, phase: Option<&Index>, slots: i64, more: i64) -> bool {
        let (number, slots) = (&self.number + more, Index::int(slots));
        equal(&self.bounds, slot, &number.floor_mod(&slots))
            && phase.is_none_or(|it| equal(&self.bounds, it, &number.floor_div(&slots)))
    }

    fn in_step(
        &self,
        barrier: &Name,
        what: &'static str,
        slot: &Index,
        phase: Option<&Index>,
        slots: i64,
        more: i64,
    ) -> Result<(), PhaseError> {
        if self.is_in_step(slot, phase, slots, more) {
            return Ok(());
        }
        let number = self.bounds.simplify(&(&self.number + more));
        let (barrier, slot, phase) = (barrier.clone(), slot.clone(), phase.cloned());
        Err(PhaseError::OutOfStep { barrier, what, number, slot, phase, slots })
    }
}

/// Whether two are equal, variables with one value standing for it.
pub(super) fn equal(bounds: &Bounds, a: &Index, b: &Index) -> bool {
    bounds.equal(a, b) || bounds.equal(&settled(bounds, a), &settled(bounds, b))
}

/// An index with their values in the place of variables that have but one.
pub(super) fn settled(bounds: &Bounds, index: &Index) -> Index {
    index.subst(&|name| match bounds.interval(&Index::var(name)) {
        (Some(least), Some(most)) if least == most => Some(Index::int(least)),
        _ => None,
    })
}

/// The arrival at the mbarriers of a name that an instruction is.
pub(super) fn arrival<'i>(it: &'i Instr, barrier: &Name) -> Option<&'i Arrival> {
    match it.sync() {
        Some(SyncKind::Arrive(it)) if it.barrier == *barrier => Some(it),
        _ => None,
    }
}

/// The wait at them that it is.
pub(super) fn phase<'i>(it: &'i Instr, barrier: &Name) -> Option<&'i Phase> {
    match it.sync() {
        Some(SyncKind::Await(it)) if it.barrier == *barrier => Some(it),
        _ => None,
    }
}

/// What comes and counts for them.
pub(super) fn fill<'i>(it: &'i Instr, barrier: &Name) -> Option<Fill<'i>> {
    it.fill().filter(|it| it.barrier == barrier)
}
