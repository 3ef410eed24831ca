//! Numbers at the edges of a type: infinities, and what is below the normal numbers.

use super::Near;

impl Near {
    /// Whether it is infinite in any arithmetic, and the other is not.
    pub(super) fn is_infinite_beside(self, other: Near) -> bool {
        self.is_exact() && self.value.is_infinite() && other.value.is_finite() && !other.is_unbounded()
    }

    /// Whether it is infinite, and a product with a number of one sign is surely so.
    pub(super) fn is_infinite_times(self, other: Near) -> bool {
        let [low, high] = other.ends();
        self.is_exact() && self.value.is_infinite() && (low > 0.0 || high < 0.0)
    }

    /// The same where an f32 below the normal numbers may become zero.
    pub(super) fn flushed(self) -> Near {
        let size = self.value.abs();
        if size >= f64::from(f32::MIN_POSITIVE) {
            return self;
        }
        Near { below: self.below.max(size), above: self.above.max(size), ..self }
    }
}
