//! What a schedule can be measured by without a clock: properties of the program, of the kernel, and what the virtual
//! GPU counts. The same schedule has the same numbers everywhere.
//!
//! A measure asks what is done, never how a script says it: which memory a block walks through and in what steps, not
//! which `split` made the loops. Blocks and buffers have the names of the workload.

use codegen::vgpu::{Counters, Direction, Traffic};
use ir::{Func, Group, IterKind, LoopKind, Module, Name, Numbers, Role, Scope};
use serde::Deserialize;

use super::{kernel, nest};

/// Something measured.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Metric {
    /// How many elements of a buffer lie between two turns of the innermost loop around a block.
    Stride { block: Name, buffer: Name },
    /// How many bytes of a buffer a block reads between two uses of one element.
    Reuse { block: Name, buffer: Name },
    /// How often a block computes for each element that it reads, in one turn of the innermost loop of its sum.
    Intensity { block: Name },
    /// Conditions that the kernels ask.
    Conditions,
    /// The lanes of the narrowest vectors that write a buffer.
    Lanes { buffer: Name },
    /// Copies of a buffer that are made, a part at a time, in a loop of their reader.
    Copies { buffer: Name, scope: String },
    /// Blocks that sum up in a memory.
    Sums { scope: String },
    /// Bytes of temporaries in a memory.
    Temporary { scope: String },
    /// Temporaries in global memory.
    Temporaries,
    /// Iterations that threads of a CPU share, of the outermost loop around a block.
    Parallel { block: Name },
    /// Threads of a block.
    Threads,
    /// Blocks of a grid.
    Blocks,
    /// Stages of the longest software pipeline.
    Stages,
    /// Groups of asynchronous copies that may be under way at a wait.
    InFlight,
    /// Groups of products of warpgroups that may be under way at a wait.
    ProductsInFlight,
    /// Asynchronous copies in the source.
    AsyncCopies,
    /// Boxes in the source that the copy engine brings.
    Boxes,
    /// Those of them that it brings to several blocks of a cluster.
    SharedBoxes,
    /// Products of warpgroups in the source.
    Products,
    /// Roles that the warps of a block have.
    Roles,
    /// Registers of a thread, of the role that gives its threads the most.
    Registers,
    /// Tensor instructions in the source whose names start so.
    Instructions { of: String },
    /// Bytes of shared memory of a block.
    SharedBytes,
    /// Requests to global and shared memory.
    Requests,
    /// Requests that read a buffer.
    Reads { buffer: Name },
    /// Requests that write a buffer.
    Writes { buffer: Name },
    /// Wavefronts of shared memory for one that would do.
    SharedRatio,
    /// Sectors of global memory for one that would do.
    GlobalRatio,
    /// Sectors of global memory.
    Sectors,
    /// Barriers that blocks pass.
    Barriers,
}

/// A schedule, ready to be measured.
pub(super) struct PreparedSchedule {
    /// The scheduled program and its kernels, at the sizes of the script.
    pub(super) func: Func,
    pub(super) module: Module,
    /// What the virtual GPU counted at the sizes of the check; empty if it did not run.
    pub(super) counters: Vec<Counters>,
}

impl Metric {
    /// The value, if the program has what is asked about.
    pub(super) fn of(&self, prepared: &PreparedSchedule) -> Option<f64> {
        let count = |it: usize| Some(it as f64);
        match self {
            Metric::Stride { block, buffer } => {
                nest::stride(&prepared.func, block, buffer).map(|it| it as f64)
            }
            Metric::Reuse { block, buffer } => nest::reuse(&prepared.func, block, buffer),
            Metric::Intensity { block } => nest::intensity(&prepared.func, block),
            Metric::Conditions => count(kernel::conditions(&prepared.module)),
            Metric::Lanes { buffer } => nest::lanes(&prepared.func, buffer),
            Metric::Copies { buffer, scope } => {
                count(nest::copies(&prepared.func, buffer, Scope::parse(scope)?))
            }
            Metric::Sums { scope } => count(sums(&prepared.func, Scope::parse(scope)?)),
            Metric::Temporary { scope } => Some(kernel::temporary(&prepared.module, Scope::parse(scope)?)),
            Metric::Temporaries => {
                let is_one = |it: &&ir::Buffer| it.role == Role::Temp && it.scope == Scope::Global;
                count(prepared.func.buffers.values().filter(is_one).count())
            }
            Metric::Parallel { block } => {
                let loops = prepared.func.loops_of(block)?;
                let outer = loops.first().filter(|it| it.kind == LoopKind::Parallel);
                outer.map_or(Some(1.0), |it| it.extent.as_int().map(|it| it as f64))
            }
            Metric::Threads => kernel::launched(&prepared.module, true),
            Metric::Blocks => kernel::launched(&prepared.module, false),
            Metric::Stages => count(stages(&prepared.func)),
            Metric::InFlight => count(kernel::in_flight(&prepared.module, Group::CpAsync)),
            Metric::ProductsInFlight => count(kernel::in_flight(&prepared.module, Group::Wgmma)),
            Metric::AsyncCopies => count(kernel::async_copies(&prepared.module)),
            Metric::Boxes => count(kernel::boxes(&prepared.module)),
            Metric::SharedBoxes => count(kernel::shared_boxes(&prepared.module)),
            Metric::Products => count(kernel::products(&prepared.module)),
            Metric::Roles => count(kernel::roles(&prepared.module)),
            Metric::Registers => kernel::registers(&prepared.module),
            Metric::Instructions { of } => count(kernel::instructions(&prepared.module, of)),
            Metric::SharedBytes => Some(kernel::temporary(&prepared.module, Scope::Shared)),
            Metric::Requests => prepared.sum(&|_| true, &|it| it.requests),
            Metric::Reads { buffer } => {
                prepared.sum(&|it| it.buffer == *buffer && it.direction == Direction::Read, &|it| it.requests)
            }
            Metric::Writes { buffer } => prepared
                .sum(&|it| it.buffer == *buffer && it.direction == Direction::Write, &|it| it.requests),
            Metric::SharedRatio => prepared.ratio("shared"),
            Metric::GlobalRatio => prepared.ratio("global"),
            Metric::Sectors => prepared.sum(&|it| it.space == "global", &|it| it.units),
            Metric::Barriers => {
                let sum: u64 = prepared.counters.iter().map(|it| it.barriers).sum();
                (!prepared.counters.is_empty()).then_some(sum as f64)
            }
        }
    }

