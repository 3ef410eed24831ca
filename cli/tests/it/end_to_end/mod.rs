//! Scripts all the way to numbers: scheduled, interpreted, lowered, compiled, run, and compared with what the
//! unscheduled program computes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod auto_pipelines;
pub(crate) mod check;
mod cpu;
mod gpu;
mod ladders;
mod orders;
mod points;
#[path = "../../../../schedule/tests/it/propose.rs"]
mod propose;
mod random;
pub(crate) mod scripts;
