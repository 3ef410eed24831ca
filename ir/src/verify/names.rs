//! Names: valid, not reserved, and told apart.

use std::collections::{BTreeMap, BTreeSet};

use super::{VerifyError, VerifyErrorKind};
use crate::{Block, Func, Iter, Name, Stmt};

/// Checks the names of a function.
pub(super) fn check(func: &Func) -> Vec<VerifyError> {
    if surely_fine(func) { vec![] } else { judged(func) }
}

/// Whether all names are well-formed and told apart: what almost every function passes, cheaply. Functions of very many
/// names are judged like those that do not pass.
fn surely_fine(func: &Func) -> bool {
    let mut seen = Seen { slots: [(0, 0); SLOTS], free: SLOTS / 2, fine: true };
    seen.add(&func.name, THING, 0);
    func.dims.iter().for_each(|it| seen.add(it, THING, 0));
    let mut blocks = Vec::with_capacity(32);
    func.body.walk(&mut |stmt| match stmt {
        Stmt::Loop(stmt) => seen.add(&stmt.var, THING, 0),
        Stmt::Block(stmt) => {
            // A block may be called as a buffer is.
            seen.add(&stmt.name, BLOCK, BUFFER);
            blocks.push(&**stmt);
        }
        Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
    });
    func.buffers.keys().for_each(|it| seen.add(it, BUFFER, BLOCK));
    seen.fine
        && blocks.iter().all(|block| {
            block.iters.iter().enumerate().all(|(n, it)| {
                let others = block.iters[..n].iter();
                is_well_formed(&it.var)
                    && seen.is_free(&it.var)
                    && others.map(|it| &it.var).all(|other| *other != it.var)
            })
        })
}

fn is_well_formed(name: &Name) -> bool {
    name.is_valid() && !name.is_reserved()
}

/// A power of two, of which half are filled at most.
const SLOTS: usize = 256;
/// The function, a dimension or a loop.
const THING: u8 = 1;
/// A buffer.
const BUFFER: u8 = 2;
/// A block.
const BLOCK: u8 = 4;

/// What names were given to, in a table with open addressing: a name and bits for what it names.
struct Seen {
    slots: [(usize, u8); SLOTS],
    /// How many more names fit.
    free: usize,
    /// Whether no two clash so far, and all fit.
    fine: bool,
}

impl Seen {
    /// The place of a name, or the open one where it belongs.
    fn slot(&self, name: &Name) -> usize {
        // Symbols are a few of these apart.
        let start = name.key() / 16;
        let mut places = (start..start + SLOTS).map(|it| it % SLOTS);
        let is_place = |it: &usize| self.slots[*it].1 == 0 || self.slots[*it].0 == name.key();
        places.find(is_place).expect("half of the places are open")
    }

    /// Gives a name to something of a kind, beside at most one thing of the `other` kind.
    fn add(&mut self, name: &Name, kind: u8, other: u8) {
        let at = self.slot(name);
        let named = self.slots[at].1;
        if named == 0 {
            self.free = self.free.saturating_sub(1);
        }
        self.fine &= self.free > 0 && named & !other == 0 && is_well_formed(name);
        if self.fine {
            self.slots[at] = (name.key(), named | kind);
        }
    }

    fn is_free(&self, name: &Name) -> bool {
        self.slots[self.slot(name)].1 == 0
    }
}

fn judged(func: &Func) -> Vec<VerifyError> {
    let mut it = Names { taken: BTreeMap::new(), blocks: BTreeSet::new(), errors: Vec::new() };
    it.introduce(&func.name, "a function");
    func.dims.iter().for_each(|name| it.introduce(name, "a dimension"));
    func.buffers.keys().for_each(|name| it.introduce(name, "a buffer"));
    func.body.walk(&mut |stmt| match stmt {
        Stmt::Loop(stmt) => it.introduce(&stmt.var, "a loop"),
        Stmt::Block(stmt) => it.block(&stmt.name),
        Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
    });
    for block in func.body.blocks() {
        for (at, iter) in block.iters.iter().enumerate() {
            it.iterator(block, &block.iters[..at], &iter.var);
        }
    }
    it.errors
}

struct Names<'a> {
    /// What each name is, but for blocks.
    taken: BTreeMap<&'a Name, &'static str>,
    blocks: BTreeSet<&'a Name>,
    errors: Vec<VerifyError>,
}

impl<'a> Names<'a> {
    fn introduce(&mut self, name: &'a Name, what: &'static str) {
        self.well_formed(name, name);
        if let Some(first) = self.taken.insert(name, what) {
            self.clash(name, name, first, what);
        } else if self.blocks.contains(name) {
            self.clash(name, name, "a block", what);
        }
    }

    fn block(&mut self, name: &'a Name) {
        self.well_formed(name, name);
        if !self.blocks.insert(name) {
            self.clash(name, name, "a block", "a block");
        }
        match self.taken.get(name) {
            None | Some(&"a buffer") => {}
            Some(first) => self.clash(name, name, first, "a block"),
        }
    }

    fn iterator(&mut self, block: &Block, before: &[Iter], var: &Name) {
        self.well_formed(&block.name, var);
        let first = self.taken.get(var).copied();
        let first = first.or_else(|| self.blocks.contains(var).then_some("a block"));
        let first = first.or_else(|| before.iter().any(|it| it.var == *var).then_some("an iterator"));
        if let Some(first) = first {
            self.clash(&block.name, var, first, "an iterator");
        }
    }

    fn well_formed(&mut self, at: &Name, name: &Name) {
        let name = name.clone();
        let kind = if !name.is_valid() {
            VerifyErrorKind::InvalidName { name }
        } else if name.is_reserved() {
            VerifyErrorKind::ReservedName { name }
        } else {
            return;
        };
        self.errors.push(VerifyError { at: at.clone(), kind });
    }

    fn clash(&mut self, at: &Name, name: &Name, first: &'static str, second: &'static str) {
        let kind = VerifyErrorKind::NameTaken { name: name.clone(), first, second };
        self.errors.push(VerifyError { at: at.clone(), kind });
    }
}
