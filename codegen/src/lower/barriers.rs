//! Puts barriers where threads of a block exchange data.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use ir::{
    Access, Buffer, For, ForKind, Index, Kernel, Less, Module, Name, Op, Scope, arith::Bounds, axis_var,
};

use super::{
    Context, LowerError,
    merge_shared::aliases,
    separate::Pair,
    touch::{Touch, Walk},
};

/// ```text
/// A_shared[threadIdx_x] = A[threadIdx_x]            A_shared[threadIdx_x] = A[threadIdx_x]
/// B[threadIdx_x] = A_shared[31 - threadIdx_x]  ->   barrier
///                                                   B[threadIdx_x] = A_shared[31 - threadIdx_x]
/// ```
///
/// Two accesses need a barrier between them when one writes, both are to one shared or global buffer, and they may
/// meet in an element from different threads: RAW, WAR and WAW, also from one iteration of a loop to the next. Buffers
/// that share bytes are as good as one. A
/// barrier stands in the innermost list that holds both, and never where only some threads come by: a condition on
/// threads is moved below the loops and around the statements first.
pub(crate) fn insert_barriers(mut module: Module, context: &mut Context) -> Result<Module, LowerError> {
    for kernel in &mut module.kernels {
        let threads: Vec<_> = threads(kernel);
        if threads.iter().map(|it| it.1).product::<i64>() <= 1 {
            continue;
        }
        let (walk, aliases) = (Walk::new(&module.dims, kernel), aliases(kernel));
        let inserter = Inserter { walk, threads, buffers: &context.buffers, aliases };
        let body = std::mem::take(&mut kernel.body);
        kernel.body = inserter.list(body, &[])?.ops;
    }
    Ok(module)
}

/// The thread axes and how many threads they have.
fn threads(kernel: &Kernel) -> Vec<(Name, i64)> {
    let axes = kernel.launch.iter().filter(|(axis, _)| axis.is_thread());
    axes.map(|(&axis, extent)| (axis_var(axis), extent.as_int().unwrap_or(i64::MAX))).collect()
}

struct Inserter<'a> {
    walk: Walk,
    threads: Vec<(Name, i64)>,
    buffers: &'a IndexMap<Name, Buffer>,
    /// The pairs of buffers that share bytes.
    aliases: BTreeSet<(Name, Name)>,
}

/// A list of statements with its barriers.
struct List {
    ops: Vec<Op>,
    flow: Flow,
}

/// What a statement does to barriers before and after it.
#[derive(Clone, Default)]
struct Flow {
    /// The touches before its first barrier.
    before: Vec<Touch>,
    /// The touches after its last barrier.
    after: Vec<Touch>,
    /// Whether all threads surely meet in it.
    meets: bool,
}

impl Flow {
    /// This, then that.
    fn then(&mut self, next: Flow) {
        if !self.meets {
            self.before.extend(next.before);
        }
        if next.meets {
            self.after.clear();
        }
        self.after.extend(next.after);
        self.meets |= next.meets;
    }

    fn barrier() -> Flow {
        Flow { meets: true, ..Flow::default() }
    }
}

