//! Why a run ends before all was done.

use std::fmt;

use super::TuneError;
use crate::{log::TrialError, pool::Role};

/// Why a run ended before all was done. Whatever it was, the log can be resumed, which does the rest.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Stopped {
    /// The user wanted it, in this phase of it.
    #[error("stopped by the user{0}")]
    User(Phase),
    /// No worker of this role is left.
    #[error("no worker {} is left", .0.words())]
    NoWorker(Role),
    /// The finals could not be held.
    #[error("the finals failed: {0}")]
    Finals(TrialError),
}

/// A phase of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Candidates are tried one by one.
    Search,
    /// The best of them are timed against each other.
    Finals,
    /// The prefixes of the winner's schedule are measured.
    Steps,
}

impl fmt::Display for Phase {
    /// After "stopped by the user".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Search => "",
            Phase::Finals => " in the finals",
            Phase::Steps => " before all steps were measured",
        })
    }
}

/// Why a phase of a run does not come to its end.
pub(super) enum Halt {
    /// The run ends here, and its log says so.
    Stopped(Stopped),
    /// The run cannot go on.
    Error(TuneError),
}

impl<E: Into<TuneError>> From<E> for Halt {
    fn from(err: E) -> Halt {
        Halt::Error(err.into())
    }
}
