//! Which parts of a scheduled program a statement of its lowered form comes from.
//!
//! The rule, which the manual has as well:
//!
//! - A statement that assigns comes from the block that its origin ([`ir::Origin`]) names, however often lowering copied it.
//! - A statement comes from every buffer that it reads, writes, waits for or makes room for. Lowering numbers what it makes of one:
//!   `C_local_8` is a part of `C_local` if the program has no buffer of that name.
//! - A loop comes from the loop of its name, and again `ki_1` is a copy of `ki`, if a block in `ki` has a statement in it. A loop that is bound to an axis is in the launch, and in the line that reads the axis. A loop that the kernel has no
//!   line for, as its iterations are lanes, are written out or are one instruction, is in the statements of the blocks within it.
//! - A condition comes from the blocks whose statements it guards.
//!
//! Barriers, groups of copies, comments and the room for memory of lowering's own come from lowering, and from no part.

use std::collections::{BTreeMap, BTreeSet};

use ir::{
    Block, Func, Instr, LoopKind, Module, Name, Op, Stmt, SyncKind, ThreadAxis,
    text::{LineSource, Part},
};

/// The parts that lowered statements come from.
pub(super) struct Links {
    found: BTreeMap<LineSource, BTreeSet<Part>>,
}

/// A block with what lowering leaves of it.
struct Source {
    name: Name,
    /// The loops around it and in it.
    loops: Vec<(Name, Option<ThreadAxis>)>,
}

/// A statement of a lowered program.
struct Lowered<'a> {
    op: &'a Op,
    kernel: usize,
    /// The statements around it.
    around: Vec<usize>,
    /// Whether it assigns and orders nothing.
    assigns: bool,
    /// The blocks that it comes from, or that what is in it comes from.
    blocks: BTreeSet<usize>,
}

impl Links {
    /// Of a scheduled program and what it was lowered to.
    pub(super) fn of(func: &Func, module: &Module) -> Links {
        let sources: Vec<Source> = func.body.blocks().into_iter().map(|it| Source::of(func, it)).collect();
        let mut ops = vec![];
        for (kernel, it) in module.kernels.iter().enumerate() {
            flatten(&it.body, kernel, &mut vec![], &mut ops);
        }
        assign(&sources, &mut ops);
        let mut links = Links { found: BTreeMap::new() };
        links.name_statements(func, &sources, &ops);
        links.name_loops(&sources, &ops);
        links
    }

    /// The parts that a line comes from.
    pub(super) fn parts(&self, of: Option<LineSource>) -> impl Iterator<Item = &Part> {
        of.and_then(|it| self.found.get(&it)).into_iter().flatten()
    }

    fn add(&mut self, of: LineSource, part: Part) {
        self.found.entry(of).or_default().insert(part);
    }

    /// Blocks and buffers.
    fn name_statements(&mut self, func: &Func, sources: &[Source], ops: &[Lowered<'_>]) {
        for (n, it) in ops.iter().enumerate() {
            let buffers: Vec<Name> = match it.op {
                Op::Alloc(it) => vec![buffer(func, &it.name)],
                Op::Instr(it, _) => {
                    let effects = it.effects();
                    let waited = match effects.sync {
                        Some(SyncKind::Wait(it)) => &it.buffers[..],
                        Some(_) | None => &[],
                    };
                    let touched = effects.accesses.iter().map(|it| &it.access.buffer);
                    touched.chain(waited).map(|it| buffer(func, it)).collect()
                }
                Op::For(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => vec![],
            };
            for name in buffers.into_iter().filter(|it| func.buffers.contains_key(it)) {
                self.add(LineSource::Op(n), Part::Buffer(name));
            }
            if it.assigns || matches!(it.op, Op::If(..)) {
                for block in &it.blocks {
                    self.add(LineSource::Op(n), Part::Block(sources[*block].name.clone()));
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
                self.add(LineSource::Op(n), Part::Loop(name.clone()));
                named.insert(name);
            }
        }
        for (n, it) in ops.iter().enumerate() {
            for (name, axis) in it.blocks.iter().flat_map(|it| &sources[*it].loops) {
                let part = Part::Loop(name.clone());
                if let Some(axis) = axis {
                    self.add(LineSource::Launch(it.kernel), part.clone());
                    self.add(LineSource::Axis(it.kernel, *axis), part);
                } else if it.assigns && !named.contains(name) {
                    self.add(LineSource::Op(n), part);
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
        for stmt in block.init.iter().chain([&block.body]) {
            own(stmt, &mut |it| {
                if let Stmt::Loop(it) = it {
                    loops.push((it.var.clone(), axis(it.kind)));
                }
            });
        }
        Source { name: block.name.clone(), loops }
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
        let assigns = op.instr().is_some_and(assigns);
        out.push(Lowered { op, kernel, around: around.clone(), assigns, blocks: BTreeSet::new() });
        around.push(out.len() - 1);
        flatten(op.children(), kernel, around, out);
        around.pop();
    }
}

/// Whether an instruction assigns and orders nothing.
fn assigns(it: &Instr) -> bool {
    let effects = it.effects();
    effects.sync.is_none() && effects.accesses.iter().any(|it| it.mode.writes())
}

/// Finds the blocks that statements come from.
fn assign(sources: &[Source], ops: &mut [Lowered<'_>]) {
    for n in 0..ops.len() {
        let Op::Instr(_, origin) = ops[n].op else { continue };
        let block = origin.block().and_then(|name| sources.iter().position(|it| it.name == *name));
        if let Some(block) = block.filter(|_| ops[n].assigns) {
            for at in ops[n].around.clone().into_iter().chain([n]) {
                ops[at].blocks.insert(block);
            }
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
