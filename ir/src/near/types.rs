//! What the types hold: how fine they are, and how far they go.

use crate::{DType, number};

/// Whether a type has a number.
#[expect(clippy::float_cmp, reason = "a number that rounds to itself is one of the type")]
pub(super) fn holds(dtype: DType, x: f64) -> bool {
    number::round(dtype, x) == x
}

/// The unit roundoff of a floating-point type: the largest relative error of rounding to it. Zero for integers.
pub fn unit_roundoff(dtype: DType) -> f64 {
    const fn part(bits: u64) -> f64 {
        f64::from_bits((1023 - bits) << 52)
    }
    match dtype {
        DType::F8e8m0 => part(1),
        DType::F8e5m2 => part(3),
        DType::F8e4m3 => part(4),
        DType::Bf16 => part(8),
        DType::F16 | DType::Tf32 => part(11),
        DType::F32 => part(24),
        // Twice its own: the reference is computed in f64 as well.
        DType::F64 => part(52),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32 => 0.0,
    }
}

/// The least positive number of a floating-point type.
pub(super) fn least(dtype: DType) -> f64 {
    const fn power(exponent: u64) -> f64 {
        f64::from_bits((1023 - exponent) << 52)
    }
    match dtype {
        DType::F8e8m0 => power(127),
        DType::F8e5m2 => power(16),
        DType::F8e4m3 => power(9),
        DType::F16 => power(24),
        DType::Bf16 => power(133),
        DType::Tf32 => power(136),
        DType::F32 => power(149),
        DType::F64 => f64::from_bits(1),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32 => 0.0,
    }
}
