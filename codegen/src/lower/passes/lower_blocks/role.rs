//! A kernel whose warps have roles: one program a role, cut out of the program of all.

use indexmap::IndexMap;
use ir::{Index, Instr, Kernel, Name, Op, Participants, Stmt, ThreadAxis, WarpRole, intrin};

use crate::lower::{analysis::roles, passes::deal_iterations};

use super::FuncToKernel;

impl FuncToKernel<'_> {
    /// The kernel, with what each role does: what it runs of the statement, in the loops around that. A role that only starts copies
    /// is one thread.
    pub(super) fn by_role(
        &mut self,
        name: Name,
        stmt: &Stmt,
        declared: &IndexMap<Name, Option<u32>>,
    ) -> Kernel {
        let of_blocks = |launch: &IndexMap<ThreadAxis, Index>| -> IndexMap<ThreadAxis, Index> {
            let axes = launch.iter().filter(|(axis, _)| !axis.is_thread());
            axes.map(|(axis, extent)| (*axis, extent.clone())).collect()
        };
        let launch = of_blocks(&self.launch);
        let (mut memory, mut bodies) = (Vec::new(), Vec::new());
        let mut warp_roles = IndexMap::new();
        let warps = |(role, registers): (&Name, &Option<u32>)| {
            let axes = roles::axes(stmt, role, registers.is_some());
            (role.clone(), WarpRole { axes, registers: *registers })
        };
        let mut ordered: Vec<_> = declared.iter().map(warps).collect();
        // A warpgroup starts at a warp whose number is a multiple of four: first come roles of whole ones.
        ordered.sort_by_key(|it| it.1.threads() % intrin::WARPGROUP != 0);
        for (role, warps) in &ordered {
            let one_thread = roles::is_one_thread(stmt, role);
            let Some(mut own) = roles::slice(stmt, role, one_thread) else { continue };
            if !one_thread {
                own = deal_iterations::to_members(self.func, own);
            }
            self.launch.clone_from(&launch);
            self.launch.extend(warps.axes.iter().map(|(axis, extent)| (*axis, Index::int(*extent))));
            let (shared, mut body): (Vec<Op>, Vec<Op>) =
                self.body(&own, one_thread).into_iter().partition(is_shared);
            if one_thread {
                let of_pair = |it: &Instr| matches!(it, Instr::Tcgen05(it) if it.intrinsic.is_of_pair());
                let mut leads_pair = false;
                for op in &body {
                    op.each_instr(&mut |it| leads_pair |= of_pair(it));
                }
                let of = if leads_pair { Participants::Cluster } else { Participants::Role };
                body = vec![Op::Leader(of, body)];
            }
            memory.extend(shared.into_iter().filter(|it| !memory.contains(it)).collect::<Vec<_>>());
            bodies.push(Op::Role(role.clone(), body));
            warp_roles.insert(role.clone(), warps.clone());
        }
        memory.extend(bodies);
        Kernel { roles: warp_roles, body: memory, ..Kernel::new(name, launch) }
    }
}

fn is_shared(op: &Op) -> bool {
    matches!(op, Op::Alloc(it) if it.scope.is_per_block())
}
