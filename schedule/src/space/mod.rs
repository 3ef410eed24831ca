//! Spaces of schedules: knobs, what may be chosen for each, and constraints between them.

mod choice;

pub use choice::{Choice, Decisions};
