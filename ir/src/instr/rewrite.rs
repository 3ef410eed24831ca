//! The indices and accesses of instructions, one by one, and instructions with others in their places.

use super::{Instr, TensorOp};
use crate::{
    Access, Arrival, BulkCopy, BulkKind, Claim, Index, Less, Name, Phase, Semaphore, Take, Tcgen05, Tile,
    Turn, Value, Wgmma,
};

impl Instr {
    /// Calls `f` with each index expression.
    pub fn each_index<'a>(&'a self, f: &mut dyn FnMut(&'a Index)) {
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) | Instr::AtomicAdd(place, value) => {
                place.indices.iter().for_each(&mut *f);
                value.each_index(f);
            }
            Instr::Tensor(_) | Instr::WarpReduce(_) => {
                self.each_access(&mut |it, _| it.indices.iter().for_each(&mut *f));
            }
            Instr::Wgmma(it) => {
                self.each_access(&mut |it, _| it.indices.iter().for_each(&mut *f));
                it.starts.iter().flatten().flat_map(|it| [&it.lhs, &it.rhs]).for_each(f);
            }
            Instr::Tcgen05(it) => {
                self.each_access(&mut |it, _| it.indices.iter().for_each(&mut *f));
                it.starts.iter().flatten().flat_map(|it| [&it.lhs, &it.rhs]).for_each(f);
            }
            Instr::Bulk(it) => {
                self.each_access(&mut |it, _| it.indices.iter().for_each(&mut *f));
                if let BulkKind::Load { slot, .. } = &it.kind {
                    f(slot);
                }
            }
            Instr::Claim(it) => it.answer.indices.iter().chain([&it.slot]).for_each(f),
            Instr::Take(it) => it.answer.indices.iter().for_each(f),
            Instr::Await(it) => [&it.slot, &it.phase].into_iter().for_each(f),
            Instr::Arrive(it) => [&it.slot].into_iter().chain(&it.bytes).for_each(f),
            Instr::Semaphore(it) => it.counter.indices.iter().chain([&it.turn, &it.count]).for_each(f),
            Instr::Turn(it) => [&it.turn, &it.count].into_iter().for_each(f),
            Instr::Commit(_) | Instr::Wait(_) | Instr::Barrier(_) | Instr::Fence(_) | Instr::Comment(_) => {}
        }
    }

    /// The instruction with every access rewritten by `f`.
    #[must_use]
    pub fn map_accesses(&self, f: &mut dyn FnMut(&Access) -> Access) -> Instr {
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) | Instr::AtomicAdd(place, value) => {
                let value = value.map_loads(&mut |it| Value::Load(f(it)));
                self.with_assignment(f(place), value)
            }
            Instr::Tensor(it) => {
                let operands = it.operands.iter().map(&mut *f).collect();
                Instr::Tensor(TensorOp { intrinsic: it.intrinsic, place: f(&it.place), operands })
            }
            Instr::WarpReduce(it) => Instr::WarpReduce(it.map_accesses(f)),
            Instr::Wgmma(it) => Instr::Wgmma(it.map_accesses(f)),
            Instr::Tcgen05(it) => Instr::Tcgen05(Box::new(it.map_accesses(f))),
            Instr::Bulk(it) => {
                let (global, first) = (f(&it.global), f(&it.shared.first));
                let shared = Tile { first, ..it.shared.clone() };
                Instr::Bulk(BulkCopy { global, shared, ..it.clone() })
            }
            Instr::Claim(it) => Instr::Claim(Claim { answer: f(&it.answer), ..it.clone() }),
            Instr::Take(it) => Instr::Take(Take { answer: f(&it.answer) }),
            Instr::Semaphore(it) => Instr::Semaphore(Semaphore { counter: f(&it.counter), ..it.clone() }),
            Instr::Commit(_)
            | Instr::Wait(_)
            | Instr::Barrier(_)
            | Instr::Await(_)
            | Instr::Arrive(_)
            | Instr::Fence(_)
            | Instr::Turn(_)
            | Instr::Comment(_) => self.clone(),
        }
    }

    /// The instruction with every index expression rewritten by `f`.
    #[must_use]
    pub fn map_indices(&self, f: &mut dyn FnMut(&Index) -> Index) -> Instr {
        match self {
            Instr::Store(place, value) | Instr::AsyncCopy(place, value) | Instr::AtomicAdd(place, value) => {
                let place = place.map_indices(f);
                self.with_assignment(place, value.map_indices(f))
            }
            Instr::Tensor(_) | Instr::WarpReduce(_) => self.map_accesses(&mut |it| it.map_indices(f)),
            Instr::Wgmma(it) => {
                let starts = it.starts.as_deref().map(|all| Less::map_all(all, f));
                Instr::Wgmma(Wgmma { starts, ..it.map_accesses(&mut |it| it.map_indices(f)) })
            }
            Instr::Tcgen05(it) => {
                let starts = it.starts.as_deref().map(|all| Less::map_all(all, f));
                Instr::Tcgen05(Box::new(Tcgen05 { starts, ..it.map_accesses(&mut |it| it.map_indices(f)) }))
            }
            Instr::Bulk(it) => {
                let kind = match &it.kind {
                    BulkKind::Load { barrier, slot, along, at_first } => {
                        let (barrier, slot) = (barrier.clone(), f(slot));
                        BulkKind::Load { barrier, slot, along: *along, at_first: *at_first }
                    }
                    BulkKind::Store | BulkKind::Add => it.kind.clone(),
                };
                let (global, first) = (it.global.map_indices(f), it.shared.first.map_indices(f));
                let shared = Tile { first, ..it.shared.clone() };
                Instr::Bulk(BulkCopy { kind, map: it.map.clone(), global, shared })
            }
            Instr::Semaphore(it) => {
                let counter = it.counter.map_indices(f);
                Instr::Semaphore(Semaphore { kind: it.kind, counter, turn: f(&it.turn), count: f(&it.count) })
            }
            Instr::Turn(it) => Instr::Turn(Turn { turn: f(&it.turn), count: f(&it.count), ..it.clone() }),
            Instr::Claim(it) => {
                let (answer, slot) = (it.answer.map_indices(f), f(&it.slot));
                Instr::Claim(Claim { answer, barrier: it.barrier.clone(), slot })
            }
            Instr::Take(it) => Instr::Take(Take { answer: it.answer.map_indices(f) }),
            Instr::Await(it) => {
                let (slot, phase) = (f(&it.slot), f(&it.phase));
                Instr::Await(Phase { barrier: it.barrier.clone(), slot, phase })
            }
            Instr::Arrive(it) => {
                let (slot, bytes) = (f(&it.slot), it.bytes.as_ref().map(f));
                Instr::Arrive(Arrival { slot, bytes, ..it.clone() })
            }
            Instr::Commit(_) | Instr::Wait(_) | Instr::Barrier(_) | Instr::Fence(_) | Instr::Comment(_) => {
                self.clone()
            }
        }
    }

    /// The instruction with every variable in its indices replaced where `with` answers.
    #[must_use]
    pub fn subst(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Instr {
        self.map_indices(&mut |index| index.subst(with))
    }
}
