//! Measurement, search, logs and replay: which schedule is best.
//!
//! A [`Case`] is a workload with its sizes, a seed and the inputs drawn from it. A [`Bench`] puts a case on a
//! [`codegen::device::Machine`], knows what its outputs must be, and times candidate programs against each other.
//! A [`Record`] is one line of the log about one program. Nothing here reads the calendar or prints.

pub mod auto;
mod baseline;
pub mod bench;
pub mod bootstrap;
pub mod build;
pub mod calibrate;
mod case;
mod ceiling;
mod data;
mod failure;
pub mod filter;
mod json_number;
pub mod log;
mod memory;
pub mod pool;
pub mod protocol;
mod rate;
mod record;
pub mod regular;
pub mod replay;
mod report;
#[cfg(feature = "schema")]
mod schema;
pub mod search;
mod settings;
pub mod space;
pub mod tune;
mod verify;
pub mod worker;

pub use baseline::{gemm_of, library};
pub use bench::{Bench, BenchError, Candidate, Progress};
pub use case::{Case, CaseError, Work};
pub use data::Tensor;
pub use failure::Failure;
pub use rate::Rate;
pub use record::{
    Append, Environment, LogError, ReadLog, Record, RecordedStep, Script, append, parse_log, read_log, sha256,
};
pub use report::{Bound, Comparison, Measured, Ratio, Roofline, Stats};
pub use settings::{Regime, Settings};
pub use space::{Pruned, Pruning, Refusal, Space, Stream};
pub use verify::{BlockError, Expected, Oracle, OutputCheck, Verification, Worst};
