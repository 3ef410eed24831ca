//! Who comes to a statement of a kernel: all that could, or some of them.

use super::kernel::Verifier;
use crate::{Index, Name, Op, ThreadAxis, axis_var};

/// Between whom something differs: any of them.
#[derive(Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct Differs {
    /// Threads of a block.
    pub(super) threads: bool,
    /// Threads of a role.
    pub(super) of_role: bool,
    /// Threads along `threadIdx.x`.
    pub(super) lanes: bool,
    /// Blocks of a cluster.
    pub(super) blocks: bool,
}

impl<'a> Verifier<'a> {
    pub(super) fn inside(&mut self, differs: Differs, body: &'a [Op]) {
        let outside = (self.only_some, self.depth);
        let Differs { threads, of_role, lanes, blocks } = outside.0;
        self.only_some = Differs {
            threads: threads || differs.threads,
            of_role: of_role || differs.of_role,
            lanes: lanes || differs.lanes,
            blocks: blocks || differs.blocks,
        };
        self.depth += 1;
        self.ops(body);
        (self.only_some, self.depth) = outside;
    }

    /// Between whom indices may differ.
    pub(super) fn differs(&self, all: &[&Index]) -> Differs {
        let any = |of: &dyn Fn(&Name) -> bool| all.iter().any(|it| it.any_var(of));
        let threads = any(&|it| self.vars.iter().any(|(name, differs)| name == it && *differs));
        let blocks =
            any(&|it| ThreadAxis::ALL.iter().any(|axis| axis.is_cluster() && axis_var(*axis) == *it));
        Differs { threads, of_role: threads, lanes: any(&|it| *it == axis_var(ThreadAxis::ThreadX)), blocks }
    }
}
