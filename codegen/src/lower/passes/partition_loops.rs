//! Splits loops where a mask or a ragged end begins to matter.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ir::{
    Fence, For, ForKind, Index, Instr, Less, Module, Name, Op, Target, ThreadAxis, Value, arith::Bounds,
    axis_var,
};

use crate::lower::analysis::{bounds::kernel_bounds, locals::locals, names};

/// The least elements of a thread for whose conditions a loop is worth writing twice, and the least iterations.
const MIN_ELEMENTS: i64 = 8;
const MIN_ITERATIONS: i64 = 4;

/// On a GPU, makes two loops of an innermost one in which elements in registers have conditions that hold up to some iteration: one without the conditions, one
/// with them.
///
/// ```text
/// for k in 0..n
///   for j in 0..64 @unrolled
///     P[j] = select(k*64 + j + threadIdx_x < m, S[j], 0)
/// ->
/// for k in 0..min(n, ceildiv(m - 94, 64))
///   for j in 0..64 @unrolled
///     P[j] = S[j]
/// for k_rest in 0..n - min(n, ceildiv(m - 94, 64))
///   …
/// ```
///
/// A mask or a ragged end concerns few iterations, and the others should not pay for it. This is TVM's `LoopPartition`; the iteration is the first in
/// which the condition fails for the greatest values that variables inside and threads can have. Branches inside would say the same, but the compiler
/// does not let products of warpgroups run across them, nor through loops that it does not see to run as often for all threads.
pub(crate) fn partition_loops(mut module: Module, target: &Target) -> Module {
    if *target == Target::Cpu {
        return module;
    }
    for at in 0..module.kernels.len() {
        let kernel = &module.kernels[at];
        let mut partition = Partition {
            bounds: kernel_bounds(&module, kernel),
            locals: locals(&kernel.body),
            taken: names::taken(&module.dims, &kernel.body),
        };
        let body = std::mem::take(&mut module.kernels[at].body);
        module.kernels[at].body = partition.ops(body);
    }
    module
}

struct Partition {
    bounds: Bounds,
    locals: BTreeSet<Name>,
    taken: BTreeSet<Name>,
}

impl Partition {
    fn ops(&mut self, ops: Vec<Op>) -> Vec<Op> {
        ops.into_iter().flat_map(|op| self.op(op)).collect()
    }

    fn op(&mut self, op: Op) -> Vec<Op> {
        let Op::For(it) = &op else {
            return vec![op.map_children(&mut |body| self.ops(body))];
        };
        let (var, kind, outside) = (it.var.clone(), it.kind, self.bounds.clone());
        self.bounds.insert(&var, &it.extent);
        let op = op.map_children(&mut |body| self.ops(body));
        let Op::For(it) = op else { return vec![op] };
        let is_long = it.extent.as_int().is_none_or(|it| it >= MIN_ITERATIONS);
        let is_asked = kind == ForKind::Serial && is_long && is_innermost(&it);
        let conditions = if is_asked { self.conditions(&it) } else { BTreeMap::new() };
        self.bounds = outside;
        self.parts(Arc::unwrap_or_clone(it), &conditions)
    }

    /// The conditions of elements in registers that hold in the first iterations of a loop, with the number of these.
    fn conditions(&self, it: &For) -> BTreeMap<Less, Index> {
        let threads = ThreadAxis::ALL.into_iter().filter(|it| it.is_thread()).map(axis_var);
        let mut asked = Asked { locals: &self.locals, inner: threads.collect(), conditions: BTreeMap::new() };
        let mut bounds = self.bounds.clone();
        let mut is_ambiguous = false;
        for op in &it.body {
            op.walk(&mut |op| {
                if let Op::For(it) = op {
                    let is_second = !asked.inner.insert(it.var.clone());
                    is_ambiguous |= is_second && bounds.extent(&it.var) != Some(&it.extent);
                    bounds.insert(&it.var, &it.extent);
                }
            });
        }
        // Of two loops of a name, a condition does not say which it is about.
        if is_ambiguous {
            return BTreeMap::new();
        }
        it.body.iter().for_each(|op| asked.op(op, 1));
        let often = asked.conditions.iter().filter(|(_, elements)| **elements >= MIN_ELEMENTS);
        often
            .filter_map(|(less, _)| Some((less.clone(), holding(less, it, &bounds, &asked.inner)?)))
            .collect()
    }

