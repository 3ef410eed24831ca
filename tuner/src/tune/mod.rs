//! A run of the tuner.
//!
//! ```text
//! strategy ─► candidate source: schedule, lower, print, refuse, number ─► compile workers ─► measuring workers: screen ─► log
//!     ▲                                                                                                                  │
//!     └────────────────────────────────────── the result of each trial ◄─────────────────────────────────────────────────┘
//! ```
//!
//! then the finals of the best, and on request each prefix of the winner's schedule. This process keeps the log and
//! loads neither CUDA nor any candidate. A trial counts once its line is on the disk; only then is it told to anyone.

mod ask;
mod candidate_source;
mod compiled;
mod finals;
mod history;
mod load;
mod search_loop;
mod steps;
mod stopped;
mod summary;

use std::sync::atomic::AtomicBool;

use crate::{
    Space,
    build::{BuildError, Problem},
    log::{Entry, Finals, LogError, Run, RunLog, RunPlan, StepResult, Trial, Writer},
    pool::Pool,
};

pub(crate) use ask::ask;
pub use load::Load;
pub use stopped::{Phase, Stopped};
pub use summary::{Best, Rejected, Summary};

/// All that a run needs.
pub struct Tuning<'a> {
    /// What is tuned.
    pub problem: &'a Problem,
    /// What may be chosen.
    pub space: &'a Space,
    /// The head of its segment, already written.
    pub head: &'a Run,
    /// The segment.
    pub writer: &'a mut Writer,
    /// What the segment holds already.
    pub log: RunLog,
    /// The workers.
    pub pool: Pool,
    /// How far to go.
    pub plan: RunPlan,
    /// The calendar.
    pub now: &'a dyn Fn() -> String,
    /// Set by whoever wants the run to end soon.
    pub stop: &'a AtomicBool,
    /// Called with everything that happens.
    pub on_event: &'a mut dyn FnMut(TuneEvent<'_>),
}

/// What happens in a run. Entries are in the log by then.
#[derive(Clone, Copy, Debug)]
pub enum TuneEvent<'a> {
    /// A line was written.
    Entry(&'a Entry, &'a Summary),
    /// What the run is doing: searching, compiling the finalists, measuring a step.
    Progress(&'a str, &'a Summary),
}

/// What a search came to the end of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Exhausted {
    /// Nothing but the trials that were asked for.
    #[default]
    Trials,
    /// The candidates of the space.
    Space,
    /// The time.
    Time,
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Ended {
    /// Where it stands.
    pub summary: Summary,
    /// What the search came to the end of.
    pub exhausted: Exhausted,
    /// Why it ended before all was done, if it did.
    pub stopped: Option<Stopped>,
    /// The finals, if there were any.
    pub finals: Option<Finals>,
    /// The winner: by the finals, or by the search where none were wanted. None if that is the incumbent, and where the run
    /// was stopped before its finals.
    pub winner: Option<Trial>,
    /// The winner step by step, if that was asked for.
    pub steps: Vec<StepResult>,
}

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The log cannot be written. What is in it stays valid.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A schedule that was given does not make a program.
    #[error("the incumbent {name}: {source}")]
    Incumbent {
        /// Its name in the log.
        name: String,
        /// Why not.
        source: Box<BuildError>,
    },
    /// The stream of candidates is not the one of the log.
    #[error(
        "trial {n} of the log is another candidate than this build makes of the same seed; start a run of its own"
    )]
    Diverged {
        /// The trial.
        n: u64,
    },
}

ir::codes!(TuneError {
    Incumbent = 4101,
    Diverged = 4102,
} of { Log });
