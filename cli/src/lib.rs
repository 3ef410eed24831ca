//! From a RON schedule to a verified, measured kernel: the verbs of the command `tilewright`, as a library.

mod build;
mod codes;
pub mod command;
mod diagnostic;
mod plan;
mod refusals;
mod term;
mod trouble;

pub use codes::codes;
pub use diagnostic::{Diagnostic, Fault};
pub use trouble::Trouble;
