//! Candidates that cannot be good, found before they cost device time: by their kernels before they are compiled, and
//! by what the compiler told afterwards.

use codegen::device::{Launch, Limit, Resources, occupancy};
use ir::{Arch, Caps, Kernel, Name, Op, Scope, Target};

use crate::{
    build::Generated,
    log::{ErrorKind, Stage, TrialError},
};

/// What is let through. The defaults are for kernels that shall be fast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most bytes of registers that a thread may write to memory for want of registers. A few spills outside of
    /// the inner loops cost nothing.
    pub spill_store_bytes: u32,
    /// Whether what the compiler calls a potential performance loss is refused.
    pub performance_loss: bool,
    /// Whether private arrays that are larger than the registers of a thread are refused.
    pub private_arrays: bool,
}

/// Why a candidate is not tried.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum Rejection {
    #[error("`{kernel}` would have {threads} threads in a block, and there are at most {limit}")]
    Threads { kernel: String, threads: u64, limit: u64 },
    #[error("`{kernel}` needs {bytes} bytes of shared memory in a block, and there are at most {limit}")]
    Shared { kernel: String, bytes: u32, limit: i64 },
    #[error(
        "`{array}` of `{kernel}` takes {bytes} bytes of each of {threads} threads, which have registers for {limit}"
    )]
    Private { kernel: String, array: Name, bytes: i64, threads: u64, limit: i64 },
    #[error("no block of `{kernel}` fits a multiprocessor: {} {} short", list(limited_by), verb(limited_by))]
    Occupancy { kernel: String, limited_by: Vec<Limit> },
    #[error("each thread of `{kernel}` spills {bytes} bytes for want of registers; {registers} are used")]
    Spills { kernel: String, bytes: u32, registers: u32 },
    #[error("the compiler warns about `{kernel}`: {warning}")]
    Performance { kernel: String, warning: String },
}

/// What compilers begin a warning with that costs time.
const PERFORMANCE_LOSS: &str = "Potential Performance Loss";

impl Default for Limits {
    fn default() -> Limits {
        Limits { spill_store_bytes: 64, performance_loss: false, private_arrays: true }
    }
}

impl Rejection {
    /// The word under which it is counted.
    pub const fn reason(&self) -> &'static str {
        match self {
            Rejection::Threads { .. } => "threads",
            Rejection::Shared { .. } => "shared_memory",
            Rejection::Private { .. } => "private_arrays",
            Rejection::Occupancy { .. } => "occupancy",
            Rejection::Spills { .. } => "spills",
            Rejection::Performance { .. } => "performance_loss",
        }
    }

    /// As the error of a trial.
    pub fn error(&self, stage: Stage) -> TrialError {
        TrialError { stage, kind: ErrorKind::Resource, message: self.to_string(), sticky: false }
    }
}

/// Looks at a candidate before it is compiled. A CPU has no such limits.
pub fn before_compiling(generated: &Generated, target: &Target, limits: &Limits) -> Result<(), Rejection> {
    let Target::Cuda(arch) = target else { return Ok(()) };
    for (kernel, launch) in generated.module.kernels.iter().zip(&generated.program.launches) {
        check_launch(launch, arch)?;
        if limits.private_arrays {
            check_private(kernel, launch, arch.caps())?;
        }
        let least = Resources { registers: 1, ..Resources::default() };
        check_occupancy(launch, &least, arch)?;
    }
    Ok(())
}

