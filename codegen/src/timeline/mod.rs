//! The timeline of software pipelines: what runs when in the lowered kernel, what each slot holds meanwhile, and
//! where threads wait for copies and for each other.
//!
//! Time goes in steps. In step `t` a statement of stage `s` works on iteration `t - s`. The first steps are the
//! prologue, in which later stages have nothing to do yet, the last ones the epilogue. Warps with a role have a lane of their own; those
//! that fill slots are drawn as far ahead as slots are free.

mod clock;
mod find;
mod moved;
mod occupancy;
mod pace;
mod phases;
mod replay;
mod ring;
mod sync;

use std::fmt;

use ir::{Group, Kernel, Module, Name, Scope};
use serde::{Serialize, Serializer};

use crate::lower::{Lowered, PipelineReport};
use clock::Clock;
use find::LoweredPipeline;
pub use occupancy::{Choice, Compiled, Consequences, consequences, without_pipelines};
use pace::Pace;
pub use sync::{Barrier, Groups, Lane, SlotBarrier, Sync, in_groups};

/// One pipelined loop of a lowered program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// What that number is called in steps: `n`, if its expression has no other `n`.
    pub count: char,
    /// `peel` or `predicate`.
    pub style: &'static str,
    /// How many iterations the body of the steady loop has.
    pub unroll: i64,
    /// Why its stages, order and slots are as they are, if they were worked out and not written by hand.
    pub reason: Option<String>,
    /// How often the steady loop runs, if it is known.
    pub runs: Option<i64>,
    /// The number of steps of the prologue and of the epilogue: the last stage, or how far roles are apart.
    pub last: i64,
    /// After how many steps the slots are the same ones again.
    pub cycle: i64,
    /// The threads of a block, if the kernel says.
    pub threads: Option<i64>,
    /// Those who run its statements: each role, or all threads.
    pub lanes: Vec<Lane>,
    /// The statements in the order in which they run in a step, lane by lane.
    pub statements: Vec<Statement>,
    /// The buffers that each iteration fills.
    pub rings: Vec<Ring>,
    /// The steps.
    pub columns: Vec<Column>,
    /// The barriers of the columns, in the order of the kernel.
    pub barriers: Vec<Barrier>,
    /// The mbarriers of the columns.
    pub mbarriers: Vec<SlotBarrier>,
    /// The groups of asynchronous work that the columns count.
    pub groups: Vec<Groups>,
}

/// A statement of a pipeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Statement {
    /// Its name.
    pub name: Name,
    /// The role whose warps run it; none where all threads do the same.
    pub role: Option<Name>,
    /// The stage that the script gives it, counted from the first.
    pub stage: i64,
    /// The place in a step that the script gives it.
    pub order: i64,
    /// How it moves its data.
    pub mechanism: &'static str,
    /// Why so, if there was a choice.
    pub reason: String,
    /// What it reads of the memory that threads share, in one iteration.
    pub reads: Vec<Moved>,
    /// What it writes there.
    pub writes: Vec<Moved>,
    /// Which of the mbarriers count the bytes of its copies.
    pub fills: Option<usize>,
}

/// Bytes that a block of threads moves; at most so many, where some threads have nothing to do.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moved {
    /// From or to this buffer.
    pub buffer: Name,
    /// Its memory.
    #[serde(serialize_with = "scope_word")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub scope: Scope,
    /// How many; unknown where a loop has no constant extent.
    pub bytes: Option<i64>,
}

/// A buffer of which there are several, for iterations that overlap.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ring {
    /// The buffer.
    pub buffer: Name,
    /// Its memory.
    #[serde(serialize_with = "scope_word")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// `t`: any step of the steady state that is a multiple of the cycle.
    Steady,
    /// The number of iterations, under this letter, here taken to be a multiple of the cycle.
    End(char),
    /// The first iteration of the next run of the loop, into which a role goes on while others finish this one.
    Next,
}

