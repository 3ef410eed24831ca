//! What is true of roles, leaders, tensor maps, mbarriers and what the copy engine and warpgroups do.

use super::{kernel::Verifier, kernel_differs::Differs, kernel_error::KernelErrorKind as Kind};
use crate::{
    Access, Arch, BulkCopy, BulkKind, Factor, Index, Instr, Name, Op, Participants, Scope, Tcgen05,
    TensorMap, ThreadAxis, Turn, WarpRole, Wgmma, axis_var, intrin,
};

impl<'a> Verifier<'a> {
    /// What a role does: a top of its own, with the axes of the role.
    pub(super) fn role(&mut self, name: &Name, body: &'a [Op]) {
        let Some(role) = self.kernel.roles.get(name).filter(|_| self.depth == 0) else {
            self.report(Kind::Role { role: name.clone() });
            return;
        };
        let outside = self.vars.len();
        self.vars.extend(role.axes.keys().map(|it| (axis_var(*it), true)));
        self.inside(Differs { threads: true, ..Differs::default() }, body);
        self.vars.truncate(outside);
    }

    /// What a kernel has before its statements.
    pub(super) fn declarations(&mut self) {
        let kernel = self.kernel;
        for (name, map) in &kernel.maps {
            if !self.is_map(map) || !name.is_valid() {
                self.report(Kind::Map { map: name.clone() });
            }
        }
        for (name, it) in &kernel.mbarriers {
            if it.slots < 1 || it.arrivals < 1 || !name.is_valid() || kernel.maps.contains_key(name) {
                self.report(Kind::Mbarrier { barrier: name.clone() });
            }
        }
        let is_counter =
            |it: &Name| it.is_valid() && !kernel.maps.contains_key(it) && !kernel.mbarriers.contains_key(it);
        if let Some(name) = kernel.claims.as_ref().filter(|it| !is_counter(it)) {
            self.report(Kind::Name { name: name.clone() });
        }
        let has_axes = kernel.launch.keys().any(|it| it.is_thread());
        for (name, role) in &kernel.roles {
            let times = kernel.body.iter().filter(|op| matches!(op, Op::Role(it, _) if it == name)).count();
            if has_axes || !is_role(role) || times > 1 {
                self.report(Kind::Role { role: name.clone() });
            }
        }
        let is_top =
            |op: &Op| matches!(op, Op::Role(..) | Op::Alloc(_)) || op.instr().is_some_and(Instr::is_remark);
        if !kernel.roles.is_empty() && !kernel.body.iter().all(is_top) {
            self.report(Kind::BesideRoles);
        }
    }

    fn is_map(&self, map: &TensorMap) -> bool {
        let TensorMap { buffer, dims, strides, tile, swizzle: _ } = map;
        let rank = dims.len();
        let is_known = |it: &Index| !it.any_var(&|name| !self.module.dims.contains(name));
        self.kernel.args.contains_key(buffer)
            && (1..=TensorMap::MOST_DIMS).contains(&rank)
            && [strides.len(), tile.len()] == [rank; 2]
            && tile.iter().all(|it| (1..=TensorMap::LONGEST_SIDE).contains(it))
            && strides.last().and_then(Index::as_int) == Some(1)
            && dims.iter().chain(strides).all(is_known)
    }

    /// Whether those who have to come to an instruction together can.
    pub(super) fn together(&mut self, it: &Instr) {
        let alone = match it.participants() {
            Participants::Thread => {
                matches!(it, Instr::Bulk(_) | Instr::Claim(_) | Instr::Tcgen05(_)) && self.leads.is_none()
            }
            Participants::Warp => self.leads.is_some(),
            Participants::Warpgroup => self.only_some.lanes,
            Participants::Role => self.only_some.of_role || self.kernel.roles.is_empty(),
            // Their own rule says it of all conditions.
            Participants::Block | Participants::Cluster => false,
        };
        if alone {
            self.report(Kind::Team { instr: it.word(), of: it.participants() });
        }
    }

    /// What the instructions of the copy engine, of mbarriers and of warpgroups ask of their operands.
    pub(super) fn asynchronous(&mut self, it: &Instr) {
        match it {
            Instr::Wgmma(product) => self.wgmma(it, product),
            Instr::Tcgen05(product) => self.tcgen05(it, product),
            Instr::Bulk(copy) => self.bulk(it, copy),
            Instr::Claim(claim) => self.claim(it, claim),
            Instr::Take(take) => self.take(it, take),
            Instr::Await(phase) => self.mbarrier(&phase.barrier),
            Instr::Arrive(arrival) => {
                self.mbarrier(&arrival.barrier);
                self.along(it, &arrival.along);
                self.at_first(it, arrival.at_first, &arrival.along);
            }
            Instr::Turn(it) => self.turn(it),
            _ => {}
        }
    }

