//! Finds the statements of a pipeline in the lowered kernel by where they come from, and what stands between them.

use std::collections::BTreeMap;

use ir::{Instr, Kernel, Name, Op, Origin, Participants, PipelineStep, SyncKind, pipeline::Section};

use super::{Barrier, Part, Sync, clock::Clock, phases::Phases, sync::SlotBarrier};

/// A pipeline in a kernel.
pub(super) struct LoweredPipeline<'a> {
    /// The loops around it.
    pub(super) around: Vec<Name>,
    /// The steps of each lane: those that are written out before the steady loop, those of one run of it, and those after it, by
    /// their numbers.
    pub(super) steps: BTreeMap<Key, Step>,
    /// The barriers that the steps speak of.
    pub(super) barriers: Vec<Barrier>,
    /// The mbarriers that the steps speak of.
    pub(super) mbarriers: Vec<SlotBarrier>,
    /// What each statement became, in one step; the statements in the order in which they run.
    pub(super) bodies: Vec<Body<'a>>,
    /// The mbarriers for which the bulk copies of each statement count, by position.
    pub(super) fills: Vec<Option<usize>>,
}

/// What happens before each statement of a step, and in the last place after all.
pub(super) type Step = Vec<Vec<Sync>>;

/// A lane, a part of the pipeline, and the number of a step of it.
pub(super) type Key = (usize, Section, usize);

/// What a statement became, each part with those of whom one thread does it, if it is one.
pub(super) type Body<'a> = Vec<(Participants, &'a Op)>;

/// Finds a pipeline, if it is in this kernel.
pub(super) fn find<'a>(kernel: &'a Kernel, clock: &Clock) -> Option<LoweredPipeline<'a>> {
    let mut scan = Scan { clock, phases: Phases::of(kernel, clock), steps: BTreeMap::new() };
    scan.list(&kernel.body, &Place { around: vec![], lane: 0, leader: Participants::Thread });
    let steady = scan.steps.iter().find(|it| it.0.1 == Section::Steady).or(scan.steps.iter().next())?;
    let around = steady.1.around.iter().filter(|it| **it != clock.var).cloned().collect();
    let count = clock.components.len();
    let mut bodies: Vec<Body<'a>> = vec![vec![]; count];
    // The steady loop shows best what a statement became.
    let mut by_part: Vec<_> = scan.steps.iter().collect();
    by_part.sort_by_key(|it| it.0.1 != Section::Steady);
    for (_, step) in by_part {
        for (body, ops) in bodies.iter_mut().zip(&step.ops) {
            if body.is_empty() {
                body.clone_from(ops);
            }
        }
    }
    let fills: Vec<_> = bodies.iter().map(|it| scan.phases.filled_by(it)).collect();
    let (mut steps, mut barriers) = (BTreeMap::new(), vec![]);
    for (key, step) in scan.steps {
        let numbered = numbered(&mut barriers, key.1, step, clock);
        steps.insert(key, numbered);
    }
    let mbarriers = scan.phases.told(&steps, &fills);
    Some(LoweredPipeline { around, steps, barriers, mbarriers, bodies, fills })
}

/// Adds the barriers of a step to the list of all.
fn numbered(barriers: &mut Vec<Barrier>, section: Section, step: LoweredStep<'_>, clock: &Clock) -> Step {
    let part = match section {
        Section::Prologue => Part::Prologue,
        Section::Steady => Part::Steady,
        Section::Epilogue => Part::Epilogue,
    };
    let number = |(rank, all): (usize, Vec<Placed>)| {
        let one = |it: Placed| {
            let Sync::Barrier { inside, .. } = it.sync else { return it.sync };
            let before = clock.components.get(rank).map(|it| it.name.clone());
            barriers.push(Barrier { part, before, among: it.among, proof: it.proof });
            Sync::Barrier { at: barriers.len() - 1, inside }
        };
        all.into_iter().map(one).collect()
    };
    step.syncs.into_iter().enumerate().map(number).collect()
}

/// A step as it stands in the kernel.
struct LoweredStep<'a> {
    around: Vec<Name>,
    syncs: Vec<Vec<Placed>>,
    ops: Vec<Body<'a>>,
}

/// Something that orders threads or asynchronous work, and of a barrier for whom and what it is there.
struct Placed {
    sync: Sync,
    among: Participants,
    proof: Vec<String>,
}

/// What a statement of a kernel is to a pipeline.
enum Belongs<'a> {
    /// All of it comes from one component in one step.
    Component(&'a PipelineStep),
    /// It holds several, or the loop itself.
    Several,
    /// It comes from another pipeline only.
    Elsewhere,
    /// It comes from no pipeline.
    Nowhere,
}

struct Scan<'a, 'b> {
    clock: &'b Clock,
    phases: Phases<'b>,
    steps: BTreeMap<Key, LoweredStep<'a>>,
}

