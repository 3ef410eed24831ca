//! Names: valid, not reserved, and told apart.

use std::collections::{BTreeMap, BTreeSet};

use super::{VerifyError, VerifyErrorKind};
use crate::{Block, Func, Iter, Name, Stmt};

/// Checks the names of a function.
pub(super) fn check(func: &Func) -> Vec<VerifyError> {
    if surely_fine(func) { vec![] } else { judged(func) }
}

/// Whether all names are well-formed and told apart: what almost every function passes, cheaply.
fn surely_fine(func: &Func) -> bool {
    let mut fine = true;
    let mut print = |name: &Name| {
        fine &= name.is_valid() && !name.is_reserved();
        name.key()
    };
    let mut taken = Vec::with_capacity(64);
    taken.push(print(&func.name));
    taken.extend(func.dims.iter().map(&mut print));
    // The iterators of all blocks, and where those of each end.
    let mut blocks = Vec::with_capacity(128);
    let (mut iters, mut ends) = (Vec::with_capacity(64), Vec::with_capacity(32));
    func.body.walk(&mut |stmt| match stmt {
        Stmt::Loop(stmt) => taken.push(print(&stmt.var)),
        Stmt::Block(stmt) => {
            blocks.push(print(&stmt.name));
            iters.extend(stmt.iters.iter().map(|it| print(&it.var)));
            ends.push(iters.len());
        }
        Stmt::Seq(_) | Stmt::Store(_) | Stmt::Instr(_) => {}
    });
    // A block may be called as a buffer is.
    blocks.extend(&taken);
    taken.extend(func.buffers.keys().map(print));
    blocks.sort_unstable();
    taken.sort_unstable();
    let is_free = |it: &usize| taken.binary_search(it).is_err() && blocks.binary_search(it).is_err();
    let starts = [0].into_iter().chain(ends.iter().copied());
    let mut each = starts.zip(&ends).map(|(start, end)| &iters[start..*end]);
    fine && [&taken, &blocks].into_iter().all(|it| it.is_sorted_by(|a, b| a < b))
        && each.all(|of| of.iter().enumerate().all(|(n, it)| is_free(it) && !of[..n].contains(it)))
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
