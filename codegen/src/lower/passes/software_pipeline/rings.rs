//! Rings: slots that the copy engine fills, and the phases of mbarriers by which it is known that they are full.
//!
//! Components of one role that follow each other in a step, at one stage, and are read by the same others, or by what the tensor core does in
//! turn for a thread of another role, fill a ring together: one mbarrier a slot, `full`, has in each phase one arrival, which says how many bytes come, and those bytes. The fill of number
//! `n` goes to slot `n mod V` in phase `n floordiv V`, counted through all loops of the block around the pipeline, so that phases
//! go on from one run of the pipeline to the next. That a slot is free, barriers of threads say, which `insert_barriers` places; where
//! another role reads than writes, a second mbarrier a slot does, `empty`, at which each warp that reads arrives.
//!
//! Where the copies of a ring go to several blocks of threads of a cluster, each of them fills the slots of all: so its `empty` counts the
//! warps of all of them, and a warp that has read arrives in all of them.
//!
//! Where products read a ring that two blocks of threads compute together, each block fills its own slots and says so at the `full` of the first:
//! there both fills are counted, and one thread waits for them, which gives the slots of both back.

use std::{collections::BTreeMap, sync::Arc};

use ir::{
    Access, Arrival, Barrier, Block, Func, Group, Index, Instr, Less, Loop, LoopKind, Mbarriers, Mechanism,
    Name, Participants, Phase, Stmt, ThreadAxis, Wait, intrin,
    pipeline::{Emission, EmissionPoint, Insertions, Instance, PipelinePlan, Section, Step},
};

use crate::lower::{
    analysis::pairs,
    marks,
    passes::software_pipeline::ledger::{Over, done_by, product_group, products, stores},
};

/// Buffers that are filled together.
pub(crate) struct Ring {
    /// The name of its mbarriers.
    pub(crate) full: Name,
    /// The components that fill it, in the order in which they run.
    pub(crate) writers: Vec<usize>,
    /// The component that reads it first.
    pub(crate) reader: usize,
    /// Whether one thread does all that reads it: it starts products.
    pub(crate) is_for_one: bool,
    /// Whether that multiplies for a pair of blocks, and so has to hear of what both of them fill.
    pub(crate) is_of_pair: bool,
    /// How many slots it has.
    pub(crate) slots: i64,
    /// How many bytes fill a slot.
    pub(crate) bytes: i64,
    /// The buffers.
    pub(crate) buffers: Vec<Name>,
    /// How slots are given back, where another role reads than writes.
    pub(crate) release: Option<Release>,
}

/// How slots of a ring are given back to the role that fills them.
pub(crate) struct Release {
    /// The name of the mbarriers by which it is told.
    pub(crate) empty: Name,
    /// The component that reads a slot last.
    pub(crate) reader: usize,
    /// Whether that is products, which are waited for by groups of this kind.
    pub(crate) products: Option<Group>,
    /// How many fills later than it is read a slot is given back.
    pub(crate) lag: i64,
    /// How many warps read it, each of which arrives: those of the own block of threads, and of each that its copies reach.
    pub(crate) warps: i64,
    /// The axes of the cluster along which its copies reach other blocks of threads.
    pub(crate) along: Vec<ThreadAxis>,
}

impl Ring {
    /// Its mbarriers.
    pub(crate) fn mbarriers(&self) -> impl Iterator<Item = (Name, Mbarriers)> {
        let of = |name: &Name, arrivals| (name.clone(), Mbarriers { slots: self.slots, arrivals });
        let empty = self.release.as_ref().map(|it| of(&it.empty, it.warps));
        let fills = if self.is_of_pair { pairs::BLOCKS } else { 1 };
        [of(&self.full, fills)].into_iter().chain(empty)
    }

    /// Notes that some components read it, too: before the first of all of them it is waited for, and behind the last it is given back.
    fn read_by(&mut self, plan: &PipelinePlan, readers: &[usize]) {
        for at in readers {
            if turn(plan, *at) < turn(plan, self.reader) {
                self.reader = *at;
            }
            let release = self.release.iter_mut();
            release.filter(|it| turn(plan, *at) > turn(plan, it.reader)).for_each(|it| it.reader = *at);
        }
    }

    /// Notes that copies of it go along an axis: the warps of all blocks of threads there have to give a slot back.
    fn reach(&mut self, along: Option<ThreadAxis>, pace: &Pace<'_>) {
        if let (Some(it), Some(axis)) = (&mut self.release, along)
            && !self.is_of_pair
            && !it.along.contains(&axis)
        {
            it.along.push(axis);
            it.warps *= (pace.blocks)(axis);
        }
    }
}