impl Inserter<'_> {
    /// Puts barriers into a list under the given loops, and between its statements.
    fn list(&self, ops: Vec<Op>, around: &[Op]) -> Result<List, LowerError> {
        let mut out = List { ops: Vec::new(), flow: Flow::default() };
        let mut rest: Vec<Op> = ops.into_iter().rev().collect();
        while let Some(op) = rest.pop() {
            let Some((op, flow)) = self.op(op.clone(), around)? else {
                rest.extend(divided(op).into_iter().rev());
                continue;
            };
            if self.meet(&out.flow.after, &flow.before, around, None) {
                out.ops.push(Op::Barrier);
                out.flow.then(Flow::barrier());
            }
            out.flow.then(flow);
            out.ops.push(op);
        }
        Ok(out)
    }

    /// Puts barriers into a statement. `None` if some would stand where not all threads come by.
    fn op(&self, op: Op, around: &[Op]) -> Result<Option<(Op, Flow)>, LowerError> {
        match op {
            Op::Alloc(_) | Op::Commit | Op::Wait(_) | Op::Comment(_) => Ok(Some((op, Flow::default()))),
            Op::Barrier => Ok(Some((op, Flow::barrier()))),
            Op::Store(..) | Op::Copy(..) => {
                let flow = self.store(&op, around);
                Ok(Some((op, flow)))
            }
            Op::If(cond, body) => {
                let around: Vec<_> = around.iter().cloned().chain([Op::If(cond.clone(), vec![])]).collect();
                let List { ops, mut flow } = self.list(body, &around)?;
                if has_barrier(&ops)
                    && cond.iter().any(|it| self.is_divergent(&it.lhs) || self.is_divergent(&it.rhs))
                {
                    return Ok(None);
                }
                flow.meets = false;
                Ok(Some((Op::If(cond, ops), flow)))
            }
            Op::For(it) => self.for_loop(&it, around).map(Some),
        }
    }

    fn for_loop(&self, it: &Arc<For>, around: &[Op]) -> Result<(Op, Flow), LowerError> {
        let head = Op::For(Arc::new(For { body: vec![], ..For::clone(it) }));
        let inside: Vec<_> = around.iter().cloned().chain([head]).collect();
        let List { mut ops, mut flow } = self.list(it.body.clone(), &inside)?;
        let carried = Some((&it.var, flow.meets));
        if it.extent.as_int() != Some(1) && self.meet(&flow.after, &flow.before, &inside, carried) {
            let at = self.first_met(&ops, &flow, &inside, carried);
            ops.insert(at, Op::Barrier);
            flow = self.flow(&ops, &inside);
        }
        let barriers = has_barrier(&ops);
        if barriers && self.is_divergent(&it.extent) {
            let buffer = flow.after.first().map_or_else(|| it.var.clone(), |it| it.buffer.clone());
            return Err(LowerError::DivergentLoop { var: it.var.clone(), buffer });
        }
        flow.meets = flow.meets && self.surely_runs(it, &inside);
        let kind = if barriers && it.kind == ForKind::Vectorized { ForKind::Serial } else { it.kind };
        Ok((Op::For(Arc::new(For { kind, body: ops, ..For::clone(it) })), flow))
    }

    /// What statements do that have all the barriers they need.
    fn flow(&self, ops: &[Op], around: &[Op]) -> Flow {
        let mut out = Flow::default();
        for op in ops {
            out.then(match op {
                Op::Alloc(_) | Op::Commit | Op::Wait(_) | Op::Comment(_) => Flow::default(),
                Op::Barrier => Flow::barrier(),
                Op::Store(..) | Op::Copy(..) => self.store(op, around),
                Op::If(cond, body) => {
                    let inside = [around, &[Op::If(cond.clone(), vec![])]].concat();
                    Flow { meets: false, ..self.flow(body, &inside) }
                }
                Op::For(it) => {
                    let inside =
                        [around, &[Op::For(Arc::new(For { body: vec![], ..For::clone(it) }))]].concat();
                    let flow = self.flow(&it.body, &inside);
                    Flow { meets: flow.meets && self.surely_runs(it, &inside), ..flow }
                }
            });
        }
        out
    }

    fn store(&self, op: &Op, around: &[Op]) -> Flow {
        let touches = self.walk.touches(op, around, self.buffers);
        Flow { before: touches.clone(), after: touches, meets: false }
    }

    fn surely_runs(&self, it: &For, inside: &[Op]) -> bool {
        self.walk.bounds(inside).interval(&it.extent).0.is_some_and(|least| least > 0)
    }

    /// The first statement of a loop's body that meets the end of the iteration before.
    fn first_met(&self, ops: &[Op], flow: &Flow, inside: &[Op], carried: Option<(&Name, bool)>) -> usize {
        let before = |op: &Op| match self.op(op.clone(), inside) {
            Ok(Some((_, flow))) => flow.before,
            Ok(None) | Err(_) => flow.before.clone(),
        };
        ops.iter().position(|op| self.meet(&flow.after, &before(op), inside, carried)).unwrap_or(0)
    }

    fn is_divergent(&self, index: &Index) -> bool {
        index.any_var(&|name| self.threads.iter().any(|it| it.0 == *name))
    }

    /// Whether a barrier is needed between touches: in one iteration of the loops around, or, where a loop carries
    /// them, from its iteration to the next (`true`: each iteration has a barrier) or any later one.
    fn meet(&self, first: &[Touch], then: &[Touch], around: &[Op], carried: Option<(&Name, bool)>) -> bool {
        first.iter().any(|a| then.iter().any(|b| self.conflict(a, b, around, carried)))
    }

    fn conflict(&self, a: &Touch, b: &Touch, around: &[Op], carried: Option<(&Name, bool)>) -> bool {
        let alias = a.buffer != b.buffer && self.aliases.contains(&(a.buffer.clone(), b.buffer.clone()));
        if (a.buffer != b.buffer && !alias) || !(a.write || b.write) {
            return false;
        }
        let alone = |axis: &Name| matches!((a.only(axis), b.only(axis)), (Some(a), Some(b)) if a == b);
        let mut rest = self.threads.iter().filter(|(axis, count)| *count != 1 && !alone(axis)).peekable();
        if rest.peek().is_none() {
            return false;
        }
        // Nothing is known of who touches which byte through buffers of different shapes.
        if alias {
            return true;
        }
        let next = |name: &Name| match carried {
            Some((var, true)) if var == name => Some(Index::var(var) + 1),
            Some(_) | None => None,
        };
        let later: Vec<_> = b.indices.iter().map(|it| it.subst(&next)).collect();
        let loops = |name: &Name| around.iter().any(|op| matches!(op, Op::For(it) if it.var == *name));
        let is_common = |name: &Name| match carried {
            Some((var, false)) if var == name => false,
            Some(_) | None => self.walk.is_uniform(name) || loops(name),
        };
        let bounds = self.pair_bounds(a, b);
        let pair = Pair { a: &a.indices, b: &later, bounds: &bounds, is_common: &is_common };
        if pair.disjoint() {
            return false;
        }
        if carried.is_some_and(|(var, _)| apart(a, b, var, &bounds, &is_common)) {
            return false;
        }
        let separated = pair.separated();
        rest.any(|(axis, _)| !separated.contains(axis))
    }

    /// What is known of the variables of both: of an axis, the wider of the two ranges.
    fn pair_bounds(&self, a: &Touch, b: &Touch) -> Bounds {
        let mut bounds = self.walk.dims();
        for (name, extent) in a.vars.iter().chain(&b.vars) {
            bounds.insert(name, extent);
        }
        for (axis, count) in &self.threads {
            let extent = |it: &Touch| it.limits.get(axis).copied().unwrap_or(*count).min(*count);
            bounds.insert(axis, &Index::int(extent(a).max(extent(b))));
        }
        bounds
    }
}

