//! Hands accumulators in tensor memory over from the role that multiplies to the one that reads them.

use ir::{
    Access, Arrival, Barrier, Func, Index, Instr, Loop, LoopKind, Mbarriers, Name, Participants, Phase,
    Scope, Stmt, StorageAlign, Target,
    pipeline::{COMPUTE, forced},
};

use crate::lower::{
    analysis::{pairs, roles},
    marks,
};

/// ```text
/// for tile in 0..8 #{warp_roles: {load: 0, mma: 0, compute: 0}}
///   for ko in 0..4 #{…} { A_shared; C_acc #{role: "mma"} }
///   C
/// ->
/// for tile in 0..8 #{…}
///   await C_acc_empty[tile mod 2] phase tile floordiv 2 - 1      (mma)
///   for ko in 0..4 #{…} { A_shared; C_acc #{role: "mma"} }       (into slot tile mod 2)
///   arrive C_acc_full[tile mod 2] behind tcgen05                 (mma)
///   await C_acc_full[tile mod 2] phase tile floordiv 2           (compute)
///   C
///   arrive C_acc_empty[tile mod 2]                               (compute)
/// ```
///
/// Sums have as many slots as `double_buffer_scope` asks for, counted through all serial loops around: with two of them the next tile is multiplied while
/// this one is read. Products tell their end by themselves, so nobody waits for groups of them. What cannot be handed over so is left, and
/// `check_phases` refuses it.
pub(crate) fn exchange_accumulators(mut func: Func, target: &Target) -> Func {
    if *target == Target::Cpu {
        return func;
    }
    let is_sum = |name: &&Name| func.buffers[*name].scope == Scope::Tensor;
    let sums: Vec<Name> = func.buffers.keys().filter(is_sum).cloned().collect();
    for name in sums {
        if let Some(exchange) = Exchange::of(&func, &name) {
            func = exchange.placed(func);
        }
    }
    func
}

/// How a buffer goes from one role to another.
struct Exchange {
    buffer: Name,
    /// The roles that write and read it.
    writer: Name,
    reader: Name,
    /// The mbarriers that tell that a slot is full, and that it is empty.
    full: Name,
    empty: Name,
    slots: i64,
    /// How many warps read it, each of which gives it back.
    warps: i64,
    /// Whether a thread of the first block of a pair multiplies for both: it hears of all warps, and both blocks hear of it.
    is_of_pair: bool,
}

impl Exchange {
    /// That of a buffer, if one role writes it and another reads it.
    fn of(func: &Func, buffer: &Name) -> Option<Exchange> {
        let blocks = func.body.blocks();
        let roles_of = |writes: bool| {
            let touching = blocks.iter().filter(|it| {
                let own = it.writes().iter().any(|it| it.buffer == *buffer);
                if writes { own } else { !own && it.reads().iter().any(|it| it.buffer == *buffer) }
            });
            let mut out: Vec<Name> = touching.map(|it| roles::role_of(it)).collect();
            out.dedup();
            out
        };
        let ([writer], [reader]) = (&*roles_of(true), &*roles_of(false)) else { return None };
        if writer == reader {
            return None;
        }
        let writing = blocks.iter().filter(|it| it.writes().iter().any(|it| it.buffer == *buffer));
        let slots = writing.clone().filter_map(|it| forced(it)).max().unwrap_or(1);
        let kernel = match &func.body {
            Stmt::Seq(all) => all.iter().find(|it| touches(it, buffer))?,
            body => body,
        };
        let is_of_pair = writing.clone().any(|it| pairs::is_of_pair(it));
        let blocks = if is_of_pair { pairs::BLOCKS } else { 1 };
        let warps = roles::warps_of_one(kernel, reader) * blocks;
        let taken = |it: &Name| func.is_taken(it);
        let full = Name::fresh(&format!("{buffer}_full"), taken);
        let empty = Name::fresh(&format!("{buffer}_empty"), |it| taken(it) || *it == full);
        let (buffer, writer, reader) = (buffer.clone(), writer.clone(), reader.clone());
        Some(Exchange { buffer, writer, reader, full, empty, slots, warps, is_of_pair })
    }

    /// The program with what the roles tell each other, and with slots.
    fn placed(&self, mut func: Func) -> Func {
        let Some(body) = self.stmt(&func.body, &mut Vec::new()) else { return func };
        func.body = body;
        let mbarriers = |arrivals| Mbarriers { slots: self.slots, arrivals };
        func.mbarriers.insert(self.full.clone(), mbarriers(1));
        func.mbarriers.insert(self.empty.clone(), mbarriers(self.warps));
        if self.slots > 1 {
            let buffer = &mut func.buffers[&self.buffer];
            buffer.shape.insert(0, Index::int(self.slots));
            let moved = buffer.layout.align.iter().map(|it| StorageAlign { axis: it.axis + 1, ..*it });
            buffer.layout.align = moved.collect();
        }
        func
    }