    /// The loop in two parts, if there are conditions that the first does not need.
    fn parts(&mut self, it: For, conditions: &BTreeMap<Less, Index>) -> Vec<Op> {
        let least = conditions.values().cloned().reduce(|a, b| a.minimum(&b));
        let Some(least) = least else { return vec![Op::For(Arc::new(it))] };
        let first = least.minimum(&it.extent).maximum(&Index::int(0));
        let first = self.bounds.simplify(&first);
        if self.bounds.prove(&Less::new(&first * 2, it.extent.clone())) == Some(true) {
            return vec![Op::For(Arc::new(it))];
        }
        let var = Name::fresh(&format!("{}_rest", it.var), |name| self.taken.contains(name));
        self.taken.insert(var.clone());
        let later = &Index::var(&var) + &first;
        let from = |name: &Name| (*name == it.var).then(|| later.clone());
        let rest = For {
            body: it.body.iter().map(|op| op.subst(&from)).collect(),
            extent: self.bounds.simplify(&(&it.extent - &first)),
            var,
            ..it.clone()
        };
        let between = fence_between(&it.body);
        let body =
            it.body.into_iter().flat_map(|op| without(op, &|it| conditions.contains_key(it))).collect();
        let first = Op::For(Arc::new(For { body, extent: first, ..it }));
        [first].into_iter().chain(between).chain([Op::For(Arc::new(rest))]).collect()
    }
}

/// Whether all loops inside are written out.
fn is_innermost(it: &For) -> bool {
    let mut found = true;
    for op in &it.body {
        op.walk(&mut |op| found &= !matches!(op, Op::For(it) if it.kind == ForKind::Serial));
    }
    found
}

/// What stands between two loops that both start products of warpgroups: the compiler may move the registers that go from one to the other, and lets no product run
/// beside others where it has to put in the fence for that itself.
fn fence_between(body: &[Op]) -> Option<Op> {
    let mut product = None;
    for op in body {
        op.walk(&mut |op| {
            if let Op::Instr(Instr::Wgmma(_), origin) = op {
                product.get_or_insert(origin);
            }
        });
    }
    product.map(|origin| Op::Instr(Instr::Fence(Fence::Wgmma), origin.clone()))
}

/// In how many iterations of a loop, the first ones, a condition holds for all inner variables. None where it does not depend on these, or
/// not on the loop in that way.
fn holding(less: &Less, it: &For, bounds: &Bounds, inner: &BTreeSet<Name>) -> Option<Index> {
    let difference = &less.lhs - &less.rhs;
    let (outer, of_inner) = bounds.split(&difference, &|name| inner.contains(name));
    let greatest = bounds.interval(&of_inner).1.filter(|_| !of_inner.vars().is_empty())?;
    let (step, rest) = bounds.linear_in(&(outer + greatest), &it.var).filter(|it| it.0 > 0)?;
    let count = bounds.simplify(&(rest * -1).ceil_div(&Index::int(step)));
    let some_hold = bounds.prove(&Less::new(count.clone(), Index::int(1))) != Some(true);
    some_hold.then_some(count)
}

/// The conditions on what is assigned to registers.
struct Asked<'a> {
    locals: &'a BTreeSet<Name>,
    /// The variables inside, and those of threads.
    inner: BTreeSet<Name>,
    /// For how many elements of a thread each is asked in an iteration.
    conditions: BTreeMap<Less, i64>,
}

impl Asked<'_> {
    fn op(&mut self, op: &Op, times: i64) {
        match op {
            Op::For(it) => {
                let times = times.saturating_mul(it.extent.as_int().unwrap_or(1));
                it.body.iter().for_each(|op| self.op(op, times));
            }
            Op::If(cond, body) => {
                if body.iter().all(|it| self.is_assignment(it)) {
                    for it in cond {
                        self.add(it, times);
                    }
                }
                for op in body {
                    self.op(op, times);
                }
            }
            Op::Leader(_, body) | Op::Role(_, body) => body.iter().for_each(|op| self.op(op, times)),
            Op::Instr(Instr::Store(_, value), _) if self.is_assignment(op) => {
                value.each_condition(&mut |it| self.add(it, times));
            }
            Op::Instr(..) | Op::Alloc(_) => {}
        }
    }

    fn add(&mut self, it: &Less, times: i64) {
        let known = self.conditions.entry(it.clone()).or_insert(0);
        *known = known.saturating_add(times);
    }

    fn is_assignment(&self, op: &Op) -> bool {
        matches!(op, Op::Instr(Instr::Store(place, _), _) if self.locals.contains(&place.buffer))
    }
}

/// The statement without conditions that hold.
fn without(op: Op, holds: &dyn Fn(&Less) -> bool) -> Vec<Op> {
    let all = |body: Vec<Op>| body.into_iter().flat_map(|it| without(it, holds)).collect::<Vec<_>>();
    match op {
        Op::If(cond, body) => match left(&cond, holds) {
            cond if cond.is_empty() => all(body),
            cond => vec![Op::If(cond, all(body))],
        },
        Op::Instr(it, origin) => {
            let chosen = |value: &Value| value.where_holds(&|it, _| holds(it));
            let assigned = it.assignment().map(|(place, value)| (place.clone(), chosen(value)));
            let it = assigned.map_or_else(|| it.clone(), |(place, value)| it.with_assignment(place, value));
            vec![Op::Instr(it, origin)]
        }
        op => vec![op.map_children(&mut |body| all(body))],
    }
}

fn left(cond: &[Less], holds: &dyn Fn(&Less) -> bool) -> Vec<Less> {
    cond.iter().filter(|it| !holds(it)).cloned().collect()
}
