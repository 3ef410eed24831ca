//! Scripts all the way to numbers: scheduled, interpreted, lowered, compiled, run, and compared with what the
//! unscheduled program computes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

extern crate codegen as tilewright_codegen;
extern crate schedule as tilewright_schedule;

mod check;
mod cpu;
mod gpu;
mod ladders;
mod orders;
#[path = "../../../schedule/tests/propose/mod.rs"]
mod propose;
mod random;
mod scripts;
