//! Finds the statements of a pipeline in the lowered kernel by the marks there, and what stands between them.

use std::collections::BTreeMap;

use ir::{Instr, Kernel, Mark, Name, Op, pipeline::Section};

use super::{Barrier, Part, Sync, clock::Clock};

/// A pipeline in a kernel.
pub(super) struct LoweredPipeline<'a> {
    /// The loops around it.
    pub(super) around: Vec<Name>,
    /// The steps that are written out before the steady loop, those of one run of it, and those after it.
    pub(super) steps: BTreeMap<Section, Vec<Step>>,
    /// The barriers that the steps speak of.
    pub(super) barriers: Vec<Barrier>,
    /// What each statement became, in one step; the statements in the order in which they run.
    pub(super) bodies: Vec<Vec<&'a Op>>,
}

/// What happens before each statement of a step, and in the last place after all.
pub(super) type Step = Vec<Vec<Sync>>;

impl LoweredPipeline<'_> {
    /// The steps of a part of the kernel.
    pub(super) fn section(&self, section: Section) -> &[Step] {
        self.steps.get(&section).map_or(&[], Vec::as_slice)
    }
}

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
    for ((section, _), step) in scan.steps {
        let numbered = numbered(&mut found.barriers, section, step, clock);
        found.steps.entry(section).or_default().push(numbered);
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
    let number = |(rank, all): (usize, Vec<Marked>)| {
        let one = |it: Marked| {
            let Sync::Barrier { inside, .. } = it.sync else { return it.sync };
            let before = clock.components.get(rank).map(|it| it.name.clone());
            barriers.push(Barrier { part, before, proof: it.proof });
            Sync::Barrier { at: barriers.len() - 1, inside }
        };
        all.into_iter().map(one).collect()
    };
    step.syncs.into_iter().enumerate().map(number).collect()
}

/// A step as it stands in the kernel.
struct LoweredStep<'a> {
    around: Vec<Name>,
    syncs: Vec<Vec<Marked>>,
    ops: Vec<Vec<&'a Op>>,
}

/// Something that orders threads or copies, under the comment over it.
struct Marked {
    sync: Sync,
    proof: Vec<String>,
}

/// Where a scan of a list stands.
enum At {
    /// Before the first mark.
    Nowhere,
    /// In a statement of a step.
    In((Section, usize), usize),
    /// After a step.
    After((Section, usize)),
}

struct Scan<'a, 'b> {
    clock: &'b Clock,
    steps: BTreeMap<(Section, usize), LoweredStep<'a>>,
}