/// One step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Column {
    /// The part that it belongs to.
    pub part: Part,
    /// Which step it is.
    pub step: Moment,
    /// The iteration that each statement works on, if it runs.
    pub runs: Vec<Option<Moment>>,
    /// What happens before each statement.
    pub syncs: Vec<Vec<Sync>>,
    /// What happens in each lane after its last statement.
    pub ends: Vec<Vec<Sync>>,
    /// For each ring, for each slot: the iterations whose data it holds in this step.
    pub slots: Vec<Vec<Vec<Held>>>,
    /// How many groups of each kind a thread may have under way at the end; empty ones do not count.
    pub in_flight: Vec<usize>,
}

/// Data in a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Held {
    /// The iteration it belongs to.
    pub iteration: Moment,
    /// Whether it is surely there at the end of the step, and not a copy under way.
    pub landed: bool,
}

/// The timelines of the pipelines of a lowered program, outer before inner.
pub fn timelines(lowered: &Lowered) -> Vec<Timeline> {
    let reports = &lowered.pipelines;
    if reports.is_empty() {
        return vec![];
    }
    let module = lowered.module.clone().with_remainders();
    let mut out: Vec<Timeline> = Vec::new();
    for report in reports {
        let told = module.kernels.iter().find_map(|kernel| {
            let clock = Clock::of(report, kernel);
            let found = find::find(kernel, &clock)?;
            Some(timeline(&module, kernel, report, reports, (&clock, found)))
        });
        out.extend(told);
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
    (clock, found): (&Clock, LoweredPipeline<'_>),
) -> Timeline {
    let around = found.around.iter().rev().find(|it| reports.iter().any(|other| other.var == **it));
    let pace = Pace::of(clock, &found);
    let lanes = pace.lanes(clock, kernel);
    let counted = counted(&found);
    let columns = ring::columns(clock, &pace, report, &found, &counted);
    let groups = counted.iter().map(|(lane, kind)| Groups { role: clock.lanes[*lane].clone(), kind: *kind });
    Timeline {
        kernel: kernel.name.clone(),
        var: report.var.clone(),
        inside: around.cloned(),
        extent: report.extent.to_string(),
        trips: clock.trips,
        count: ring::count_letter(report),
        style: report.style,
        unroll: report.unroll,
        reason: report.reason.clone(),
        runs: clock.runs(),
        last: pace.last,
        cycle: clock.cycle,
        threads: threads(kernel),
        statements: moved::statements(module, kernel, clock, &found, &lanes),
        lanes,
        rings: report.buffers.iter().map(ring::ring).collect(),
        columns,
        barriers: found.barriers,
        mbarriers: found.mbarriers,
        groups: groups.collect(),
    }
}

/// The threads of a block, if the kernel says.
fn threads(kernel: &Kernel) -> Option<i64> {
    let mut of_launch = kernel.launch.iter().filter(|(axis, _)| axis.is_thread());
    of_launch.all(|(_, extent)| extent.as_int().is_some()).then(|| kernel.threads())
}

/// The groups that are closed anywhere in a pipeline: the lane of each, and its kind.
fn counted(found: &LoweredPipeline<'_>) -> Vec<(usize, Group)> {
    let mut out = Vec::new();
    for ((lane, ..), step) in &found.steps {
        for (_, sync) in phases::synced(step) {
            if let Sync::Commit { group } = sync
                && !out.contains(&(*lane, *group))
            {
                out.push((*lane, *group));
            }
        }
    }
    out
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = match self.base {
            Base::Start => return write!(f, "{}", self.offset),
            Base::Next => return write!(f, "{}'", self.offset),
            Base::Steady => 't',
            Base::End(letter) => letter,
        };
        match self.offset {
            0 => write!(f, "{base}"),
            offset => write!(f, "{base}{offset:+}"),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// It is written as a text: `t+1`.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "An iteration or a step: a number counts from the first, `t` from any step of the steady state \
                            that is a multiple of the cycle, another letter from the number of iterations; one with an \
                            apostrophe is of the next run of the loop.",
        })
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
