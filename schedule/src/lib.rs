//! Checked rewrites of programs, one primitive at a time.

mod block_error;
mod check;
mod error;
mod moved;
mod nearest;
mod nest;
mod number;
pub mod primitive;
mod rewrite;
pub mod ron_text;
mod session;
mod state;

pub use block_error::BlockError;
pub use error::{ScheduleError, Thing};
pub use nearest::nearest;
pub use number::Number;
pub use primitive::{Primitive, Step};
pub use rewrite::simplify_bindings;
pub use session::Session;
pub use state::ScheduleState;