/// What is known of the roles of a loop.
pub(crate) struct Pace<'a> {
    /// How many groups of products are in flight when a slot is given back that a component reads.
    pub(crate) lag: &'a dyn Fn(usize) -> i64,
    /// How many warps a role has.
    pub(crate) warps: &'a dyn Fn(Option<&Name>) -> i64,
    /// How many blocks of threads an axis of the cluster has.
    pub(crate) blocks: &'a dyn Fn(ThreadAxis) -> i64,
}

/// The rings of a pipelined loop.
pub(crate) fn rings(
    func: &Func,
    plan: &PipelinePlan,
    pace: &Pace<'_>,
    is_taken: &dyn Fn(&Name) -> bool,
) -> Vec<Ring> {
    let fills = |at: &usize| !stores(func, plan, *at);
    let by_engine: Vec<usize> = done_by(Mechanism::Tma, plan).filter(fills).collect();
    let mut out: Vec<Ring> = Vec::new();
    let mut last = None;
    for (at, component) in plan.in_order() {
        if !by_engine.contains(&at) {
            // What other roles do comes between no copies of this one.
            last = last.filter(|it: &(_, Option<Name>, _, _)| it.1.as_ref() != plan.role(at));
            continue;
        }
        let readers = readers(plan, at);
        let slots = component.writes().iter().filter_map(|it| plan.slots.get(it)).map(|it| it.count()).max();
        let kind = (component.stage, plan.role(at).cloned(), told_to(plan, &readers), slots.unwrap_or(1));
        let is_of_pair = readers.iter().any(|it| pairs::has_pairs(&plan.components[*it].body));
        let along = component.body.blocks().into_iter().find_map(|it| it.attrs.multicast);
        // Of what both blocks of a pair need, each copies half, and for itself.
        let sharing = component.writes().iter().map(|it| intrin::sharing(func, it)).max().unwrap_or(1);
        let bytes = bytes(func, &component.body) / sharing;
        if let Some(ring) = out.last_mut().filter(|_| last.as_ref() == Some(&kind)) {
            ring.writers.push(at);
            ring.bytes += bytes;
            ring.buffers.extend(component.writes());
            ring.reach(along, pace);
            ring.read_by(plan, &readers);
            continue;
        }
        let taken =
            |it: &Name| is_taken(it) || out.iter().flat_map(Ring::mbarriers).any(|(known, _)| known == *it);
        let full = Name::fresh(&format!("{}_full", plan.var), taken);
        let reader = readers.iter().min_by_key(|it| turn(plan, **it)).copied().unwrap_or(at);
        let release = release(plan, at, &readers, pace, &|it| taken(it) || *it == full);
        let buffers = component.writes().into_iter().collect();
        let is_for_one = readers.iter().all(|it| done_by(Mechanism::Tcgen05, plan).any(|one| one == *it));
        let (writers, slots) = (vec![at], kind.3);
        let mut ring = Ring { full, writers, reader, is_for_one, is_of_pair, slots, bytes, buffers, release };
        ring.reach(along, pace);
        // One thread gives slots back in both blocks.
        ring.release.iter_mut().filter(|_| is_of_pair).for_each(|it| it.along = vec![pairs::AXIS]);
        out.push(ring);
        last = Some(kind);
    }
    out
}

/// When in an iteration a component runs: by stage, then by order.
fn turn(plan: &PipelinePlan, component: usize) -> (i64, i64) {
    (plan.components[component].stage, plan.components[component].order)
}

/// Whom copies are for, whose mbarriers are the same then.
#[derive(PartialEq, Eq)]
enum ToldTo {
    Components(Vec<usize>),
    /// The thread of a role that has the tensor core do in turn all that reads them, in a stage.
    TensorCore(Name, i64),
}

fn told_to(plan: &PipelinePlan, readers: &[usize]) -> ToldTo {
    let of = |at: usize| Some((plan.role(at)?.clone(), plan.components[at].stage));
    let first = readers.first().and_then(|at| of(*at));
    let is_alike = |at: &usize| done_by(Mechanism::Tcgen05, plan).any(|it| it == *at) && of(*at) == first;
    match first {
        Some((role, stage)) if readers.iter().all(is_alike) => ToldTo::TensorCore(role, stage),
        _ => ToldTo::Components(readers.to_vec()),
    }
}

