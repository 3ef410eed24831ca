//! Emitted C and CUDA C++: as text, through the compilers, and run.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails as a test does")]

mod build;
mod c;
mod copies;
mod cuda;
mod hopper;
mod oracle;
mod programs;
mod property;
mod run;
mod scheduled;
