//! The inside of a worker process: it reads jobs, does them, and answers.
//!
//! [`serve`] speaks the protocol, and [`Hands`] do the work; [`Maker`] are the real ones. [`prepare`] makes sure that a
//! worker ends with its parent and takes no more than its share. A worker keeps nothing on disk and knows nothing of
//! other jobs, so that it can be killed at any time.

mod maker;
mod measurer;
mod process;
mod serve;

pub use maker::{Device, Maker};
pub use process::{IN_POOL, Limits, claim_output, leave, prepare};
pub use serve::{Hands, ServeError, serve};
