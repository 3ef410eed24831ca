//! Checked rewrites of programs, one primitive at a time.

mod nearest;
pub mod ron_text;

pub use nearest::nearest;
