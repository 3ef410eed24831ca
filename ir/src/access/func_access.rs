//! Every place that a program of blocks touches, over the variables of its loops.

use std::{cell::OnceCell, collections::BTreeSet, rc::Rc};

use super::AccessRelation;
use crate::{
    Access, Block, Func, Index, IterKind, Less, Loop, LoopKind, Mode, Name, Stmt, Target, ThreadAxis, Value,
    arith::Bounds, axis_var,
};

/// A read or write of a buffer, with all that stands around it.
#[derive(Clone, Debug)]
pub struct FuncAccess<'a> {
    /// The buffer.
    pub buffer: &'a Name,
    /// The subscripts, over loop variables and dimensions.
    pub indices: Vec<Index>,
    /// Whether the place is written.
    pub write: bool,
    /// The loops around it, outermost first.
    pub loops: Rc<[&'a Loop]>,
    /// The blocks around it, outermost first.
    blocks: Rc<[&'a Block]>,
    /// The guards of these blocks.
    pub guards: Rc<[Less]>,
    /// What must hold beside the guards: it is the first choice of a selection, or stands in an init.
    chosen: Vec<Less>,
    /// Its place in the program.
    pub order: usize,
    /// The assignment or instruction that it is of.
    stmt: &'a Stmt,
    vars: Rc<[(Name, Index)]>,
    bounds: OnceCell<Bounds>,
    mentions: OnceCell<BTreeSet<Name>>,
}

/// How loops that are bound to the axes of a launch are called in subscripts and guards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Axes {
    /// As loops are: each iteration stands for itself.
    AsLoops,
    /// By their axes, of which one thread or block has one value wherever it is.
    AsThreads,
}

impl Axes {
    /// On a GPU by their axes; a CPU has none.
    pub const fn of(target: &Target) -> Axes {
        match target {
            Target::Cpu => Axes::AsLoops,
            Target::Cuda(_) => Axes::AsThreads,
        }
    }
}

/// The accesses of a program in program order: those that a store reads before the one that it writes.
pub fn accesses(stmt: &Stmt, axes: Axes) -> Vec<FuncAccess<'_>> {
    let mut walk = Walk::new(axes);
    walk.stmt(stmt);
    walk.out
}

/// The accesses of one block, over the loops around it, which are not there.
pub fn accesses_of(block: &Block) -> Vec<FuncAccess<'_>> {
    let mut walk = Walk::new(Axes::AsLoops);
    walk.block(block);
    walk.out
}

impl<'a> FuncAccess<'a> {
    /// What is known at the place. Bound loops count under both their names.
    pub fn bounds(&self, func: &Func) -> &Bounds {
        self.bounds.get_or_init(|| {
            let mut bounds = Bounds::of_dims(func);
            for it in &*self.loops {
                bounds.insert(&it.var, &it.extent);
                if let LoopKind::Bound(axis) = it.kind {
                    bounds.insert(&axis_var(axis), &it.extent);
                }
            }
            bounds
        })
    }

    /// The variables of the loops around it with their extents, as subscripts speak of them. An axis that is bound
    /// twice is there twice.
    pub fn variables(&self) -> &[(Name, Index)] {
        &self.vars
    }

    /// What must hold for it to happen.
    pub fn conditions(&self) -> impl Iterator<Item = &Less> + Clone {
        self.guards.iter().chain(&self.chosen)
    }

    /// The place for questions about elements.
    pub fn relation(&self) -> AccessRelation {
        let (indices, conditions) = (self.indices.clone(), self.conditions().cloned().collect());
        AccessRelation { indices, vars: self.vars.to_vec(), conditions }
    }

    /// How many loops from the outermost on this place shares with another.
    pub fn shared_loops(&self, other: &FuncAccess<'_>) -> usize {
        self.loops.iter().zip(&*other.loops).take_while(|(a, b)| a.var == b.var).count()
    }

