//! Elements of inputs in indices: that they are read of tables, and stand where a program may look at data.

use super::{Verifier, VerifyErrorKind};
use crate::{Block, Buffer, DType, Index, IndexKind, Name, Role};

impl Verifier<'_> {
    /// Checks what a buffer says its elements are below.
    pub(super) fn below(&mut self, name: &Name, buffer: &Buffer) {
        let is_integer = !buffer.dtype.is_float() && buffer.dtype != DType::Bool;
        if buffer.below.is_some() && !(buffer.role == Role::Input && is_integer) {
            self.report(name, VerifyErrorKind::Below);
        }
    }

    /// Checks the elements in an index of a block. Loops, iterators, guards and places do not depend on data: which
    /// iterations there are and what they write is known before a program runs.
    pub(super) fn elements(&mut self, at: &Name, index: &Index, may_read: bool) {
        let mut wrong = Vec::new();
        index.each_element(&mut |it| {
            let IndexKind::Element(table, _, below) = it.kind() else { return };
            let declared = self.func.buffers.get(table).and_then(|it| it.below.as_ref());
            let why = match declared {
                _ if !may_read => "data decide nothing but what a load or a `select` reads",
                None => "elements of an input that says what they are below are indices, and of nothing else",
                Some(declared) if declared != below => "the input says something else of its elements",
                Some(_) => return,
            };
            wrong.push(VerifyErrorKind::Element { index: it.clone(), why });
        });
        for kind in wrong {
            self.report(at, kind);
        }
    }

    /// The same for all indices of a block that may not look at data.
    pub(super) fn no_elements(&mut self, block: &Block) {
        let guards = block.guards.iter().flat_map(|it| [&it.lhs, &it.rhs]);
        let fixed = block.iters.iter().flat_map(|it| [&it.extent, &it.binding]).chain(guards);
        fixed.for_each(|it| self.elements(&block.name, it, false));
    }
}
