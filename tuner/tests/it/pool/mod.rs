//! Pools of workers that misbehave. A fake worker is a small shell script, so that a fault can be read in its line of
//! the table.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

mod fake;
mod faults;
mod life;
mod supervisor;
