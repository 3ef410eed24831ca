//! Which parts of a scheduled program a statement of its lowered form comes from.
//!
//! The rule, which the manual has as well:
//!
//! - A statement that assigns comes from the blocks that assign to the same buffer from the same buffers. Where lowering made another
//!   statement of it, from all blocks that assign to that buffer from what it reads; where it fills memory of lowering's own, from the
//!   blocks whose statements read that memory and that read what it reads.
//! - A statement comes from every buffer that it reads, writes, waits for or makes room for. Lowering numbers what it makes of one:
//!   `C_local_8` is a part of `C_local` if the program has no buffer of that name.
//! - A loop comes from the loop of its name, and again `ki_1` is a copy of `ki`, if a block in `ki` has a statement in it. A loop that is bound to an axis is in the launch, and in the line that reads the axis. A loop that the kernel has no
//!   line for, as its iterations are lanes, are written out or are one instruction, is in the statements of the blocks within it.
//! - A condition comes from the blocks whose statements it guards.
//!
//! Barriers, groups of copies, comments and the room for memory of lowering's own come from lowering, and from no part.

use std::collections::{BTreeMap, BTreeSet};

use ir::{
    Block, Func, Instr, LoopKind, Mode, Module, Name, Op, Stmt, Store, SyncKind, ThreadAxis,
    text::{Origin, Part},
};

/// The parts that lowered statements come from.
pub(super) struct Links {
    found: BTreeMap<Origin, BTreeSet<Part>>,
}

/// A block with what lowering leaves of it.
struct Source {
    name: Name,
    /// The loops around it and in it.
    loops: Vec<(Name, Option<ThreadAxis>)>,
    assignments: Vec<Assignment>,
}

/// Which buffer is assigned to, and which are read.
#[derive(PartialEq, Eq)]
struct Assignment {
    to: Name,
    from: BTreeSet<Name>,
}

/// A statement of a lowered program.
struct Lowered<'a> {
    op: &'a Op,
    kernel: usize,
    /// The statements around it.
    around: Vec<usize>,
    assignment: Option<Assignment>,
    /// The blocks that it comes from, or that what is in it comes from.
    blocks: BTreeSet<usize>,
}

impl Assignment {
    fn of_store(it: &Store) -> Assignment {
        let mut from = BTreeSet::new();
        it.value.each_load(&mut |it| {
            from.insert(it.buffer.clone());
        });
        Assignment { to: it.place.buffer.clone(), from }
    }

    /// What an instruction assigns that orders nothing.
    fn of_instr(it: &Instr) -> Option<Assignment> {
        let effects = it.effects();
        let to = effects.accesses.iter().find(|it| it.mode.writes()).filter(|_| effects.sync.is_none())?;
        let from = effects.accesses.iter().filter(|it| it.mode == Mode::Read);
        let from = from.map(|it| it.access.buffer.clone()).collect();
        Some(Assignment { to: to.access.buffer.clone(), from })
    }

    /// Whether it reads all that another reads of some buffers. One that reads nothing is only like one that reads nothing.
    fn covers(&self, other: &Assignment, buffers: &dyn Fn(&Name) -> bool) -> bool {
        let is_read = other.from.iter().filter(|it| buffers(it)).all(|it| self.from.contains(it));
        is_read && (!self.from.is_empty() || other.from.is_empty())
    }
}

impl Links {
    /// Of a scheduled program and what it was lowered to.
    pub(super) fn of(func: &Func, module: &Module) -> Links {
        let sources: Vec<Source> = func.body.blocks().into_iter().map(|it| Source::of(func, it)).collect();
        let mut ops = vec![];
        for (kernel, it) in module.kernels.iter().enumerate() {
            flatten(&it.body, kernel, &mut vec![], &mut ops);
        }
        for it in ops.iter_mut().filter_map(|it| it.assignment.as_mut()) {
            it.to = buffer(func, &it.to);
            it.from = it.from.iter().map(|it| buffer(func, it)).collect();
        }
        assign(func, &sources, &mut ops);
        let mut links = Links { found: BTreeMap::new() };
        links.name_statements(func, &sources, &ops);
        links.name_loops(&sources, &ops);
        links
    }

    /// The parts that a line comes from.
    pub(super) fn parts(&self, origin: Option<Origin>) -> impl Iterator<Item = &Part> {
        origin.and_then(|it| self.found.get(&it)).into_iter().flatten()
    }

    fn add(&mut self, origin: Origin, part: Part) {
        self.found.entry(origin).or_default().insert(part);
    }

