//! Where a run stands: what a progress line, a report and the end of a run say.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schedule::Decisions;

use super::Load;
use crate::log::{ErrorKind, Trial, TrialError};

/// Where a run stands.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// Trials that have ended, well or not.
    pub trials: u64,
    /// How many of them gave a result.
    pub ok: u64,
    /// How many of these were left after the screen.
    pub screened: u64,
    /// How many failed, by kind.
    pub failed: BTreeMap<ErrorKind, u64>,
    /// How many candidates were refused before they became trials, by reason.
    pub rejected: IndexMap<String, Rejected>,
    /// The fastest so far.
    pub best: Option<Best>,
    /// What the devices did in the search of this process.
    pub load: Load,
}

/// Candidates refused for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejected {
    /// How many.
    pub count: u64,
    /// What was said about the first.
    pub example: String,
}

/// The fastest trial so far.
#[derive(Clone, PartialEq, Debug)]
pub struct Best {
    /// Its number.
    pub n: u64,
    /// Seconds per call at the median.
    pub seconds: f64,
    /// In GFLOPS.
    pub gflops: f64,
    /// What was decided.
    pub decisions: Decisions,
}

impl Summary {
    /// Counts a trial.
    pub fn add(&mut self, trial: &Trial) {
        self.trials += 1;
        if let Some(error) = &trial.error {
            *self.failed.entry(error.kind).or_default() += 1;
        }
        let Some(result) = &trial.result else { return };
        self.ok += 1;
        self.screened += u64::from(result.screened);
        let seconds = result.stats.median;
        // Of equals the earlier trial stays, so that the answer does not depend on who was measured first.
        let is_better = self.best.as_ref().is_none_or(|it| (seconds, trial.n) < (it.seconds, it.n));
        if is_better && !result.suspicious {
            let decisions = trial.decisions.clone();
            self.best = Some(Best { n: trial.n, seconds, gflops: result.gflops, decisions });
        }
    }

    /// Counts a candidate that was refused before it became a trial. `place` is the step or the rule that refused it.
    pub fn reject(&mut self, error: &TrialError, place: Option<&str>) {
        let reason = match place {
            Some(place) => format!("{}: {place}", error.kind),
            None => error.kind.to_string(),
        };
        let example = || Rejected { count: 0, example: error.message.clone() };
        self.rejected.entry(reason).or_insert_with(example).count += 1;
    }

    /// How many candidates were refused before they became trials.
    pub fn rejections(&self) -> u64 {
        self.rejected.values().map(|it| it.count).sum()
    }
}
