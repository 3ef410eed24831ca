//! The tuning log: what was tried, on what, and what came out.
//!
//! A log is a folder of segments `run-<name>.jsonl`, each written by one process, line after line, and never changed
//! afterwards. Nothing in a log is ever executed: a replay makes the sources again from the script and the decisions.
//!
//! * [`Writer`] makes a segment. What it acknowledged is on the disk, and a failed write leaves whole lines.
//! * [`scan`] tells the lines of a log one after the other, [`read`] brings all of it into memory. Both tell damage by
//!   line and never lose another record to it.
//! * [`verify`] looks for contradictions, [`merge`] copies segments together, [`pack`] compresses finished ones.
//! * [`Ranking`] finds the best trials in one pass. [`Table`] is what [`kernel_tuner`] and [`t4`] export; [`csv`] has all.
//! * `frame` is the form of a line.

mod entry;
mod error;
mod export;
mod finals;
mod frame;
mod merge;
mod names;
mod numbers;
mod pack;
mod rank;
mod read;
mod run_plan;
mod scan;
mod trial;
mod trial_error;
mod verify;
mod writer;

pub use entry::{
    Entry, Event, Happening, LOG_VERSION, MeasuringDevice, Protocol, Run, SpaceScript, Strategy, Workload,
};
pub use error::LogError;
pub use export::{ExportError, Table, csv, kernel_tuner, t4};
pub use finals::{Baseline, Finalist, Finals, StepResult};
pub use frame::{Raw, escape_controls, is_control};
pub use merge::{Merged, merge};
pub use names::{run_name, segment_name, segments};
pub use pack::{Packed, pack};
pub use rank::{Best, Compared, FinalsPlace, Ranked, Ranking};
pub use read::{Log, RunLog, read};
pub use run_plan::{Incumbent, RunPlan};
pub use scan::{Damage, LineLocation, LogLine, Reason, Torn, scan};
pub use trial::{Measurement, Origin, Times, Trial};
pub use trial_error::{ErrorKind, Stage, TrialError};
pub use verify::{Verified, verify};
pub use writer::{Durability, Recovered, Writer};
