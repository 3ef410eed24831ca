//! Finds the statements of a pipeline in the lowered kernel by where they come from, and what stands between them.

use std::collections::BTreeMap;

use ir::{Instr, Kernel, Name, Op, Origin, PipelineStep, SyncKind, pipeline::Section};

use super::{Barrier, Part, Sync, clock::Clock};

/// A pipeline in a kernel.
pub(super) struct LoweredPipeline<'a> {
    /// The loops around it.
    pub(super) around: Vec<Name>,
    /// The steps that are written out before the steady loop, those of one run of it, and those after it, by their numbers.
    pub(super) steps: BTreeMap<(Section, usize), Step>,
    /// The barriers that the steps speak of.
    pub(super) barriers: Vec<Barrier>,
    /// What each statement became, in one step; the statements in the order in which they run.
    pub(super) bodies: Vec<Vec<&'a Op>>,
}

/// What happens before each statement of a step, and in the last place after all.
pub(super) type Step = Vec<Vec<Sync>>;

/// Finds a pipeline, if it is in this kernel.
pub(super) fn find<'a>(kernel: &'a Kernel, clock: &Clock) -> Option<LoweredPipeline<'a>> {
    let mut scan = Scan { clock, steps: BTreeMap::new() };
    scan.list(&kernel.body, &mut Vec::new());
    let steady = scan.steps.iter().find(|it| it.0.0 == Section::Steady).or(scan.steps.iter().next())?;
    let around = steady.1.around.iter().filter(|it| **it != clock.var).cloned().collect();
    let count = clock.components.len();
    let mut found =
        LoweredPipeline { around, steps: BTreeMap::new(), barriers: vec![], bodies: vec![vec![]; count] };
    // The steady loop shows best what a statement became.
    let mut bodies: Vec<_> = scan.steps.iter().collect();
    bodies.sort_by_key(|it| it.0.0 != Section::Steady);
    for (_, step) in bodies {
        for (body, ops) in found.bodies.iter_mut().zip(&step.ops) {
            if body.is_empty() {
                body.clone_from(ops);
            }
        }
    }
    for (key, step) in scan.steps {
        let numbered = numbered(&mut found.barriers, key.0, step, clock);
        found.steps.insert(key, numbered);
    }
    Some(found)
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
            barriers.push(Barrier { part, before, proof: it.proof });
            Sync::Barrier { at: barriers.len() - 1, inside }
        };
        all.into_iter().map(one).collect()
    };
    step.syncs.into_iter().enumerate().map(number).collect()
}

/// A part of the pipeline, and the number of a step of it.
type Key = (Section, usize);

/// A step as it stands in the kernel.
struct LoweredStep<'a> {
    around: Vec<Name>,
    syncs: Vec<Vec<Placed>>,
    ops: Vec<Vec<&'a Op>>,
}

/// Something that orders threads or copies, and what a barrier is there for.
struct Placed {
    sync: Sync,
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
    steps: BTreeMap<Key, LoweredStep<'a>>,
}

/// Where the scan of a list stands.
struct Position<'a, 'o> {
    around: &'o [Name],
    found: BTreeMap<Key, LoweredStep<'a>>,
    /// The step of the last statement, if that was of one.
    last: Option<Key>,
    /// Barriers since then.
    pending: Vec<Placed>,
    /// What is to be looked through by itself.
    lists: Vec<&'a Op>,
}

