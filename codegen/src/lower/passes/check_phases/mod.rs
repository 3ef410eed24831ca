//! Proves that asynchronous work in a kernel is in order: phases of mbarriers, slots of rings, groups in flight, fences.

mod bytes;
mod cluster;
mod count;
pub(crate) mod error;
mod exchange;
mod fences;
mod given_back;
mod groups;
mod in_flight;
mod order;
mod program;
mod refill;
mod survey;
mod walk;
mod windows;
mod witness;

use ir::{Arch, Completion, Kernel, Module};

use self::{error::PhaseError, survey::Survey};
use crate::lower::LowerError;

/// Refuses kernels whose mbarriers, groups and fences are not proved to order what they are there for, and changes none.
///
/// The proofs are about the kernel, whoever made it, and for all sizes: see [`count`] for how things are counted, [`walk`] for what may
/// have been done before, and the other files for what is proved of it.
pub(crate) fn check_phases(module: Module) -> Result<Module, LowerError> {
    for kernel in &module.kernels {
        cluster::expect_others_end(kernel)?;
        check(&module, kernel)?;
    }
    Ok(module)
}

fn check(module: &Module, kernel: &Kernel) -> Result<(), PhaseError> {
    // A block with more threads is never launched: `check_limits` refuses it.
    if !is_asynchronous(kernel) || kernel.threads() > Arch::MAX_THREADS.into() {
        return Ok(());
    }
    let mut known = ir::arith::Bounds::default();
    module.dims.iter().chain(&kernel.claims).for_each(|it| known.insert_dim(it));
    let blocks = kernel.launch.iter().filter(|it| !it.0.is_thread());
    blocks.for_each(|(axis, extent)| known.insert(&ir::axis_var(*axis), extent));
    let survey = Survey::new(kernel, &known)?;
    survey.barriers.iter().try_for_each(|it| bytes::check(&survey, it))?;
    cluster::check(&survey)?;
    order::check(&survey)?;
    windows::check(&survey)?;
    in_flight::check(&survey)?;
    fences::check(&survey)?;
    exchange::check(kernel, &survey)
}

/// Whether there is anything to prove.
fn is_asynchronous(kernel: &Kernel) -> bool {
    let mut found = !kernel.mbarriers.is_empty() || !kernel.roles.is_empty();
    for op in &kernel.body {
        op.each_instr(&mut |it| found |= it.completion() != Completion::AtOnce);
    }
    found
}
