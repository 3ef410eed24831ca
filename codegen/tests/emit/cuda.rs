//! Emitted CUDA C++ as text.

use insta::assert_snapshot;
use ir::Module;
use tilewright_codegen::emit::emit;

use crate::{build::*, programs};

fn cuda_source(module: Module) -> String {
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