impl<'a> Scan<'a, '_> {
    /// Looks through a list and the lists inside it. A step that is there several times, as the parts of an inner
    /// pipeline are, is taken from where the most loops are around it.
    fn list(&mut self, ops: &'a [Op], around: &mut Vec<Name>) {
        let mut here =
            Position { around, found: BTreeMap::new(), last: None, pending: vec![], lists: vec![] };
        self.steps_of(ops, &mut here);
        self.finish(&mut here);
        let Position { found, lists, .. } = here;
        for (key, step) in found {
            let known = self.steps.get(&key).map(|it| it.around.len());
            if known.is_none_or(|known| known < step.around.len()) {
                self.steps.insert(key, step);
            }
        }
        for op in lists {
            let outside = around.len();
            if let Op::For(it) = op {
                around.push(it.var.clone());
            }
            self.list(op.children(), around);
            around.truncate(outside);
        }
    }

    fn steps_of(&self, ops: &'a [Op], here: &mut Position<'a, '_>) {
        for op in ops {
            match op {
                Op::Alloc(_) | Op::Instr(Instr::Comment(_), _) => continue,
                Op::Instr(it, origin) => {
                    if let Some(sync) = it.sync() {
                        self.sync(sync, it, origin, here);
                        continue;
                    }
                }
                Op::If(_, body) | Op::Leader(_, body) if body.iter().all(orders_only) => {
                    self.steps_of(body, here);
                    continue;
                }
                Op::For(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => {}
            }
            match (self.belongs(op), op) {
                (Belongs::Component(step), _) => self.component(step, op, here),
                // What several statements have in common as a condition stands around all of them.
                (Belongs::Several, Op::If(_, body) | Op::Leader(_, body)) => self.steps_of(body, here),
                (Belongs::Several | Belongs::Nowhere, _) => {
                    self.finish(here);
                    here.lists.push(op);
                }
                (Belongs::Elsewhere, _) => {
                    // What stands before a statement of another pipeline is told there.
                    (here.last, here.pending) = (None, vec![]);
                    here.lists.push(op);
                }
            }
        }
    }

    /// What orders threads or copies: what the pipeline put in tells its place, a barrier stands before what comes next.
    fn sync(&self, sync: SyncKind<'_>, it: &Instr, origin: &Origin, here: &mut Position<'a, '_>) {
        let sync = match sync {
            SyncKind::Commit(_) => Sync::Commit,
            SyncKind::Wait(it) => Sync::Wait { in_flight: it.in_flight, buffers: it.buffers.clone() },
            SyncKind::Await(_) | SyncKind::Arrive(_) | SyncKind::Fence(_) | SyncKind::Turn(_) => return,
            SyncKind::Barrier => {
                here.pending.push(Placed { sync: Sync::Barrier { at: 0, inside: false }, proof: proof(it) });
                return;
            }
        };
        let Some(step) = origin.step_of(&self.clock.var) else {
            if !origin.steps().is_empty() {
                (here.last, here.pending) = (None, vec![]);
            }
            return;
        };
        let rank = self.rank(step);
        let pending = std::mem::take(&mut here.pending);
        let syncs = &mut self.step(step, here).syncs[rank];
        syncs.extend(pending);
        syncs.push(Placed { sync, proof: vec![] });
        here.last = Some((step.section, step.step));
    }

    /// A statement that comes from a component.
    fn component(&self, step: &PipelineStep, op: &'a Op, here: &mut Position<'a, '_>) {
        let rank = self.rank(step);
        let pending = std::mem::take(&mut here.pending);
        let found = self.step(step, here);
        let within = !found.ops[rank].is_empty();
        found.syncs[rank].extend(pending.into_iter().map(|it| it.within(within)));
        found.syncs[rank].extend(barriers_in(op));
        found.ops[rank].push(op);
        here.last = Some((step.section, step.step));
    }

    /// What follows a step without a statement in between belongs to its end.
    fn finish(&self, here: &mut Position<'a, '_>) {
        let pending = std::mem::take(&mut here.pending);
        if let Some(step) = here.last.take().and_then(|key| here.found.get_mut(&key)) {
            step.syncs[self.clock.components.len()].extend(pending);
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

    /// Before which statement of a step something stands.
    fn rank(&self, step: &PipelineStep) -> usize {
        step.component.map_or(self.clock.components.len(), |it| self.clock.rank(it))
    }

    fn step<'h>(&self, step: &PipelineStep, here: &'h mut Position<'a, '_>) -> &'h mut LoweredStep<'a> {
        let count = self.clock.components.len();
        here.found.entry((step.section, step.step)).or_insert_with(|| LoweredStep {
            around: here.around.to_vec(),
            syncs: (0..=count).map(|_| vec![]).collect(),
            ops: vec![vec![]; count],
        })
    }
}

impl Placed {
    fn within(self, within: bool) -> Placed {
        let sync = match self.sync {
            Sync::Barrier { at, inside } => Sync::Barrier { at, inside: inside || within },
            other @ (Sync::Commit | Sync::Wait { .. }) => other,
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
            out.push(Placed { sync: Sync::Barrier { at: 0, inside: true }, proof: proof(it) });
        }
    });
    out
}

/// What a barrier is there for, as the source says it.
fn proof(it: &Instr) -> Vec<String> {
    match it {
        Instr::Barrier(it) if !it.proof.is_empty() => vec![it.proof.join("; ")],
        _ => vec![],
    }
}
