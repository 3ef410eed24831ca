//! Every place that a program touches, over the variables of its loops.

use std::{cell::OnceCell, collections::BTreeSet};

use ir::axis_var;
use ir::{
    Access, Block, Func, Index, IterKind, Less, Loop, LoopKind, Name, Stmt, Target, ThreadAxis,
    arith::Bounds, solve::AccessRelation,
};

/// A read or write of a buffer, with all that stands around it.
#[derive(Clone, Debug)]
pub(crate) struct FuncAccess<'a> {
    /// The buffer.
    pub(crate) buffer: &'a Name,
    /// The subscripts, over loop variables and dimensions. Bound loops of a GPU appear as their axes.
    pub(crate) indices: Vec<Index>,
    /// Whether the place is written.
    pub(crate) write: bool,
    /// The loops around it, outermost first.
    pub(crate) loops: Vec<&'a Loop>,
    /// The innermost block around it.
    pub(crate) block: Option<&'a Block>,
    /// The guards around it.
    pub(crate) guards: Vec<Less>,
    /// Its place in the program.
    pub(crate) order: usize,
    /// The loops and dimensions that the whole assignment speaks of, where bound loops go by their own names.
    pub(crate) mentions: BTreeSet<Name>,
    /// What the assignment reads.
    pub(crate) loads: Vec<&'a Name>,
    /// What the assignment writes.
    pub(crate) into: &'a Name,
    bounds: OnceCell<Bounds>,
}

impl FuncAccess<'_> {
    /// What is known at the place. Bound loops count under both their names.
    pub(crate) fn bounds(&self, func: &Func) -> &Bounds {
        self.bounds.get_or_init(|| {
            let mut bounds = Bounds::of_dims(func);
            for it in &self.loops {
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
    pub(crate) fn variables(&self) -> impl Iterator<Item = (Name, Index)> {
        self.loops.iter().map(|it| match it.kind {
            LoopKind::Bound(axis) => (axis_var(axis), it.extent.clone()),
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled => {
                (it.var.clone(), it.extent.clone())
            }
        })
    }

    /// The place for questions about elements.
    pub(crate) fn place(&self) -> AccessRelation {
        let (indices, conditions) = (self.indices.clone(), self.guards.clone());
        AccessRelation { indices, vars: self.variables().collect(), conditions }
    }

    /// How many loops from the outermost on this place shares with another.
    pub(crate) fn shared_loops(&self, other: &FuncAccess<'_>) -> usize {
        self.loops.iter().zip(&other.loops).take_while(|(a, b)| a.var == b.var).count()
    }

    /// The innermost loop around the place that is bound to an axis.
    pub(crate) fn bound(&self, axis: ThreadAxis) -> Option<&Loop> {
        self.loops.iter().rev().copied().find(|it| it.kind == LoopKind::Bound(axis))
    }

    /// Whether a guard lets only the first thread or block of an axis come here.
    pub(crate) fn is_first_only(&self, axis: ThreadAxis) -> bool {
        let first = Less::new(Index::var(&axis_var(axis)), Index::int(1));
        self.guards.contains(&first)
    }

    /// Whether the block around the place also reads what it writes there: an update such as `C = C + …`.
    pub(crate) fn updates(&self) -> bool {
        self.block.is_some_and(|block| {
            block.reads().iter().any(|it| it.buffer == *self.buffer)
                && block.writes().iter().any(|it| it.buffer == *self.buffer)
        })
    }

    /// The name for messages.
    pub(crate) fn block_name(&self) -> Name {
        self.block.map_or_else(|| self.buffer.clone(), |it| it.name.clone())
    }

    /// The axes that loops around the place are bound to.
    pub(crate) fn axes(&self) -> impl Iterator<Item = ThreadAxis> {
        self.loops.iter().filter_map(|it| match it.kind {
            LoopKind::Bound(axis) => Some(axis),
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized | LoopKind::Unrolled => None,
        })
    }
}

/// The places in program order: the reads of a store before its write.
pub(crate) fn sites<'a>(func: &'a Func, target: &Target) -> Vec<FuncAccess<'a>> {
    let mut walk = Walk { on_gpu: matches!(target, Target::Cuda(_)), ..Walk::default() };
    walk.stmt(&func.body);
    walk.out
}

#[derive(Default)]
struct Walk<'a> {
    on_gpu: bool,
    env: Vec<(&'a Name, Index)>,
    loops: Vec<&'a Loop>,
    blocks: Vec<&'a Block>,
    guards: Vec<Less>,
    reduces: Vec<Index>,
    out: Vec<FuncAccess<'a>>,
}

/// What all places of an assignment have alike.
struct Assignment<'a> {
    mentions: BTreeSet<Name>,
    loads: Vec<&'a Name>,
    into: &'a Name,
}

