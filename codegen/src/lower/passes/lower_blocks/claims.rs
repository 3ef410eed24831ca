//! Lets blocks of threads take over others that have not begun, where `deal_iterations` has left it to the GPU who does what.

use std::sync::Arc;

use ir::{
    Access, Alloc, Arrival, Barrier, Claim, DType, Fence, For, Index, Instr, Kernel, KernelErrorKind,
    Mbarriers, Module, Name, Op, Origin, Participants, Phase, Scope, Take, ThreadAxis, intrin,
};

use crate::lower::LowerError;

/// How many answers there may be that not all roles have seen: those who copy are ahead of those who multiply, and these of those who write
/// results, each by a tile.
const SLOTS: i64 = 3;

/// ```text
/// in load
///   for tile_wave in 0..tile_claims
///     …
/// ->
/// in load
///   for tile_wave in 0..tile_claims
///     await tile_empty[tile_wave mod 3] phase tile_wave floordiv 3 - 1      (the role that claims)
///     expect tile_full[tile_wave mod 3] bytes 16
///     claim tile_answer[tile_wave mod 3*4 +: 4] for tile_full[tile_wave mod 3]
///     …
///     await tile_full[tile_wave mod 3] phase tile_wave floordiv 3           (each role)
///     take tile_answer[tile_wave mod 3*4 +: 4]
///     fence async
///     arrive tile_empty[tile_wave mod 3]
/// ```
///
/// While a block does its piece of work it claims the next one, and all of its roles take it when they are done: by an answer that names a block there is
/// one more iteration, and by one that names none there is not. The answer of the last claim names none, and each is waited for.
///
/// In a cluster the first block claims for all, each of them waits for its own copy of the answer, and those who have read it arrive everywhere. So nobody
/// claims before all blocks have room for the answer.
///
/// # Errors
/// If it depends on the block of the grid how often roles tell each other something, or where in the block.
pub(super) fn placed(mut module: Module) -> Result<Module, LowerError> {
    let counts: Vec<Name> = module.kernels.iter().filter_map(|it| it.claims.clone()).collect();
    if counts.is_empty() {
        return Ok(module);
    }
    // For how many blocks one stands is nothing that a launch says.
    module.dims.retain(|it| !counts.contains(it));
    for kernel in &mut module.kernels {
        if let Some(count) = kernel.claims.clone() {
            Claims::new(kernel, count).put_into(kernel);
        }
    }
    let errors = ir::verify_module(&module).err().unwrap_or_default();
    let mut found = errors.into_iter().filter_map(|it| match it.kind {
        KernelErrorKind::Claims { what } => Some((it.kernel, what)),
        _ => None,
    });
    let Some((var, what)) = found.next() else { return Ok(module) };
    let help = "deal the iterations to a grid of a fixed size by `persistent`";
    Err(LowerError::NotClaimed { var, why: what.to_owned(), help })
}

/// The answers of a kernel, and who tells whom.
struct Claims {
    count: Name,
    answer: Name,
    full: Name,
    empty: Name,
    /// The role that claims.
    claimer: Name,
    /// The axes along which other blocks of the cluster are.
    along: Vec<ThreadAxis>,
    blocks: i64,
    meets_at_end: bool,
}

/// What is done for a role, and by it.
struct OfRole {
    /// Whether it claims.
    claims: bool,
    warps: i64,
    /// How many of it arrive when they have read an answer, those of all blocks of a cluster.
    arrivals: i64,
}

impl Claims {
    fn new(kernel: &Kernel, count: Name) -> Claims {
        let stem = count.as_str().strip_suffix("_claims").unwrap_or(count.as_str()).to_owned();
        let name = |what: &str| Name::fresh(&format!("{stem}_{what}"), |it| is_taken(kernel, it));
        let fills = |name: &&Name| {
            let mut found = false;
            let own = kernel.body.iter().filter(|op| matches!(op, Op::Role(it, _) if it == *name));
            own.for_each(|op| op.each_instr(&mut |it| found |= it.fill().is_some()));
            found
        };
        let claimer = kernel.roles.keys().find(fills).or(kernel.roles.keys().next());
        let claimer = claimer.expect("`deal_iterations` refuses kernels without roles").clone();
        let axes = kernel.launch.keys().filter(|it| it.is_cluster() && kernel.blocks_along([*it]) > 1);
        let along = axes.copied().collect();
        let (answer, full, empty) = (name("answer"), name("full"), name("empty"));
        let (blocks, meets_at_end) = (kernel.cluster_blocks(), kernel.multiplies_in_pairs());
        Claims { count, answer, full, empty, claimer, along, blocks, meets_at_end }
    }

    fn put_into(&self, kernel: &mut Kernel) {
        let mut arrivals = 0;
        for op in &mut kernel.body {
            let Op::Role(name, body) = op else { continue };
            let warps = kernel.roles[&*name].threads() / intrin::WARP;
            let mut of_role = OfRole { claims: *name == self.claimer, warps, arrivals: 0 };
            *body = self.list(std::mem::take(body), None, &mut of_role);
            arrivals += of_role.arrivals;
        }
        let elements = SLOTS * i64::from(Claim::ELEMENTS);
        kernel
            .body
            .insert(0, Op::Alloc(Alloc::new(self.answer.clone(), DType::I32, elements, Scope::Shared)));
        kernel.mbarriers.insert(self.full.clone(), Mbarriers { slots: SLOTS, arrivals: 1 });
        kernel.mbarriers.insert(self.empty.clone(), Mbarriers { slots: SLOTS, arrivals });
    }

