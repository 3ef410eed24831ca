//! A candidate that was tried, as the log has it.

use codegen::device::{Launch, Resources};
use indexmap::IndexMap;
use ir::Name;
use schedule::Choice;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TrialError;
use crate::{Stats, Verification};

/// A candidate that was tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Trial {
    /// The run.
    pub run: String,
    /// Its number in the run, from 0 and without gaps once the run is complete. With random search it depends on
    /// the seed alone.
    pub n: u64,
    /// SHA-256 of the workload, the target and the steps, in hexadecimal.
    pub id: String,
    /// What was decided for each knob that the schedule uses.
    pub decisions: IndexMap<Name, Choice>,
    /// Where it comes from.
    pub origin: Origin,
    /// SHA-256 of the emitted source, in hexadecimal.
    pub src: String,
    /// SHA-256 of the machine code, in hexadecimal, once there is some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bin: Option<String>,
    /// How the kernels are launched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<Launch>,
    /// Registers, spills and shared memory of each kernel, where a compiler told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub res: Vec<Resources>,
    /// Where the time went, in milliseconds.
    pub t: Times,
    /// What came out, unless there is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Measurement>,
    /// What stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TrialError>,
    /// The worker that had it last.
    pub worker: String,
    /// The name of the device that it was measured on. The event of the start of its worker says what that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// When it ended, RFC 3339 in UTC: `2026-01-31T12:00:00Z`.
    pub time: String,
    /// Fields of later versions.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub other: IndexMap<String, Value>,
}

impl Trial {
    /// Seconds per call, if its numbers are right and it is not faster than the machine can be.
    pub fn seconds(&self) -> Option<f64> {
        let result = self.result.as_ref().filter(|it| self.error.is_none() && !it.suspicious)?;
        (result.before.is_ok() && result.after.is_ok()).then_some(result.stats.median)
    }
}

/// Where a candidate comes from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Origin {
    /// Drawn at random.
    Random,
    /// Proposed by the roofline rule before the search began.
    Rule,
    /// The defaults of the script.
    Default,
    /// Made of an earlier trial by another choice for some knobs.
    Mutation {
        /// That trial.
        of: u64,
    },
    /// Made of two earlier trials.
    Crossover {
        /// These trials.
        of: [u64; 2],
    },
}

/// Where the time of a trial went, in milliseconds; absent where it did not get there.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Times {
    /// Scheduling, lowering and printing.
    pub generate: f64,
    /// The compiler.
    pub compile: f64,
    /// Loading, verifying and timing.
    pub measure: f64,
}

/// What measuring a candidate gave.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measurement {
    /// How many back-to-back calls a sample timed.
    pub calls: u32,
    /// Seconds per call, every sample in the order taken.
    pub seconds: Vec<f64>,
    /// In summary.
    pub stats: Stats,
    /// GFLOPS at the median.
    pub gflops: f64,
    /// Whether it was left after the screen, because it was clearly slower than the best so far.
    #[serde(default)]
    pub screened: bool,
    /// Whether it is faster than the machine can be: not a result.
    #[serde(default)]
    pub suspicious: bool,
    /// The clock of the multiprocessors in MHz, where it can be told: after each sample in finals, before the first and
    /// after the last one in a screen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock_mhz: Vec<f64>,
    /// The verdict before timing.
    pub before: Verification,
    /// The verdict after timing.
    pub after: Verification,
}
