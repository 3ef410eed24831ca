//! Targets: which machine a program is lowered for, and that machine's limits.

use std::fmt;

/// A machine to lower for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// This machine's processor, through the system's C compiler.
    Cpu,
    /// An NVIDIA GPU.
    Cuda(Arch),
}

/// A CUDA architecture such as `sm_80` or `sm_90a`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arch {
    /// The compute capability times ten: 80, 86, 89, 90, 100, 120.
    pub sm: u32,
    /// The suffix: `a` for architecture-specific features, `f` for a family's, or nothing.
    pub suffix: Option<char>,
}

impl Arch {
    /// Parses `sm_90a`.
    pub fn parse(text: &str) -> Option<Arch> {
        let text = text.strip_prefix("sm_")?;
        let (digits, suffix) = match text.strip_suffix(['a', 'f']) {
            Some(digits) => (digits, text.chars().last()),
            None => (text, None),
        };
        let sm = digits.parse().ok().filter(|sm| (50..=990).contains(sm))?;
        Some(Arch { sm, suffix })
    }

    /// The most shared memory that one block can have, in bytes (CUDA C++ Programming Guide, table of
    /// technical specifications per compute capability).
    pub const fn max_shared_bytes(&self) -> i64 {
        match self.sm {
            80 | 87 => 163 * 1024,
            86 | 89 | 120 | 121 => 99 * 1024,
            90..=119 => 227 * 1024,
            75 => 64 * 1024,
            _ => 48 * 1024,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.sm)?;
        self.suffix.iter().try_for_each(|it| write!(f, "{it}"))
    }
}

impl Target {
    /// The word in scripts: `cpu` or `cuda`.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Target::Cpu => "cpu",
            Target::Cuda(_) => "cuda",
        }
    }

    /// The widest vector access in bytes: 16 on a GPU, a cache line on a CPU.
    pub const fn max_vector_bytes(&self) -> usize {
        match self {
            Target::Cpu => 64,
            Target::Cuda(_) => 16,
        }
    }

    /// The most threads in one GPU block, on all axes together.
    pub const MAX_THREADS: i64 = 1024;
}