    /// The statements with claims in the loop over blocks, below a leader where there is one.
    fn list(&self, ops: Vec<Op>, leader: Option<Participants>, role: &mut OfRole) -> Vec<Op> {
        let mut out = Vec::with_capacity(ops.len());
        for op in ops {
            let leader = if let Op::Leader(of, _) = &op { Some(*of) } else { leader };
            match op {
                Op::For(it) if it.extent.as_var() == Some(&self.count) => {
                    // One thread of the cluster arrives in all of its blocks; else each of them has those who arrive in all.
                    role.arrivals += match leader {
                        Some(Participants::Cluster) => 1,
                        Some(_) => self.blocks,
                        None => role.warps * self.blocks,
                    };
                    let mut it = For::clone(&it);
                    let number = Index::var(&it.var);
                    let [from, to] = ends(&it.body);
                    let first = if role.claims { self.claim(&number, leader.is_some()) } else { vec![] };
                    let first = first.into_iter().map(|op| of(op, &from));
                    let last = self.take(&number, leader.is_some()).into_iter().map(|op| of(op, &to));
                    it.body = first.chain(std::mem::take(&mut it.body)).chain(last).collect();
                    out.push(Op::For(Arc::new(it)));
                    let drain = if role.claims { self.drain() } else { vec![] };
                    out.extend(drain.into_iter().map(|op| of(op, &to)));
                }
                op => out.push(op.map_children(&mut |body| self.list(body, leader, role))),
            }
        }
        out
    }

    fn answer(&self, number: &Index) -> Access {
        let lanes = Claim::ELEMENTS;
        let indices = vec![slot_of(number) * i64::from(lanes)];
        Access { buffer: self.answer.clone(), indices, lanes }
    }

    fn await_empty(&self, number: &Index) -> Op {
        let phase = number.floor_div(&Index::int(SLOTS)) + -1;
        Op::from(Instr::Await(Phase { barrier: self.empty.clone(), slot: slot_of(number), phase }))
    }

    /// At the beginning of an iteration: the claim for what comes behind it.
    fn claim(&self, number: &Index, is_led: bool) -> Vec<Op> {
        let (barrier, slot) = (self.full.clone(), slot_of(number));
        let bytes = Some(Index::int(Claim::BYTES));
        let expect = Arrival {
            barrier: barrier.clone(),
            slot: slot.clone(),
            bytes,
            is_late: false,
            along: vec![],
            at_first: false,
        };
        let claim = Claim { answer: self.answer(number), barrier, slot };
        let ops =
            vec![self.await_empty(number), Op::from(Instr::Arrive(expect)), Op::from(Instr::Claim(claim))];
        if is_led { ops } else { vec![Op::Leader(Participants::Role, ops)] }
    }

    /// At its end: what comes behind it.
    fn take(&self, number: &Index, is_led: bool) -> Vec<Op> {
        let (slot, phase) = (slot_of(number), number.floor_div(&Index::int(SLOTS)));
        let wait = Phase { barrier: self.full.clone(), slot: slot.clone(), phase };
        let (barrier, along) = (self.empty.clone(), self.along.clone());
        let freed = Arrival { barrier, slot, bytes: None, is_late: false, along, at_first: false };
        let freed = Op::from(Instr::Arrive(freed));
        let mut out = vec![
            Op::from(Instr::Await(wait)),
            Op::from(Instr::Take(Take { answer: self.answer(number) })),
            // The GPU writes there again by another way than threads read.
            Op::from(Instr::Fence(Fence::Async)),
        ];
        if is_led {
            out.push(freed);
        } else {
            out.push(Op::from(Instr::Barrier(Barrier { among: Participants::Warp, proof: vec![] })));
            out.push(Op::Leader(Participants::Warp, vec![freed]));
        }
        out
    }

    /// Behind the loop of those who claim: a block must not end while others still arrive in its shared memory. Pairs of blocks that multiply together
    /// meet anyway, when they give tensor memory back.
    fn drain(&self) -> Vec<Op> {
        let all = Index::var(&self.count);
        let slots = if self.along.is_empty() || self.meets_at_end { 0 } else { SLOTS };
        (0..slots).map(|it| self.await_empty(&(&all + it))).collect()
    }
}

/// Where the answer of a number is.
fn slot_of(number: &Index) -> Index {
    number.floor_mod(&Index::int(SLOTS))
}

/// The first and the last block that something in a list comes from.
fn ends(ops: &[Op]) -> [Origin; 2] {
    let mut blocks = Vec::new();
    for op in ops {
        op.walk(&mut |op| {
            if let Op::Instr(_, origin) = op {
                blocks.extend(origin.block());
            }
        });
    }
    [blocks.first(), blocks.last()].map(|it| it.map_or_else(Origin::default, |it| Origin::of(it)))
}

/// The statement, with what is in it from somewhere.
fn of(op: Op, origin: &Origin) -> Op {
    match op {
        Op::Instr(it, _) => Op::Instr(it, origin.clone()),
        op => op.map_children(&mut |body| body.into_iter().map(|op| of(op, origin)).collect()),
    }
}

fn is_taken(kernel: &Kernel, name: &Name) -> bool {
    let mut taken = kernel.args.contains_key(name)
        || kernel.maps.contains_key(name)
        || kernel.mbarriers.contains_key(name)
        || kernel.claims.as_ref() == Some(name);
    for op in &kernel.body {
        op.walk(&mut |op| match op {
            Op::Alloc(it) => taken |= it.name == *name,
            Op::For(it) => taken |= it.var == *name,
            _ => {}
        });
    }
    taken
}
