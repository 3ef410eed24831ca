//! The tuning log: what was tried, on what, and what came out.
//!
//! A log is a folder of segments `run-<name>.jsonl`, each written by one process, line after line, and never changed
//! afterwards. Nothing in a log is ever executed: a replay makes the sources again from the script and the decisions.

mod entry;
mod finals;
mod plan;
mod trial;
mod trial_error;

pub use entry::{Entry, Event, Happening, LOG_VERSION, Protocol, Run, SpaceScript, Strategy, Workload};
pub use finals::{Baseline, Finalist, Finals, Interval, StepResult};
pub use plan::{Incumbent, Plan};
pub use trial::{Measurement, Origin, Times, Trial};
pub use trial_error::{ErrorKind, Stage, TrialError};
