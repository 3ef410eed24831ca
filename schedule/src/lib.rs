//! Checked rewrites of programs, one primitive at a time.

mod error;
mod number;
pub mod primitive;
mod rewrite;
mod session;
mod state;

pub use error::{ScheduleError, Thing};
pub use number::{Number, unique_map};
pub use primitive::{Primitive, Step};
pub use rewrite::simplify_bindings;
pub use session::Session;
pub use state::ScheduleState;
