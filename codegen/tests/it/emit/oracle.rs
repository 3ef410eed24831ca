//! What a lowered module means: each statement in order, one thread, one element at a time.

use std::collections::BTreeMap;

use ir::{Access, DType, Index, Instr, Less, Module, Name, Op, Target, Value, number};

/// The elements of every buffer, and the values of the variables.
pub(crate) struct Memory {
    pub(crate) buffers: BTreeMap<Name, (DType, Vec<f64>)>,
    vars: BTreeMap<Name, i64>,
    /// Whether lanes must start at a multiple of their number.
    aligned: bool,
}

/// Runs a module on a target that demands alignment, or does not.
pub(crate) fn run_on(
    target: &Target,
    module: &Module,
    dims: &[(&str, i64)],
    fill: &dyn Fn(&Name, usize) -> f64,
) -> Memory {
    let vars: BTreeMap<_, _> = dims.iter().map(|(name, value)| (Name::new(*name), *value)).collect();
    let aligned = matches!(target, Target::Cuda(_));
    let mut memory = Memory { buffers: BTreeMap::new(), vars, aligned };
    memory.module(module, fill);
    memory
}

/// Runs a module. `fill` gives an element of an argument before the run.
pub(crate) fn run(module: &Module, dims: &[(&str, i64)], fill: &dyn Fn(&Name, usize) -> f64) -> Memory {
    run_on(&Target::Cpu, module, dims, fill)
}

impl Memory {
    fn module(&mut self, module: &Module, fill: &dyn Fn(&Name, usize) -> f64) {
        for (name, arg) in &module.args {
            let len = usize::try_from(self.index(&arg.elements())).unwrap();
            let values = (0..len).map(|at| number::round(arg.dtype, fill(name, at))).collect();
            self.buffers.insert(name.clone(), (arg.dtype, values));
        }
        for kernel in &module.kernels {
            self.ops(&kernel.body);
        }
    }

    fn ops(&mut self, ops: &[Op]) {
        for op in ops {
            match op {
                Op::Alloc(it) => {
                    let undefined = vec![f64::NAN; usize::try_from(it.elements()).unwrap()];
                    self.buffers.insert(it.name.clone(), (it.dtype, undefined));
                }
                Op::For(it) => {
                    for at in 0..self.index(&it.extent) {
                        self.vars.insert(it.var.clone(), at);
                        self.ops(&it.body);
                    }
                }
                Op::If(cond, body) => {
                    if cond.iter().all(|it| self.holds(it)) {
                        self.ops(body);
                    }
                }
                Op::Instr(Instr::Store(place, value) | Instr::AsyncCopy(place, value), _) => {
                    let values: Vec<_> = (0..place.lanes).map(|lane| self.value(value, lane).1).collect();
                    let at = self.offset(place);
                    let buffer = &mut self.buffers.get_mut(&place.buffer).unwrap().1;
                    buffer[at..at + values.len()].copy_from_slice(&values);
                }
                Op::Leader(_, body) | Op::Role(_, body) => self.ops(body),
                Op::Instr(it, _) => {
                    assert!(it.effects().accesses.is_empty(), "one thread runs these programs");
                }
            }
        }
    }

    fn index(&self, index: &Index) -> i64 {
        index.eval(&|name| self.vars.get(name).copied()).unwrap()
    }

    fn holds(&self, less: &Less) -> bool {
        self.index(&less.lhs) < self.index(&less.rhs)
    }

    fn offset(&self, access: &Access) -> usize {
        let at = usize::try_from(self.index(&access.indices[0])).unwrap();
        assert!(!self.aligned || at.is_multiple_of(access.lanes as usize), "{access:?} at {at}");
        at
    }

    fn value(&self, value: &Value, lane: u32) -> (DType, f64) {
        match value {
            Value::Const(it) => (it.dtype, number::round(it.dtype, it.to_f64())),
            Value::Load(access) => {
                let (dtype, values) = &self.buffers[&access.buffer];
                let lane = if access.lanes == 1 { 0 } else { lane as usize };
                (*dtype, values[self.offset(access) + lane])
            }
            Value::Index(dtype, index) => {
                (*dtype, number::cast(DType::I64, *dtype, self.index(index) as f64))
            }
            Value::Cast(to, a) => {
                let (from, a) = self.value(a, lane);
                (*to, number::cast(from, *to, a))
            }
            Value::Unary(op, a) => {
                let (dtype, a) = self.value(a, lane);
                (dtype, number::unary(*op, dtype, a))
            }
            Value::Binary(op, a, b) => {
                let ((dtype, a), (_, b)) = (self.value(a, lane), self.value(b, lane));
                (op.result(dtype), number::binary(*op, dtype, a, b).unwrap())
            }
            Value::Where(cond, a, b) => self.value(if self.value(cond, lane).1 == 0.0 { b } else { a }, lane),
            Value::Select(cond, a, b) => {
                self.value(if cond.iter().all(|it| self.holds(it)) { a } else { b }, lane)
            }
        }
    }
}
