//! A kernel compiled by tilewright and launched by a program of yours through `cudarc`:
//! `cargo run --release -p tilewright --example launch_with_cudarc`.
//!
//! Without a GPU it stops once the kernel is compiled. `tilewright export` writes the same as a crate that does not need tilewright.

#![expect(unsafe_code, reason = "a kernel is launched")]

use std::{
    error::Error,
    io::{Write, stdout},
    path::Path,
};

use cudarc::{
    driver::{CudaContext, LaunchConfig, PushKernelArg, sys},
    nvrtc::Ptx,
};
use indexmap::IndexMap;
use ir::Arch;
use schedule::workload::Param;
use tilewright::{Built, Diagnostic, Plan, Target};

const SIZE: usize = 1024;

/// Tiles of A and B in shared memory, sums in registers, copies of the next tile under way.
const SCRIPT: &str = include_str!("../../workloads/matmul/ladders/matmul-cuda-f32/10_async_2.ron");

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = stdout().lock();
    // SAFETY: this only looks for the library.
    let context = if unsafe { sys::is_culib_present() } { Some(CudaContext::new(0)?) } else { None };
    let arch = match &context {
        Some(context) => context.compute_capability().map(|(major, minor)| format!("sm_{major}{minor}"))?,
        None => "sm_80".to_owned(),
    };
    let built = kernel(Arch::parse(&arch).ok_or("an architecture that tilewright does not know")?)?;
    let [launch] = built.program().launches.as_slice() else {
        return Err("this schedule is one kernel".into());
    };
    writeln!(out, "{}: {:?} blocks of {:?} threads", launch.kernel, launch.grid, launch.block)?;
    let Some(context) = context else {
        writeln!(out, "there is no NVIDIA driver, so the kernel is not launched")?;
        return Ok(());
    };

    let stream = context.default_stream();
    let module = context.load_module(Ptx::from_binary(built.program().binary.clone()))?;
    let function = module.load_function(&launch.kernel)?;
    let dynamic = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function.set_attribute(dynamic, launch.shared_bytes.try_into()?)?;

    let a: Vec<f32> = (0..SIZE * SIZE).map(|it| (it % 7) as f32 - 3.0).collect();
    let b: Vec<f32> = (0..SIZE * SIZE).map(|it| (it % 5) as f32 - 2.0).collect();
    let (a_there, b_there) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
    let mut c_there = stream.alloc_zeros::<f32>(SIZE * SIZE)?;
    let dimensions = LaunchConfig {
        grid_dim: launch.grid.into(),
        block_dim: launch.block.into(),
        shared_mem_bytes: launch.shared_bytes,
    };
    let mut arguments = stream.launch_builder(&function);
    arguments.arg(&a_there).arg(&b_there).arg(&mut c_there);
    // SAFETY: the kernel takes two inputs and an output of these sizes, in this order.
    unsafe { arguments.launch(dimensions)? };

    let c = stream.clone_dtoh(&c_there)?;
    let (i, j) = (SIZE - 1, SIZE / 2);
    let expected: f32 = (0..SIZE).map(|k| a[i * SIZE + k] * b[k * SIZE + j]).sum();
    writeln!(out, "C[{i}, {j}] = {}, expected {expected}", c[i * SIZE + j])?;
    if (c[i * SIZE + j] - expected).abs() < 1e-3 { Ok(()) } else { Err("the kernel is wrong".into()) }
}

/// The script at this size, compiled.
fn kernel(arch: Arch) -> Result<Built, Diagnostic> {
    let sizes: Vec<_> =
        ["m", "n", "k"].map(|it| (it.to_owned(), Param::Int(SIZE.cast_signed() as i64))).to_vec();
    let plan = Plan::parse(Path::new("10_async_2.ron"), SCRIPT, &sizes)?;
    let target = Target::Cuda(arch);
    tilewright::build(plan.schedule(&target, None)?.func(), &target, &IndexMap::new())
}
