//! Checked rewrites of programs, one primitive at a time.

mod block_error;
mod check;
mod diff;
mod error;
mod moved;
mod nearest;
mod nest;
mod number;
mod pipeline_error;
pub mod primitive;
mod rewrite;
pub mod ron_text;
pub mod script;
mod session;
mod state;
pub mod workload;

pub use block_error::BlockError;
pub use diff::diff;
pub use error::{ScheduleError, Thing};
pub use nearest::nearest;
pub use number::Number;
pub use pipeline_error::PipelineError;
pub use primitive::{Primitive, Step};
pub use rewrite::simplify_bindings;
pub use script::{Script, ScriptError};
pub use session::Session;
pub use state::ScheduleState;
