//! Spaces of schedules: knobs, what may be chosen for each, alternatives of steps, steps under conditions, and constraints
//! between knobs.
//!
//! A script is read once, with an [`Expr`] wherever a number stands in quotes. [`crate::Script::axes`] gives the
//! choices of each knob at some sizes, and [`crate::Script::resolve`] the plain steps of one point of the space. What
//! the tuner makes of it, an order of all points and a count of what constraints leave, is in the crate `tuner`.

mod choice;
mod expr;
pub(crate) mod item;
pub(crate) mod knob;
mod parse;
mod resolve;
mod scope;
pub(crate) mod values;
mod when;

pub use choice::{Choice, Decisions};
pub use expr::{EvalError, Expr, Op, Ref, Tree};
pub use item::{Choose, Item};
pub use knob::{Knob, MAX_CHOICES, MAX_KNOBS};
pub use parse::{MAX_EXPRESSION_DEPTH, SyntaxError};
pub use when::When;
