//! Targets: which machine a program is lowered for.

use crate::Arch;

/// A machine to lower for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// This machine's processor, through the system's C compiler.
    Cpu,
    /// An NVIDIA GPU.
    Cuda(Arch),
}

impl Target {
    /// The word in scripts: `cpu` or `cuda`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Target::Cpu => "cpu",
            Target::Cuda(_) => "cuda",
        }
    }

    /// The widest vector access in bytes: on a CPU a cache line.
    pub fn max_vector_bytes(&self) -> usize {
        match self {
            Target::Cpu => 64,
            Target::Cuda(arch) => arch.caps().vector_bytes as usize,
        }
    }
}