impl<'a> Walk<'a> {
    fn resolve(&self, index: &Index) -> Index {
        index.subst(&|name| self.env.iter().rev().find(|it| it.0 == name).map(|it| it.1.clone()))
    }

    /// The index with the axes in the place of loops bound to them.
    fn on_axes(&self, index: &Index) -> Index {
        let axis = |name: &Name| match self.loops.iter().find(|it| it.var == *name)?.kind {
            LoopKind::Bound(axis) if self.on_gpu => Some(Index::var(&axis_var(axis))),
            LoopKind::Bound(_)
            | LoopKind::Serial
            | LoopKind::Parallel
            | LoopKind::Vectorized
            | LoopKind::Unrolled => None,
        };
        index.subst(&axis)
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Loop(it) => {
                self.loops.push(it);
                self.stmt(&it.body);
                self.loops.pop();
            }
            Stmt::Block(it) => self.block(it),
            Stmt::Seq(stmts) => stmts.iter().for_each(|it| self.stmt(it)),
            Stmt::Store(it) => {
                let mut indices: Vec<_> = it.place.indices.iter().collect();
                it.value.each_index(&mut |it| indices.push(it));
                self.accesses(stmt, indices);
            }
            Stmt::Instr(it) => {
                let mut indices = vec![];
                it.each_index(&mut |it| indices.push(it));
                self.accesses(stmt, indices);
            }
        }
    }

    /// The accesses of a store or an instruction with these index expressions.
    fn accesses(&mut self, stmt: &'a Stmt, indices: Vec<&Index>) {
        let mut mentions = BTreeSet::new();
        for index in indices {
            self.resolve(index).each_var(&mut |name| {
                mentions.insert(name.clone());
            });
        }
        let around = self.guards.iter().flat_map(|it| [&it.lhs, &it.rhs]).chain(&self.reduces);
        around.for_each(|it| mentions.extend(it.vars()));
        let (mut loads, mut into) = (Vec::new(), None);
        stmt.each_access(&mut |access, mode| {
            if mode.writes() {
                into = Some(&access.buffer);
            } else {
                loads.push(&access.buffer);
            }
        });
        let Some(into) = into else { return };
        let assignment = Assignment { mentions, loads, into };
        stmt.each_access(&mut |access, mode| self.site(access, mode.writes(), &assignment));
    }

    fn block(&mut self, block: &'a Block) {
        let (depth, guards, reduces) = (self.env.len(), self.guards.len(), self.reduces.len());
        let iters: Vec<_> = block.iters.iter().map(|it| (&it.var, self.resolve(&it.binding))).collect();
        for guard in &block.guards {
            self.guards.push(Less::new(self.resolve(&guard.lhs), self.resolve(&guard.rhs)));
        }
        for (iter, (_, value)) in block.iters.iter().zip(&iters) {
            if iter.kind == IterKind::Reduce {
                self.reduces.push(value.clone());
            }
        }
        self.env.extend(iters);
        self.blocks.push(block);
        block.init.iter().for_each(|it| self.stmt(it));
        self.stmt(&block.body);
        self.blocks.pop();
        self.env.truncate(depth);
        self.guards.truncate(guards);
        self.reduces.truncate(reduces);
    }

    fn site(&mut self, access: &'a Access, write: bool, of: &Assignment<'a>) {
        let less = |it: &Less| Less::new(self.on_axes(&it.lhs), self.on_axes(&it.rhs));
        self.out.push(FuncAccess {
            buffer: &access.buffer,
            indices: access.indices.iter().map(|it| self.on_axes(&self.resolve(it))).collect(),
            write,
            loops: self.loops.clone(),
            block: self.blocks.last().copied(),
            guards: self.guards.iter().map(less).collect(),
            order: self.out.len(),
            mentions: of.mentions.clone(),
            loads: of.loads.clone(),
            into: of.into,
            bounds: OnceCell::new(),
        });
    }
}
