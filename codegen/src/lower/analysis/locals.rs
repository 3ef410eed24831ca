//! The memory that each thread has for itself.

use std::collections::BTreeSet;

use ir::{Name, Op, Scope};

/// The local memory that statements take.
pub(crate) fn locals(ops: &[Op]) -> BTreeSet<Name> {
    let mut out = BTreeSet::new();
    for op in ops {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op
                && it.scope == Scope::Local
            {
                out.insert(it.name.clone());
            }
        });
    }
    out
}