    /// The statement with that in it; nothing if there is no place where all that writes stands before all that reads.
    fn stmt<'s>(&self, stmt: &'s Stmt, around: &mut Vec<&'s Loop>) -> Option<Stmt> {
        match stmt {
            Stmt::Loop(it) => {
                around.push(it);
                let body = self.stmt(&it.body, around);
                around.pop();
                Some(Stmt::Loop(std::sync::Arc::new(Loop { body: body?, ..Loop::clone(it) })))
            }
            Stmt::Seq(all) => {
                let touching: Vec<usize> =
                    (0..all.len()).filter(|it| touches(&all[*it], &self.buffer)).collect();
                if let [one] = *touching {
                    let inner = self.stmt(&all[one], around)?;
                    let mut all = all.clone();
                    all[one] = inner;
                    return Some(Stmt::Seq(all));
                }
                self.sequence(all, &touching, around)
            }
            Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_) => None,
        }
    }

    fn sequence(&self, all: &[Stmt], touching: &[usize], around: &[&Loop]) -> Option<Stmt> {
        let writes = |at: &usize| is_of(&all[*at], &self.buffer, &self.writer);
        let (written, read): (Vec<usize>, Vec<usize>) = touching.iter().partition(|it| writes(it));
        let (first, last) = (*written.first()?, *written.last()?);
        let (first_read, last_read) = (*read.first()?, *read.last()?);
        let reads_only = |at: &usize| is_of(&all[*at], &self.buffer, &self.reader);
        if last >= first_read || !read.iter().all(reads_only) {
            return None;
        }
        let number = position(around);
        let mut out = Vec::new();
        for (at, stmt) in all.iter().enumerate() {
            if at == first {
                out.push(self.await_empty(&number));
            }
            if at == first_read {
                out.push(self.await_full(&number));
            }
            out.push(if touching.contains(&at) { self.in_slot(stmt, &number) } else { stmt.clone() });
            if at == last {
                out.push(self.arrive_full(&number));
            }
            if at == last_read {
                out.extend(self.arrive_empty(&number));
            }
        }
        Some(Stmt::Seq(out))
    }

    fn slot(&self, number: &Index) -> Index {
        number.floor_mod(&Index::int(self.slots))
    }

    fn in_slot(&self, stmt: &Stmt, number: &Index) -> Stmt {
        if self.slots == 1 {
            return stmt.clone();
        }
        let slot = self.slot(number);
        stmt.map_accesses(&mut |it| {
            let first = (it.buffer == self.buffer).then(|| slot.clone());
            Access { indices: first.into_iter().chain(it.indices.iter().cloned()).collect(), ..it.clone() }
        })
    }

    fn await_empty(&self, number: &Index) -> Stmt {
        let phase = number.floor_div(&Index::int(self.slots)) + -1;
        let wait = Phase { barrier: self.empty.clone(), slot: self.slot(number), phase };
        marks::in_role(marks::by_one(marks::instruction("await", Instr::Await(wait))), named(&self.writer))
    }

    fn await_full(&self, number: &Index) -> Stmt {
        let phase = number.floor_div(&Index::int(self.slots));
        let wait = Phase { barrier: self.full.clone(), slot: self.slot(number), phase };
        marks::in_role(marks::instruction("await", Instr::Await(wait)), named(&self.reader))
    }

    fn arrive_full(&self, number: &Index) -> Stmt {
        let (barrier, slot) = (self.full.clone(), self.slot(number));
        let along = if self.is_of_pair { vec![pairs::AXIS] } else { vec![] };
        let it = Arrival { barrier, slot, bytes: None, is_late: true, along, at_first: false };
        marks::in_role(marks::instruction("arrive", Instr::Arrive(it)), named(&self.writer))
    }

    fn arrive_empty(&self, number: &Index) -> [Stmt; 2] {
        let (barrier, slot) = (self.empty.clone(), self.slot(number));
        let at_first = self.is_of_pair;
        let it = Arrival { barrier, slot, bytes: None, is_late: false, along: vec![], at_first };
        let meet = Instr::Barrier(Barrier { among: Participants::Warp, proof: vec![] });
        let all = [("barrier", meet), ("arrive", Instr::Arrive(it))];
        all.map(|(name, it)| marks::in_role(marks::instruction(name, it), named(&self.reader)))
    }
}

/// A role as blocks name it: none is that of all others.
fn named(role: &Name) -> Option<&Name> {
    Some(role).filter(|it| it.as_str() != COMPUTE)
}

/// The number of an iteration of the serial loops around, counted through all of them.
fn position(around: &[&Loop]) -> Index {
    let serial = around.iter().filter(|it| !matches!(it.kind, LoopKind::Bound(_)));
    serial.fold(Index::int(0), |all, it| all * it.extent.clone() + Index::var(&it.var))
}

fn touches(stmt: &Stmt, buffer: &Name) -> bool {
    stmt.blocks().into_iter().any(|it| it.any_access(&mut |it, _| it.buffer == *buffer))
}

/// Whether all that touches a buffer in a statement is of one role.
fn is_of(stmt: &Stmt, buffer: &Name, role: &Name) -> bool {
    let blocks = stmt.blocks();
    let mut touching = blocks.iter().filter(|it| it.any_access(&mut |it, _| it.buffer == *buffer));
    touching.all(|it| roles::role_of(it) == *role)
}