/// Where a list stands.
#[derive(Clone)]
struct Place {
    around: Vec<Name>,
    /// The lane of the role that it is of; the first one where there are no roles.
    lane: usize,
    /// Of whom one thread comes to it; of a thread all do.
    leader: Participants,
}

/// Where the scan of a list stands.
struct Position<'a, 'o> {
    place: &'o Place,
    found: BTreeMap<Key, LoweredStep<'a>>,
    /// The step of the last statement, if that was of one.
    last: Option<Key>,
    /// Barriers since then.
    pending: Vec<Placed>,
    /// What is to be looked through by itself, and of whom one thread comes to it.
    lists: Vec<(Participants, &'a Op)>,
}

impl<'a> Scan<'a, '_> {
    /// Looks through a list and the lists inside it. A step that is there several times, as the parts of an inner
    /// pipeline are, is taken from where the most loops are around it.
    fn list(&mut self, ops: &'a [Op], place: &Place) {
        let mut here = Position { place, found: BTreeMap::new(), last: None, pending: vec![], lists: vec![] };
        self.steps_of(ops, place.leader, &mut here);
        self.finish(&mut here);
        let Position { found, lists, .. } = here;
        for (key, step) in found {
            let known = self.steps.get(&key).map(|it| it.around.len());
            if known.is_none_or(|known| known < step.around.len()) {
                self.steps.insert(key, step);
            }
        }
        for (leader, op) in lists {
            let mut inside = Place { leader, ..place.clone() };
            match op {
                Op::For(it) => inside.around.push(it.var.clone()),
                // A role that has nothing to do with the pipeline is not looked through.
                Op::Role(name, _) => match self.clock.lane(Some(name)) {
                    Some(lane) => inside.lane = lane,
                    None => continue,
                },
                Op::Leader(of, _) => inside.leader = *of,
                Op::Alloc(_) | Op::If(..) | Op::Instr(..) => {}
            }
            self.list(op.children(), &inside);
        }
    }

    fn steps_of(&self, ops: &'a [Op], leader: Participants, here: &mut Position<'a, '_>) {
        for op in ops {
            // Who comes to what is inside.
            let within = if let Op::Leader(of, _) = op { *of } else { leader };
            match op {
                Op::Alloc(_) | Op::Instr(Instr::Comment(_), _) => continue,
                Op::Instr(it, origin) => {
                    if let Some(sync) = it.sync() {
                        self.sync(sync, it, origin, here);
                        continue;
                    }
                }
                Op::If(_, body) | Op::Leader(_, body) if body.iter().all(orders_only) => {
                    self.steps_of(body, within, here);
                    continue;
                }
                Op::Role(..) => {
                    self.finish(here);
                    here.lists.push((leader, op));
                    continue;
                }
                Op::For(_) | Op::If(..) | Op::Leader(..) => {}
            }
            match (self.belongs(op), op) {
                // A condition stands around a statement and what that waits for.
                (Belongs::Component(_), Op::If(_, body) | Op::Leader(_, body))
                    if body.iter().any(|op| self.waits(op)) =>
                {
                    self.steps_of(body, within, here);
                }
                (Belongs::Component(step), _) => self.component(step, (leader, op), here),
                // What several statements have in common as a condition stands around all of them.
                (Belongs::Several, Op::If(_, body) | Op::Leader(_, body)) => {
                    self.steps_of(body, within, here);
                }
                (Belongs::Several | Belongs::Nowhere, _) => {
                    self.finish(here);
                    here.lists.push((leader, op));
                }
                (Belongs::Elsewhere, _) => {
                    // What stands before a statement of another pipeline is told there.
                    (here.last, here.pending) = (None, vec![]);
                    here.lists.push((leader, op));
                }
            }
        }
    }

    /// What orders threads or asynchronous work: what the pipeline put in tells its place, a barrier stands before what comes next.
    fn sync(&self, sync: SyncKind<'_>, it: &Instr, origin: &Origin, here: &mut Position<'a, '_>) {
        let pending = match sync {
            SyncKind::Barrier => Some(Sync::Barrier { at: 0, inside: false }),
            SyncKind::Fence(before) if origin.steps().is_empty() => Some(Sync::Fence { before }),
            _ => None,
        };
        if let Some(sync) = pending {
            here.pending.push(Placed::new(sync, it));
            return;
        }
        let Some(step) = origin.step_of(&self.clock.var) else {
            if !origin.steps().is_empty() {
                (here.last, here.pending) = (None, vec![]);
            }
            return;
        };
        let lane = here.place.lane;
        let rank = self.rank(step, lane);
        let found = match sync {
            SyncKind::Commit(group) => Some(Sync::Commit { group }),
            SyncKind::Wait(it) => Some(Sync::Wait {
                group: it.group,
                reads_only: it.reads_only,
                in_flight: it.in_flight,
                buffers: it.buffers.clone(),
            }),
            // Those of a pipeline inside are told there.
            SyncKind::Await(it) => self.phases.awaited(it, step, rank),
            SyncKind::Arrive(it) => self.phases.arrived(it, step, lane, rank),
            SyncKind::Fence(before) => Some(Sync::Fence { before }),
            // A turn is around the loop that is told of.
            SyncKind::Barrier | SyncKind::Turn(_) => None,
        };
        let Some(sync) = found else { return };
        let pending = std::mem::take(&mut here.pending);
        let syncs = &mut self.step(step, here).syncs[rank];
        syncs.extend(pending);
        syncs.push(Placed::new(sync, it));
        here.last = Some((lane, step.section, step.step));
    }

