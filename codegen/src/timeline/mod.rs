//! The timeline of software pipelines: what runs when in the lowered kernel, what each slot holds meanwhile, and
//! where threads wait for copies and for each other.
//!
//! Time goes in steps. In step `t` a statement of stage `s` works on iteration `t - s`. The first steps are the
//! prologue, in which later stages have nothing to do yet, the last ones the epilogue.

mod find;
mod moved;
mod occupancy;
mod ring;

use std::fmt;

use ir::{Kernel, Module, Name, Scope};
use serde::{Serialize, Serializer};

use crate::lower::PipelineReport;
use find::Found;
pub use occupancy::{Choice, Consequences, consequences};

/// One pipelined loop of a lowered program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Timeline {
    /// The kernel that it is in.
    pub kernel: Name,
    /// The loop.
    pub var: Name,
    /// The pipelined loop around it, if it is nested in one.
    pub inside: Option<Name>,
    /// How many iterations there are.
    pub extent: String,
    /// The same, if it is known here.
    pub trips: Option<i64>,
    /// `peel` or `predicate`.
    pub style: &'static str,
    /// How many iterations the body of the steady loop has.
    pub unroll: i64,
    /// The last stage: the number of steps of the prologue and of the epilogue.
    pub last: i64,
    /// After how many steps the slots are the same ones again.
    pub cycle: i64,
    /// The threads of a block, if the kernel says.
    pub threads: Option<i64>,
    /// The statements in the order in which they run in a step.
    pub statements: Vec<Statement>,
    /// The buffers that each iteration fills.
    pub rings: Vec<Ring>,
    /// The steps.
    pub columns: Vec<Column>,
    /// The barriers of the columns, in the order of the kernel.
    pub barriers: Vec<Barrier>,
}

/// A statement of a pipeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Statement {
    /// Its name.
    pub name: Name,
    /// Its stage.
    pub stage: i64,
    /// Its place in a step.
    pub order: i64,
    /// How it moves its data.
    pub mechanism: &'static str,
    /// Why so, if there was a choice.
    pub reason: String,
    /// What it reads of the memory that threads share, in one iteration.
    pub reads: Vec<Moved>,
    /// What it writes there.
    pub writes: Vec<Moved>,
}

/// Bytes that a block of threads moves; at most so many, where some threads have nothing to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Moved {
    /// From or to this buffer.
    pub buffer: Name,
    /// Its memory.
    #[serde(serialize_with = "scope_word")]
    pub scope: Scope,
    /// How many; unknown where a loop has no constant extent.
    pub bytes: Option<i64>,
}

/// A buffer of which there are several, for iterations that overlap.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Ring {
    /// The buffer.
    pub buffer: Name,
    /// Its memory.
    #[serde(serialize_with = "scope_word")]
    pub scope: Scope,
    /// How many iterations of it there are.
    pub slots: i64,
    /// How many the stages and the order need.
    pub needed: i64,
    /// How many the script asks for.
    pub forced: Option<i64>,
    /// The bytes of one slot.
    pub bytes: i64,
    /// What asking for slots did, if it was asked.
    pub note: Option<String>,
}

/// Which part of a pipeline a step belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Part {
    Prologue,
    Steady,
    Epilogue,
}

/// An iteration or a step, counted from a place in time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Moment {
    /// From where.
    pub base: Base,
    /// How far.
    pub offset: i64,
}

/// Where counting starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Base {
    /// The first iteration.
    Start,
    /// `i`: any step of the steady state that is a multiple of the cycle.
    Steady,
    /// `n`: the number of iterations, here taken to be a multiple of the cycle.
    End,
}

