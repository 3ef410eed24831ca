//! Statements of a `Func`: loops, blocks, sequences and stores.

use std::{slice, sync::Arc};

use crate::{Access, BlockAttrs, Index, Instr, Less, LoopAttrs, Mode, Name, ThreadAxis, Value};

/// A statement. Nodes are shared: cloning a tree is cheap, and changing one copies its path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stmt {
    /// A loop.
    Loop(Arc<Loop>),
    /// A block.
    Block(Arc<Block>),
    /// Statements in order. Never directly inside another sequence; see [`Stmt::seq`].
    Seq(Vec<Stmt>),
    /// An assignment to one element.
    Store(Arc<Store>),
    /// An instruction of a kernel, the whole body of a block. Only lowering makes these, and [`verify`](crate::verify())
    /// accepts none.
    Instr(Arc<Instr>),
}

/// `for var in 0..extent`. Loops start at zero; every other range is a guard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// The variable, which is also the name of the loop.
    pub var: Name,
    /// How often the body runs.
    pub extent: Index,
    /// How the iterations are run.
    pub kind: LoopKind,
    /// What is asked of it, such as the stages of a pipeline.
    pub attrs: LoopAttrs,
    /// What is repeated.
    pub body: Stmt,
}

/// How the iterations of a loop are run. The meaning of the program is that of `Serial` for every kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopKind {
    /// One after the other.
    Serial,
    /// By the threads of a CPU.
    Parallel,
    /// As lanes of vector instructions.
    Vectorized,
    /// Written out.
    Unrolled,
    /// One by each thread (or block of threads) of a GPU axis.
    Bound(ThreadAxis),
}

/// The unit of scheduling: a body over its own iterators, isolated from the loops around it.
///
/// The block runs once for each iteration of the loops around it in which all `guards` hold. Its `init` runs
/// before the body in those runs where all its reduction iterators are zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// The name.
    pub name: Name,
    /// The iterators, which the body reads in place of the loop variables.
    pub iters: Vec<Iter>,
    /// Conditions over loop variables under which the block runs: TVM's predicate (`T.where`).
    pub guards: Vec<Less>,
    /// What is asked of it, such as slots for what it fills.
    pub attrs: BlockAttrs,
    /// What a reduction starts from.
    pub init: Option<Stmt>,
    /// What the block computes.
    pub body: Stmt,
}

/// An iterator of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Iter {
    /// The variable that the body of the block reads.
    pub var: Name,
    /// The size of its domain `0..extent`.
    pub extent: Index,
    /// What its iterations mean to each other.
    pub kind: IterKind,
    /// Its value, over the variables of the loops around the block.
    pub binding: Index,
}

/// What the iterations of an iterator mean to each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IterKind {
    /// Independent of each other, each producing its own elements.
    Spatial,
    /// Combined by a reduction into the same elements.
    Reduce,
}

/// `place = value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    /// Where to.
    pub place: Access,
    /// What.
    pub value: Value,
}

