//! The timeline of software pipelines: what runs when in the lowered kernel, what each slot holds meanwhile, and
//! where threads wait for copies and for each other.
//!
//! Time goes in steps. In step `t` a statement of stage `s` works on iteration `t - s`. The first steps are the
//! prologue, in which later stages have nothing to do yet, the last ones the epilogue.

mod clock;
mod find;
mod moved;
mod occupancy;
mod ring;

use std::fmt;

use ir::{Kernel, Module, Name, Scope};
use serde::{Serialize, Serializer};

use crate::lower::{Lowered, PipelineReport};
use clock::Clock;
use find::LoweredPipeline;
pub use occupancy::{Choice, Compiled, Consequences, consequences, without_pipelines};

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
    /// How often the steady loop runs, if it is known.
    pub runs: Option<i64>,
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// What happens before each statement, and in the last place after all.
    pub syncs: Vec<Vec<Sync>>,
    /// For each ring, for each slot: the iterations whose data it holds in this step.
    pub slots: Vec<Vec<Vec<Held>>>,
    /// How many groups of copies a thread may have under way at the end; empty ones do not count.
    pub in_flight: usize,
}

/// Something that orders threads or copies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        let clock = Clock::of(report);
        let found = module.kernels.iter().find_map(|kernel| Some((kernel, find::find(kernel, &clock)?)));
        if let Some((kernel, found)) = found {
            out.push(timeline(&module, kernel, report, reports, (&clock, found)));
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
    (clock, found): (&Clock, LoweredPipeline<'_>),
) -> Timeline {
    let threads = kernel.launch.iter().filter(|(axis, _)| axis.is_thread());
    let threads = threads.map(|(_, extent)| extent.as_int()).product::<Option<i64>>();
    let around = found.around.iter().rev().find(|it| reports.iter().any(|other| other.var == **it));
    Timeline {
        kernel: kernel.name.clone(),
        var: report.var.clone(),
        inside: around.cloned(),
        extent: report.extent.to_string(),
        trips: clock.trips,
        count: ring::count_letter(report),
        style: report.style,
        unroll: report.unroll,
        runs: clock.runs(),
        last: clock.last,
        cycle: clock.cycle,
        threads,
        statements: moved::statements(module, kernel, clock, &found.bodies, threads),
        rings: report.buffers.iter().map(ring::ring).collect(),
        columns: ring::columns(clock, report, &found),
        barriers: found.barriers,
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = match self.base {
            Base::Start => return write!(f, "{}", self.offset),
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
                            that is a multiple of the cycle, another letter from the number of iterations.",
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
