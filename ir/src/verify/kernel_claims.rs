//! What is true of kernels whose blocks take over others: see [`crate::Claim`].

use super::{kernel::Verifier, kernel_error::KernelErrorKind as Kind};
use crate::{Access, Claim, Effect, For, Index, Instr, Name, Op, Scope, Take, ThreadAxis, axis_var};

/// Whether a variable is that of an axis of the grid.
fn is_place_in_grid(name: &Name) -> bool {
    [ThreadAxis::BlockX, ThreadAxis::BlockY, ThreadAxis::BlockZ].iter().any(|it| axis_var(*it) == *name)
}

fn depends(index: &Index) -> bool {
    index.any_var(&is_place_in_grid)
}

impl Verifier<'_> {
    /// Checks a loop over the blocks that one stands for, and that others take none.
    pub(super) fn claims(&mut self, it: &For) {
        let taken = it.body.iter().filter(|op| matches!(op.instr(), Some(Instr::Take(_)))).count();
        let counted = self.kernel.claims.as_ref();
        let counts = it.extent.as_var().is_some_and(|var| Some(var) == counted);
        if taken != usize::from(counts) {
            self.report(Kind::Claims {
                what: "a loop over blocks takes one at its end, and nothing else does",
            });
        }
        if counts {
            it.body.iter().for_each(|op| self.same_for_all(op, false));
        }
    }

    /// Checks that what is counted, and memory of the block, do not depend on which block of the grid it is.
    fn same_for_all(&mut self, op: &Op, is_conditional: bool) {
        let is_bad = match op {
            Op::For(it) => depends(&it.extent),
            Op::Instr(it, _) => is_conditional && it.sync().is_some() || self.is_of_block(it),
            Op::Alloc(_) | Op::If(..) | Op::Leader(..) | Op::Role(..) => false,
        };
        if is_bad {
            self.report(Kind::Claims {
                what: "how often something is done, or where in the block, depends on the block",
            });
        }
        let own = matches!(op, Op::If(conditions, _) if conditions.iter().any(|it| depends(&it.lhs) || depends(&it.rhs)));
        op.children().iter().for_each(|op| self.same_for_all(op, is_conditional || own));
    }

    /// Whether indices of an instruction that are none of global memory depend on the block.
    fn is_of_block(&self, it: &Instr) -> bool {
        let mut found = false;
        it.each_effect(&mut |Effect { access, .. }| {
            let is_global = self.memory(&access.buffer).is_some_and(|it| it.scope == Scope::Global);
            found |= !is_global && access.indices.iter().any(depends);
        });
        let slot = it.fill().map(|it| it.slot);
        let mut of_sync = false;
        if it.sync().is_some() {
            it.each_index(&mut |index| of_sync |= depends(index));
        }
        found || of_sync || slot.is_some_and(depends)
    }

    pub(super) fn claim(&mut self, instr: &Instr, it: &Claim) {
        self.answer(instr, &it.answer);
        self.mbarrier(&it.barrier);
    }

    pub(super) fn take(&mut self, instr: &Instr, it: &Take) {
        self.answer(instr, &it.answer);
    }

    /// Checks where an answer is, and that the kernel counts what comes of it.
    fn answer(&mut self, instr: &Instr, it: &Access) {
        if self.kernel.claims.is_none() {
            self.report(Kind::Claims { what: "a kernel that claims blocks counts them" });
        }
        self.expect_scope(instr, it, &[Scope::Shared]);
        let has_room = self
            .memory(&it.buffer)
            .is_some_and(|it| it.dtype.bytes_i64() * i64::from(Claim::ELEMENTS) == Claim::BYTES);
        if !has_room || it.lanes != Claim::ELEMENTS {
            self.report(Kind::Operand { instr: instr.word(), buffer: it.buffer.clone() });
        }
    }
}
