//! The tables of a program: inputs whose elements are indices ([`crate::IndexKind::Element`]).

use std::collections::BTreeSet;

use crate::{Func, Index, IndexKind, Kernel, Name, Op};

/// The inputs whose elements occur in an index.
fn note(index: &Index, out: &mut BTreeSet<Name>) {
    index.each_element(&mut |it| {
        if let IndexKind::Element(table, ..) = it.kind() {
            out.insert(table.clone());
        }
    });
}

impl Func {
    /// The inputs whose elements are indices: those that reads go through.
    pub fn tables(&self) -> BTreeSet<Name> {
        let mut out = BTreeSet::new();
        for block in self.body.blocks() {
            block.body.each_store(&mut |store| store.value.each_index(&mut |it| note(it, &mut out)));
        }
        out
    }
}

impl Kernel {
    /// The arguments whose elements are indices.
    pub fn tables(&self) -> BTreeSet<Name> {
        let mut out = BTreeSet::new();
        self.body.iter().for_each(|op| op.tables(&mut out));
        out
    }
}

impl Op {
    /// Adds the buffers whose elements are indices in or below.
    pub fn tables(&self, out: &mut BTreeSet<Name>) {
        self.each_index(&mut |it| note(it, out));
    }
}
