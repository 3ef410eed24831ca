//! Brings every index of a kernel to the form that is cheapest to compute.

use std::{collections::BTreeMap, sync::Arc};

use ir::{Access, For, Index, Instr, Less, Module, Op, Target, Value};
use ir::{arith::Bounds, arith::cheapest};

use crate::lower::analysis::bounds::kernel_bounds;

/// Rewrites each index and condition under what is known at its place, and drops conditions that always hold.
///
/// ```text
/// for i in 0..32 { if i*4 + 3 < 128 { C[(i*4) floordiv 4] = 0 } }   ->   for i in 0..32 { C[i] = 0 }
/// ```
///
/// Values are left as they are: this is arithmetic on indices only. An asynchronous copy whose conditions never hold becomes a store of what it
/// writes instead.
pub(crate) fn simplify_indices(mut module: Module, _target: &Target) -> Module {
    for at in 0..module.kernels.len() {
        let bounds = kernel_bounds(&module, &module.kernels[at]);
        let body = std::mem::take(&mut module.kernels[at].body);
        module.kernels[at].body = Simplifier { bounds, done: BTreeMap::new() }.ops(body);
    }
    module
}

struct Simplifier {
    bounds: Bounds,
    /// The indices already simplified under what is known at this place.
    done: BTreeMap<Index, Index>,
}

impl Simplifier {
    fn ops(&mut self, ops: Vec<Op>) -> Vec<Op> {
        let mut out: Vec<Op> = Vec::new();
        for op in ops.into_iter().flat_map(|op| self.op(op)) {
            match (out.last_mut(), op) {
                // What stands under the same conditions stands together; no statement changes them.
                (Some(Op::If(known, body)), Op::If(cond, more)) if *known == cond => body.extend(more),
                (_, op) => out.push(op),
            }
        }
        out
    }

    fn op(&mut self, op: Op) -> Vec<Op> {
        match op {
            Op::For(it) => {
                let it = Arc::unwrap_or_clone(it);
                let extent = self.index(&it.extent);
                let outside = self.bounds.clone();
                if outside.extent(&it.var).is_some_and(|known| *known != extent) {
                    self.done.clear(); // Another loop of this name had another range.
                }
                self.bounds.insert(&it.var, &extent);
                let body = self.ops(it.body);
                self.bounds = outside;
                if body.is_empty() { vec![] } else { vec![Op::For(Arc::new(For { extent, body, ..it }))] }
            }
            Op::If(cond, body) => {
                let (outside, done) = (self.bounds.clone(), self.done.clone());
                let cond = self.conditions(&cond);
                let body = cond.as_ref().map_or_else(Vec::new, |_| self.ops(body));
                self.bounds = outside;
                self.done = done;
                match cond {
                    None => vec![],
                    Some(cond) if cond.is_empty() => body,
                    Some(_) if body.is_empty() => vec![],
                    Some(cond) => vec![Op::If(cond, body)],
                }
            }
            Op::Leader(..) | Op::Role(..) => vec![op.map_children(&mut |body| self.ops(body))],
            Op::Instr(it, origin) => vec![Op::Instr(self.instr(&it), origin)],
            Op::Alloc(_) => vec![op],
        }
    }

    fn instr(&mut self, it: &Instr) -> Instr {
        match it.assignment() {
            Some((place, value)) => match (it, self.access(place), self.value(value)) {
                // Its conditions never hold, and no instruction copies from nowhere: the zeros are stored.
                (Instr::AsyncCopy(..), place, value @ Value::Const(_)) => Instr::Store(place, value),
                (_, place, value) => it.with_assignment(place, value),
            },
            None => it.map_indices(&mut |it| self.index(it)),
        }
    }

    /// The conditions that are not proved, each assumed for what follows; `None` where one never holds.
    fn conditions(&mut self, cond: &[Less]) -> Option<Vec<Less>> {
        let mut out = Vec::new();
        for less in cond {
            match self.bounds.prove(less) {
                Some(true) => continue,
                Some(false) => return None,
                None => {}
            }
            let less = self.bounds.simplify_less(less);
            out.push(Less::new(self.index(&less.lhs), self.index(&less.rhs)));
            self.bounds.assume(&less);
            self.done.clear();
        }
        Some(out)
    }

    fn index(&mut self, index: &Index) -> Index {
        if index.as_int().is_some() || index.as_var().is_some() {
            return index.clone();
        }
        if let Some(known) = self.done.get(index) {
            return known.clone();
        }
        let best = cheapest(index, &self.bounds);
        self.done.insert(index.clone(), best.clone());
        best
    }

    fn access(&mut self, access: &Access) -> Access {
        access.map_indices(&mut |it| self.index(it))
    }

    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Const(_) => value.clone(),
            Value::Load(access) => Value::Load(self.access(access)),
            Value::Index(dtype, index) => Value::Index(*dtype, self.index(index)),
            Value::Cast(dtype, a) => Value::Cast(*dtype, Arc::new(self.value(a))),
            Value::Unary(op, a) => Value::Unary(*op, Arc::new(self.value(a))),
            Value::Binary(op, a, b) => Value::binary(*op, self.value(a), self.value(b)),
            Value::Select(cond, a, b) => self.select(cond, a, b),
            Value::Where(cond, a, b) => Value::choice(self.value(cond), self.value(a), self.value(b)),
        }
    }

    fn select(&mut self, cond: &[Less], a: &Value, b: &Value) -> Value {
        let otherwise = self.value(b);
        let (outside, done) = (self.bounds.clone(), self.done.clone());
        let cond = self.conditions(cond);
        let chosen = cond.as_ref().map(|_| self.value(a));
        self.bounds = outside;
        self.done = done;
        match (cond, chosen) {
            (Some(cond), Some(chosen)) if cond.is_empty() => chosen,
            (Some(cond), Some(chosen)) => Value::Select(cond, Arc::new(chosen), Arc::new(otherwise)),
            (None, _) | (_, None) => otherwise,
        }
    }
}
