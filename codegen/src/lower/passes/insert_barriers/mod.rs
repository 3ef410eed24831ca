//! Puts barriers where threads of a block exchange data.

mod cluster;
mod fences;
mod flow;
pub(crate) mod interval_hitting;
pub(crate) mod placement;

use std::{cell::Cell, sync::Arc};

use indexmap::IndexMap;
use ir::{
    Arg, Completion, For, ForKind, Group, Index, Instr, Kernel, Less, Module, Name, Op, Participants,
    SyncKind, ThreadAxis, axis_var, intrin,
};

use crate::launch::shared_layout;
use crate::lower::{
    LowerError,
    analysis::{
        async_completion::completions,
        dependence::{Dependence, Dependences},
        kernel_accesses::{KernelAccess, KernelFacts},
    },
    passes::{
        insert_barriers::{
            flow::{Flow, Item},
            placement::BarrierPlacement,
        },
        merge_shared::aliases,
    },
};

/// ```text
/// A_shared[threadIdx_x] = A[threadIdx_x]            A_shared[threadIdx_x] = A[threadIdx_x]
/// B[threadIdx_x] = A_shared[31 - threadIdx_x]  ->   barrier "A_shared: written before, read after (thread 0 writes [0], …)"
///                                                   B[threadIdx_x] = A_shared[31 - threadIdx_x]
/// ```
///
/// Two accesses need a barrier between them when one writes, both are to one shared or global buffer, and they meet
/// in an element from different threads: RAW, WAR and WAW, also from one iteration of a loop to the next. Buffers
/// that share bytes are compared byte by byte. Whether they meet is decided exactly, with all conditions around them; a
/// barrier names the dependences that it is there for.
///
/// In a list of statements, and around the body of a loop, there are as few barriers as can be. Barriers stand in
/// the innermost list that holds both accesses, and never where only some threads come by: a condition on threads is
/// moved below the loops and around the statements first.
///
/// Barriers are of as few threads as can be: dependences between threads of different warps, or warpgroups, are served by barriers of the
/// block, and then those between threads of one that are left by barriers of that, for which no other has to wait. What roles exchange,
/// mbarriers order; each role has barriers of its own in the place of those of the block.
///
/// What blocks of a cluster see as one is ordered first, by barriers of the cluster, which are ones of its blocks, too ([`cluster`]).
pub(crate) fn insert_barriers(mut module: Module) -> Result<Module, LowerError> {
    for kernel in &mut module.kernels {
        let dims: Vec<Name> = module.dims.iter().chain(&kernel.claims).cloned().collect();
        kernel.body = if kernel.roles.is_empty() {
            for team in cluster::team(kernel).into_iter().chain(Team::all(kernel, Participants::Block)) {
                kernel.body = with_barriers(&dims, &module.args, kernel, &team)?;
            }
            std::mem::take(&mut kernel.body)
        } else {
            by_role(&dims, &module.args, kernel)?
        };
        fences::insert(kernel);
    }
    Ok(module)
}

/// Threads that barriers are of.
struct Team {
    among: Participants,
    /// The axes on which threads, or their blocks, differ that shall be ordered.
    apart: Vec<Name>,
    /// The axes on which the threads of a team are the same.
    same: Vec<Name>,
}

impl Team {
    /// The teams of a block or a role with these axes, from many threads to few: all threads, and those of each warpgroup or warp, where
    /// the threads along `threadIdx.x` are one.
    fn all(kernel: &Kernel, whole: Participants) -> Vec<Team> {
        let lanes = axis_var(ThreadAxis::ThreadX);
        let all = threads(kernel);
        let names = |wanted: &dyn Fn(&Name) -> bool| -> Vec<Name> {
            all.iter().map(|it| it.0.clone()).filter(wanted).collect()
        };
        let part = match all.iter().find(|it| it.0 == lanes) {
            Some((_, intrin::WARPGROUP)) => Some(Participants::Warpgroup),
            Some((_, intrin::WARP)) => Some(Participants::Warp),
            _ => None,
        };
        let Some(among) = part.filter(|_| all.len() > 1) else {
            return vec![Team { among: whole, apart: names(&|_| true), same: vec![] }];
        };
        let others = names(&|it| *it != lanes);
        let inner = Team { among, apart: names(&|it| *it == lanes), same: others.clone() };
        vec![Team { among: whole, apart: others, same: vec![] }, inner]
    }
}

