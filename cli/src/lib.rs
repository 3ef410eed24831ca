//! From a schedule to a verified, measured kernel: the verbs of the command `tilewright`, as a library.
//!
//! A [`Plan`] is a schedule with its workload: a script in a file, or a [`Schedule`] written in Rust. Every verb takes one, and
//! every refusal is a [`Diagnostic`], with the code, the places and the help that the command line shows.
//!
//! | verb | here |
//! | --- | --- |
//! | `check` | [`Plan::load`], [`Plan::schedule`]; a method of [`Schedule`] for each primitive, [`Schedule::call`] for procedures; [`emitted`] |
//! | `show` | [`Schedule::loops`], [`Schedule::blocks`], [`Schedule::buffers`], [`Schedule::func`], [`Schedule::last_diff`], [`Built::source`], [`Built::resources`] |
//! | `run` | [`run`] |
//! | `tune`, `resume` | [`Tuner`] |
//! | `replay` | [`replay`] |
//! | `export` | [`export()`], [`export_crate`] |
//! | a kernel to call | [`Kernel`] |
//! | `explain` | [`codes`], [`Diagnostic::code`] |
//!
//! ```
//! # fn main() -> Result<(), tilewright::Diagnostic> {
//! use tilewright::{Plan, RunOptions, Schedule, Target};
//!
//! let mut schedule = Schedule::new("matmul", [("m", 64), ("n", 64), ("k", 64)], Target::Cpu)?;
//! schedule.reorder(["i", "k", "j"])?.vectorize("j")?;
//! let found = tilewright::run(&schedule.plan()?, &RunOptions::default(), &mut |_| {})?;
//! let measured = found.measured();
//! assert!(measured.failure.is_none(), "the numbers are right before and after timing");
//! println!("{:.1} GFLOPS", measured.gflops.unwrap());
//!
//! let err = Plan::parse("mine.ron".as_ref(), r#"schedule(workload: "matmull", steps: [])"#, &[]).unwrap_err();
//! assert!(err.to_string().contains("did you mean `matmul`?"));
//! # Ok(())
//! # }
//! ```
//!
//! What the command line needs besides stands behind the feature `cli`, which is on unless a program asks for the library alone:
//! `tilewright = { version = "0.1", default-features = false }` compiles no `clap`.
//!
//! The crates below are there for whoever needs more: [`ir`] for programs, [`schedule`] for primitives and sessions, [`codegen`]
//! for lowering, the virtual GPU and devices, [`tuner`] for measuring, searching and logs.
//!
//! A program that tunes starts itself again as a worker: its `main` begins with [`serve_if_worker`].

#![cfg_attr(
    not(feature = "cli"),
    allow(dead_code, reason = "the command line calls more than a program that links the library")
)]

mod automatic;
mod blame;
mod build;
mod clock;
mod cluster;
mod codes;
#[cfg(feature = "cli")]
pub mod command;
mod constant;
mod diagnostic;
mod error_cascade;
mod escape;
mod export;
#[cfg(feature = "cli")]
mod figures;
mod guard;
mod kernel;
#[cfg(feature = "cli")]
mod ladder;
#[cfg(feature = "cli")]
mod log_notes;
#[cfg(feature = "cli")]
mod lsp;
#[cfg(feature = "cli")]
mod made;
mod measuring;
mod new_file;
#[cfg(feature = "cli")]
mod options;
mod plan;
#[cfg(feature = "cli")]
mod progress;
#[cfg(feature = "cli")]
mod records;
mod replaying;
mod scheduling;
mod script_text;
mod source;
#[cfg(feature = "cli")]
mod studio;
#[cfg(feature = "cli")]
mod term;
mod text_file;
#[cfg(feature = "cli")]
mod timeline;
mod tuning;
#[cfg(feature = "cli")]
mod tvm;
mod usage_error;
#[cfg(feature = "cli")]
mod virtual_gpu;
#[cfg(feature = "cli")]
mod watch;
mod worker;

pub use automatic::{Automatic, auto, auto_space, is_workload, space, target_here};
pub use build::{Built, Emitted, build, emitted};
pub use cluster::Cluster;
pub use codegen;
pub use codes::codes;
pub use diagnostic::{Diagnostic, Fault};
pub use export::{export, export_crate};
pub use ir::{self, Target};
pub use kernel::{CallError, Kernel, Parameter, Place, Tensor};
pub use measuring::{Run, RunOptions, run};
pub use plan::{Plan, parse_target};
pub use replaying::{ReplayEvent, ReplayLevel, ReplayOptions, Replayed, Replays, replay};
pub use schedule;
pub use scheduling::{Argument, Arguments, BlockInfo, BufferInfo, LoopInfo, Schedule};
pub use script_text::expand;
pub use tuner;
pub use tuning::{TuneOptions, Tuner, Workers};
pub use usage_error::UsageError;
pub use worker::{serve_if_worker, serve_worker};
