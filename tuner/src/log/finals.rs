//! What comes after the search: finals, and the winner step by step.

use serde::{Deserialize, Serialize};

use super::{Measurement, TrialError};
use crate::{Regime, bootstrap::Interval};

/// A prefix of the winner's schedule, measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct StepResult {
    /// The run.
    pub run: String,
    /// The trial whose schedule it is.
    pub n: u64,
    /// How many steps were applied.
    pub steps: usize,
    /// The last of them as a script has it; empty before the first.
    pub step: String,
    /// SHA-256 of the emitted source, in hexadecimal, where there is one.
    pub src: String,
    /// What came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Measurement>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TrialError>,
    /// Whether the source is that of the step before, whose result this then is.
    #[serde(default)]
    pub no_effect: bool,
    /// When, RFC 3339 in UTC: `2026-01-31T12:00:00Z`.
    pub time: String,
}

/// The best candidates timed against each other in the same rounds of one process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Finals {
    /// The run.
    pub run: String,
    /// How many rounds, those dropped for their clocks included.
    pub rounds: usize,
    /// How many were dropped.
    pub dropped: usize,
    /// The regime.
    pub regime: Regime,
    /// The name of the device that all of them were timed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The same program against itself: no difference smaller than this means anything.
    pub noise_floor: Option<Interval>,
    /// The participants, the fastest first. The winner is the first.
    pub finalists: Vec<Finalist>,
    /// The vendor's library, if it has this product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Why there is no baseline although the workload is a matrix product and one was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_baseline: Option<String>,
    /// When, RFC 3339 in UTC: `2026-01-31T12:00:00Z`.
    pub time: String,
}

/// A participant of the finals.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finalist {
    /// The trial; none for an incumbent.
    pub n: Option<u64>,
    /// What an incumbent is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The candidate: SHA-256 of the workload, the target and the steps, in hexadecimal.
    pub id: String,
    /// What came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Measurement>,
    /// What stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TrialError>,
    /// How many times as fast as the winner, round by round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus_winner: Option<Interval>,
    /// How many times as fast as the vendor's library, round by round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus_baseline: Option<Interval>,
}

/// The vendor's library in the finals.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Baseline {
    /// Which, with its version: `cuBLASLt 13.1.0`.
    pub name: String,
    /// Seconds per call of its own first choice, in the same process.
    pub heuristic_seconds: Option<f64>,
    /// How many of its algorithms were tried.
    pub tried: usize,
    /// Seconds per call of the best of them, in the rounds.
    pub seconds: Vec<f64>,
    /// In GFLOPS at the median.
    pub gflops: f64,
}