/// Looks at what the compiler told of a candidate's kernels. Kernels that it told nothing of pass.
pub fn after_compiling(
    launches: &[Launch],
    resources: &[Resources],
    target: &Target,
    limits: &Limits,
) -> Result<(), Rejection> {
    let Target::Cuda(arch) = target else { return Ok(()) };
    for launch in launches {
        let Some(it) = resources.iter().find(|it| it.kernel == launch.kernel) else { continue };
        let kernel = launch.kernel.clone();
        if it.spill_store_bytes > limits.spill_store_bytes {
            let (bytes, registers) = (it.spill_store_bytes, it.registers);
            return Err(Rejection::Spills { kernel, bytes, registers });
        }
        check_occupancy(launch, it, arch)?;
        let warning = it.warnings.iter().find(|it| it.contains(PERFORMANCE_LOSS));
        if let Some(warning) = warning.filter(|_| !limits.performance_loss) {
            return Err(Rejection::Performance { kernel, warning: warning.clone() });
        }
    }
    Ok(())
}

fn threads_of(launch: &Launch) -> u64 {
    launch.block.iter().map(|it| u64::from(*it)).fold(1, u64::saturating_mul)
}

fn check_launch(launch: &Launch, arch: &Arch) -> Result<(), Rejection> {
    let kernel = || launch.kernel.clone();
    let (threads, limit) = (threads_of(launch), u64::from(Arch::MAX_THREADS));
    if threads > limit {
        return Err(Rejection::Threads { kernel: kernel(), threads, limit });
    }
    let (bytes, limit) = (launch.shared_bytes, i64::from(arch.caps().max_shared_per_block));
    if i64::from(bytes) > limit {
        return Err(Rejection::Shared { kernel: kernel(), bytes, limit });
    }
    Ok(())
}

/// An array that is larger than all the registers that a thread can have is in memory for the whole or in part,
/// whatever the compiler does with it. A role may say how many its threads have.
fn check_private(kernel: &Kernel, launch: &Launch, caps: &Caps) -> Result<(), Rejection> {
    let threads = threads_of(launch);
    // Registers are given to whole warps, and the compiler keeps what `blocks_per_sm` asks for.
    let resident = threads.next_multiple_of(Arch::WARP.into())
        * kernel.blocks_per_sm.map_or(1, i64::unsigned_abs).max(1);
    let registers =
        (u64::from(caps.registers_per_sm) / resident.max(1)).min(caps.registers_per_thread.into());
    for op in &kernel.body {
        let of_role = match op {
            Op::Role(name, _) => kernel.roles.get(name).and_then(|it| it.registers),
            _ => None,
        };
        let limit = 4 * i64::try_from(of_role.map_or(registers, u64::from)).expect("at most 256");
        if let Some((bytes, array)) = largest_private(op).filter(|it| it.0 > limit) {
            let (kernel, array) = (launch.kernel.clone(), array.clone());
            return Err(Rejection::Private { kernel, array, bytes, threads, limit });
        }
    }
    Ok(())
}

/// The largest private array in a statement, and its bytes.
fn largest_private(op: &Op) -> Option<(i64, &Name)> {
    let mut largest: Option<(i64, &Name)> = None;
    op.walk(&mut |op| {
        if let Op::Alloc(it) = op
            && it.scope == Scope::Local
        {
            let bytes = it.elements().saturating_mul(it.dtype.bytes_i64());
            if largest.is_none_or(|(most, _)| bytes > most) {
                largest = Some((bytes, &it.name));
            }
        }
    });
    largest
}

fn check_occupancy(launch: &Launch, needs: &Resources, arch: &Arch) -> Result<(), Rejection> {
    let threads = u32::try_from(threads_of(launch)).expect("`check_launch` has seen that they are few");
    match occupancy(needs, threads, launch.shared_bytes, arch) {
        Some(it) if it.blocks == 0 => {
            Err(Rejection::Occupancy { kernel: launch.kernel.clone(), limited_by: it.limited_by })
        }
        Some(_) | None => Ok(()),
    }
}

fn list(limits: &[Limit]) -> String {
    limits.iter().map(Limit::to_string).collect::<Vec<_>>().join(" and ")
}

fn verb(limits: &[Limit]) -> &'static str {
    match limits {
        [Limit::Shared] => "is",
        _ => "are",
    }
}
