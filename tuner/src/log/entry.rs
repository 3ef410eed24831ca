//! What the lines of a tuning log say.
//!
//! Every line is one JSON object. Its first key `k` says which kind it is, its last key `crc` is a checksum of the
//! bytes before it. Fields that this version does not know are kept where an entry is read and written again.

use codegen::device::MachineInfo;
use indexmap::IndexMap;
use ir::Name;
use schedule::Choice;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Finals, RunPlan, StepResult, Trial};
use crate::{Regime, Roofline, Work};

/// The version of the format that this build writes. Readers refuse a greater one.
pub const LOG_VERSION: u32 = 1;

/// One line of a log.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::schema::with_crc))]
#[serde(tag = "k", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "an entry lives as long as it takes to write its line")]
pub enum Entry {
    /// The head of a segment: what is tuned, how, on what.
    Run(Run),
    /// A candidate that was tried.
    Trial(Trial),
    /// A prefix of the winner's schedule, measured.
    Step(StepResult),
    /// The best candidates timed against each other and against the vendor's library.
    Finals(Finals),
    /// Something that happened to the run.
    Event(Event),
    /// A kind of a later version.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// The head of a segment. All that a replay needs besides a trial is here.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Run {
    /// The version of the format, [`LOG_VERSION`].
    pub v: u32,
    /// The name of the run; that of its segment file is made of it.
    pub run: String,
    /// The version of tilewright.
    pub tool: String,
    /// When it began, RFC 3339 in UTC: `2026-01-31T12:00:00Z`.
    pub time: String,
    /// The command line.
    pub args: Vec<String>,
    /// Where inputs, samples, orders and the search come from.
    pub seed: u64,
    /// The strategy of the search and its parameters.
    pub strategy: Strategy,
    /// The script that spans the space.
    pub script: SpaceScript,
    /// What is computed.
    pub workload: Workload,
    /// The target, as on the command line: `cpu`, `cuda:sm_90a`.
    pub target: String,
    /// The machine that measures: the first that came up, where there are several. The others are of the same model, and an
    /// event has each of them.
    pub machine: MachineInfo,
    /// The operating system and processor architecture of the host.
    pub host: String,
    /// How candidates are measured.
    pub measure: Protocol,
    /// How far the run goes.
    pub plan: RunPlan,
    /// The least time that the machine allows.
    pub roofline: Roofline,
    /// Fields of later versions.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub other: IndexMap<String, Value>,
}

/// How candidates are chosen.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Strategy {
    /// `random` or `evolution`.
    pub name: String,
    /// Its numbers.
    #[serde(default)]
    pub params: IndexMap<String, Value>,
}

/// The script that spans a space.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpaceScript {
    /// Its path as given, or the name of one that ships.
    pub name: String,
    /// Its text, whole.
    pub text: String,
    /// SHA-256 of the text and of the choices of each knob, in hexadecimal.
    pub sha256: String,
    /// The parameters of the workload, with the values they had.
    pub params: IndexMap<String, Value>,
    /// Each knob with its choices, the default first.
    pub knobs: IndexMap<Name, Vec<Choice>>,
    /// How many combinations of choices there are, before constraints; a decimal number.
    pub size: String,
}

/// What is computed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workload {
    /// SHA-256 of `program`, in hexadecimal.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The unscheduled program in its text form.
    pub program: String,
    /// The values of its symbolic dimensions.
    #[serde(default)]
    pub dims: IndexMap<Name, i64>,
    /// Operations on elements.
    pub flops: f64,
    /// Bytes of inputs and outputs.
    pub bytes: f64,
}

impl Workload {
    /// How much there is to do.
    pub fn work(&self) -> Work {
        Work { flops: self.flops, bytes: self.bytes }
    }
}

/// How candidates are measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Protocol {
    /// The version of the measurement protocol: `v1`.
    pub proto: String,
    /// The state of the machine in finals.
    pub regime: Regime,
    /// What the caches hold when a sample starts, in words.
    pub caches: String,
    /// What the inputs are drawn from, in words.
    pub data: String,
    /// CPU threads, 0 for all.
    pub threads: usize,
}

/// Something that happened to a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Event {
    /// The run.
    pub run: String,
    /// What.
    pub what: Happening,
    /// In words.
    #[serde(default)]
    pub detail: String,
    /// How many candidates were refused before any compiler or device saw them, by reason, so far.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub rejected: IndexMap<String, u64>,
    /// What a worker that was started measures on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<MeasuringDevice>,
    /// When, RFC 3339 in UTC: `2026-01-31T12:00:00Z`.
    pub time: String,
    /// Fields of later versions.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub other: IndexMap<String, Value>,
}

/// One of the devices that a run measures on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuringDevice {
    /// Its name, which trials and finals repeat: `GPU-5c1f2a3b`, and in a cluster the host before it.
    pub name: String,
    /// What it is.
    pub machine: MachineInfo,
}

impl MeasuringDevice {
    /// The device of a worker that has one.
    pub fn of(machine: MachineInfo) -> MeasuringDevice {
        MeasuringDevice { name: machine.id.clone().unwrap_or_else(|| machine.arch.clone()), machine }
    }
}

/// What happened to a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it, and `detail` says the rest")]
pub enum Happening {
    WorkerStarted,
    WorkerReplaced,
    WorkerQuarantined,
    /// An answer that nobody waits for: twice, late, or with a wrong number.
    StrayAnswer,
    /// Something that a worker wants the user to know.
    Warning,
    TailTruncated,
    Throttled,
    Resumed,
    Stopped,
    Finished,
    #[serde(other)]
    Other,
}

impl Happening {
    /// Whether the run is complete after it; none if it says nothing of that.
    pub const fn completes(self) -> Option<bool> {
        match self {
            Happening::Finished => Some(true),
            Happening::Resumed | Happening::Stopped => Some(false),
            Happening::WorkerStarted
            | Happening::WorkerReplaced
            | Happening::WorkerQuarantined
            | Happening::StrayAnswer
            | Happening::TailTruncated
            | Happening::Throttled
            | Happening::Warning
            | Happening::Other => None,
        }
    }
}