    /// A statement that comes from a component.
    fn component(
        &self,
        step: &PipelineStep,
        (leader, op): (Participants, &'a Op),
        here: &mut Position<'a, '_>,
    ) {
        let lane = here.place.lane;
        let rank = self.rank(step, lane);
        let pending = std::mem::take(&mut here.pending);
        let found = self.step(step, here);
        let within = !found.ops[rank].is_empty();
        found.syncs[rank].extend(pending.into_iter().map(|it| it.within(within)));
        found.syncs[rank].extend(barriers_in(op));
        found.ops[rank].push((leader, op));
        here.last = Some((lane, step.section, step.step));
    }

    /// What follows a step without a statement in between belongs to its end.
    fn finish(&self, here: &mut Position<'a, '_>) {
        let pending = std::mem::take(&mut here.pending);
        if let Some(step) = here.last.take().and_then(|key| here.found.get_mut(&key)) {
            step.syncs[self.clock.components.len()].extend(pending);
        }
    }

    /// Whether the pipeline itself put this in, to wait or to tell.
    fn waits(&self, op: &Op) -> bool {
        match op {
            Op::Instr(it, origin) => {
                let is_told = it.sync().is_some_and(|it| it != SyncKind::Barrier);
                is_told && origin.steps().last().is_some_and(|it| it.var == self.clock.var)
            }
            Op::Leader(_, body) => body.iter().any(|it| self.waits(it)),
            Op::Alloc(_) | Op::For(_) | Op::If(..) | Op::Role(..) => false,
        }
    }

    fn belongs(&self, op: &'a Op) -> Belongs<'a> {
        let mut first: Option<&PipelineStep> = None;
        let (mut holds_loop, mut differs, mut is_elsewhere) = (false, false, false);
        op.walk(&mut |op| match op {
            Op::Instr(Instr::Comment(_), _) | Op::Alloc(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => {}
            Op::For(it) => holds_loop |= it.var == self.clock.var,
            Op::Instr(_, origin) => match (first, origin.step_of(&self.clock.var)) {
                (_, None) => is_elsewhere |= !origin.steps().is_empty(),
                (None, Some(step)) => first = Some(step),
                (Some(known), Some(step)) => differs |= known != step,
            },
        });
        match first {
            Some(_) if holds_loop || differs => Belongs::Several,
            Some(step) => Belongs::Component(step),
            None if is_elsewhere => Belongs::Elsewhere,
            None => Belongs::Nowhere,
        }
    }

    /// Before which statement of a step of a lane something stands.
    fn rank(&self, step: &PipelineStep, lane: usize) -> usize {
        step.component.map_or(self.clock.components.len(), |it| self.clock.rank_in(lane, it))
    }

    fn step<'h>(&self, step: &PipelineStep, here: &'h mut Position<'a, '_>) -> &'h mut LoweredStep<'a> {
        let count = self.clock.components.len();
        here.found.entry((here.place.lane, step.section, step.step)).or_insert_with(|| LoweredStep {
            around: here.place.around.clone(),
            syncs: (0..=count).map(|_| vec![]).collect(),
            ops: vec![vec![]; count],
        })
    }
}

impl Placed {
    fn new(sync: Sync, it: &Instr) -> Placed {
        let proof = match it {
            // As the source says it.
            Instr::Barrier(it) if !it.proof.is_empty() => vec![it.proof.join("; ")],
            _ => vec![],
        };
        Placed { sync, among: it.participants(), proof }
    }

    fn within(self, within: bool) -> Placed {
        let sync = match self.sync {
            Sync::Barrier { at, inside } => Sync::Barrier { at, inside: inside || within },
            other => other,
        };
        Placed { sync, ..self }
    }
}

/// Whether a statement orders something and does nothing else.
fn orders_only(op: &Op) -> bool {
    match op {
        Op::Instr(it, _) => it.sync().is_some(),
        Op::If(_, body) | Op::Leader(_, body) | Op::Role(_, body) => body.iter().all(orders_only),
        Op::Alloc(_) | Op::For(_) => false,
    }
}

/// The barriers inside a statement.
fn barriers_in(op: &Op) -> Vec<Placed> {
    let mut out = Vec::new();
    op.each_instr(&mut |it| {
        if it.sync() == Some(SyncKind::Barrier) {
            out.push(Placed::new(Sync::Barrier { at: 0, inside: true }, it));
        }
    });
    out
}