    /// What it is, in words.
    pub(super) fn words(&self) -> String {
        match self {
            Metric::Stride { block: _, buffer } => format!("stride of `{buffer}` in the innermost loop"),
            Metric::Reuse { block: _, buffer } => {
                format!("bytes of `{buffer}` read before an element is used again")
            }
            Metric::Intensity { block: _ } => "multiply-adds for each number read".to_owned(),
            Metric::Conditions => "conditions in the program".to_owned(),
            Metric::Lanes { buffer } => format!("elements of `{buffer}` written at once"),
            Metric::Copies { buffer, scope } => format!("copies of tiles of `{buffer}` in {scope} memory"),
            Metric::Sums { scope } => format!("sums kept in {scope} memory"),
            Metric::Temporary { scope } => format!("bytes of temporaries in {scope} memory"),
            Metric::Temporaries => "temporary matrices in global memory".to_owned(),
            Metric::Parallel { block: _ } => "iterations that threads can share".to_owned(),
            Metric::Threads => "threads in a block".to_owned(),
            Metric::Blocks => "blocks in the grid".to_owned(),
            Metric::Stages => "stages of the pipeline".to_owned(),
            Metric::InFlight => "groups of copies under way at a wait".to_owned(),
            Metric::ProductsInFlight => "groups of products under way at a wait".to_owned(),
            Metric::AsyncCopies => "asynchronous copies in the source".to_owned(),
            Metric::Boxes => "boxes in the source that the copy engine brings".to_owned(),
            Metric::SharedBoxes => "boxes that it brings to several blocks at once".to_owned(),
            Metric::Products => "products of warpgroups in the source".to_owned(),
            Metric::Roles => "roles of the warps of a block".to_owned(),
            Metric::Registers => "registers of a thread that multiplies".to_owned(),
            Metric::Instructions { of } => format!("instructions `{of}…` in the source"),
            Metric::SharedBytes => "bytes of shared memory for a block".to_owned(),
            Metric::Requests => "requests to memory".to_owned(),
            Metric::Reads { buffer } => format!("requests that read `{buffer}`"),
            Metric::Writes { buffer } => format!("requests that write `{buffer}`"),
            Metric::SharedRatio => "wavefronts of shared memory, as a multiple of the fewest".to_owned(),
            Metric::GlobalRatio => "sectors of global memory, as a multiple of the fewest".to_owned(),
            Metric::Sectors => "sectors of global memory".to_owned(),
            Metric::Barriers => "barriers passed by blocks".to_owned(),
        }
    }
}

impl PreparedSchedule {
    fn traffic(&self) -> impl Iterator<Item = &Traffic> {
        self.counters.iter().flat_map(|it| &it.traffic)
    }

    /// Of the accesses that were counted; `None` if nothing ran.
    fn sum(&self, of: &dyn Fn(&Traffic) -> bool, what: &dyn Fn(&Traffic) -> u64) -> Option<f64> {
        let sum: u64 = self.traffic().filter(|it| of(it)).map(what).sum();
        (!self.counters.is_empty()).then_some(sum as f64)
    }

    /// `None` if the memory was not used.
    fn ratio(&self, space: &str) -> Option<f64> {
        let units = self.sum(&|it| it.space == space, &|it| it.units)?;
        let ideal = self.sum(&|it| it.space == space, &|it| it.ideal)?;
        (ideal > 0.0).then(|| units / ideal)
    }
}

/// Blocks that reduce into buffers of a scope.
fn sums(func: &Func, scope: Scope) -> usize {
    let in_scope = |name: &Name| func.buffers.get(name).is_some_and(|it| it.scope == scope);
    let is_one = |it: &&&ir::Block| {
        it.iters.iter().any(|it| it.kind == IterKind::Reduce)
            && it.writes().iter().all(|it| in_scope(&it.buffer))
    };
    func.body.blocks().iter().filter(is_one).count()
}

/// One more than the last stage of any pipeline; 1 without a pipeline.
fn stages(func: &Func) -> usize {
    let last = |it: &Numbers| match it {
        Numbers::Map(it) => it.values().copied().max(),
        Numbers::List(it) => it.iter().copied().max(),
    };
    let loops = func.loops();
    let all = loops.iter().filter_map(|it| last(it.attrs.pipeline.as_ref()?.stages.as_ref()?));
    all.max().and_then(|it| usize::try_from(it).ok()).unwrap_or(0) + 1
}
