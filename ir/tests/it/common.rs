//! Random well-formed functions, made from a list of choices.
//!
//! A proptest strategy needs no more than a vector of numbers: where it runs out every choice is the first one,
//! so that shorter vectors and smaller numbers mean smaller programs, and shrinking works by itself.

use std::sync::Arc;

use tilewright_ir::{
    Access, AllocScope, Annotation, Annotations, BinaryOp, Block, BlockAttrs, Buffer, Buffers, DType, Func,
    Index, Iter, IterKind, Layout, Less, Literal, Loop, LoopAttrs, LoopKind, Mbarriers, Name, Number, Role,
    Scope, Stmt, StorageAlign, ThreadAxis, UnaryOp, Value,
};

/// A list of numbers that decide.
pub(crate) struct Choices<'a>(std::slice::Iter<'a, u64>);

/// What may be named where an expression stands.
struct Context<'a> {
    buffers: &'a Buffers,
    /// Variables and their extents.
    vars: Vec<(Name, Index)>,
}

impl<'a> Choices<'a> {
    /// Decides by the given numbers, then by zeros.
    pub(crate) fn new(numbers: &'a [u64]) -> Choices<'a> {
        Choices(numbers.iter())
    }

    fn number(&mut self) -> u64 {
        self.0.next().copied().unwrap_or(0)
    }

    fn below(&mut self, count: usize) -> usize {
        let count = u64::try_from(count.max(1)).expect("a count is small");
        usize::try_from(self.number() % count).expect("it is below a count")
    }

    fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// A function that the verifier accepts.
    pub(crate) fn func(&mut self) -> Func {
        let dims: Vec<Name> = ["n", "m"][..self.below(3)].iter().map(|it| Name::from(*it)).collect();
        let mut buffers = Buffers::default();
        for n in 0..=self.below(3) {
            let role = self.of(&[Role::Input, Role::Temp]);
            let buffer = self.buffer(&dims, role);
            buffers.insert(Name::new(format!("A{n}")), buffer);
        }
        let out = self.buffer(&dims, Role::Output);
        buffers.insert(Name::from("B"), out);

        let written: Vec<Name> =
            buffers.iter().filter(|it| it.1.role != Role::Input).map(|it| it.0.clone()).collect();
        let mut stmts = Vec::new();
        for (n, buffer) in written.iter().enumerate() {
            stmts.push(self.nest(&dims, &buffers, buffer, n));
        }
        let mbarrier = |it: usize| {
            let count = i64::try_from(it).expect("small") + 1;
            (Name::new(format!("full{it}")), Mbarriers { slots: count, arrivals: 3 - count })
        };
        let mbarriers = (0..self.below(3)).map(mbarrier).collect();
        Func { name: Name::from("f"), dims, tolerance: None, buffers, mbarriers, body: Stmt::seq(stmts) }
    }

    fn buffer(&mut self, dims: &[Name], role: Role) -> Buffer {
        let rank = self.below(4);
        let shape: Vec<Index> = (0..rank).map(|_| self.extent(dims)).collect();
        let scope = if role == Role::Temp { self.of(&Scope::ALL) } else { Scope::Global };
        let mut layout = Layout::default();
        if rank > 0 && self.below(4) == 1 {
            let axis = self.below(rank);
            layout.align.push(StorageAlign { axis, factor: 32, offset: self.of(&[0, 8, 31]) });
        }
        if role == Role::Temp && self.below(6) == 1 {
            layout.panel = Some(self.of(&[16, 64]));
        }
        Buffer {
            dtype: self.of(&DType::ALL),
            shape,
            scope,
            role,
            layout,
            alloc_scope: self.alloc_scope(role),
            below: None,
        }
    }

    fn extent(&mut self, dims: &[Name]) -> Index {
        match (self.below(4), dims.first()) {
            (1, Some(dim)) => Index::var(dim),
            (2, Some(dim)) => (Index::var(dim) + 7).floor_div(&Index::int(8)),
            _ => Index::int(self.of(&[1, 2, 3, 16, 100])),
        }
    }

    /// Loops around a block that writes a buffer: one or two loops for each dimension, and perhaps a reduction.
    fn nest(&mut self, dims: &[Name], buffers: &Buffers, buffer: &Name, n: usize) -> Stmt {
        let mut loops = Vec::new();
        let mut iters = Vec::new();
        let mut guards = Vec::new();
        let shape = buffers[buffer].shape.clone();
        let reduction = if self.below(2) == 1 { Some(self.extent(dims)) } else { None };
        let kinds = shape.iter().map(|_| IterKind::Spatial).chain(reduction.iter().map(|_| IterKind::Reduce));
        for (at, (extent, kind)) in shape.iter().chain(&reduction).zip(kinds).enumerate() {
            let var = Name::new(format!("i{n}_{at}"));
            let binding = match self.below(3) {
                1 => {
                    let inner = Name::new(format!("{var}_inner"));
                    let factor = self.of(&[4, 7]);
                    loops.push((var.clone(), extent.ceil_div(&Index::int(factor))));
                    loops.push((inner.clone(), Index::int(factor)));
                    let binding = Index::var(&var) * factor + Index::var(&inner);
                    guards.push(Less::new(binding.clone(), extent.clone()));
                    binding
                }
                2 => Index::int(0),
                _ => {
                    loops.push((var.clone(), extent.clone()));
                    Index::var(&var)
                }
            };
            iters.push(Iter::new(&Name::new(format!("v{at}")), extent.clone(), kind, binding));
        }
        let block = self.block(dims, buffers, buffer, (n, iters, guards));
        loops.into_iter().rev().fold(block, |body, (var, extent)| {
            let kind = self.kind(&var);
            Stmt::Loop(Arc::new(Loop { var, extent, kind, attrs: self.loop_attrs(), body }))
        })
    }

    fn kind(&mut self, var: &Name) -> LoopKind {
        let axis = var.as_str().as_bytes().get(3).map_or(0, |it| usize::from(it - b'0') % 3);
        let axis = axis + if var.as_str().ends_with('r') { 3 } else { 0 };
        let bound = LoopKind::Bound(ThreadAxis::ALL[axis]);
        let plain = [LoopKind::Serial, LoopKind::Parallel, LoopKind::Vectorized, LoopKind::Unrolled];
        // The fourth dimension would be bound to the axis of the first.
        if var.as_str().contains("_3") { self.of(&plain) } else { self.of(&[&plain[..], &[bound]].concat()) }
    }

    fn alloc_scope(&mut self, role: Role) -> Option<AllocScope> {
        let all = [None, None, Some(AllocScope::Program), Some(AllocScope::Loop(Name::from("i0")))];
        if role == Role::Temp { self.of(&all) } else { None }
    }

    fn loop_attrs(&mut self) -> LoopAttrs {
        let keys = [
            "hint",
            "rasterize",
            "software_pipeline_stage",
            "software_pipeline_mechanism",
            "cross_block_buffers",
            "a key",
            "ünï",
        ];
        let mut out = LoopAttrs::default();
        for (key, value) in self.annotations(&keys) {
            // What a key does not take is left out.
            drop(out.set(&key, value));
        }
        out
    }

    fn block_attrs(&mut self) -> BlockAttrs {
        let mut out = BlockAttrs::default();
        for (key, value) in
            self.annotations(&["hint", "double_buffer_slots", "tensorize", "asynchronous", "a key"])
        {
            drop(out.set(&key, value));
        }
        out
    }

    fn annotations(&mut self, keys: &[&str]) -> Annotations {
        let mut out = Annotations::new();
        for _ in 0..self.below(3) {
            let key = self.of(keys);
            let value = match self.below(5) {
                0 => Annotation::Int(self.number().cast_signed()),
                1 => Annotation::Text(
                    self.of(&["", "cp_async", "tma", "wgmma", "ldmatrix_x4", "a \"b\" \\ \n\t\u{7f} // ü"])
                        .to_owned(),
                ),
                2 => Annotation::List(
                    (0..self.below(3)).map(|it| -i64::try_from(it).expect("small")).collect(),
                ),
                3 => Annotation::Words(
                    (0..=self.below(2))
                        .map(|it| (Name::new(format!("b{it}")), "cp_async".to_owned()))
                        .collect(),
                ),
                _ => Annotation::Map((0..self.below(3)).map(|it| (Name::new(format!("b{it}")), 1)).collect()),
            };
            out.insert(key.to_owned(), value);
        }
        out
    }

    fn block(
        &mut self,
        dims: &[Name],
        buffers: &Buffers,
        buffer: &Name,
        (n, iters, guards): (usize, Vec<Iter>, Vec<Less>),
    ) -> Stmt {
        let mut vars: Vec<_> = dims.iter().map(|it| (it.clone(), Index::var(it) + 1)).collect();
        vars.extend(iters.iter().map(|it| (it.var.clone(), it.extent.clone())));
        let spatial: Vec<_> = iters.iter().filter(|it| it.kind == IterKind::Spatial).collect();
        let subscripts = spatial.iter().map(|it| Index::var(&it.var)).collect();
        let place = Access::new(buffer, subscripts);
        let dtype = buffers[buffer].dtype;

        let init = (spatial.len() < iters.len() && self.below(2) == 1)
            .then(|| Stmt::store(place.clone(), Value::Const(self.literal(dtype))));
        let mut context = Context { buffers, vars };
        let mut stmts = vec![Stmt::store(place.clone(), self.value(&context, dtype, 4))];
        if self.below(3) == 1 {
            let var = Name::new(format!("inner{n}"));
            let extent = self.extent(dims);
            context.vars.push((var.clone(), extent.clone()));
            let value = self.value(&context, dtype, 3);
            stmts.push(Stmt::serial(&var, extent, Stmt::store(place, value)));
        }
        let name = if self.below(2) == 1 { Name::new(format!("block{n}")) } else { buffer.clone() };
        let attrs = self.block_attrs();
        Stmt::Block(Arc::new(Block { name, iters, guards, attrs, init, body: Stmt::seq(stmts) }))
    }

    /// Any index over the variables, of any value.
    fn index(&mut self, context: &Context<'_>, depth: usize) -> Index {
        if depth == 0 || self.below(3) == 0 {
            return match (self.below(3), context.vars.is_empty()) {
                (1 | 2, false) => Index::var(&self.of(&context.vars).0),
                _ => Index::int(self.of(&[0, 1, -1, 2, -4, 64, i64::MAX, i64::MIN])),
            };
        }
        let (a, b) = (self.index(context, depth - 1), self.index(context, depth - 1));
        let positive = Index::int(self.of(&[1, 2, 8, 60]));
        match self.below(7) {
            0 => a + b,
            1 => a * b,
            2 => a - b,
            3 => a.floor_div(&positive),
            4 => a.floor_mod(&positive),
            5 => a.minimum(&b),
            _ => a.maximum(&b),
        }
    }

    /// A subscript below an extent, whatever the values of the variables.
    fn subscript(&mut self, context: &Context<'_>, extent: &Index) -> Index {
        let fitting: Vec<_> = context.vars.iter().filter(|it| it.1 == *extent).map(|it| &it.0).collect();
        match (self.below(3), fitting.is_empty()) {
            (0, _) => Index::int(0),
            (1, false) => Index::var(self.of(&fitting)),
            _ if context.vars.is_empty() => extent - &Index::int(1),
            _ => Index::var(&self.of(&context.vars).0).floor_mod(extent),
        }
    }

    fn condition(&mut self, context: &Context<'_>) -> Vec<Less> {
        (0..self.below(3)).map(|_| Less::new(self.index(context, 2), self.index(context, 2))).collect()
    }

    fn literal(&mut self, dtype: DType) -> Literal {
        let number = match dtype {
            _ if dtype.is_float() => Number::Float(match self.below(3) {
                0 => self.of(&[0.0, -0.0, 1.0, -1.5, 0.1, f64::INFINITY, f64::NEG_INFINITY]).to_bits(),
                1 => f64::NAN.to_bits() | self.number(),
                _ => self.number(),
            }),
            DType::Bool => Number::Int(self.of(&[0, 1])),
            DType::I64 => Number::Int(self.number().cast_signed()),
            DType::U8 | DType::U16 | DType::U32 => Number::Int(self.of(&[0, 1, 255])),
            _ => Number::Int(self.of(&[0, 1, -1, -128, 127])),
        };
        Literal { dtype, number }
    }

    fn load(&mut self, context: &Context<'_>, name: &Name) -> Value {
        let shape = &context.buffers[name].shape;
        Value::load(name, shape.iter().map(|it| self.subscript(context, it)).collect())
    }

    fn value(&mut self, context: &Context<'_>, dtype: DType, depth: usize) -> Value {
        let is_integer = !dtype.is_float() && dtype != DType::Bool;
        let below = depth.saturating_sub(1);
        match self.below(if depth == 0 { 3 } else { 10 }) {
            0 => Value::Const(self.literal(dtype)),
            1 if is_integer => Value::Index(dtype, self.index(context, 3)),
            1 | 2 => {
                let names: Vec<_> = context.buffers.keys().cloned().collect();
                let name = self.of(&names);
                let load = self.load(context, &name);
                if context.buffers[&name].dtype == dtype { load } else { Value::Cast(dtype, Arc::new(load)) }
            }
            3 => {
                let from = self.of(&DType::ALL);
                Value::Cast(dtype, Arc::new(self.value(context, from, below)))
            }
            4 if dtype.is_float() => {
                let op = self.of(&UnaryOp::ALL);
                Value::Unary(op, Arc::new(self.value(context, dtype, below)))
            }
            4 if is_integer => Value::Unary(UnaryOp::Neg, Arc::new(self.value(context, dtype, below))),
            5 => {
                let condition = self.condition(context);
                let (a, b) = (self.value(context, dtype, below), self.value(context, dtype, below));
                Value::Select(condition, Arc::new(a), Arc::new(b))
            }
            6 => {
                let cond = self.value(context, DType::Bool, below);
                Value::choice(cond, self.value(context, dtype, below), self.value(context, dtype, below))
            }
            _ => {
                let operands = if dtype == DType::Bool { self.of(&DType::ALL) } else { dtype };
                let fits = |it: &BinaryOp| it.takes(operands) && it.result(operands) == dtype;
                let all: Vec<_> = BinaryOp::ALL.into_iter().filter(fits).collect();
                let op = self.of(&all);
                let (a, b) = (self.value(context, operands, below), self.value(context, operands, below));
                Value::binary(op, a, b)
            }
        }
    }
}
