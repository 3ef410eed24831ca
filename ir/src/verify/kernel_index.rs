//! What is true of the indices of kernels.

use super::{kernel::Verifier, kernel_error::KernelErrorKind as Kind};
use crate::{Index, IndexKind, Name};

impl Verifier<'_> {
    pub(super) fn index(&mut self, at: &Name, index: &Index) {
        let vars = &self.vars;
        if let Some(var) = unknown(index, &|it| vars.iter().any(|var| var.0 == *it)) {
            self.report(Kind::Variable { at: at.clone(), var });
        }
        if divides_by_nothing(index) {
            self.report(Kind::Divisor { at: at.clone() });
        }
    }
}

/// The first variable of an index that is not known.
pub(super) fn unknown(index: &Index, known: &dyn Fn(&Name) -> bool) -> Option<Name> {
    let mut out = None;
    index.any_var(&|it| !known(it)).then(|| out = index.vars().into_iter().find(|it| !known(it)));
    out
}

/// Whether something is divided by a constant below 1.
fn divides_by_nothing(index: &Index) -> bool {
    match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => false,
        IndexKind::FloorDiv(a, b) | IndexKind::FloorMod(a, b) => {
            b.as_int().is_some_and(|it| it < 1) || divides_by_nothing(a) || divides_by_nothing(b)
        }
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b)
        | IndexKind::Element(_, a, b) => divides_by_nothing(a) || divides_by_nothing(b),
    }
}
