//! Short ways to write modules down.

use std::sync::Arc;

use indexmap::IndexMap;
use ir::{
    Access, Alloc, Arch, Arg, BinaryOp, DType, For, ForKind, Index, Instr, Kernel, Less, Literal, Module,
    Name, Op, Role, Scope, Target, ThreadAxis, Value,
};
use tilewright_codegen::lower::{self, State};

pub(crate) fn n(name: &str) -> Name {
    Name::new(name)
}

pub(crate) fn v(name: &str) -> Index {
    Index::var(&n(name))
}

pub(crate) fn at(buffer: &str, index: impl Into<Index>) -> Access {
    Access::new(&n(buffer), vec![index.into()])
}

pub(crate) fn load(buffer: &str, index: impl Into<Index>) -> Value {
    Value::Load(at(buffer, index))
}

pub(crate) fn store(buffer: &str, index: impl Into<Index>, value: Value) -> Op {
    Op::from(Instr::Store(at(buffer, index), value))
}

pub(crate) fn constant(dtype: DType, value: f64) -> Value {
    Value::Const(Literal::from_f64(dtype, value))
}

pub(crate) fn cast(dtype: DType, value: Value) -> Value {
    Value::Cast(dtype, Arc::new(value))
}

pub(crate) fn add(a: Value, b: Value) -> Value {
    Value::binary(BinaryOp::Add, a, b)
}

pub(crate) fn mul(a: Value, b: Value) -> Value {
    Value::binary(BinaryOp::Mul, a, b)
}

pub(crate) fn less(a: impl Into<Index>, b: impl Into<Index>) -> Less {
    Less::new(a.into(), b.into())
}

pub(crate) fn each(var: &str, extent: impl Into<Index>, kind: ForKind, body: Vec<Op>) -> Op {
    Op::For(Arc::new(For::new(n(var), extent.into(), kind, body)))
}

pub(crate) fn serial(var: &str, extent: impl Into<Index>, body: Vec<Op>) -> Op {
    each(var, extent, ForKind::Serial, body)
}

pub(crate) fn vectorized(var: &str, extent: impl Into<Index>, body: Vec<Op>) -> Op {
    each(var, extent, ForKind::Vectorized, body)
}

pub(crate) fn unrolled(var: &str, extent: impl Into<Index>, body: Vec<Op>) -> Op {
    each(var, extent, ForKind::Unrolled, body)
}

pub(crate) fn alloc(name: &str, dtype: DType, len: i64, scope: Scope) -> Op {
    Op::Alloc(Alloc::new(n(name), dtype, len, scope))
}

/// A module of one kernel `name`; an argument whose name ends in `+` is written.
pub(crate) fn module(name: &str, dims: &[&str], args: &[(&str, DType, Index)], body: Vec<Op>) -> Module {
    let bare = |it: &str| n(it.trim_end_matches('+'));
    let arg = |(name, dtype, len): &(&str, DType, Index)| {
        let role = if name.ends_with('+') { Role::Output } else { Role::Input };
        (
            bare(name),
            Arg {
                dtype: *dtype,
                shape: vec![len.clone()],
                layout: ir::Layout::default(),
                role,
                zeroed: false,
                below: None,
            },
        )
    };
    let kernel = Kernel {
        args: args.iter().map(|it| (bare(it.0), it.0.ends_with('+'))).collect(),
        body,
        ..Kernel::new(n(name), IndexMap::new())
    };
    Module {
        name: n(name),
        dims: dims.iter().map(|it| n(it)).collect(),
        args: args.iter().map(arg).collect(),
        kernels: vec![kernel],
    }
}

/// The module with launch axes.
pub(crate) fn launched(mut module: Module, launch: &[(ThreadAxis, Index)]) -> Module {
    module.kernels[0].launch = launch.iter().cloned().collect();
    module
}

/// The passes behind `flatten`.
pub(crate) fn finish(module: Module, target: &Target) -> Module {
    let passes = lower::PASSES.iter().skip_while(|it| it.name != "collapse_unit_loops");
    passes.fold(module, |module, it| pass(it.name, module, target))
}

/// What one pass makes of a module.
pub(crate) fn pass(name: &str, module: Module, target: &Target) -> Module {
    let pass = lower::Pass::find(name).expect("the pass is in the table");
    match pass.run(State::Module(module), target).expect("nothing here is refused") {
        State::Module(module) => module,
        State::Func(_) => unreachable!("a pass behind `lower_blocks` makes kernels of kernels"),
    }
}

pub(crate) fn cuda(arch: &str) -> Target {
    Target::Cuda(Arch::parse(arch).expect("an architecture"))
}
