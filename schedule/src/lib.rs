//! Checked rewrites of programs, one primitive at a time.
//!
//! A [`Script`] holds [`Step`]s. A [`Session`] applies them: it clones the program, lets the primitive refuse or
//! rewrite the clone, checks what came out (parallel loops, pipelines, the verifier), and only then commits. So a
//! refused step leaves nothing behind, and a primitive needs no way back.
//!
//! # How to add a primitive
//!
//! 1. Write `primitive/<name>.rs` with one struct: the arguments, under the names that scripts use, with
//!    `#[serde(deny_unknown_fields)]`. What a type can refuse needs no check. Maps are read with
//!    [`ron_text::unique`]; a [`Number`] is a place where an expression over knobs may stand.
//! 2. Begin with the doc comment that `tilewright explain` shows: a sentence, then a `text` block with the step, the
//!    program before, `->` and the program after, then what it refuses and what it does not change.
//! 3. In [`Primitive::apply`] refuse first: the `expect_…` look-ups of [`ScheduleState`], then the checks in `check/`.
//!    A check that two primitives need goes there.
//! 4. Leave a blank line and rewrite, with nothing that can fail. New names come from the script, or from
//!    [`Name::nth`](ir::Name::nth) on a stem that the manual states. Finish with [`simplify_bindings`] if
//!    bindings or guards changed.
//! 5. If a number may be an expression, list it in [`Primitive::numbers`].
//! 6. Add refusals as rows of an `error_table!`: code, message, the names they are about, and one line of help.
//! 7. Add the file to `primitive/mod.rs`: `mod`, `pub use`, a variant of [`Step`], its source. The build script makes its arms, its
//!    builder and its method of the struct; where a step has one of several fields, `// One of: a | b` before the struct says so.
//! 8. Add scripts to `tests/scripts`, at least one accepted and one refused (`INSTA_UPDATE=always cargo test` writes
//!    what they print), and a proposal to `tests/it/propose.rs`, which then looks for a schedule that the primitive breaks.

include!(concat!(env!("OUT_DIR"), "/step_methods.rs"));

mod blame;
mod block_error;
mod check;
mod cross_block_error;
#[allow(dead_code, reason = "the build script asks for all of it")]
mod declared;
mod diff;
mod document;
mod einsum;
mod error;
mod error_table;
pub mod fields;
pub mod format;
mod inverse;
mod iterators;
mod layout_error;
mod layout_map;
mod moved;
mod nearest;
mod nest;
mod no_op;
mod number;
mod one_place;
mod placed;
pub mod primitive;
pub mod procedure;
mod rewrite;
mod role_error;
mod rolling;
mod ron_letters;
pub mod ron_text;
pub mod ron_tokens;
mod scan;
pub mod script;
mod script_error;
mod session;
mod space;

mod state;
mod tile;
mod tile_error;
pub mod workload;

pub use blame::Blame;
pub use block_error::BlockError;
pub use check::serpentine::check_serpentine;
pub use cross_block_error::CrossBlockError;
pub use diff::{diff, diff_text, unified};
pub use document::Document;
pub use error::{ScheduleError, Thing};
pub use ir::pipeline::PipelineError;
pub use layout_error::LayoutError;
pub use nearest::{nearest, suggestion};
pub use number::Number;
pub use placed::Placed;
pub use primitive::{Primitive, Step};
pub use rewrite::simplify_bindings;
pub use role_error::RoleError;
pub use scan::{ScanLoops, scan_loops};
pub use script::Script;
pub use script_error::{ScriptError, ScriptProblem};
pub use session::{MOST_LOOPS, Session};
pub use space::{
    Choice, Choose, Decisions, EvalError, Expr, Item, Knob, MAX_CHOICES, MAX_EXPRESSION_DEPTH, MAX_KNOBS, Op,
    Ref, SyntaxError, Tree, When,
};
pub use state::ScheduleState;
pub use tile_error::TileError;
