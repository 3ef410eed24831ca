//! How to time: regimes and their usual numbers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What state the machine is in when a sample is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Regime {
    /// Idle first, then a short burst of back-to-back calls: full clocks, warm caches.
    Cool,
    /// Busy for a second and more before and all the time between: the clocks that the power limit allows.
    Sustained,
    /// Single calls, each after the last-level cache was overwritten.
    ColdL2,
}

/// How to time. [`Settings::new`] has the usual values.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The state of the machine.
    pub regime: Regime,
    /// CPU threads that programs may use, 0 for all.
    pub threads: usize,
    /// How many rounds.
    pub rounds: usize,
    /// How many rounds even a slow candidate takes part in, unless a single call takes longer than `budget`.
    pub least_rounds: usize,
    /// How long a sample should take, in seconds.
    pub sample: f64,
    /// How long to run before the first sample, in seconds.
    pub warm_up: f64,
    /// How much time a candidate may take in all rounds together, in seconds.
    pub budget: f64,
    /// The idle time before each sample of the regime `cool`.
    pub idle: Duration,
    /// Whether to time the vendor library as well.
    pub baseline: bool,
}

impl Settings {
    /// The usual way to time on a machine: bursts of about 3 ms on a GPU and 5 ms on a CPU.
    pub fn new(regime: Regime, gpu: bool) -> Settings {
        let sustained = regime == Regime::Sustained;
        Settings {
            regime,
            threads: 0,
            rounds: if sustained { 7 } else { 15 },
            least_rounds: 3,
            sample: match (sustained, gpu) {
                (true, _) => 0.2,
                (false, true) => 0.003,
                (false, false) => 0.005,
            },
            warm_up: match (sustained, gpu) {
                (true, _) => 1.0,
                (false, true) => 0.01,
                (false, false) => 0.02,
            },
            budget: if sustained { 5.0 } else { 1.0 },
            idle: Duration::from_millis(if gpu { 60 } else { 5 }),
            baseline: true,
        }
    }
}

impl Regime {
    /// Every regime, in declaration order.
    pub const ALL: [Regime; 3] = [Regime::Cool, Regime::Sustained, Regime::ColdL2];

    /// The word on the command line and in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Regime::Cool => "cool",
            Regime::Sustained => "sustained",
            Regime::ColdL2 => "cold_l2",
        }
    }

    /// What the caches hold when a sample starts, in words for reports and records.
    pub const fn cache_policy(self) -> &'static str {
        match self {
            Regime::Cool | Regime::Sustained => "warm: back-to-back calls on the same buffers",
            Regime::ColdL2 => "cold: twice the last-level cache overwritten before each single call",
        }
    }
}