/// The statements of a kernel with barriers for some of its threads.
fn with_barriers(
    dims: &[Name],
    args: &IndexMap<Name, Arg>,
    kernel: &Kernel,
    team: &Team,
) -> Result<Vec<Op>, LowerError> {
    let of_cluster = team.among == Participants::Cluster;
    let mut threads = threads(kernel);
    let mut walk = KernelFacts::new(dims, args, kernel);
    if of_cluster {
        threads = cluster::blocks(kernel).into_iter().chain(threads).collect();
        walk.common.retain(|name, _| !team.apart.contains(name));
    }
    if threads.is_empty() {
        return Ok(kernel.body.clone());
    }
    let completions = completions(&walk, &kernel.body);
    let (aliases, offsets) = (aliases(kernel), shared_layout(kernel).0);
    let (apart, same) = (team.apart.clone(), team.same.clone());
    let deps = Dependences { walk, threads, apart, same, aliases, offsets, of_cluster };
    let lives = if of_cluster { cluster::lives(kernel) } else { vec![] };
    let inserter = Inserter { deps, among: team.among, completions, waits: Cell::new(0), lives };
    Ok(inserter.list(kernel.body.clone(), &[], false)?.ops)
}

/// The same for each role by itself: what roles exchange, mbarriers order.
fn by_role(dims: &[Name], args: &IndexMap<Name, Arg>, kernel: &Kernel) -> Result<Vec<Op>, LowerError> {
    let is_role = |op: &Op| matches!(op, Op::Role(..));
    let (bodies, memory): (Vec<Op>, Vec<Op>) = kernel.body.iter().cloned().partition(is_role);
    let mut out = memory.clone();
    for op in bodies {
        let Op::Role(name, body) = op else { continue };
        let mut own = Kernel { body: [memory.clone(), body].concat(), ..kernel.clone() };
        let axes = &kernel.roles[&name].axes;
        own.launch.extend(axes.iter().map(|(axis, extent)| (*axis, Index::int(*extent))));
        if let Some(team) = cluster::team(&own) {
            own.body = with_barriers(dims, args, &own, &team)?;
        }
        for team in Team::all(&own, Participants::Role) {
            own.body = with_barriers(dims, args, &own, &team)?;
        }
        out.push(Op::Role(name, own.body.split_off(memory.len())));
    }
    Ok(out)
}

/// The axes with several threads, and how many.
fn threads(kernel: &Kernel) -> Vec<(Name, i64)> {
    let axes = kernel.launch.iter().filter(|(axis, _)| axis.is_thread());
    // No target has blocks of more threads.
    let count = |extent: &Index| extent.as_int().unwrap_or(1024);
    axes.map(|(&axis, extent)| (axis_var(axis), count(extent))).filter(|it| it.1 > 1).collect()
}

struct Inserter {
    deps: Dependences,
    /// Who meets at the barriers that are put in.
    among: Participants,
    /// For each wait, in program order, the copies that it may be the first to find landed.
    completions: Vec<Vec<KernelAccess>>,
    /// How many waits have been passed.
    waits: Cell<usize>,
    /// What a block has from its beginning to its end, where others touch it.
    lives: Vec<KernelAccess>,
}

/// A list of statements with its barriers.
struct List {
    ops: Vec<Op>,
    flow: Flow,
    /// A dependence that one of the barriers in it is for.
    dependence: Option<Dependence>,
}