impl<'a> Scan<'a, '_> {
    /// Looks through a list and the lists inside it. A step that is there several times, as the parts of an inner
    /// pipeline are, is taken from where the most loops are around it.
    fn list(&mut self, ops: &'a [Op], around: &mut Vec<Name>) {
        let mut here = BTreeMap::new();
        self.steps_of(ops, around, &mut here);
        for (key, step) in here {
            let known = self.steps.get(&key).map(|it| it.around.len());
            if known.is_none_or(|known| known < step.around.len()) {
                self.steps.insert(key, step);
            }
        }
        for op in ops {
            let outside = around.len();
            if let Op::For(it) = op {
                around.push(it.var.clone());
            }
            self.list(op.children(), around);
            around.truncate(outside);
        }
    }

    fn steps_of(
        &self,
        ops: &'a [Op],
        around: &[Name],
        out: &mut BTreeMap<(Section, usize), LoweredStep<'a>>,
    ) {
        let (mut at, mut pending, mut proof) = (At::Nowhere, Vec::new(), None);
        let count = self.clock.components.len();
        for op in ops {
            let over = proof.take();
            if let Op::Instr(Instr::Comment(text)) = op {
                proof = Some(text.clone());
                continue;
            }
            if let Op::Instr(Instr::Mark(mark)) = op {
                if mark.var == self.clock.var {
                    let rank = mark.component.map_or(count, |it| self.clock.rank(it));
                    self.step(mark, around, out).syncs[rank].append(&mut pending);
                    let key = (mark.section, mark.step);
                    at = if rank < count { At::In(key, rank) } else { At::After(key) };
                } else if !matches!(at, At::In(..)) {
                    // What stands before a statement of another pipeline is told there.
                    pending.clear();
                    at = At::Nowhere;
                }
                continue;
            }
            let syncs = syncs(op, over.as_ref());
            if !syncs.is_empty() {
                pending.extend(syncs);
                continue;
            }
            match &at {
                At::Nowhere => pending.clear(),
                At::In(key, rank) => {
                    let Some(step) = out.get_mut(key) else { continue };
                    let within = !step.ops[*rank].is_empty();
                    step.syncs[*rank].extend(pending.drain(..).map(|it| it.within(within)));
                    step.syncs[*rank].extend(inner(op));
                    step.ops[*rank].push(op);
                }
                At::After(key) => {
                    self.finish(out, *key, &mut pending);
                    at = At::Nowhere;
                }
            }
        }
        if let At::After(key) = at {
            self.finish(out, key, &mut pending);
        }
    }

    /// The step that a mark is in.
    fn step<'o>(
        &self,
        mark: &Mark,
        around: &[Name],
        out: &'o mut BTreeMap<(Section, usize), LoweredStep<'a>>,
    ) -> &'o mut LoweredStep<'a> {
        let count = self.clock.components.len();
        out.entry((mark.section, mark.step)).or_insert_with(|| LoweredStep {
            around: around.to_vec(),
            syncs: (0..=count).map(|_| vec![]).collect(),
            ops: vec![vec![]; count],
        })
    }

    /// What follows a step without a statement in between belongs to its end.
    fn finish(
        &self,
        out: &mut BTreeMap<(Section, usize), LoweredStep<'a>>,
        key: (Section, usize),
        pending: &mut Vec<Marked>,
    ) {
        if let Some(step) = out.get_mut(&key) {
            step.syncs[self.clock.components.len()].append(pending);
        }
    }
}

impl Marked {
    fn within(self, within: bool) -> Marked {
        let sync = match self.sync {
            Sync::Barrier { at, inside } => Sync::Barrier { at, inside: inside || within },
            other @ (Sync::Commit | Sync::Wait { .. }) => other,
        };
        Marked { sync, ..self }
    }
}

/// What a statement orders and does nothing else, also under a condition.
fn syncs(op: &Op, over: Option<&String>) -> Vec<Marked> {
    match op {
        Op::Instr(it) => {
            let sync = match it.sync() {
                Some(ir::SyncKind::Commit) => Sync::Commit,
                Some(ir::SyncKind::Wait(it)) => {
                    Sync::Wait { in_flight: it.in_flight, buffers: it.buffers.clone() }
                }
                Some(ir::SyncKind::Barrier) => Sync::Barrier { at: 0, inside: false },
                None => return vec![],
            };
            vec![Marked { sync, proof: over.cloned().into_iter().collect() }]
        }
        Op::If(_, body) => {
            let all: Vec<_> = body.iter().map(|op| syncs(op, None)).collect();
            if all.iter().any(Vec::is_empty) { vec![] } else { all.into_iter().flatten().collect() }
        }
        Op::Alloc(_) | Op::For(_) => vec![],
    }
}

/// The barriers inside a statement, with the comments over them.
fn inner(op: &Op) -> Vec<Marked> {
    let (mut out, mut proof) = (Vec::new(), None);
    op.walk(&mut |op| {
        let over = proof.take();
        match op {
            Op::Instr(Instr::Comment(text)) => proof = Some(text.clone()),
            Op::Instr(it) if it.sync() == Some(ir::SyncKind::Barrier) => {
                let sync = Sync::Barrier { at: 0, inside: true };
                out.push(Marked { sync, proof: over.into_iter().collect() });
            }
            Op::Alloc(_) | Op::For(_) | Op::If(..) | Op::Instr(_) => {}
        }
    });
    out
}