impl Stmt {
    /// Statements in order, nested sequences spliced in; a single statement stands for itself.
    pub fn seq(stmts: impl IntoIterator<Item = Stmt>) -> Stmt {
        let mut out = Vec::new();
        for stmt in stmts {
            match stmt {
                Stmt::Seq(inner) => out.extend(inner),
                other @ (Stmt::Loop(_) | Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_)) => out.push(other),
            }
        }
        if out.len() == 1 { out.remove(0) } else { Stmt::Seq(out) }
    }

    /// A serial loop of which nothing is asked.
    pub fn serial(var: &Name, extent: Index, body: Stmt) -> Stmt {
        let (var, kind, attrs) = (var.clone(), LoopKind::Serial, LoopAttrs::default());
        Stmt::Loop(Arc::new(Loop { var, extent, kind, attrs, body }))
    }

    /// A store.
    pub fn store(place: Access, value: Value) -> Stmt {
        Stmt::Store(Arc::new(Store { place, value }))
    }

    /// Whether this is an empty sequence.
    pub fn is_empty(&self) -> bool {
        matches!(self, Stmt::Seq(stmts) if stmts.is_empty())
    }

    /// The statements directly inside, blocks' inits included, in order.
    pub fn children(&self) -> impl Iterator<Item = &Stmt> {
        let (init, rest) = match self {
            Stmt::Loop(it) => (None, slice::from_ref(&it.body)),
            Stmt::Block(it) => (it.init.as_ref(), slice::from_ref(&it.body)),
            Stmt::Seq(stmts) => (None, stmts.as_slice()),
            Stmt::Store(_) | Stmt::Instr(_) => (None, [].as_slice()),
        };
        init.into_iter().chain(rest)
    }

    /// The first answer of `f` for one of the statements directly inside, in the order of [`Stmt::children`].
    pub fn find_child<'a, T>(&'a self, mut f: impl FnMut(&'a Stmt) -> Option<T>) -> Option<T> {
        match self {
            Stmt::Loop(it) => f(&it.body),
            Stmt::Block(it) => it.init.as_ref().and_then(&mut f).or_else(|| f(&it.body)),
            Stmt::Seq(stmts) => stmts.iter().find_map(f),
            Stmt::Store(_) | Stmt::Instr(_) => None,
        }
    }

    /// Calls `f` with this statement and each one below it, outer before inner, in program order.
    pub fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Stmt)) {
        f(self);
        match self {
            Stmt::Loop(it) => it.body.walk(f),
            Stmt::Block(it) => {
                it.init.iter().for_each(|init| init.walk(f));
                it.body.walk(f);
            }
            Stmt::Seq(stmts) => stmts.iter().for_each(|it| it.walk(f)),
            Stmt::Store(_) | Stmt::Instr(_) => {}
        }
    }

    /// Calls `f` with this statement and each one below it, outer before inner; `false` keeps it out of the
    /// subtree. Only what is walked into is copied when shared.
    pub fn walk_mut(&mut self, f: &mut dyn FnMut(&mut Stmt) -> bool) {
        if !f(self) {
            return;
        }
        match self {
            Stmt::Loop(it) => Arc::make_mut(it).body.walk_mut(f),
            Stmt::Block(it) => {
                let block = Arc::make_mut(it);
                block.init.iter_mut().for_each(|init| init.walk_mut(f));
                block.body.walk_mut(f);
            }
            Stmt::Seq(stmts) => stmts.iter_mut().for_each(|it| it.walk_mut(f)),
            Stmt::Store(_) | Stmt::Instr(_) => {}
        }
    }

    /// The statement with every index expression in it rewritten by `f`: extents, bindings, guards, subscripts.
    #[must_use]
    pub fn map_indices(&self, f: &mut dyn FnMut(&Index) -> Index) -> Stmt {
        match self {
            Stmt::Loop(it) => Stmt::Loop(Arc::new(Loop {
                extent: f(&it.extent),
                body: it.body.map_indices(f),
                ..Loop::clone(it)
            })),
            Stmt::Block(it) => Stmt::Block(Arc::new(it.map_indices(f))),
            Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|it| it.map_indices(f)).collect()),
            Stmt::Store(it) => {
                let place = it.place.map_indices(f);
                Stmt::store(place, it.value.map_indices(f))
            }
            Stmt::Instr(it) => Stmt::Instr(Arc::new(it.map_indices(f))),
        }
    }

    /// The statement with every variable in its indices replaced where `with` answers.
    #[must_use]
    pub fn subst(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Stmt {
        self.map_indices(&mut |index| index.subst(with))
    }

    /// The statement with every place that it stores to or loads from rewritten by `f`.
    #[must_use]
    pub fn map_accesses(&self, f: &mut dyn FnMut(&Access) -> Access) -> Stmt {
        match self {
            Stmt::Loop(it) => Stmt::Loop(Arc::new(Loop { body: it.body.map_accesses(f), ..Loop::clone(it) })),
            Stmt::Block(it) => {
                let init = it.init.as_ref().map(|it| it.map_accesses(f));
                Stmt::Block(Arc::new(Block { init, body: it.body.map_accesses(f), ..Block::clone(it) }))
            }
            Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|it| it.map_accesses(f)).collect()),
            Stmt::Store(it) => {
                let value = it.value.map_loads(&mut |load| Value::Load(f(load)));
                Stmt::store(f(&it.place), value)
            }
            Stmt::Instr(it) => Stmt::Instr(Arc::new(it.map_accesses(f))),
        }
    }

    /// Calls `f` with each store in or below, in program order.
    pub fn each_store<'a>(&'a self, f: &mut dyn FnMut(&'a Store)) {
        self.walk(&mut |stmt| {
            if let Stmt::Store(store) = stmt {
                f(store);
            }
        });
    }

    /// Calls `f` with each access in or below, in program order: what is read, then what is written.
    pub fn each_access<'a>(&'a self, f: &mut dyn FnMut(&'a Access, Mode)) {
        self.walk(&mut |stmt| match stmt {
            Stmt::Store(it) => {
                it.value.each_load(&mut |access| f(access, Mode::Read));
                f(&it.place, Mode::Write);
            }
            Stmt::Instr(it) => it.each_access(f),
            Stmt::Loop(_) | Stmt::Block(_) | Stmt::Seq(_) => {}
        });
    }

    /// The blocks in or below, in program order.
    pub fn blocks(&self) -> Vec<&Block> {
        let mut out = Vec::with_capacity(16);
        self.walk(&mut |stmt| {
            if let Stmt::Block(block) = stmt {
                out.push(&**block);
            }
        });
        out
    }
}

