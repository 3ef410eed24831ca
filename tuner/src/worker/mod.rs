//! The inside of a worker process: it reads jobs, does them, and answers.
//!
//! [`serve`] speaks the protocol, and a [`JobHandler`] does the work: in production a [`DeviceHandler`], in tests also one that
//! injects faults. [`prepare`] makes sure that a worker ends with its parent and takes no more than its share. A worker keeps nothing on disk and knows nothing of
//! other jobs, so that it can be killed at any time.

mod device_handler;
mod measurer;
mod process;
mod serve;

pub use device_handler::{Device, DeviceHandler};
pub use process::{IN_POOL, WorkerLimits, claim_output, leave, prepare};
pub use serve::{JobHandler, ServeError, serve};
