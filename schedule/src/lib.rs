//! Checked rewrites of programs, one primitive at a time.

mod check;
mod error;
mod nearest;
mod number;
pub mod primitive;
mod rewrite;
pub mod ron_text;
mod session;
mod state;

pub use error::{ScheduleError, Thing};
pub use nearest::nearest;
pub use number::Number;
pub use primitive::{Primitive, Step};
pub use rewrite::simplify_bindings;
pub use session::Session;
pub use state::ScheduleState;
