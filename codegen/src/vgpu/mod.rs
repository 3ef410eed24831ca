//! The virtual GPU: executes a lowered program on the host and tries to break it.
//!
//! # Orders
//!
//! Blocks run one after the other, and the warps of a block one after the other from barrier to barrier; both in the
//! order that [`Settings::order`] chooses: as they are numbered, the last first, or drawn anew from a seed between any
//! two barriers. The lanes of a warp run in lockstep, their side effects in the same kind of order, or, without
//! [`Settings::lockstep`], some lanes drawn anew each time run to the next barrier before the others begin: since
//! Volta the lanes of a warp are scheduled independently, so that a program must not rely on lockstep. An asynchronous copy lands at the last moment that its
//! wait allows and takes what is in memory then, or, with [`Landing::Earliest`], in the moment in which it is started.
//! [`Settings::hostile`] has the runs that differ most from each other.
//!
//! Kernels with mbarriers, bulk copies, products of warpgroups or roles run warp by warp until a warp has to wait, in the same kinds
//! of order: the first that can go on, the last, or any. Their lanes are always in lockstep. A bulk copy to shared memory lands when
//! nobody can go on without it, at once, or, in a shuffled order, at any time between; a copy to global memory and a product at the
//! wait that covers them, or at once.
//!
//! Findings do not need a bad order: each element of shared memory, and of global memory that a kernel writes,
//! remembers who touched it last in which epoch between barriers, and two accesses that nothing orders are a finding
//! even if they happened to run in the right order. No order within a warp is assumed: two lanes that touch an
//! element between the same two barriers race like any two threads. An access to the destination of a copy under way
//! is a finding whenever the copy lands. Where warps meet elsewhere than at the barriers of their block, clocks say what comes before
//! what, and not epochs. The orders are there for what the rules do not see: numbers that come out
//! differently.
//!
//! Vectors, copies and rows of matrix loads that begin at no multiple of their size are findings, too: the hardware traps.
//! A shared buffer begins where it was put; other memory begins at a multiple of every size.
//!
//! # Counters
//!
//! What it counts is what a GPU would have to do, not how long that takes; [`Counters`] has the rules.
//!
//! It takes CPU kernels, too: as one block of one thread.

mod access;
mod align;
mod async_access;
mod bulk;
mod claim;
mod clock;
mod cluster;
mod compile;
mod counters;
mod estimate;
mod exec;
mod findings;
mod flight;
mod index;
mod mbarrier;
mod memory;
mod program;
mod random;
mod semaphore;
mod shadow;
mod step;
mod tcgen05;
mod tell;
mod tensor;
mod tensor_pending;
#[cfg(test)]
mod tests;
mod tile;
mod together;
mod track;
mod turn;
mod value;
mod warp_reduce;
mod wgmma;

use std::{collections::HashMap, sync::Arc};

use indexmap::IndexMap;
use ir::{Arch, Arg, Index, Module, Name, Role, ThreadAxis};

pub use counters::{Counters, Direction, Traffic};
pub use estimate::estimate;
pub use findings::{Access, CountedFinding, Finding, Waiting, WaitingTurn};
use findings::{Key, Sink};
use program::Program;
pub use shadow::RaceKind;

/// In which order the warps between two barriers, the lanes of a warp and the blocks of a grid run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ThreadOrder {
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
    pub order: ThreadOrder,
    /// Where shuffled orders come from.
    pub seed: u64,
    /// How many sorts of findings are kept.
    pub max_findings: usize,
    /// When asynchronous copies land.
    pub landing: Landing,
    /// Whether the lanes of a warp run in lockstep; else some run from barrier to barrier before the others, and
    /// nothing is counted.
    pub lockstep: bool,
}

/// When asynchronous copies land.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Landing {
    /// When the thread that started them waits for them.
    #[default]
    Latest,
    /// At once.
    Earliest,
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress<'a> {
    /// The kernel.
    pub kernel: &'a Name,
    /// How many of its blocks are done.
    pub done: i64,
    /// Of how many.
    pub of: i64,
}

