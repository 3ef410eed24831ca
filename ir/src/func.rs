//! `Func`: a schedulable program, and the ways to find and replace its parts by name.

use std::sync::Arc;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::{Block, DType, Index, Iter, Literal, Loop, Mbarriers, Mode, Name, Scope, Stmt, Swizzle};

/// A program over blocks: what a workload becomes and what primitives rewrite.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Func {
    /// Its name, which kernels inherit.
    pub name: Name,
    /// Symbolic dimensions: sizes known only when the program runs, each at least 1.
    pub dims: Vec<Name>,
    /// How far an output may be from what exact arithmetic gives, in parts of the output's largest magnitude: an `f64`
    /// from zero. Without one each element has bounds of its own ([`crate::reference::Near`]).
    pub tolerance: Option<Literal>,
    /// The buffers: inputs and outputs in parameter order, temporaries as they were made.
    pub buffers: Buffers,
    /// The mbarriers that its instructions wait for and arrive at, by name: only lowering makes some.
    pub mbarriers: IndexMap<Name, Mbarriers>,
    /// What it does.
    pub body: Stmt,
}

/// Buffers by name. They are looked up for each access that is looked at, and no order of the hash is ever seen.
pub type Buffers = IndexMap<Name, Buffer, FxBuildHasher>;

/// A tensor. Elements of temporaries and outputs are undefined until written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buffer {
    /// The type of its elements.
    pub dtype: DType,
    /// Its size in each dimension, over the symbolic dimensions only. Rank 0 is one element.
    pub shape: Vec<Index>,
    /// Which memory it lives in.
    pub scope: Scope,
    /// Who owns it.
    pub role: Role,
    /// How elements are laid out in that memory.
    pub layout: Layout,
    /// How long one of it lives, for a temporary: lowering finds it out.
    pub alloc_scope: Option<AllocScope>,
    /// What each element of an input of integers is assumed to be less than, and at least zero: such an input may be a table, through
    /// which reads go ([`crate::IndexKind::Element`]). Over the symbolic dimensions only.
    pub below: Option<Index>,
}

/// How long memory of a temporary lives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AllocScope {
    /// For the whole program.
    Program,
    /// For an iteration of a loop: each has its own.
    Loop(Name),
}

/// Who owns a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// The caller, who filled it.
    Input,
    /// The caller, who reads it afterwards.
    Output,
    /// The program.
    Temp,
}

/// How the elements of a buffer are laid out: row-major, the last dimension contiguous, unless said otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Layout {
    /// Requests of `storage_align`, at most one a dimension.
    pub align: Vec<StorageAlign>,
    /// The request of `swizzle`, for shared memory.
    pub swizzle: Option<Swizzle>,
    /// How many elements of the last dimension stand together, where hardware copies or multiplies it: such panels of all rows
    /// follow each other. Only lowering sets it.
    pub panel: Option<i64>,
}

/// The stride of dimension `axis`, in elements, is the least one with `stride % factor == offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the sentence above names them")]
pub struct StorageAlign {
    pub axis: usize,
    pub factor: i64,
    pub offset: i64,
}

impl Buffer {
    /// The loop whose every iteration has its own, if lowering has found one.
    pub const fn alloc_loop(&self) -> Option<&Name> {
        match &self.alloc_scope {
            Some(AllocScope::Loop(var)) => Some(var),
            Some(AllocScope::Program) | None => None,
        }
    }

    /// A temporary in row-major layout.
    pub fn temp(dtype: DType, shape: Vec<Index>, scope: Scope) -> Buffer {
        let (role, layout) = (Role::Temp, Layout::default());
        Buffer { dtype, shape, scope, role, layout, alloc_scope: None, below: None }
    }
}