impl Block {
    /// The block with every index expression rewritten by `f`: extents, bindings, guards, subscripts.
    #[must_use]
    pub fn map_indices(&self, f: &mut dyn FnMut(&Index) -> Index) -> Block {
        let iters = self.iters.iter().map(|iter| Iter {
            extent: f(&iter.extent),
            binding: f(&iter.binding),
            ..iter.clone()
        });
        let iters = iters.collect();
        let guards = self.guards.iter().map(|it| Less::new(f(&it.lhs), f(&it.rhs))).collect();
        Block { iters, guards, ..self.map_inside(f) }
    }

    /// The block with what it computes over its iterators rewritten by `f`: subscripts, and loops inside.
    #[must_use]
    pub fn map_inside(&self, f: &mut dyn FnMut(&Index) -> Index) -> Block {
        let init = self.init.as_ref().map(|it| it.map_indices(f));
        Block { init, body: self.body.map_indices(f), ..self.clone() }
    }

    /// The iterator of a name.
    pub fn find_iter(&self, var: &Name) -> Option<&Iter> {
        self.iters.iter().find(|it| it.var == *var)
    }

    /// Whether `pred` says so of any access in the init or the body.
    pub fn any_access(&self, pred: &mut dyn FnMut(&Access, Mode) -> bool) -> bool {
        let mut found = false;
        for stmt in self.init.iter().chain([&self.body]) {
            stmt.each_access(&mut |access, mode| found = found || pred(access, mode));
        }
        found
    }

    /// What the block reads in its body, in order; the reads of its init come first.
    pub fn reads(&self) -> Vec<&Access> {
        let mut out = Vec::new();
        for stmt in self.init.iter().chain([&self.body]) {
            stmt.each_access(&mut |access, mode| out.extend((mode == Mode::Read).then_some(access)));
        }
        out
    }

    /// What the block writes, in order; the writes of its init come first.
    pub fn writes(&self) -> Vec<&Access> {
        let mut out = Vec::new();
        for stmt in self.init.iter().chain([&self.body]) {
            stmt.each_access(&mut |access, mode| out.extend(mode.writes().then_some(access)));
        }
        out
    }
}