    /// Blocks and buffers.
    fn name_statements(&mut self, func: &Func, sources: &[Source], ops: &[Lowered<'_>]) {
        for (n, it) in ops.iter().enumerate() {
            let buffers: Vec<Name> = match it.op {
                Op::Alloc(it) => vec![buffer(func, &it.name)],
                Op::Instr(it) => {
                    let effects = it.effects();
                    let waited = match effects.sync {
                        Some(SyncKind::Wait(it)) => &it.buffers[..],
                        Some(SyncKind::Commit | SyncKind::Barrier) | None => &[],
                    };
                    let touched = effects.accesses.iter().map(|it| &it.access.buffer);
                    touched.chain(waited).map(|it| buffer(func, it)).collect()
                }
                Op::For(_) | Op::If(..) => vec![],
            };
            for name in buffers.into_iter().filter(|it| func.buffers.contains_key(it)) {
                self.add(Origin::Op(n), Part::Buffer(name));
            }
            if it.assignment.is_some() || matches!(it.op, Op::If(..)) {
                for block in &it.blocks {
                    self.add(Origin::Op(n), Part::Block(sources[*block].name.clone()));
                }
            }
        }
    }

    /// Loops, which need not be loops any more.
    fn name_loops(&mut self, sources: &[Source], ops: &[Lowered<'_>]) {
        let mut named = BTreeSet::new();
        for (n, it) in ops.iter().enumerate() {
            let Op::For(lowered) = it.op else { continue };
            let inside = |name: &Name| it.blocks.iter().any(|it| sources[*it].has_loop(name));
            if let Some(name) = originals(&lowered.var).find(inside) {
                self.add(Origin::Op(n), Part::Loop(name.clone()));
                named.insert(name);
            }
        }
        for (n, it) in ops.iter().enumerate() {
            for (name, axis) in it.blocks.iter().flat_map(|it| &sources[*it].loops) {
                let part = Part::Loop(name.clone());
                if let Some(axis) = axis {
                    self.add(Origin::Launch(it.kernel), part.clone());
                    self.add(Origin::Axis(it.kernel, *axis), part);
                } else if it.assignment.is_some() && !named.contains(name) {
                    self.add(Origin::Op(n), part);
                }
            }
        }
    }
}

impl Source {
    fn of(func: &Func, block: &Block) -> Source {
        let axis = |kind: LoopKind| if let LoopKind::Bound(axis) = kind { Some(axis) } else { None };
        let around = func.loops_of(&block.name).expect("the block is one of the program's");
        let mut loops: Vec<_> = around.into_iter().map(|it| (it.var.clone(), axis(it.kind))).collect();
        let mut assignments = vec![];
        for stmt in block.init.iter().chain([&block.body]) {
            own(stmt, &mut |it| match it {
                Stmt::Loop(it) => loops.push((it.var.clone(), axis(it.kind))),
                Stmt::Store(it) => assignments.push(Assignment::of_store(it)),
                Stmt::Block(_) | Stmt::Seq(_) | Stmt::Instr(_) => {}
            });
        }
        Source { name: block.name.clone(), loops, assignments }
    }

    fn has_loop(&self, name: &Name) -> bool {
        self.loops.iter().any(|it| it.0 == *name)
    }
}

/// The statements of a block that are in no block inside it.
fn own<'a>(stmt: &'a Stmt, f: &mut dyn FnMut(&'a Stmt)) {
    f(stmt);
    if !matches!(stmt, Stmt::Block(_)) {
        stmt.children().for_each(|it| own(it, f));
    }
}

/// The statements in the order of [`Op::walk`].
fn flatten<'a>(ops: &'a [Op], kernel: usize, around: &mut Vec<usize>, out: &mut Vec<Lowered<'a>>) {
    for op in ops {
        let assignment = op.instr().and_then(Assignment::of_instr);
        out.push(Lowered { op, kernel, around: around.clone(), assignment, blocks: BTreeSet::new() });
        around.push(out.len() - 1);
        flatten(op.children(), kernel, around, out);
        around.pop();
    }
}

/// Finds the blocks that statements come from.
fn assign(func: &Func, sources: &[Source], ops: &mut [Lowered<'_>]) {
    let is_known = |name: &Name| func.buffers.contains_key(name);
    let blocks = |is_one: &dyn Fn(&Assignment) -> bool| -> BTreeSet<usize> {
        (0..sources.len()).filter(|it| sources[*it].assignments.iter().any(is_one)).collect()
    };
    for it in &mut *ops {
        let Some(lowered) = it.assignment.as_ref().filter(|it| is_known(&it.to)) else { continue };
        it.blocks = blocks(&|it| it == lowered);
        if it.blocks.is_empty() {
            it.blocks = blocks(&|it| it.to == lowered.to && it.covers(lowered, &is_known));
        }
    }
    reach_back(sources, ops, &is_known);
    for n in 0..ops.len() {
        let (blocks, around) = (ops[n].blocks.clone(), ops[n].around.clone());
        if ops[n].assignment.is_some() {
            for it in around {
                ops[it].blocks.extend(&blocks);
            }
        }
    }
}

/// Memory of lowering's own comes from the blocks whose statements read it. It may be filled from such memory, so that blocks are
/// handed from readers to writers until nothing changes.
fn reach_back(sources: &[Source], ops: &mut [Lowered<'_>], is_known: &dyn Fn(&Name) -> bool) {
    let mut readers: BTreeMap<Name, Vec<usize>> = BTreeMap::new();
    for (n, it) in ops.iter().enumerate() {
        for from in it.assignment.iter().flat_map(|it| &it.from).filter(|it| !is_known(it)) {
            readers.entry(from.clone()).or_default().push(n);
        }
    }
    loop {
        let mut is_news = false;
        for n in 0..ops.len() {
            let Some(lowered) = ops[n].assignment.as_ref().filter(|it| !is_known(&it.to)) else { continue };
            let covers =
                |block: &&usize| sources[**block].assignments.iter().any(|it| it.covers(lowered, is_known));
            let readers = readers.get(&lowered.to).into_iter().flatten();
            let blocks: BTreeSet<usize> =
                readers.flat_map(|it| &ops[*it].blocks).filter(covers).copied().collect();
            is_news |= !blocks.is_subset(&ops[n].blocks);
            ops[n].blocks.extend(blocks);
        }
        if !is_news {
            return;
        }
    }
}

/// The buffer of the program that memory is, or is a part of; its own name if there is none.
fn buffer(func: &Func, name: &Name) -> Name {
    originals(name).find(|it| func.buffers.contains_key(it)).unwrap_or_else(|| name.clone())
}

/// A name, and what it is without the numbers that lowering gives to copies.
fn originals(name: &Name) -> impl Iterator<Item = Name> {
    let shorter = |name: &Name| {
        let (start, number) = name.as_str().rsplit_once('_')?;
        let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
        (is_number && !start.is_empty()).then(|| Name::new(start))
    };
    std::iter::successors(Some(name.clone()), shorter)
}