impl Inserter {
    /// Puts barriers into a list under the given loops, and between its statements; where it is the body of a loop,
    /// also from one iteration to the next.
    fn list(&self, ops: Vec<Op>, around: &[Op], repeats: bool) -> Result<List, LowerError> {
        let mut items = Vec::new();
        let mut inner = None;
        let mut rest: Vec<Op> = ops.into_iter().rev().collect();
        while let Some(op) = rest.pop() {
            let waits = self.waits.get();
            let Some((item, dependence)) = self.item(&op, around)? else {
                self.waits.set(waits);
                rest.extend(self.divided(op).into_iter().rev());
                continue;
            };
            inner = inner.or(dependence);
            items.push(item);
        }
        let has_lives = around.is_empty() && !self.lives.is_empty();
        if has_lives {
            items = cluster::with_lives(items, &self.lives);
        }
        let placement = BarrierPlacement::best(&self.deps, &items, around, repeats);
        let dependence = inner.or_else(|| placement.dependence().cloned());
        let (mut ops, flow) = placement.carried_out(self.among);
        if has_lives {
            cluster::without_lives(&mut ops);
        }
        Ok(List { ops, flow, dependence })
    }

    /// Puts barriers into a statement. `None` if some would stand where not all threads come by.
    fn item(&self, op: &Op, around: &[Op]) -> Result<Option<(Item, Option<Dependence>)>, LowerError> {
        let flow = match op {
            Op::Alloc(_) => Flow::default(),
            Op::Instr(it, _) => self.instr(it, op, around),
            Op::If(conditions, body) => {
                let inside = [around, &[op.head()]].concat();
                let List { ops, flow, dependence } = self.list(body.clone(), &inside, false)?;
                let is_divergent = |it: &Less| self.is_divergent(&it.lhs) || self.is_divergent(&it.rhs);
                if self.has_barrier(&ops) && conditions.iter().any(is_divergent) {
                    return Ok(None);
                }
                let flow = Flow { meets: false, ..flow };
                return Ok(Some((Item { op: Op::If(conditions.clone(), ops), flow }, dependence)));
            }
            Op::Leader(..) => {
                let inside = [around, &[op.head()]].concat();
                let List { ops, flow, dependence } = self.list(op.children().to_vec(), &inside, false)?;
                if self.has_barrier(&ops) {
                    return Ok(None);
                }
                let flow = Flow { meets: false, ..flow };
                return Ok(Some((
                    Item { op: op.clone().map_children(&mut |_| ops.clone()), flow },
                    dependence,
                )));
            }
            Op::Role(..) => unreachable!("roles are told apart when their threads have been"),
            Op::For(it) => return self.for_loop(it, around).map(Some),
        };
        Ok(Some((Item { op: op.clone(), flow }, None)))
    }

    fn instr(&self, it: &Instr, op: &Op, around: &[Op]) -> Flow {
        let walk = &self.deps.walk;
        let effects = it.effects();
        match effects.sync {
            Some(SyncKind::Barrier) if effects.participants >= self.among => return Flow::barrier(),
            // The copies have happened by now; before, nobody may count on them.
            Some(SyncKind::Wait(_)) => {
                let number = self.waits.replace(self.waits.get() + 1);
                let after = self.completions.get(number).cloned().unwrap_or_default();
                return Flow { after, ..Flow::default() };
            }
            Some(_) | None => {}
        }
        let before = walk.touches(op, around);
        // Whoever waits for a phase finds what it expects; so only the phase before has to be over for all.
        if matches!(effects.sync, Some(SyncKind::Arrive(_))) {
            return Flow { before, ..Flow::default() };
        }
        let is_waited = effects.accesses.iter().any(|it| walk.is_waited_for(&it.access.buffer));
        let is_over = |it: &&KernelAccess| match effects.completion {
            Completion::AtOnce => true,
            // It has read by then.
            Completion::WithGroup(Group::CpAsync) => !it.write || !is_waited,
            Completion::WithGroup(Group::Wgmma | Group::Tcgen05 | Group::Bulk) => !is_waited,
            // Who has waited for the phase finds it, and nobody else touches it.
            Completion::WithPhase => false,
        };
        let after = before.iter().filter(is_over).cloned().collect();
        Flow { before, after, meets: false }
    }

