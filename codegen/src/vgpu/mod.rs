//! The virtual GPU: executes a lowered program on the host and tries to break it.
//!
//! Blocks run one after the other. The warps of a block run one after the other from barrier to barrier, in an order
//! that [`Settings::order`] chooses, and the lanes of a warp in lockstep. An asynchronous copy lands at the last
//! moment that its wait allows and takes what is in memory then.
//!
//! Races do not need a bad order to be found: each element of shared memory, and of global memory that a kernel
//! writes, remembers who touched it last in which epoch between barriers, and two accesses that nothing orders are
//! a finding even if they happened to run in the right order.
//!
//! What it counts is what a GPU would have to do, not how long that takes: wavefronts of shared memory against the
//! fewest possible, sectors of global memory against the fewest possible, instructions, barriers, waits.
//!
//! It takes CPU kernels, too: as one block of one thread.

mod access;
mod compile;
mod exec;
mod findings;
mod flight;
mod index;
mod program;
mod random;
mod shadow;
mod value;

use std::collections::HashMap;

use indexmap::IndexMap;
use ir::{Arg, Index, Module, Name, Role, ThreadAxis};

pub use findings::{Access, Finding, Found};
use findings::{Key, Sink};
use program::Program;
pub use shadow::RaceKind;

/// In which order the warps between two barriers, the lanes of a warp and the blocks of a grid run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// As they are numbered.
    #[default]
    Forward,
    /// The last first.
    Reversed,
    /// In an order drawn anew each time from the seed.
    Shuffled,
}

/// How to run a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The order of what may run in any order.
    pub order: Order,
    /// Where shuffled orders come from.
    pub seed: u64,
    /// How many sorts of findings are kept.
    pub max_findings: usize,
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<Found>,
    /// How many findings of further sorts were not kept.
    pub dropped: u64,
    /// How often a thread wrote to an element what another thread had written there, with nothing to order them:
    /// equal numbers, so that it does not matter who comes first.
    pub benign_writes: u64,
    /// Whether the run ended early, at a barrier that not all threads come to.
    pub stopped: bool,
}

/// Why a program cannot be run at all.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields are")]
pub enum VgpuError {
    #[error("dimension `{name}` needs a value of at least 1")]
    Dimension { name: Name },
    #[error("input `{buffer}` was not given")]
    NoInput { buffer: Name },
    #[error("input `{buffer}` has {given} elements, not {expected}")]
    InputLength { buffer: Name, expected: usize, given: usize },
    #[error("`{buffer}` would have {len} elements, which no memory holds")]
    TooLarge { buffer: Name, len: Index },
    #[error("kernel `{kernel}` would have {extent} on {}", axis.as_str())]
    Launch { kernel: Name, axis: ThreadAxis, extent: Index },
    #[error("kernel `{kernel}` would have {threads} threads in a block, and 1024 are possible")]
    TooManyThreads { kernel: Name, threads: i64 },
    #[error("kernel `{kernel}` has more statements than can be told apart")]
    TooLong { kernel: Name },
    #[error("kernel `{kernel}` uses `{name}`, which is not in scope: a bug in a pass")]
    UnknownVariable { kernel: Name, name: Name },
    #[error(
        "kernel `{kernel}` accesses `{buffer}`, which is neither an argument nor allocated: a bug in a pass"
    )]
    UnknownBuffer { kernel: Name, buffer: Name },
    #[error("kernel `{kernel}` accesses `{buffer}` with more or less than one subscript: a bug in a pass")]
    NotFlat { kernel: Name, buffer: Name },
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { order: Order::Forward, seed: 1, max_findings: 16 }
    }
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}

/// A global buffer between kernels.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) values: Vec<f64>,
    pub(crate) written: Vec<u32>,
}

/// The most elements of a buffer: what fits into some memory with all that is remembered of each.
const MAX_ELEMENTS: i64 = 1 << 30;

/// Runs a program. `memory` holds the inputs; afterwards also outputs and workspace, NaN where nothing was written.
pub fn run(
    module: &Module,
    dims: &IndexMap<Name, i64>,
    memory: &mut IndexMap<Name, Vec<f64>>,
    settings: &Settings,
) -> Result<Report, VgpuError> {
    for name in &module.dims {
        if dims.get(name).is_none_or(|it| *it < 1) {
            return Err(VgpuError::Dimension { name: name.clone() });
        }
    }
    let sizes: HashMap<Name, i64> = dims.iter().map(|(name, it)| (name.clone(), *it)).collect();
    let lens = lens(module, &sizes, memory)?;
    let programs = module.kernels.iter().map(|it| Program::new(module, it, &sizes, &lens));
    let programs: Vec<Program> = programs.collect::<Result<_, _>>()?;

    let mut contents = fill(module, &lens, memory);
    let mut run = exec::Run::new(settings);
    for (at, program) in programs.iter().enumerate() {
        exec::kernel(program, at, &mut contents, &mut run);
        if run.report.stopped {
            break;
        }
    }
    let exec::Run { mut report, mut sink, .. } = run;
    if !report.stopped {
        check_outputs(module, &contents, &mut sink);
    }
    report.dropped = sink.dropped;
    report.findings = sink.found.into_values().collect();
    for (name, it) in module.args.keys().zip(contents) {
        memory.insert(name.clone(), it.values);
    }
    Ok(report)
}

/// How long the global buffers are.
fn lens(
    module: &Module,
    dims: &HashMap<Name, i64>,
    memory: &IndexMap<Name, Vec<f64>>,
) -> Result<Vec<usize>, VgpuError> {
    let one = |(buffer, arg): (&Name, &Arg)| {
        let len = arg.len.eval(&|it| dims.get(it).copied()).filter(|it| (0..=MAX_ELEMENTS).contains(it));
        let error = || VgpuError::TooLarge { buffer: buffer.clone(), len: arg.len.clone() };
        let expected = len.and_then(|it| usize::try_from(it).ok()).ok_or_else(error)?;
        if arg.role == Role::Input {
            let given =
                memory.get(buffer).ok_or_else(|| VgpuError::NoInput { buffer: buffer.clone() })?.len();
            if given != expected {
                return Err(VgpuError::InputLength { buffer: buffer.clone(), expected, given });
            }
        }
        Ok(expected)
    };
    module.args.iter().map(one).collect()
}

/// The global buffers before the first kernel.
fn fill(module: &Module, lens: &[usize], memory: &mut IndexMap<Name, Vec<f64>>) -> Vec<Contents> {
    let contents = module.args.iter().zip(lens).map(|((name, arg), len)| {
        let input = memory.get_mut(name).filter(|_| arg.role == Role::Input);
        match input {
            Some(it) => Contents { values: std::mem::take(it), written: vec![1; *len] },
            None => Contents { values: vec![f64::NAN; *len], written: vec![0; *len] },
        }
    });
    contents.collect()
}

fn check_outputs(module: &Module, contents: &[Contents], sink: &mut Sink) {
    for (at, ((name, arg), it)) in module.args.iter().zip(contents).enumerate() {
        let Some(first) = it.written.iter().position(|it| *it == 0).filter(|_| arg.role == Role::Output)
        else {
            continue;
        };
        let count = it.written.iter().filter(|it| **it == 0).count();
        let number = |it: usize| i64::try_from(it).unwrap_or(i64::MAX);
        let (element, count) = (number(first), number(count));
        let key = Key { kind: u8::MAX, kernel: at, sites: [0; 2] };
        if !sink.count(key) {
            sink.keep(key, Finding::OutputUnwritten { buffer: name.clone(), element, count });
        }
    }
}