    pub(super) fn expect_scope(&mut self, it: &Instr, place: &Access, scopes: &[Scope]) {
        if self.memory(&place.buffer).is_some_and(|memory| !scopes.contains(&memory.scope)) {
            self.report(Kind::Operand { instr: it.word(), buffer: place.buffer.clone() });
        }
    }

    fn wgmma(&mut self, instr: &Instr, it: &Wgmma) {
        self.expect_scope(instr, &it.place, &[Scope::Local]);
        if let Factor::Registers(it) = &it.left {
            self.expect_scope(instr, it, &[Scope::Local]);
        }
        for tile in it.tiles() {
            self.expect_scope(instr, &tile.first, &[Scope::Shared]);
        }
        let has_tile = matches!(it.left, Factor::Shared(_));
        let fits = match it.intrinsic.instruction {
            intrin::Instruction::Wgmma { left, .. } => has_tile == left.is_none(),
            _ => false,
        };
        if !fits {
            self.report(Kind::Operand { instr: instr.word(), buffer: it.place.buffer.clone() });
        }
    }

    fn tcgen05(&mut self, instr: &Instr, it: &Tcgen05) {
        self.expect_scope(instr, &it.place.first, &[Scope::Tensor]);
        let scopes: &[Scope] = match it.intrinsic.instruction {
            intrin::Instruction::Tcgen05(kind) if kind.scaled.is_some() => {
                &[Scope::Shared, Scope::Tensor, Scope::Shared, Scope::Tensor]
            }
            intrin::Instruction::Tcgen05(_) => &[Scope::Shared; 2],
            intrin::Instruction::TensorCopy => &[Scope::Shared],
            _ => &[],
        };
        for (tile, scope) in it.operands.iter().zip(scopes) {
            self.expect_scope(instr, &tile.first, &[*scope]);
        }
        if scopes.is_empty() || it.operands.len() != scopes.len() {
            self.report(Kind::Operand { instr: instr.word(), buffer: it.place.first.buffer.clone() });
        }
        // All of a kernel are of one sort (PTX ISA, *tcgen05*, `.cta_group`).
        let is_of_pair = it.intrinsic.is_of_pair();
        let for_pair = self.leads == Some(Participants::Cluster);
        if is_of_pair != for_pair || is_of_pair != self.kernel.multiplies_in_pairs() {
            self.report(Kind::Pair { instr: instr.word() });
        }
    }

    fn bulk(&mut self, instr: &Instr, it: &BulkCopy) {
        self.expect_scope(instr, &it.shared.first, &[Scope::Shared]);
        let map = self.kernel.maps.get(&it.map);
        let fits =
            |map: &TensorMap| map.buffer == it.global.buffer && map.dims.len() == it.global.indices.len();
        if !map.is_some_and(fits) {
            self.report(Kind::Map { map: it.map.clone() });
        }
        if let BulkKind::Load { barrier, along, at_first, .. } = &it.kind {
            self.mbarrier(barrier);
            self.along(instr, along.as_slice());
            self.at_first(instr, *at_first, along.as_slice());
        }
    }

    /// Refuses to tell the first block of what is no pair, or of what all are told.
    fn at_first(&mut self, instr: &Instr, at_first: bool, along: &[ThreadAxis]) {
        if at_first && !(self.kernel.has_pairs() && along.is_empty()) {
            self.report(Kind::Pair { instr: instr.word() });
        }
    }

    /// Refuses axes that the cluster does not have.
    fn along(&mut self, instr: &Instr, axes: &[ThreadAxis]) {
        for (at, axis) in axes.iter().enumerate() {
            if !self.kernel.launch.contains_key(axis) || axes[..at].contains(axis) {
                self.report(Kind::Along { instr: instr.word(), axis: *axis });
            }
        }
    }

    fn turn(&mut self, it: &Turn) {
        let lane = axis_var(ThreadAxis::ThreadX);
        let differs = [&it.turn, &it.count].iter().any(|index| index.any_var(&|name| *name == lane));
        if differs || it.members < 2 || self.kernel.roles.is_empty() {
            self.report(Kind::Turn { of: it.of.clone() });
        }
    }

    pub(super) fn mbarrier(&mut self, name: &Name) {
        if !self.kernel.mbarriers.contains_key(name) {
            self.report(Kind::Mbarrier { barrier: name.clone() });
        }
    }
}

/// Whether a role has whole warps, no more than a block may have, and a number of registers that can be set.
fn is_role(role: &WarpRole) -> bool {
    let registers = role.registers.is_none_or(|it| it % 8 == 0 && (24..=256).contains(&it));
    let is_positive = role.axes.values().all(|it| *it > 0);
    let threads = role.threads();
    is_positive && threads % intrin::WARP == 0 && threads <= Arch::MAX_THREADS.into() && registers
}