/// What came of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// What is wrong, in the order in which it was found.
    pub findings: Vec<CountedFinding>,
    /// How many findings of further sorts were not kept.
    pub dropped: u64,
    /// How often a thread wrote to an element what another thread had written there, with nothing to order them:
    /// equal numbers, so that it does not matter who comes first.
    pub benign_writes: u64,
    /// Whether the run ended early, at a barrier that not all threads come to.
    pub stopped: bool,
    /// What each kernel that ran did, if lanes ran in lockstep.
    pub counters: Vec<Counters>,
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
    #[error(
        "kernel `{kernel}` would have {threads} threads in a block, and {} are possible",
        Arch::MAX_THREADS
    )]
    TooManyThreads { kernel: Name, threads: i64 },
    #[error("kernel `{kernel}` gives the role `{role}` {threads} threads, which are no whole warps")]
    PartOfAWarp { kernel: Name, role: Name, threads: usize },
    #[error(
        "kernel `{kernel}` would have clusters of {axes:?} blocks, and {} are possible",
        Arch::MAX_CLUSTER
    )]
    Cluster { kernel: Name, axes: [i64; 3] },
    #[error("kernel `{kernel}` would have {blocks} blocks, which would take days")]
    TooManyBlocks { kernel: Name, blocks: i64 },
    #[error("kernel `{kernel}` has more statements than can be told apart")]
    TooLong { kernel: Name },
    #[error("kernel `{kernel}` uses `{name}`, which is not in scope")]
    UnknownVariable { kernel: Name, name: Name },
    #[error("kernel `{kernel}` accesses `{buffer}`, which is neither an argument nor allocated")]
    UnknownBuffer { kernel: Name, buffer: Name },
    #[error("kernel `{kernel}` accesses `{buffer}` with more or less than one subscript")]
    NotFlat { kernel: Name, buffer: Name },
    #[error("kernel `{kernel}` gives `{intrinsic}` other operands than it takes")]
    Tensor { kernel: Name, intrinsic: &'static str },
    #[error("kernel `{kernel}` accesses {lanes} elements of `{buffer}` at once, and 1 to 128 are possible")]
    Lanes { kernel: Name, buffer: Name, lanes: u32 },
    #[error(
        "kernel `{kernel}` has threads of one block, or of one cluster, take different turns in `{buffer}`"
    )]
    OwnTurns { kernel: Name, buffer: Name },
    #[error("kernel `{kernel}` has a tensor map `{map}` that no driver encodes: {why}")]
    TensorMap { kernel: Name, map: Name, why: &'static str },
}

ir::codes!(VgpuError {
    Dimension = 2301,
    NoInput = 2302,
    InputLength = 2302,
    Launch = 2303,
    TooLarge = 2303,
    TooManyThreads = 2303,
    TooManyBlocks = 2303,
    Cluster = 2303,
    TooLong = 2303,
    UnknownVariable = 2304,
    UnknownBuffer = 2304,
    NotFlat = 2304,
    Tensor = 2304,
    Lanes = 2304,
    PartOfAWarp = 2304,
    OwnTurns = 2305,
    TensorMap = 2306,
});

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            order: ThreadOrder::Forward,
            seed: 1,
            max_findings: 16,
            landing: Landing::Latest,
            lockstep: true,
        }
    }
}

impl Settings {
    /// Runs that differ as much as runs can: forward with late copies, reversed with early copies and without
    /// lockstep, shuffled with late copies. The first one counts.
    pub fn hostile(seed: u64) -> [Settings; 3] {
        let base = Settings { seed, ..Settings::default() };
        [
            base.clone(),
            Settings {
                order: ThreadOrder::Reversed,
                landing: Landing::Earliest,
                lockstep: false,
                ..base.clone()
            },
            Settings { order: ThreadOrder::Shuffled, ..base },
        ]
    }

