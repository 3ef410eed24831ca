//! What the kernels of a program need of a machine, in words and as data: registers, spills, shared memory, how many
//! blocks fit a multiprocessor, and the barriers that stand in the source.
//!
//! What only a compiler knows is `None` where there is none; nothing here is guessed.

use codegen::device::{Limit, Occupancy, Resources, occupancy};
use ir::{Arch, Instr, Kernel, Op, Scope, Target};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{build::Built, term::table::grouped};

/// What one kernel needs.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Needs {
    pub(crate) kernel: String,
    /// Threads of a block; 1 on a CPU.
    pub(crate) threads: u32,
    /// What the compiler says.
    pub(crate) compiled: Option<Resources>,
    /// Shared memory of a block in bytes.
    pub(crate) shared_bytes: u32,
    /// Memory of each thread in bytes that is no register: tiles of a CPU.
    pub(crate) private_bytes: u64,
    /// Barriers in the source; one in a loop counts once.
    pub(crate) barriers: usize,
    pub(crate) occupancy: Option<Occupancy>,
}

impl Needs {
    /// Of each kernel of a program, in the order in which they run.
    pub(crate) fn of(built: &Built, target: &Target) -> Vec<Needs> {
        let arch = match target {
            Target::Cpu => None,
            Target::Cuda(arch) => Some(arch),
        };
        built.module.kernels.iter().map(|it| Needs::of_kernel(it, built, arch)).collect()
    }

    fn of_kernel(kernel: &Kernel, built: &Built, arch: Option<&Arch>) -> Needs {
        let name = kernel.name.to_string();
        let launch = built.program.launches.iter().find(|it| it.kernel == name);
        let compiled = built.resources.iter().find(|it| it.kernel == name).cloned();
        let threads = launch.map_or(1, |it| it.block.iter().product());
        let dynamic = launch.map_or(0, |it| it.shared_bytes);
        let occupancy =
            compiled.as_ref().zip(arch).and_then(|(it, arch)| occupancy(it, threads, dynamic, arch));
        let fixed = compiled.as_ref().map_or(0, |it| it.static_shared_bytes);
        let (mut barriers, mut private_bytes) = (0, 0);
        for op in &kernel.body {
            op.walk(&mut |op| match op {
                Op::Instr(Instr::Barrier(_), _) => barriers += 1,
                Op::Alloc(it) if it.scope == Scope::Global => {
                    private_bytes += it.elements().unsigned_abs() * it.dtype.bytes() as u64;
                }
                _ => {}
            });
        }
        let shared_bytes = dynamic + fixed;
        Needs { kernel: name, threads, compiled, shared_bytes, private_bytes, barriers, occupancy }
    }

    /// In words, or nothing where there is nothing to say.
    pub(crate) fn words(&self, target: &Target) -> Option<String> {
        match target {
            Target::Cpu => (self.private_bytes > 0).then(|| {
                format!("{} bytes of memory of its own for each thread", grouped(self.private_bytes))
            }),
            Target::Cuda(_) => Some(self.cuda_words()),
        }
    }

    fn cuda_words(&self) -> String {
        let mut words = vec![format!("{} threads", self.threads)];
        match &self.compiled {
            Some(it) => {
                words.push(format!("{} registers", it.registers));
                match it.spill_store_bytes + it.spill_load_bytes {
                    0 => words.push("no spills".to_owned()),
                    bytes => words.push(format!("{bytes} bytes spilled")),
                }
            }
            None => words.push("registers unknown (no NVRTC)".to_owned()),
        }
        words.push(match self.shared_bytes {
            0 => "no shared memory".to_owned(),
            bytes => format!("{} bytes of shared memory", grouped(bytes)),
        });
        if let Some(it) = &self.occupancy {
            words.push(format!(
                "{} blocks per SM ({} of {} warps, limited by {})",
                it.blocks,
                it.warps,
                it.max_warps,
                limits(&it.limited_by)
            ));
        }
        words.push(match self.barriers {
            0 => "no barriers".to_owned(),
            1 => "1 barrier in the source".to_owned(),
            n => format!("{n} barriers in the source"),
        });
        words.join(", ")
    }
}

/// `registers and shared memory`.
pub(crate) fn limits(limits: &[Limit]) -> String {
    limits.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}
