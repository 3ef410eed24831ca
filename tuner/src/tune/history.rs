//! What the log of a run that goes on already knows.

use std::collections::{BTreeMap, HashMap};

use crate::log::Trial;

/// The trials that a run has behind it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct History {
    trials: HashMap<u64, Known>,
}

/// What is needed of a trial to not repeat it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Known {
    /// The name of its candidate.
    pub(super) id: String,
    /// SHA-256 of its source.
    pub(super) source: String,
    /// Seconds per call, unless it failed.
    pub(super) seconds: Option<f64>,
}

impl History {
    pub(super) fn of(trials: &BTreeMap<u64, Trial>) -> History {
        let known = |it: &Trial| Known { id: it.id.clone(), source: it.src.clone(), seconds: it.seconds() };
        History { trials: trials.values().map(|it| (it.n, known(it))).collect() }
    }

    pub(super) fn trial(&self, n: u64) -> Option<&Known> {
        self.trials.get(&n)
    }
}
