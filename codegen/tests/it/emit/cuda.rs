//! Emitted CUDA C++ as text, and through NVRTC.

use std::{io::Write as _, sync::Arc};

use insta::assert_snapshot;
use ir::{BinaryOp, DType, Index, Module, ThreadAxis, UnaryOp, Value};
use tilewright_codegen::{
    device::{DeviceError, nvrtc},
    emit::emit,
};

use super::{build::*, programs};

pub(crate) fn cuda_source(module: Module) -> String {
    let target = cuda("sm_90a");
    emit(&finish(module, &target), &target).unwrap()
}

#[test]
fn a_tile_in_shared_memory() {
    assert_snapshot!(cuda_source(programs::gpu_matmul(512)));
}

#[test]
fn symbolic_sizes_use_64_bits() {
    assert_snapshot!(cuda_source(programs::gpu_elementwise()));
}

#[test]
fn narrow_floats_are_structs() {
    assert_snapshot!(cuda_source(programs::narrow_floats(8)));
}

#[test]
fn loops_that_are_not_lanes_say_why() {
    assert_snapshot!(cuda_source(programs::not_lanes()));
}

/// Compiles a module for architectures; nothing where there is no NVRTC.
pub(crate) fn compile(name: &str, module: &Module, archs: &[&str]) {
    for arch in archs {
        compile_finished(name, &finish(module.clone(), &cuda(arch)), arch);
    }
}

/// Compiles a module that all passes have seen.
pub(crate) fn compile_finished(name: &str, module: &Module, arch: &str) {
    let target = cuda(arch);
    let ir::Target::Cuda(arch) = &target else { unreachable!() };
    let source = emit(module, &target).unwrap();
    match nvrtc::compile(&source, name, arch, &[]) {
        Ok(_) => {}
        Err(err @ DeviceError::Missing { .. }) => {
            let required = std::env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_some_and(|it| it == "1");
            assert!(!required, "{err}");
            writeln!(std::io::stderr(), "skipped: {name}: {err}").expect("stderr is open");
        }
        Err(err) => panic!("{err}\n{source}"),
    }
}

#[test]
fn nvrtc_takes_the_programs() {
    let programs = [
        programs::gpu_matmul(512),
        programs::gpu_elementwise(),
        programs::narrow_floats(8),
        programs::not_lanes(),
        programs::guarded_axpy(),
        programs::padded(),
        programs::tiled_matmul(64, 32, (2, 2, 4), true),
    ];
    for module in programs {
        compile(module.name.as_str(), &module, &["sm_80", "sm_90a"]);
    }
}

/// Every conversion and operation of a type, one by one and in lanes.
fn everything(dtype: DType, lanes: i64) -> Module {
    let (x, y) = (load("x", v("i")), load("y", v("i")));
    let binary = BinaryOp::ALL.into_iter().filter(|op| op.takes(dtype));
    let binary = binary.map(|op| (op.result(dtype), Value::binary(op, x.clone(), y.clone())));
    let unary = UnaryOp::ALL.map(|op| (dtype, Value::Unary(op, Arc::new(x.clone()))));
    let less = Value::binary(BinaryOp::Lt, x.clone(), y.clone());
    let choice = (dtype, Value::choice(less, y.clone(), x.clone()));
    let casts = DType::ALL.map(|to| (to, cast(to, x.clone())));
    let all: Vec<_> = binary.chain([choice]).chain(unary).chain(casts).collect();
    let names: Vec<_> = (0..all.len()).map(|it| format!("out{it}+")).collect();
    let mut args = vec![("x", dtype, Index::from(64)), ("y", dtype, Index::from(64))];
    args.extend(names.iter().zip(&all).map(|(name, it)| (name.as_str(), it.0, Index::from(64))));
    let at = |var: &ir::Name| (var.as_str() == "i").then(|| v("threadIdx_x") * lanes + v("i"));
    let stores = names.iter().zip(&all).map(|(name, (_, value))| {
        vectorized("i", lanes, vec![store(name.trim_end_matches('+'), v("i"), value.clone()).subst(&at)])
    });
    let module = module("everything", &[], &args, stores.collect());
    launched(module, &[(ThreadAxis::ThreadX, Index::from(64 / lanes))])
}

#[test]
fn nvrtc_takes_every_type() {
    for dtype in DType::ALL {
        compile(dtype.as_str(), &everything(dtype, 1), &["sm_80"]);
        compile(dtype.as_str(), &everything(dtype, 4), &["sm_75", "sm_90a"]);
    }
}
