//! A small virtual GPU: runs the lowered form on the host, the threads of a block in a hostile order.
//!
//! Between two barriers each thread runs to the next barrier before another one starts, in an order shuffled anew
//! each time. A missing barrier therefore shows as a wrong or unwritten number for some seed. Statements with
//! barriers inside must be uniform over the block, which is asserted.

use std::{collections::HashMap, sync::Arc};

use indexmap::IndexMap;
use ir::{
    DType, For, Index, Kernel, Less, Literal, Module, Name, Op, Scope, ThreadAxis, Value, axis_var, number,
};
use tilewright_codegen::shared_layout;

type Memory = HashMap<Name, Vec<f64>>;
type Vars = HashMap<Name, i64>;

/// Runs a module on its global buffers, inputs filled, the rest unwritten.
pub(crate) fn run(module: &Module, dims: &IndexMap<Name, i64>, global: &mut Memory, seed: u64) {
    for kernel in &module.kernels {
        let mut types: HashMap<Name, DType> = module.args.iter().map(|(a, b)| (a.clone(), b.dtype)).collect();
        kernel.body.iter().for_each(|op| {
            op.walk(&mut |op| {
                if let Op::Alloc(it) = op {
                    types.insert(it.name.clone(), it.dtype);
                }
            });
        });
        for block in points(kernel, dims, |axis| !axis.is_thread()) {
            let threads = points(kernel, dims, ThreadAxis::is_thread).into_iter().map(|mut vars| {
                vars.extend(block.iter().map(|(a, b)| (a.clone(), *b)));
                Thread { vars, local: Memory::new() }
            });
            let places = shared_layout(kernel).0;
            let (threads, shared) = (threads.collect(), Memory::new());
            let mut team = Team { threads, shared, places, global, types: &types, seed };
            team.list(&kernel.body);
        }
    }
}

fn points(kernel: &Kernel, dims: &IndexMap<Name, i64>, wanted: impl Fn(ThreadAxis) -> bool) -> Vec<Vars> {
    let mut out: Vec<Vars> = vec![dims.iter().map(|(a, b)| (a.clone(), *b)).collect()];
    for (&axis, extent) in kernel.launch.iter().filter(|it| wanted(*it.0)) {
        let extent = extent.eval(&|name| dims.get(name).copied()).unwrap();
        let each = out.into_iter().flat_map(|vars| {
            (0..extent).map(move |n| {
                let mut vars = vars.clone();
                vars.insert(axis_var(axis), n);
                vars
            })
        });
        out = each.collect();
    }
    out
}

struct Thread {
    vars: Vars,
    local: Memory,
}

struct Team<'a> {
    threads: Vec<Thread>,
    shared: Memory,
    /// Where each shared buffer starts, in bytes.
    places: IndexMap<Name, i64>,
    global: &'a mut Memory,
    types: &'a HashMap<Name, DType>,
    seed: u64,
}

fn meets(op: &Op) -> bool {
    let mut found = false;
    op.walk(&mut |op| found |= matches!(op, Op::Barrier));
    found
}

fn eval(index: &Index, vars: &Vars) -> i64 {
    index.eval(&|name| vars.get(name).copied()).unwrap()
}

fn holds(cond: &[Less], vars: &Vars) -> bool {
    cond.iter().all(|it| eval(&it.lhs, vars) < eval(&it.rhs, vars))
}