    /// The choice in words: `reversed, every thread alone, copies land early`.
    pub fn words(&self) -> String {
        let order = match self.order {
            ThreadOrder::Forward => "forward".to_owned(),
            ThreadOrder::Reversed => "reversed".to_owned(),
            ThreadOrder::Shuffled => format!("shuffled by seed {}", self.seed),
        };
        let lanes = if self.lockstep { "warps in lockstep" } else { "lanes split at random" };
        let landing = match self.landing {
            Landing::Latest => "copies land late",
            Landing::Earliest => "copies land early",
        };
        format!("{order}, {lanes}, {landing}")
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
pub(crate) const MAX_ELEMENTS: usize = 1 << 30;

/// Runs a program. `memory` holds the inputs; afterwards also outputs and workspace, NaN where nothing was written.
pub fn run(
    module: &Module,
    dims: &IndexMap<Name, i64>,
    memory: &mut IndexMap<Name, Vec<f64>>,
    settings: &Settings,
) -> Result<Report, VgpuError> {
    run_seen(module, dims, memory, settings, &mut |_| {})
}

/// The same, telling before each block how far it is.
pub fn run_seen(
    module: &Module,
    dims: &IndexMap<Name, i64>,
    memory: &mut IndexMap<Name, Vec<f64>>,
    settings: &Settings,
    seen: &mut dyn FnMut(Progress<'_>),
) -> Result<Report, VgpuError> {
    run_on(module, dims, memory, settings, seen, false)
}

/// The same, if wanted with every kernel on the engine that can stop a warp anywhere.
pub(crate) fn run_on(
    module: &Module,
    dims: &IndexMap<Name, i64>,
    memory: &mut IndexMap<Name, Vec<f64>>,
    settings: &Settings,
    seen: &mut dyn FnMut(Progress<'_>),
    all_resume: bool,
) -> Result<Report, VgpuError> {
    for name in &module.dims {
        if dims.get(name).is_none_or(|it| *it < 1) {
            return Err(VgpuError::Dimension { name: name.clone() });
        }
    }
    let sizes: HashMap<Name, i64> = dims.iter().map(|(name, it)| (name.clone(), *it)).collect();
    let lens = lens(module, &sizes, memory)?;
    let inputs = Arc::new(index::inputs(module, memory));
    let programs = module.kernels.iter().map(|it| Program::new(module, it, &sizes, &lens, &inputs));
    let mut programs: Vec<Program> = programs.collect::<Result<_, _>>()?;
    for it in &mut programs {
        it.resumes |= all_resume;
    }

    let mut contents = fill(module, &lens, memory);
    let mut run = exec::Run::new(settings, seen);
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
        let len = arg.elements().eval(&|it| dims.get(it).copied());
        let error = || VgpuError::TooLarge { buffer: buffer.clone(), len: arg.elements() };
        let expected = len.and_then(|it| usize::try_from(it).ok()).filter(|it| *it <= MAX_ELEMENTS);
        let expected = expected.ok_or_else(error)?;
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
            None if arg.zeroed => Contents { values: vec![0.0; *len], written: vec![1; *len] },
            None => Contents { values: vec![f64::NAN; *len], written: vec![0; *len] },
        }
    });
    contents.collect()
}

fn check_outputs(module: &Module, contents: &[Contents], sink: &mut Sink) {
    for (at, ((name, arg), it)) in module.args.iter().zip(contents).enumerate() {
        if let Some(first) = it.values.iter().position(|it| *it != 0.0).filter(|_| arg.zeroed) {
            let key = Key { kind: u8::MAX - 1, kernel: at, sites: [0; 2] };
            let element = i64::try_from(first).expect("it is in memory");
            #[expect(clippy::cast_possible_truncation, reason = "counters hold small integers")]
            let counter = it.values[first] as i64;
            if !sink.count(key) {
                sink.keep(key, Finding::TurnsLeft { buffer: name.clone(), element, counter });
            }
        }
        let Some(first) = it.written.iter().position(|it| *it == 0).filter(|_| arg.role == Role::Output)
        else {
            continue;
        };
        let count = it.written.iter().filter(|it| **it == 0).count();
        let number = |it: usize| i64::try_from(it).expect("it is in memory");
        let (element, count) = (number(first), number(count));
        let key = Key { kind: u8::MAX, kernel: at, sites: [0; 2] };
        if !sink.count(key) {
            sink.keep(key, Finding::OutputUnwritten { buffer: name.clone(), element, count });
        }
    }
}
