//! What programs and shells rely on: schemas of `--json`, colour, exit codes, completions, pages, several errors at once.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

mod json;
mod names;
mod schema;
mod several;
mod shells;