/// How slots are given back, if the last component that reads them has another role than the one that writes them.
fn release(
    plan: &PipelinePlan,
    writer: usize,
    readers: &[usize],
    pace: &Pace<'_>,
    is_taken: &dyn Fn(&Name) -> bool,
) -> Option<Release> {
    let reader = readers.iter().copied().max_by_key(|it| turn(plan, *it))?;
    if plan.role(reader) == plan.role(writer) {
        return None;
    }
    let is_product = products(plan).any(|it| it == reader);
    let products = is_product.then(|| product_group(plan));
    let lag = if products == Some(Group::Wgmma) { (pace.lag)(reader) } else { 0 };
    let empty = Name::fresh(&format!("{}_empty", plan.var), is_taken);
    // The tensor core arrives for the thread that starts its products.
    let is_late = products == Some(Group::Tcgen05);
    let warps = if is_late { 1 } else { (pace.warps)(plan.role(reader)) };
    Some(Release { empty, reader, products, lag, warps, along: vec![] })
}

/// The other components that read what one writes.
fn readers(plan: &PipelinePlan, writer: usize) -> Vec<usize> {
    let written = plan.components[writer].writes();
    let all = plan.components.iter().enumerate();
    all.filter(|it| it.0 != writer && !it.1.reads().is_disjoint(&written)).map(|it| it.0).collect()
}

/// How many bytes the boxes of a component have.
fn bytes(func: &Func, body: &Stmt) -> i64 {
    let element = |it: &&Access| func.buffers[&it.buffer].dtype.bytes_i64();
    let one = |it: &&Block| box_elements(&it.body) * it.writes().iter().map(element).sum::<i64>();
    body.blocks().iter().map(one).sum()
}

/// How many elements a nest of loops runs over.
fn box_elements(body: &Stmt) -> i64 {
    match body {
        Stmt::Loop(it) => it.extent.as_int().unwrap_or(0) * box_elements(&it.body),
        _ => 1,
    }
}

/// What a ring puts between the steps of a pipeline: before its first writer the wait for a free slot, if it is another role
/// that frees it, and what it expects; before its first reader the wait for that; behind its last reader what frees the slot: where products read it last, behind a wait by which they are `over` anyway,
/// if their step has one.
pub(crate) fn insertions(
    ring: &Ring,
    plan: &PipelinePlan,
    emission: &Emission,
    over: &BTreeMap<EmissionPoint, Over>,
    around: &[&Loop],
) -> Insertions {
    let mut out = Insertions::new();
    let mut each = |section: Section, steps: &[Step]| {
        for (step, instances) in steps.iter().enumerate() {
            for (at, it) in instances.iter().enumerate() {
                let place = |at: usize| EmissionPoint { section, step, at };
                let mut add = |at: usize, stmt: Stmt| out.entry(place(at)).or_default().push(stmt);
                let role = plan.role(it.component);
                let fill = Fill { ring, number: plan.position(around, &it.iteration) };
                if it.component == ring.writers[0] {
                    for instr in fill.before_writing() {
                        add(at, placed(instr, it, role));
                    }
                }
                if it.component == ring.reader {
                    let wait = placed(fill.wait_until_full(), it, role);
                    add(at, if ring.is_for_one { marks::by_one(wait) } else { wait });
                }
                let Some(Release { lag, reader, products, .. }) = &ring.release else { continue };
                if it.component == *reader {
                    let is_awaited = *products == Some(Group::Wgmma);
                    let known = over.get(&place(at)).filter(|_| is_awaited && *lag == 0);
                    let in_flight = known.map_or(*lag, |it| it.in_flight.into());
                    let behind = match products {
                        Some(Group::Wgmma) => Some(fill.products_read(in_flight)),
                        Some(_) => None,
                        None => Some(warp_has_read()),
                    };
                    let end = known.map_or(at + 1, |it| it.at);
                    if let Some(behind) = behind {
                        add(end, placed(behind, it, role));
                    }
                    // The first iterations have none before them whose slots they could free.
                    if it.iteration.as_int().is_some_and(|it| it < *lag) {
                        continue;
                    }
                    let freed = Fill { ring, number: fill.number.clone() + -*lag };
                    let mut stmt = placed(freed.free(), it, role);
                    if *lag > 0 {
                        guard(&mut stmt, Less::new(Index::int(lag - 1), it.iteration.clone()));
                    }
                    add(end, stmt);
                }
            }
        }
    };
    each(Section::Prologue, &emission.prologue);
    emission.steady.iter().for_each(|it| each(Section::Steady, &it.steps));
    each(Section::Epilogue, &emission.epilogue);
    if let Some(Release { lag, reader, .. }) = &ring.release {
        let end = EmissionPoint { section: Section::Epilogue, step: emission.epilogue.len(), at: 0 };
        for left in (1..=*lag).rev() {
            let iteration = plan.extent.clone() + -left;
            let fill = Fill { ring, number: plan.position(around, &iteration) };
            let mut stmt = marks::in_role(marks::instruction("free", fill.free()), plan.role(*reader));
            if plan.extent.as_int().is_none_or(|it| it < left) {
                guard(&mut stmt, Less::new(Index::int(-1), iteration));
            }
            out.entry(end).or_default().push(stmt);
        }
    }
    out
}