    /// The innermost loop around the place that is bound to an axis.
    pub fn bound(&self, axis: ThreadAxis) -> Option<&'a Loop> {
        self.loops.iter().rev().copied().find(|it| it.kind == LoopKind::Bound(axis))
    }

    /// Whether a guard lets only the first thread or block of an axis come here.
    pub fn is_first_only(&self, axis: ThreadAxis) -> bool {
        let first = Less::new(Index::var(&axis_var(axis)), Index::int(1));
        self.guards.contains(&first)
    }

    /// The innermost block around it.
    pub fn block(&self) -> Option<&'a Block> {
        self.blocks.last().copied()
    }

    /// Whether the block around the place also reads what it writes there: an update such as `C = C + …`.
    pub fn updates(&self) -> bool {
        self.block().is_some_and(|block| {
            block.any_access(&mut |it, mode| mode == Mode::Read && it.buffer == *self.buffer)
                && block.any_access(&mut |it, mode| mode.writes() && it.buffer == *self.buffer)
        })
    }

    /// The name for messages.
    pub fn block_name(&self) -> Name {
        self.block().map_or_else(|| self.buffer.clone(), |it| it.name.clone())
    }

    /// The axes that loops around the place are bound to.
    pub fn axes(&self) -> impl Iterator<Item = ThreadAxis> {
        self.loops.iter().filter_map(|it| match it.kind {
            LoopKind::Bound(axis) => Some(axis),
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled => None,
        })
    }

    /// The value that is stored, if it is the place of a store, and not of the init of a reduction.
    pub fn stored(&self) -> Option<&'a Value> {
        match self.stmt {
            Stmt::Store(it) if self.write && self.chosen.is_empty() => Some(&it.value),
            Stmt::Store(_) | Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) | Stmt::Instr(_) => None,
        }
    }

    /// What the assignment reads.
    pub fn loads(&self) -> Vec<&'a Name> {
        let mut out = Vec::new();
        self.stmt.each_access(&mut |it, mode| out.extend((!mode.writes()).then_some(&it.buffer)));
        out
    }

    /// What the assignment writes.
    pub fn writes_to(&self) -> &'a Name {
        written(self.stmt).expect("accesses are those of statements that write")
    }

    /// The loops and dimensions that the whole assignment speaks of, where bound loops go by their own names.
    pub fn mentions(&self) -> &BTreeSet<Name> {
        self.mentions.get_or_init(|| {
            let mut out = BTreeSet::new();
            let mut add = |index: &Index, blocks: &[&Block]| out.extend(resolved(index, blocks).vars());
            match self.stmt {
                Stmt::Store(it) => {
                    it.place.indices.iter().for_each(|it| add(it, &self.blocks));
                    it.value.each_index(&mut |it| add(it, &self.blocks));
                }
                Stmt::Instr(it) => it.each_index(&mut |it| add(it, &self.blocks)),
                Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) => {}
            }
            for (depth, block) in self.blocks.iter().enumerate() {
                let outside = &self.blocks[..depth];
                block.guards.iter().flat_map(|it| [&it.lhs, &it.rhs]).for_each(|it| add(it, outside));
                let reduced = block.iters.iter().filter(|it| it.kind == IterKind::Reduce);
                reduced.for_each(|it| add(&it.binding, outside));
            }
            out
        })
    }
}

/// An index in some blocks over the variables of loops.
fn resolved(index: &Index, blocks: &[&Block]) -> Index {
    let binding = |block: &Block, name: &Name| block.find_iter(name).map(|it| it.binding.clone());
    blocks.iter().rev().fold(index.clone(), |index, block| index.subst(&|name| binding(block, name)))
}

/// The buffer that an assignment or an instruction writes.
fn written(stmt: &Stmt) -> Option<&Name> {
    let mut out = None;
    stmt.each_access(&mut |it, mode| out = out.or(mode.writes().then_some(&it.buffer)));
    out
}

struct Walk<'a> {
    axes: Axes,
    /// The iterators of the blocks around, over the variables of loops.
    env: Vec<(&'a Name, Index)>,
    loops: Vec<&'a Loop>,
    vars: Vec<(Name, Index)>,
    blocks: Vec<&'a Block>,
    guards: Vec<Less>,
    /// What holds in the init of the innermost block.
    first: Vec<Less>,
    out: Vec<FuncAccess<'a>>,
}