/// One step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Column {
    /// The part that it belongs to.
    pub part: Part,
    /// Which step it is.
    pub step: Moment,
    /// The iteration that each statement works on, if it runs.
    pub runs: Vec<Option<Moment>>,
    /// What happens before each statement, and in the last place after all.
    pub syncs: Vec<Vec<Sync>>,
    /// For each ring, for each slot: the iterations whose data it holds in this step.
    pub slots: Vec<Vec<Vec<Held>>>,
    /// How many groups of copies a thread may have under way at the end.
    pub in_flight: u32,
}

/// Something that orders threads or copies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// A group of copies is closed.
    Commit,
    /// The thread waits for its copies.
    Wait {
        /// How many groups may stay under way.
        in_flight: u32,
        /// What it waits for.
        buffers: Vec<Name>,
    },
    /// The threads wait for each other: which of the barriers.
    Barrier {
        /// Its position in the list of barriers.
        at: usize,
        /// Whether it stands inside the statement, not before it.
        inside: bool,
    },
}

/// A barrier.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Barrier {
    /// The part in which it stands.
    pub part: Part,
    /// The statement before which it stands, or inside which; none at the end of a step.
    pub before: Option<Name>,
    /// What it is there for, as the kernel says.
    pub proof: Vec<String>,
}

/// Data in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Held {
    /// The iteration it belongs to.
    pub iteration: Moment,
    /// Whether it is surely there, and not a copy under way.
    pub landed: bool,
}

/// The timelines of a lowered program's pipelines, outer before inner.
pub fn timelines(module: &Module, reports: &[PipelineReport]) -> Vec<Timeline> {
    let mut out: Vec<Timeline> = Vec::new();
    for report in reports {
        let found = module.kernels.iter().find_map(|kernel| Some((kernel, find::find(kernel, report)?)));
        if let Some((kernel, found)) = found {
            out.push(timeline(module, kernel, report, reports, found));
        }
    }
    let mut order: Vec<_> = (0..out.len()).map(|at| (depth(&out, &out[at]), at)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| out[at].clone()).collect()
}

/// How many pipelines are around one.
fn depth(all: &[Timeline], it: &Timeline) -> usize {
    let around = |it: &&Timeline| {
        let outer = it.inside.as_ref()?;
        all.iter().find(|other| other.var == *outer && other.kernel == it.kernel)
    };
    std::iter::successors(Some(it), |it| around(it)).take(all.len()).count()
}

fn timeline(
    module: &Module,
    kernel: &Kernel,
    report: &PipelineReport,
    reports: &[PipelineReport],
    found: Found<'_>,
) -> Timeline {
    let threads = kernel.launch.iter().filter(|(axis, _)| axis.is_thread());
    let threads = threads.map(|(_, extent)| extent.as_int()).product::<Option<i64>>();
    let schedule = ring::Schedule::of(report);
    let around = found.around.iter().rev().find(|it| reports.iter().any(|other| other.var == **it));
    Timeline {
        kernel: kernel.name.clone(),
        var: report.var.clone(),
        inside: around.cloned(),
        extent: report.extent.to_string(),
        trips: schedule.trips,
        style: report.style,
        unroll: report.unroll,
        last: schedule.last,
        cycle: schedule.cycle,
        threads,
        statements: moved::statements(module, kernel, &schedule, &found.bodies, threads),
        rings: report.buffers.iter().map(ring::ring).collect(),
        columns: ring::columns(&schedule, report, &found),
        barriers: found.barriers,
    }
}

impl Timeline {
    /// How many steps the steady loop takes, if it is known.
    pub fn steady_steps(&self) -> Option<i64> {
        self.trips.map(|it| (it - self.last).max(0))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = match self.base {
            Base::Start => return write!(f, "{}", self.offset),
            Base::Steady => "i",
            Base::End => "n",
        };
        match self.offset {
            0 => f.write_str(base),
            offset => write!(f, "{base}{offset:+}"),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Prologue => "prologue",
            Part::Steady => "steady",
            Part::Epilogue => "epilogue",
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn scope_word<S: Serializer>(scope: &Scope, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(scope.as_str())
}
