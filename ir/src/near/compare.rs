//! What is compared, and what is chosen by it.

use super::Near;
use crate::{BinaryOp, number};

impl Near {
    /// A comparison: both answers, where the machine's numbers may be either way round.
    pub(super) fn compare(op: BinaryOp, a: Near, b: Near) -> Near {
        let answer = |x: f64, y: f64| f64::from(u8::from(number::compare(op, x, y)));
        let value = answer(a.value, b.value);
        let ([low, high], [first, last]) = (a.ends(), b.ends());
        if (a.is_exact() && b.is_exact()) || high < first || last < low {
            return Near::exact(value);
        }
        Near::among(value, &[0.0, 1.0])
    }

    /// One of two by a third, or either where that is not known.
    pub(super) fn chosen(cond: Near, then: Near, otherwise: Near) -> Near {
        let (chosen, other) = if cond.value == 0.0 { (otherwise, then) } else { (then, otherwise) };
        if cond.is_exact() {
            return chosen;
        }
        if chosen.is_unbounded() || other.is_unbounded() {
            return Near::unknown(chosen.value);
        }
        let ([a, b], [c, d]) = (chosen.ends(), other.ends());
        Near::among(chosen.value, &[a, b, c, d])
    }
}