/// What stands behind all runs of a pipeline: the role that fills a ring waits until all slots have been given back by all that its copies
/// reach. A block of threads must not end while others still arrive in its shared memory.
pub(crate) fn drain(ring: &Ring, plan: &PipelinePlan, around: &[&Loop]) -> Vec<Stmt> {
    let serial = around.iter().filter(|it| !matches!(it.kind, LoopKind::Bound(_)));
    let all = serial.fold(plan.extent.clone(), |all, it| it.extent.clone() * all);
    let reaching = ring.release.iter().filter(|it| !it.along.is_empty());
    let one = |(next, it): (i64, &Release)| {
        let wait = Fill { ring, number: all.clone() + next }.wait_until_free(it);
        marks::in_role(marks::instruction("await", wait), plan.role(ring.writers[0]))
    };
    reaching.flat_map(|it| (0..ring.slots).map(move |next| (next, it))).map(one).collect()
}

/// A fill of a ring, by its number.
struct Fill<'a> {
    ring: &'a Ring,
    number: Index,
}

impl Fill<'_> {
    fn slot(&self) -> Index {
        self.number.floor_mod(&Index::int(self.ring.slots))
    }

    fn phase(&self) -> Index {
        self.number.floor_div(&Index::int(self.ring.slots))
    }

    fn before_writing(&self) -> Vec<Instr> {
        let wait = |it: &Release| self.wait_until_free(it);
        let (barrier, bytes) = (self.ring.full.clone(), Some(Index::int(self.ring.bytes)));
        let (slot, is_late, along, at_first) = (self.slot(), false, vec![], self.ring.is_of_pair);
        let expect = Instr::Arrive(Arrival { barrier, slot, bytes, is_late, along, at_first });
        self.ring.release.iter().map(wait).chain([expect]).collect()
    }

    fn wait_until_free(&self, it: &Release) -> Instr {
        Instr::Await(Phase { barrier: it.empty.clone(), slot: self.slot(), phase: self.phase() + -1 })
    }

    fn wait_until_full(&self) -> Instr {
        Instr::Await(Phase { barrier: self.ring.full.clone(), slot: self.slot(), phase: self.phase() })
    }

    fn products_read(&self, lag: i64) -> Instr {
        let in_flight = u32::try_from(lag).expect("a ring has few slots");
        let buffers = self.ring.buffers.clone();
        Instr::Wait(Wait { group: Group::Wgmma, reads_only: false, in_flight, buffers })
    }

    fn free(&self) -> Instr {
        let release = self.ring.release.as_ref().expect("only then it is asked for");
        let (barrier, along) = (release.empty.clone(), release.along.clone());
        let is_late = release.products == Some(Group::Tcgen05);
        Instr::Arrive(Arrival { barrier, slot: self.slot(), bytes: None, is_late, along, at_first: false })
    }
}

fn placed(it: Instr, instance: &Instance, role: Option<&Name>) -> Stmt {
    let name = it.word();
    let mut stmt = marks::in_role(marks::instruction(name, it), role);
    instance.guards.iter().for_each(|it| guard(&mut stmt, it.clone()));
    stmt
}

fn guard(stmt: &mut Stmt, condition: Less) {
    if let Stmt::Block(it) = stmt {
        Arc::make_mut(it).guards.push(condition);
    }
}

/// All lanes of a warp have read what they read.
const fn warp_has_read() -> Instr {
    Instr::Barrier(Barrier { among: Participants::Warp, proof: vec![] })
}
