//! Refuses kernels that no GPU of the target launches.

use ir::{Arch, Feature, Index, Instr, Kernel, Module, Op, Scope, Target, ThreadAxis, intrin::Instruction};

use crate::launch::{TensorMemory, shared_layout};
use crate::lower::LowerError;

/// Checks threads in a block, blocks in a cluster, constant extents of axes, and shared memory in a block against the target's limits.
///
/// Extents over symbolic dimensions are checked when a launch is made.
pub(crate) fn check_limits(module: Module, target: &Target) -> Result<Module, LowerError> {
    let Target::Cuda(arch) = target else { return Ok(module) };
    for kernel in &module.kernels {
        let threads = kernel.threads();
        let limit = i64::from(Arch::MAX_THREADS);
        if threads > limit {
            let kernel = kernel.name.clone();
            return Err(LowerError::TooManyThreads { kernel, threads, limit });
        }
        check_cluster(kernel, arch)?;
        let long = kernel.launch.iter().filter_map(|(&axis, extent)| Some((axis, extent.as_int()?)));
        if let Some((axis, extent)) =
            long.into_iter().find(|(axis, extent)| *extent > Arch::axis_limit(*axis))
        {
            return Err(LowerError::AxisTooLong {
                kernel: kernel.name.clone(),
                axis,
                extent,
                limit: Arch::axis_limit(axis),
            });
        }
        check_lanes(kernel)?;
        check_registers(kernel, arch)?;
        if let Some(it) = TensorMemory::of(kernel).filter(|it| it.columns > Scope::TENSOR_COLUMNS) {
            let buffers = it.widths();
            let (kernel, columns) = (kernel.name.clone(), it.columns);
            return Err(LowerError::TensorMemoryFull { kernel, columns, buffers });
        }
        let (bytes, limit) = (shared_layout(kernel).1, i64::from(arch.caps().max_shared_per_block));
        if bytes > limit {
            let kernel_name = kernel.name.clone();
            return Err(LowerError::SharedTooLarge {
                kernel: kernel_name,
                bytes,
                limit,
                buffers: largest(&kernel.body),
            });
        }
    }
    Ok(module)
}

/// A cluster needs an architecture that has them, and no more blocks than it launches.
fn check_cluster(kernel: &Kernel, arch: &Arch) -> Result<(), LowerError> {
    let blocks = kernel.cluster_blocks();
    let limit = arch.caps().cluster.map(|it| i64::from(it.most));
    match limit {
        _ if !kernel.launch.keys().any(|it| it.is_cluster()) => Ok(()),
        None => {
            let (kernel, arch, least) = (kernel.name.clone(), arch.clone(), Feature::Clusters.least_sm());
            Err(LowerError::NoClusters { kernel, arch, least })
        }
        Some(limit) if blocks > limit => {
            let (kernel, arch) = (kernel.name.clone(), arch.clone());
            Err(LowerError::ClusterTooLarge { kernel, blocks, arch, limit })
        }
        Some(_) => Ok(()),
    }
}

/// What roles take and leave is the registers that a block starts with: `setmaxnreg.inc` waits for ever for more.
///
/// The compiler gives each thread of such a kernel as many as the threads that a multiprocessor is to hold can all have, in steps of 8
/// (PTX ISA, `setmaxnreg`: the register pool of a CTA).
fn check_registers(kernel: &Kernel, arch: &Arch) -> Result<(), LowerError> {
    let shares = kernel.roles.iter().map(|(name, it)| Some((name.clone(), it.threads(), it.registers?)));
    let Some(roles) = shares.collect::<Option<Vec<_>>>().filter(|it| !it.is_empty()) else { return Ok(()) };
    let threads = kernel.threads();
    let resident = threads.saturating_mul(kernel.blocks_per_sm.unwrap_or(1).max(1));
    let limit = i64::from(arch.caps().registers_per_sm) / resident.max(1) / 8 * 8 * threads;
    let asked = roles.iter().map(|(_, threads, registers)| threads * i64::from(*registers)).sum();
    if asked > limit {
        return Err(LowerError::TooManyRegisters { kernel: kernel.name.clone(), asked, limit, roles });
    }
    Ok(())
}

/// What a warp or a warpgroup does together needs a whole one along `threadIdx.x`.
fn check_lanes(kernel: &Kernel) -> Result<(), LowerError> {
    let mut used = None;
    for op in &kernel.body {
        op.each_instr(&mut |it| {
            let lanes = match it {
                // Each warp stores what it has, of a warpgroup, too.
                Instr::Tensor(it) if matches!(it.intrinsic.instruction, Instruction::Stmatrix { .. }) => {
                    return;
                }
                Instr::Tensor(it) => it.intrinsic.lanes(),
                Instr::Wgmma(it) => it.intrinsic.lanes(),
                _ => return,
            };
            used = used.or(Some((it.word(), lanes)));
        });
    }
    let of_roles = kernel.roles.values().filter_map(|it| it.axes.get(&ThreadAxis::ThreadX)).max();
    let threads =
        of_roles.map(|it| Index::int(*it)).or_else(|| kernel.launch.get(&ThreadAxis::ThreadX).cloned());
    let threads = threads.unwrap_or_else(|| Index::int(1));
    match used {
        Some((intrinsic, lanes)) if threads.as_int() != Some(lanes) => {
            Err(LowerError::LaneCount { kernel: kernel.name.clone(), threads, intrinsic, lanes })
        }
        Some(_) | None => Ok(()),
    }
}

/// The shared buffers and their bytes, the largest first.
fn largest(body: &[Op]) -> Vec<(ir::Name, i64)> {
    let mut out = Vec::new();
    for op in body {
        op.walk(&mut |op| {
            if let Op::Alloc(it) = op
                && it.scope.is_of_blocks()
            {
                let bytes = it.dtype.bytes_i64();
                out.push((it.name.clone(), it.elements() * bytes));
            }
        });
    }
    out.sort_by_key(|it| std::cmp::Reverse(it.1));
    out
}
