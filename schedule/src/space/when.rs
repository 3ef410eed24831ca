use std::ops::Range;

use super::{Expr, item::Item};
use crate::Number;

/// Takes steps only where a condition holds.
///
/// ```text
/// when(cond: "stages > 1", then: [double_buffer_scope(block: "A_shared", slots: "stages")])
///
/// s
/// ->
/// double_buffer_scope(…) where the condition is not 0, no step where it is
/// ```
///
/// The condition is an expression over knobs, values and parameters of the workload, as numbers of steps are. `else: […]` has the
/// steps for where it does not hold. Both lists may hold further `when` and `choose`.
#[derive(Clone, PartialEq, Debug)]
pub struct When {
    /// What has to be other than 0.
    pub cond: Number,
    /// The steps if it is.
    pub then: Vec<Item>,
    /// The steps if it is 0.
    pub otherwise: Vec<Item>,
    /// Where it stands in the script.
    pub span: Range<usize>,
}

impl When {
    /// The condition, unless it is a number.
    pub fn expr(&self) -> Option<&Expr> {
        match &self.cond {
            Number::Expr(it) => Some(it),
            Number::Int(_) => None,
        }
    }
}
