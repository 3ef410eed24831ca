use codegen::device::{Launch, Limit, Resources};
use indexmap::IndexMap;
use ir::Target;
use tilewright_tuner::{
    build::{Generated, generate},
    filter::{Limits, Rejection, after_compiling, before_compiling},
    log::{ErrorKind, Stage},
};

use super::common::{hopper, matmul, steps};

/// A block of 256 threads, each with `rows` x 4 results of its own.
fn private(rows: i64) -> Generated {
    let split = format!("split(loop: \"i\", into: {{\"by\": None, \"im\": {rows}}})");
    let steps = steps(&[
        &split,
        "split(loop: \"j\", into: {\"bx\": None, \"tx\": 256, \"jv\": 4})",
        "reorder(order: [\"by\", \"bx\", \"tx\", \"k\", \"im\", \"jv\"])",
        "bind(loop: \"by\", axis: \"blockIdx.y\")",
        "bind(loop: \"bx\", axis: \"blockIdx.x\")",
        "bind(loop: \"tx\", axis: \"threadIdx.x\")",
        "cache_write(block: \"C\", scope: \"local\")",
        "reverse_compute_at(block: \"C_local\", loop: \"tx\")",
    ]);
    generate(&matmul(&IndexMap::new()), &steps).unwrap()
}

#[test]
fn arrays_that_no_registers_hold_are_refused_before_they_are_compiled() {
    let limits = Limits::default();
    assert_eq!(before_compiling(&private(32), &hopper(), &limits), Ok(()));
    let large = private(64);
    let refused = before_compiling(&large, &hopper(), &limits).unwrap_err();
    insta::assert_snapshot!(refused, @"`C_local` of `matmul` takes 1024 bytes of each of 256 threads, which have registers for 1020");
    assert_eq!(refused.reason(), "private_arrays");
    let error = refused.error(Stage::Generate);
    assert_eq!((error.stage, error.kind, error.sticky), (Stage::Generate, ErrorKind::Resource, false));
    let lax = Limits { private_arrays: false, ..limits };
    assert_eq!(before_compiling(&large, &hopper(), &lax), Ok(()));
    assert_eq!(before_compiling(&large, &Target::Cpu, &limits), Ok(()));
}

#[test]
fn a_block_asks_for_the_registers_of_all_its_neighbours() {
    let mut generated = private(32);
    generated.module.kernels[0].blocks_per_sm = Some(3);
    let refused = before_compiling(&generated, &hopper(), &Limits::default()).unwrap_err();
    assert!(matches!(refused, Rejection::Private { bytes: 512, limit: 340, .. }), "{refused:?}");
}

#[test]
fn launches_that_cannot_be_are_refused() {
    let mut generated = private(4);
    let limits = Limits::default();
    generated.program.launches[0].shared_bytes = 233_472;
    let refused = before_compiling(&generated, &hopper(), &limits).unwrap_err();
    insta::assert_snapshot!(refused, @"`matmul` needs 233472 bytes of shared memory in a block, and there are at most 232448");
    generated.program.launches[0].shared_bytes = 232_448;
    assert_eq!(before_compiling(&generated, &hopper(), &limits), Ok(()));
    generated.program.launches[0].block = [1025, 1, 1];
    let refused = before_compiling(&generated, &hopper(), &limits).unwrap_err();
    insta::assert_snapshot!(refused, @"`matmul` would have 1025 threads in a block, and there are at most 1024");
}

fn launch(threads: u32, shared_bytes: u32) -> Vec<Launch> {
    let (kernel, block) = ("matmul".to_owned(), [threads, 1, 1]);
    vec![Launch {
        kernel,
        grid: [64, 1, 1],
        block,
        shared_bytes,
        maps: vec![],
        programmatic: false,
        buffers: vec![],
        dims: vec![],
    }]
}

fn needs(registers: u32, spill_store_bytes: u32, warnings: &[&str]) -> Vec<Resources> {
    let (kernel, warnings) = ("matmul".to_owned(), warnings.iter().map(ToString::to_string).collect());
    vec![Resources { kernel, registers, spill_store_bytes, warnings, ..Resources::default() }]
}

#[test]
fn what_the_compiler_tells_is_judged() {
    let judge = |launches: &[Launch], resources: &[Resources], limits: &Limits| {
        after_compiling(launches, resources, &hopper(), limits)
    };
    let limits = Limits::default();
    assert_eq!(judge(&launch(256, 65_536), &needs(128, 64, &["C7519 is information"]), &limits), Ok(()));
    assert_eq!(judge(&launch(256, 0), &[], &limits), Ok(()), "nothing is known of it");

    let spills = judge(&launch(256, 0), &needs(255, 68, &[]), &limits).unwrap_err();
    insta::assert_snapshot!(spills, @"each thread of `matmul` spills 68 bytes for want of registers; 255 are used");
    let lax = Limits { spill_store_bytes: 68, ..limits };
    assert_eq!(judge(&launch(256, 0), &needs(255, 68, &[]), &lax), Ok(()));

    let full = judge(&launch(512, 0), &needs(160, 0, &[]), &limits).unwrap_err();
    insta::assert_snapshot!(full, @"no block of `matmul` fits a multiprocessor: registers are short");
    assert_eq!(full, Rejection::Occupancy { kernel: "matmul".into(), limited_by: vec![Limit::Registers] });

    let warning = "Potential Performance Loss: wgmma.mma_async instructions are serialized";
    let slow = judge(&launch(128, 0), &needs(64, 0, &[warning]), &limits).unwrap_err();
    assert_eq!(slow.reason(), "performance_loss");
    let lax = Limits { performance_loss: true, ..limits };
    assert_eq!(judge(&launch(128, 0), &needs(64, 0, &[warning]), &lax), Ok(()));
}