/// Whether touches in different iterations of a loop never meet, whatever the threads.
fn apart(a: &Touch, b: &Touch, var: &Name, bounds: &Bounds, is_common: &dyn Fn(&Name) -> bool) -> bool {
    let is_common = |name: &Name| name != var && is_common(name);
    let pair = Pair { a: &a.indices, b: &b.indices, bounds, is_common: &is_common };
    pair.separated().contains(var)
}

fn has_barrier(ops: &[Op]) -> bool {
    let mut found = false;
    for op in ops {
        op.walk(&mut |op| found |= matches!(op, Op::Barrier));
    }
    found
}

/// A condition around several statements as conditions around each, below loops: barriers fit in between.
fn divided(op: Op) -> Vec<Op> {
    match op {
        Op::If(cond, body) => body.into_iter().map(|op| under(&cond, op)).collect(),
        other @ (Op::Alloc(_)
        | Op::For(_)
        | Op::Store(..)
        | Op::Copy(..)
        | Op::Commit
        | Op::Wait(_)
        | Op::Barrier
        | Op::Comment(_)) => vec![other],
    }
}

fn under(cond: &[Less], op: Op) -> Op {
    match op {
        Op::For(it) => {
            let body = it.body.iter().map(|op| under(cond, op.clone())).collect();
            Op::For(Arc::new(For { body, ..For::clone(&it) }))
        }
        Op::If(inner, body) => {
            let all = cond.iter().chain(inner.iter().filter(|it| !cond.contains(it))).cloned().collect();
            Op::If(all, body)
        }
        Op::Store(..) | Op::Copy(..) => Op::If(cond.to_vec(), vec![op]),
        Op::Alloc(_) | Op::Commit | Op::Wait(_) | Op::Barrier | Op::Comment(_) => op,
    }
}

/// The scope of a buffer that a kernel touches.
pub(crate) fn scope_of(buffers: &IndexMap<Name, Buffer>, access: &Access) -> Scope {
    buffers.get(&access.buffer).map_or(Scope::Global, |it| it.scope)
}

/// Limits that conditions put on axes.
pub(crate) type Limits = BTreeMap<Name, i64>;
