//! Interval arithmetic on indices.

use super::code::IndexOp;

/// The least and the greatest value; both ends count.
pub(crate) type Span = [i64; 2];

/// An interval that holds `constant + Σ factor * slot`; `None` where a sum of its first terms may overflow.
pub(crate) fn affine(constant: i64, terms: &[(i64, u32)], env: &[Span]) -> Option<Span> {
    terms.iter().try_fold([constant; 2], |[low, high], (factor, slot)| {
        let [a, b] = env[*slot as usize];
        let (a, b) = (factor.checked_mul(a)?, factor.checked_mul(b)?);
        Some([low.checked_add(a.min(b))?, high.checked_add(a.max(b))?])
    })
}

/// An interval that holds what an operation makes of two intervals; `None` where it may have no value.
pub(crate) fn combined(op: IndexOp, [a, b]: Span, [c, d]: Span) -> Option<Span> {
    match op {
        IndexOp::Add => Some([a.checked_add(c)?, b.checked_add(d)?]),
        IndexOp::Mul => {
            let all = [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
            Some([*all.iter().min()?, *all.iter().max()?])
        }
        IndexOp::FloorDiv if c > 0 => {
            Some([a.div_euclid(c).min(a.div_euclid(d)), b.div_euclid(c).max(b.div_euclid(d))])
        }
        IndexOp::FloorMod if c == d && c > 0 && a.div_euclid(c) == b.div_euclid(c) => {
            Some([a.rem_euclid(c), b.rem_euclid(c)])
        }
        IndexOp::FloorMod if c > 0 => Some([0, d - 1]),
        IndexOp::Min => Some([a.min(c), b.min(d)]),
        IndexOp::Max => Some([a.max(c), b.max(d)]),
        IndexOp::Xor if a == b && c == d => Some([a ^ c; 2]),
        IndexOp::Xor if a >= 0 && c >= 0 => {
            let bits = 64 - (b | d).leading_zeros();
            Some([0, if bits >= 63 { i64::MAX } else { (1 << bits) - 1 }])
        }
        IndexOp::FloorDiv | IndexOp::FloorMod | IndexOp::Xor => None,
    }
}