impl<'a> Walk<'a> {
    fn new(axes: Axes) -> Walk<'a> {
        let (env, loops, vars, blocks, guards, first, out) = Default::default();
        Walk { axes, env, loops, vars, blocks, guards, first, out }
    }

    /// The index over the variables of loops, or their axes.
    fn resolve(&self, index: &Index) -> Index {
        let over_loops =
            index.subst(&|name| self.env.iter().rev().find(|it| it.0 == name).map(|it| it.1.clone()));
        if self.axes == Axes::AsLoops {
            return over_loops;
        }
        let axis = |name: &Name| match self.loops.iter().find(|it| it.var == *name)?.kind {
            LoopKind::Bound(axis) => Some(Index::var(&axis_var(axis))),
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled => None,
        };
        over_loops.subst(&axis)
    }

    fn resolve_less(&self, it: &Less) -> Less {
        Less::new(self.resolve(&it.lhs), self.resolve(&it.rhs))
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Loop(it) => {
                let var = match (it.kind, self.axes) {
                    (LoopKind::Bound(axis), Axes::AsThreads) => axis_var(axis),
                    _ => it.var.clone(),
                };
                self.vars.push((var, self.resolve(&it.extent)));
                self.loops.push(it);
                self.stmt(&it.body);
                self.loops.pop();
                self.vars.pop();
            }
            Stmt::Block(it) => self.block(it),
            Stmt::Seq(stmts) => stmts.iter().for_each(|it| self.stmt(it)),
            Stmt::Store(_) | Stmt::Instr(_) => self.assignment(stmt),
        }
    }

    fn block(&mut self, block: &'a Block) {
        let (depth, guards) = (self.env.len(), self.guards.len());
        let iters: Vec<_> = block.iters.iter().map(|it| (&it.var, self.resolve(&it.binding))).collect();
        let own: Vec<_> = block.guards.iter().map(|it| self.resolve_less(it)).collect();
        self.guards.extend(own);
        let reduced = block.iters.iter().zip(&iters).filter(|it| it.0.kind == IterKind::Reduce);
        let first = reduced.map(|(_, (_, binding))| Less::new(binding.clone(), Index::int(1))).collect();
        self.env.extend(iters);
        self.blocks.push(block);
        if let Some(init) = &block.init {
            let outside = std::mem::replace(&mut self.first, first);
            self.stmt(init);
            self.first = outside;
        }
        self.stmt(&block.body);
        self.blocks.pop();
        self.env.truncate(depth);
        self.guards.truncate(guards);
    }

    /// The accesses of a store or of an instruction that writes.
    fn assignment(&mut self, stmt: &'a Stmt) {
        if written(stmt).is_none() {
            return;
        }
        let mut all: Vec<(&'a Access, Mode, Vec<Less>)> = Vec::new();
        if let Stmt::Store(it) = stmt {
            loads(&it.value, &mut Vec::new(), &mut |access, chosen| {
                all.push((access, Mode::Read, chosen.iter().map(|it| self.resolve_less(it)).collect()));
            });
            all.push((&it.place, Mode::Write, vec![]));
        } else {
            stmt.each_access(&mut |access, mode| all.push((access, mode, vec![])));
        }
        let (loops, blocks) = (Rc::from(&*self.loops), Rc::from(&*self.blocks));
        let (guards, vars) = (Rc::from(&*self.guards), Rc::from(&*self.vars));
        for (access, mode, chosen) in all {
            self.out.push(FuncAccess {
                buffer: &access.buffer,
                indices: access.indices.iter().map(|it| self.resolve(it)).collect(),
                write: mode.writes(),
                loops: Rc::clone(&loops),
                blocks: Rc::clone(&blocks),
                guards: Rc::clone(&guards),
                chosen: self.first.iter().cloned().chain(chosen).collect(),
                order: self.out.len(),
                stmt,
                vars: Rc::clone(&vars),
                bounds: OnceCell::new(),
                mentions: OnceCell::new(),
            });
        }
    }
}

/// Each load with the conditions of the selections that it is the first choice of.
///
/// A second choice is taken to happen always: that its condition fails is no conjunction.
fn loads<'a>(value: &'a Value, chosen: &mut Vec<Less>, f: &mut dyn FnMut(&'a Access, &[Less])) {
    match value {
        Value::Const(_) | Value::Index(..) => {}
        Value::Load(access) => f(access, chosen),
        Value::Cast(_, a) | Value::Unary(_, a) => loads(a, chosen, f),
        Value::Binary(_, a, b) => {
            loads(a, chosen, f);
            loads(b, chosen, f);
        }
        Value::Where(cond, a, b) => [cond, a, b].into_iter().for_each(|it| loads(it, chosen, f)),
        Value::Select(cond, a, b) => {
            let outside = chosen.len();
            chosen.extend(cond.iter().cloned());
            loads(a, chosen, f);
            chosen.truncate(outside);
            loads(b, chosen, f);
        }
    }
}
