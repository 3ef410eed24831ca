//! The names in use in a kernel, for passes that make new ones.

use std::collections::BTreeSet;

use ir::{Name, Op};

/// The symbolic dimensions and every variable, buffer and allocation in the statements.
pub(crate) fn taken(dims: &[Name], ops: &[Op]) -> BTreeSet<Name> {
    let mut out: BTreeSet<_> = dims.iter().cloned().collect();
    for op in ops {
        op.walk(&mut |op| match op {
            Op::Alloc(it) => {
                out.insert(it.name.clone());
            }
            Op::For(it) => {
                out.insert(it.var.clone());
            }
            Op::Instr(it, _) => it.each_access(&mut |access, _| {
                out.insert(access.buffer.clone());
            }),
            Op::If(..) | Op::Leader(..) | Op::Role(..) => {}
        });
    }
    out
}