impl Func {
    /// The loop of a name.
    pub fn find_loop(&self, name: &Name) -> Option<&Loop> {
        fn find<'a>(stmt: &'a Stmt, name: &Name) -> Option<&'a Loop> {
            match stmt {
                Stmt::Loop(it) if it.var == *name => Some(it),
                _ => stmt.find_child(|it| find(it, name)),
            }
        }
        find(&self.body, name)
    }

    /// The block of a name.
    pub fn find_block(&self, name: &Name) -> Option<&Block> {
        fn find<'a>(stmt: &'a Stmt, name: &Name) -> Option<&'a Block> {
            match stmt {
                Stmt::Block(it) if it.name == *name => Some(it),
                _ => stmt.find_child(|it| find(it, name)),
            }
        }
        find(&self.body, name)
    }

    /// The loops from the outermost to the named one, itself included.
    pub fn path_to_loop(&self, name: &Name) -> Option<Vec<&Loop>> {
        let mut path = Vec::with_capacity(16);
        find(&self.body, &mut path, &|stmt| matches!(stmt, Stmt::Loop(it) if it.var == *name))?;
        Some(path)
    }

    /// The same for a loop around blocks; `None` for one inside a block.
    pub fn path_around_blocks(&self, name: &Name) -> Option<Vec<&Loop>> {
        fn find<'a>(stmt: &'a Stmt, path: &mut Vec<&'a Loop>, name: &Name) -> bool {
            match stmt {
                Stmt::Loop(it) => {
                    path.push(it);
                    let found = it.var == *name || find(&it.body, path, name);
                    if !found {
                        path.pop();
                    }
                    found
                }
                Stmt::Seq(stmts) => stmts.iter().any(|it| find(it, path, name)),
                Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_) => false,
            }
        }
        let mut path = Vec::with_capacity(16);
        find(&self.body, &mut path, name).then_some(path)
    }

    /// The loops around a block, from the outermost.
    pub fn loops_of(&self, block: &Name) -> Option<Vec<&Loop>> {
        let mut path = Vec::with_capacity(16);
        find(&self.body, &mut path, &|stmt| matches!(stmt, Stmt::Block(it) if it.name == *block))?;
        Some(path)
    }

    /// The loops of the program, outer before inner, in program order.
    pub fn loops(&self) -> Vec<&Loop> {
        let mut out = Vec::with_capacity(32);
        self.body.walk(&mut |stmt| {
            if let Stmt::Loop(it) = stmt {
                out.push(&**it);
            }
        });
        out
    }

    /// Puts what `f` makes of the named loop in its place. An empty result is removed with the loops it leaves empty.
    ///
    /// Returns whether the loop was found.
    pub fn replace_loop(&mut self, name: &Name, f: impl FnOnce(Loop) -> Stmt) -> bool {
        let mut f = Some(f);
        replace(&mut self.body, &mut |stmt| match stmt {
            Stmt::Loop(it) if it.var == *name => f.take().map(|f| f(Arc::unwrap_or_clone(it.clone()))),
            _ => None,
        })
    }

    /// Puts what `f` makes of the named block in its place. An empty result is removed with the loops it leaves empty.
    ///
    /// Returns whether the block was found.
    pub fn replace_block(&mut self, name: &Name, f: impl FnOnce(Block) -> Stmt) -> bool {
        let mut f = Some(f);
        replace(&mut self.body, &mut |stmt| match stmt {
            Stmt::Block(it) if it.name == *name => f.take().map(|f| f(Arc::unwrap_or_clone(it.clone()))),
            _ => None,
        })
    }

    /// Rewrites every block in the program. A block that `f` leaves as it was stays the object that it is.
    pub fn map_blocks(&mut self, f: &mut dyn FnMut(&mut Block)) {
        self.body.walk_mut(&mut |stmt| {
            if let Stmt::Block(it) = stmt {
                let mut new = Block::clone(it);
                f(&mut new);
                if new != **it {
                    *it = Arc::new(new);
                }
                return false;
            }
            true
        });
    }

    /// The blocks that write a buffer, in program order.
    pub fn writers(&self, buffer: &Name) -> Vec<&Block> {
        let blocks = self.body.blocks().into_iter();
        blocks
            .filter(|it| it.any_access(&mut |access, mode| mode.writes() && access.buffer == *buffer))
            .collect()
    }

    /// The blocks that read a buffer and do not only accumulate into it, in program order.
    ///
    /// A reduction reads what it writes; that alone does not make it a reader.
    pub fn readers(&self, buffer: &Name) -> Vec<&Block> {
        let blocks = self.body.blocks().into_iter();
        let reads = |it: &&Block| {
            it.any_access(&mut |access, mode| mode == Mode::Read && access.buffer == *buffer)
                && !it.any_access(&mut |access, mode| mode.writes() && access.buffer == *buffer)
        };
        blocks.filter(reads).collect()
    }

    /// Whether a loop, an iterator, a block, a buffer or a dimension has this name.
    pub fn is_taken(&self, name: &Name) -> bool {
        let is_declared = self.buffers.contains_key(name) || self.mbarriers.contains_key(name);
        if is_declared || self.dims.contains(name) || self.name == *name {
            return true;
        }
        let mut taken = false;
        self.body.walk(&mut |stmt| match stmt {
            Stmt::Loop(it) => taken |= it.var == *name,
            Stmt::Block(it) => taken |= it.name == *name || it.find_iter(name).is_some(),
            Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
        });
        taken
    }

    /// Drops the temporaries that nothing accesses.
    pub fn drop_unused_buffers(&mut self) {
        let mut used = std::collections::BTreeSet::new();
        self.body.each_store(&mut |store| {
            used.insert(store.place.buffer.clone());
            store.value.each_load(&mut |access| {
                used.insert(access.buffer.clone());
            });
        });
        self.buffers.retain(|name, buffer| buffer.role != Role::Temp || used.contains(name));
    }

    /// The type of a buffer's elements, in the form that [`crate::Value::dtype`] asks for.
    pub fn dtype_of(&self, buffer: &Name) -> Option<DType> {
        self.buffers.get(buffer).map(|it| it.dtype)
    }
}

