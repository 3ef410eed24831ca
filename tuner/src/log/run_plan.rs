//! How far a run goes.

use schedule::Step;
use serde::{Deserialize, Serialize};

use crate::Regime;

/// How far to go. The head of a run has it, so that `resume` goes just as far.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunPlan {
    /// How many trials.
    pub trials: u64,
    /// For how many seconds the search may go on.
    pub seconds: Option<f64>,
    /// How many of the best meet in the finals, 0 for none.
    pub finalists: usize,
    /// The state of the machine in the finals.
    pub regime: Regime,
    /// How many rounds they take.
    pub rounds: usize,
    /// Whether the vendor's library takes part.
    pub baseline: bool,
    /// Schedules that the best have to beat.
    #[serde(default)]
    pub incumbents: Vec<Incumbent>,
    /// Whether each prefix of the winner's schedule is measured.
    pub per_step: bool,
    /// CPU threads that programs use, 0 for all.
    pub threads: usize,
    /// Whether compilers must rest while a program is timed, as on a CPU.
    pub exclusive: bool,
}

/// A schedule that the best of a run have to beat.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Incumbent {
    /// What it is called: the path of its script.
    pub name: String,
    /// Its steps, no knobs left.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<serde_json::Value>"))]
    pub steps: Vec<Step>,
}