    fn for_loop(&self, it: &Arc<For>, around: &[Op]) -> Result<(Item, Option<Dependence>), LowerError> {
        let inside = [around, &[Op::For(it.clone()).head()]].concat();
        let repeats = it.extent.as_int() != Some(1);
        let List { ops, flow, dependence } = self.list(it.body.clone(), &inside, repeats)?;
        let barriers = self.has_barrier(&ops);
        if barriers && self.is_divergent(&it.extent) {
            let buffer = dependence.map_or_else(|| it.var.clone(), |it| it.buffer);
            return Err(LowerError::DivergentLoop { var: it.var.clone(), buffer });
        }
        let flow = flow.around(it);
        let flow = Flow { meets: flow.meets && self.surely_runs(it, &inside), ..flow };
        let kind = if barriers && it.kind == ForKind::Vectorized { ForKind::Serial } else { it.kind };
        let op = Op::For(Arc::new(For { kind, body: ops, ..For::clone(it) }));
        Ok((Item { op, flow }, dependence))
    }

    fn surely_runs(&self, it: &For, inside: &[Op]) -> bool {
        self.deps.walk.bounds(inside).interval(&it.extent).0.is_some_and(|least| least > 0)
    }

    /// Whether an index differs between threads that meet.
    fn is_divergent(&self, index: &Index) -> bool {
        let differs = |name: &Name| self.deps.threads.iter().any(|it| it.0 == *name);
        index.any_var(&|name| differs(name) && !self.deps.same.contains(name))
    }

    fn has_barrier(&self, ops: &[Op]) -> bool {
        let mut found = false;
        for op in ops {
            op.each_instr(&mut |it| {
                found |= it.sync() == Some(SyncKind::Barrier) && it.participants() >= self.among;
            });
        }
        found
    }

    /// A condition around several statements as conditions around each, below loops: barriers fit in between.
    fn divided(&self, op: Op) -> Vec<Op> {
        match op {
            Op::If(cond, body) => body.into_iter().map(|op| self.under(&cond, op)).collect(),
            other => vec![other],
        }
    }

    fn under(&self, cond: &[Less], op: Op) -> Op {
        match op {
            Op::For(it) => {
                let body = it.body.iter().map(|op| self.under(cond, op.clone())).collect();
                Op::For(Arc::new(For { body, ..For::clone(&it) }))
            }
            Op::If(inner, body) => {
                let all = cond.iter().chain(inner.iter().filter(|it| !cond.contains(it))).cloned().collect();
                Op::If(all, body)
            }
            Op::Alloc(_) => op,
            Op::Leader(..) | Op::Role(..) => Op::If(cond.to_vec(), vec![op]),
            Op::Instr(ref it, _) => {
                let effects = it.effects();
                let is_divergent = |it: &&Less| self.is_divergent(&it.lhs) || self.is_divergent(&it.rhs);
                let conditions: Vec<_> = match effects.participants {
                    // What only orders may be done by all, unless it counts.
                    _ if effects.accesses.is_empty() && !counts(effects.sync) => return op,
                    // All threads of a block take its turn, but not all blocks need have one.
                    Participants::Block | Participants::Cluster => {
                        cond.iter().filter(|it| !is_divergent(it)).cloned().collect()
                    }
                    Participants::Thread
                    | Participants::Warp
                    | Participants::Warpgroup
                    | Participants::Role => cond.to_vec(),
                };
                if conditions.is_empty() { op } else { Op::If(conditions, vec![op]) }
            }
        }
    }
}

/// Whether it matters how often something is done that only orders.
const fn counts(it: Option<SyncKind<'_>>) -> bool {
    matches!(it, Some(SyncKind::Await(_) | SyncKind::Arrive(_) | SyncKind::Turn(_)))
}

#[cfg(test)]
mod tests;