impl Iter {
    /// A spatial or reduction iterator.
    pub fn new(var: &Name, extent: Index, kind: crate::IterKind, binding: Index) -> Iter {
        Iter { var: var.clone(), extent, kind, binding }
    }
}

fn find<'a>(stmt: &'a Stmt, path: &mut Vec<&'a Loop>, hit: &impl Fn(&Stmt) -> bool) -> Option<()> {
    if let Stmt::Loop(it) = stmt {
        path.push(it);
    }
    if hit(stmt) {
        return Some(());
    }
    let found = stmt.find_child(|it| find(it, path, hit));
    if let (None, Stmt::Loop(_)) = (found, stmt) {
        path.pop();
    }
    found
}

/// Replaces the first statement for which `f` answers; prunes what an empty answer leaves empty.
///
/// Only the path to that statement is copied.
fn replace(stmt: &mut Stmt, f: &mut dyn FnMut(&Stmt) -> Option<Stmt>) -> bool {
    match replaced(stmt, f) {
        Some(new) => {
            *stmt = new;
            true
        }
        None => false,
    }
}

fn replaced(stmt: &Stmt, f: &mut dyn FnMut(&Stmt) -> Option<Stmt>) -> Option<Stmt> {
    if let Some(new) = f(stmt) {
        return Some(new);
    }
    match stmt {
        Stmt::Loop(it) => {
            let body = replaced(&it.body, f)?;
            if body.is_empty() {
                return Some(body);
            }
            Some(Stmt::Loop(Arc::new(Loop { body, ..Loop::clone(it) })))
        }
        Stmt::Seq(stmts) => {
            let (at, new) = stmts.iter().enumerate().find_map(|(at, it)| Some((at, replaced(it, f)?)))?;
            let mut stmts = stmts.clone();
            stmts[at] = new;
            Some(Stmt::seq(stmts))
        }
        Stmt::Block(it) => {
            let body = replaced(&it.body, f)?;
            Some(Stmt::Block(Arc::new(Block { body, ..Block::clone(it) })))
        }
        Stmt::Store(_) | Stmt::Instr(_) => None,
    }
}