impl Team<'_> {
    /// Runs a list: up to each barrier thread by thread, statements with barriers inside all together.
    fn list(&mut self, ops: &[Op]) {
        let mut rest = ops;
        while !rest.is_empty() {
            let alone = rest.iter().take_while(|op| !meets(op)).count();
            for at in self.order() {
                for op in &rest[..alone] {
                    self.op(op, at);
                }
            }
            let Some(op) = rest.get(alone) else { return };
            self.together(op);
            rest = &rest[alone + 1..];
        }
    }

    fn together(&mut self, op: &Op) {
        match op {
            Op::For(it) => {
                let extents: Vec<_> =
                    self.threads.iter().map(|thread| eval(&it.extent, &thread.vars)).collect();
                assert!(
                    extents.windows(2).all(|it| it[0] == it[1]),
                    "a barrier in a divergent loop `{}`",
                    it.var
                );
                for n in 0..extents[0] {
                    for thread in &mut self.threads {
                        thread.vars.insert(it.var.clone(), n);
                    }
                    self.list(&it.body);
                }
            }
            Op::If(cond, body) => {
                let holds: Vec<_> = self.threads.iter().map(|thread| holds(cond, &thread.vars)).collect();
                assert!(holds.windows(2).all(|it| it[0] == it[1]), "a barrier under a divergent condition");
                if holds[0] {
                    self.list(body);
                }
            }
            Op::Barrier => {}
            Op::Alloc(_) | Op::Store(..) | Op::Copy(..) | Op::Commit | Op::Wait(_) | Op::Comment(_) => {
                unreachable!("no barrier is inside")
            }
        }
    }

    fn op(&mut self, op: &Op, at: usize) {
        match op {
            Op::Alloc(it) => {
                let unwritten = vec![f64::NAN; usize::try_from(it.len).unwrap()];
                if it.scope == Scope::Shared {
                    self.shared.entry(it.name.clone()).or_insert(unwritten);
                } else {
                    self.threads[at].local.insert(it.name.clone(), unwritten);
                }
            }
            Op::For(it) => {
                for n in 0..eval(&it.extent, &self.threads[at].vars) {
                    self.threads[at].vars.insert(it.var.clone(), n);
                    it.body.iter().for_each(|op| self.op(op, at));
                }
            }
            Op::If(cond, body) => {
                if holds(cond, &self.threads[at].vars) {
                    for op in body {
                        self.op(op, at);
                    }
                }
            }
            Op::Store(place, value) | Op::Copy(place, value) => {
                let start = eval(&place.indices[0], &self.threads[at].vars);
                let values: Vec<_> = (0..place.lanes).map(|lane| self.value(value, at, lane).1).collect();
                let dtype = self.types[&place.buffer];
                for (n, value) in values.into_iter().enumerate() {
                    let offset = usize::try_from(start).unwrap() + n;
                    self.overwrite(&place.buffer, offset);
                    self.memory(&place.buffer, at)[offset] = number::round(dtype, value);
                }
            }
            Op::Commit | Op::Wait(_) | Op::Barrier | Op::Comment(_) => {}
        }
    }

    fn memory(&mut self, name: &Name, at: usize) -> &mut Vec<f64> {
        let local = &mut self.threads[at].local;
        if local.contains_key(name) {
            return local.get_mut(name).unwrap();
        }
        self.shared.get_mut(name).or_else(|| self.global.get_mut(name)).unwrap()
    }

    /// Forgets what other buffers have in the bytes of an element that is about to be written.
    fn overwrite(&mut self, name: &Name, offset: usize) {
        let Some(start) = self.places.get(name).copied() else { return };
        let bytes = |name: &Name| self.types[name].bytes();
        let first = usize::try_from(start).unwrap() + offset * bytes(name);
        let last = first + bytes(name) - 1;
        for (other, data) in self.shared.iter_mut().filter(|it| it.0 != name) {
            let (start, bytes) = (usize::try_from(self.places[other]).unwrap(), bytes(other));
            if last < start {
                continue;
            }
            let hit = (first.max(start) - start) / bytes..=(last - start) / bytes;
            hit.for_each(|at| {
                data.get_mut(at).into_iter().for_each(|it| *it = f64::NAN);
            });
        }
    }

    fn value(&mut self, value: &Value, at: usize, lane: u32) -> (DType, f64) {
        match value {
            Value::Const(it) => (it.dtype, Literal::to_f64(*it)),
            Value::Index(dtype, index) => {
                (*dtype, number::round(*dtype, eval(index, &self.threads[at].vars) as f64))
            }
            Value::Load(it) => {
                let lane = i64::from(if it.lanes > 1 { lane } else { 0 });
                let offset = usize::try_from(eval(&it.indices[0], &self.threads[at].vars) + lane).unwrap();
                (self.types[&it.buffer], self.memory(&it.buffer, at)[offset])
            }
            Value::Cast(dtype, a) => {
                let (from, a) = self.value(a, at, lane);
                (*dtype, number::cast(from, *dtype, a))
            }
            Value::Unary(op, a) => {
                let (dtype, a) = self.value(a, at, lane);
                (dtype, number::unary(*op, dtype, a))
            }
            Value::Binary(op, a, b) => {
                let (dtype, a) = self.value(a, at, lane);
                let (_, b) = self.value(b, at, lane);
                (dtype, number::binary(*op, dtype, a, b).unwrap())
            }
            Value::Select(cond, a, b) => {
                let chosen = if holds(cond, &self.threads[at].vars) { a } else { b };
                self.value(chosen, at, lane)
            }
        }
    }

    /// The threads in an order of their own for each run to a barrier.
    fn order(&mut self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.threads.len()).collect();
        for n in (1..order.len()).rev() {
            self.seed =
                self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let other = usize::try_from(self.seed >> 33).unwrap() % (n + 1);
            order.swap(n, other);
        }
        order
    }
}

/// The statements without their barriers, to see that those are needed.
pub(crate) fn without_barriers(ops: &[Op]) -> Vec<Op> {
    let kept = ops.iter().filter(|op| !matches!(op, Op::Barrier));
    let kept = kept.map(|op| match op {
        Op::For(it) => Op::For(Arc::new(For { body: without_barriers(&it.body), ..For::clone(it) })),
        Op::If(cond, body) => Op::If(cond.clone(), without_barriers(body)),
        Op::Alloc(_)
        | Op::Store(..)
        | Op::Copy(..)
        | Op::Commit
        | Op::Wait(_)
        | Op::Barrier
        | Op::Comment(_) => op.clone(),
    });
    kept.collect()
}
