//! Machine arithmetic carried in `f64`: how a number is rounded to each type, operated on and laid out in bytes.
//!
//! Every value of every [`DType`] but `i64` is an `f64` exactly; integers of `i64` are exact up to 2^53. One
//! operation on floats is one `f64` operation rounded once more, which for `+ - * /` and `sqrt` is the correctly
//! rounded result in `f32` and all narrower types.
//!
//! * Floats round to nearest, ties to even, with subnormals. `f16`, `bf16`, `tf32` and `f32` overflow to infinity;
//!   the eight-bit types saturate, infinities too, as NVIDIA's conversions do. `f8e8m0` has the power of two that is next to the magnitude, the
//!   greater one of two, as `PyTorch` converts what is in range; what is above saturates here, and is a NaN there.
//! * Float to integer truncates and saturates; a NaN becomes 0. Integer to integer wraps.
//! * Integer arithmetic wraps, quotients truncate. Anything but zero is a true `bool`.
//! * `min` and `max` of a NaN and a number are the number.

mod narrow;

pub use self::narrow::dot_e2m1x2;

use half::{bf16, f16};

use self::narrow::{decode_e4m3, decode_e8m0, encode_e4m3, encode_e8m0, round_e8m0};
use crate::{BinaryOp, DType, UnaryOp};

/// A number rounded to the nearest value of a type.
#[inline]
pub fn round(dtype: DType, x: f64) -> f64 {
    match dtype {
        DType::F64 => x,
        #[expect(clippy::cast_possible_truncation, reason = "rounding is the meaning here")]
        DType::F32 => f64::from(x as f32),
        DType::F16 => round_float(x, 11, -14, 65504.0, f64::INFINITY),
        DType::Bf16 => round_float(x, 8, -126, f64::from(bf16::MAX), f64::INFINITY),
        DType::Tf32 => round_float(x, 11, -126, (2.0 - 1.0 / 1024.0) * exp2(127), f64::INFINITY),
        DType::F8e4m3 => round_float(x, 4, -6, 448.0, 448.0),
        DType::F8e5m2 => round_float(x, 3, -14, 57344.0, 57344.0),
        DType::F8e8m0 => round_e8m0(x),
        DType::Bool => f64::from(u8::from(x != 0.0)),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8 | DType::U16 | DType::U32 => {
            let (low, high) = int_range(dtype);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "`as` truncates and saturates, as documented"
            )]
            let x = x as i64;
            x.clamp(low, high) as f64
        }
    }
}

/// A number of one type converted to another.
#[inline]
pub fn cast(from: DType, to: DType, x: f64) -> f64 {
    if from.is_float() || to.is_float() || to == DType::Bool { round(to, x) } else { wrap(to, int(x)) as f64 }
}

/// An operation on one number of a type; on integers only negation and magnitude have a meaning.
#[inline]
pub fn unary(op: UnaryOp, dtype: DType, x: f64) -> f64 {
    let y = match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => 1.0 / x.sqrt(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Erf => erf(x),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Rint => x.round_ties_even(),
    };
    if dtype.is_float() { round(dtype, y) } else { wrap(dtype, int(y)) as f64 }
}

/// An operation on two numbers of a type, which computes on it ([`BinaryOp::takes`]); `None` where an integer is divided by zero.
#[inline]
pub fn binary(op: BinaryOp, dtype: DType, a: f64, b: f64) -> Option<f64> {
    if op.is_comparison() {
        return Some(f64::from(u8::from(compare(op, a, b))));
    }
    if op == BinaryOp::DotE2m1x2 {
        return Some(dot_e2m1x2(a, b));
    }
    if !dtype.is_float() {
        return int_binary(op, dtype, int(a), int(b)).map(|it| it as f64);
    }
    Some(match op {
        BinaryOp::Add => round(dtype, a + b),
        BinaryOp::Sub => round(dtype, a - b),
        BinaryOp::Mul => round(dtype, a * b),
        BinaryOp::Div => round(dtype, a / b),
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        _ => return None,
    })
}

/// What a comparison says of two numbers; of any other operation nothing, which is `false`.
#[expect(clippy::float_cmp, reason = "programs compare as machines do")]
pub(crate) fn compare(op: BinaryOp, a: f64, b: f64) -> bool {
    match op {
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        _ => false,
    }
}

/// The little-endian bytes of a number, rounded to the type first.
pub fn encode(dtype: DType, x: f64, out: &mut Vec<u8>) {
    let x = round(dtype, x);
    match dtype {
        DType::F64 => out.extend(x.to_le_bytes()),
        #[expect(clippy::cast_possible_truncation, reason = "already rounded")]
        DType::F32 | DType::Tf32 => out.extend((x as f32).to_le_bytes()),
        DType::F16 => out.extend(f16::from_f64(x).to_le_bytes()),
        DType::Bf16 => out.extend(bf16::from_f64(x).to_le_bytes()),
        DType::F8e5m2 => out.push(f16::from_f64(x).to_le_bytes()[1]),
        DType::F8e4m3 => out.push(encode_e4m3(x)),
        DType::F8e8m0 => out.push(encode_e8m0(x)),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32 => out.extend(&int(x).to_le_bytes()[..dtype.bytes()]),
    }
}

/// The number that an element's little-endian bytes stand for. Bytes that are missing count as zero.
#[inline]
pub fn decode(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::F64 => f64::from_le_bytes(first(bytes)),
        DType::F32 | DType::Tf32 => f64::from(f32::from_le_bytes(first(bytes))),
        DType::F16 => f16::from_le_bytes(first(bytes)).to_f64(),
        DType::Bf16 => bf16::from_le_bytes(first(bytes)).to_f64(),
        DType::F8e5m2 => f16::from_le_bytes([0, first::<1>(bytes)[0]]).to_f64(),
        DType::F8e4m3 => decode_e4m3(first::<1>(bytes)[0]),
        DType::F8e8m0 => decode_e8m0(first::<1>(bytes)[0]),
        DType::Bool => f64::from(u8::from(first::<1>(bytes)[0] != 0)),
        DType::I8 => f64::from(i8::from_le_bytes(first(bytes))),
        DType::I16 => f64::from(i16::from_le_bytes(first(bytes))),
        DType::I32 => f64::from(i32::from_le_bytes(first(bytes))),
        DType::I64 => i64::from_le_bytes(first(bytes)) as f64,
        DType::U8 => f64::from(u8::from_le_bytes(first(bytes))),
        DType::U16 => f64::from(u16::from_le_bytes(first(bytes))),
        DType::U32 => f64::from(u32::from_le_bytes(first(bytes))),
    }
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut out = [0; N];
        out.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        out
    })
}

/// An integer type's number, which is an integer already.
#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which only i64 beyond 2^53 can meet")]
fn int(x: f64) -> i64 {
    x as i64
}

/// The least and the greatest value of an integer type.
fn int_range(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::Bool => (0, 1),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::I64
        | DType::F16
        | DType::Bf16
        | DType::Tf32
        | DType::F8e4m3
        | DType::F8e5m2
        | DType::F8e8m0
        | DType::F32
        | DType::F64 => (i64::MIN, i64::MAX),
    }
}

/// An integer modulo the size of its type.
fn wrap(dtype: DType, x: i64) -> i64 {
    let (low, high) = int_range(dtype);
    if dtype == DType::Bool {
        i64::from(x != 0)
    } else if low <= x && x <= high {
        x
    } else {
        // Not reached for i64, whose range holds every `x`; with the others' low ends nothing overflows in 128 bits.
        let size = i128::from(high) - i128::from(low) + 1;
        let above = (i128::from(x) - i128::from(low)).rem_euclid(size);
        low + i64::try_from(above).expect("less than the size of a type below 64 bits")
    }
}

fn int_binary(op: BinaryOp, dtype: DType, a: i64, b: i64) -> Option<i64> {
    let exact = match op {
        BinaryOp::Add => a.wrapping_add(b),
        BinaryOp::Sub => a.wrapping_sub(b),
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div if b == 0 => return None,
        BinaryOp::Div => a.wrapping_div(b),
        BinaryOp::Min => a.min(b),
        BinaryOp::Max => a.max(b),
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => a << shift(dtype, b),
        BinaryOp::Shr => a >> shift(dtype, b),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => {
            i64::from(compare(op, a as f64, b as f64))
        }
        // Of bytes, and its result is no integer.
        BinaryOp::DotE2m1x2 => return None,
    };
    Some(wrap(dtype, exact))
}

/// How far a shift by `by` goes: modulo the bits of the type, as Java's, so that no machine's own answer is seen.
fn shift(dtype: DType, by: i64) -> i64 {
    let bits = i64::try_from(dtype.bytes() * 8).expect("a type has few bits");
    by & (bits - 1)
}

/// Rounds to `precision` significant bits, and to the multiples of the least subnormal below `2^min_exponent`;
/// what is greater than `max` after that becomes `beyond`.
fn round_float(x: f64, precision: i32, min_exponent: i32, max: f64, beyond: f64) -> f64 {
    if x == 0.0 || x.is_nan() {
        return x;
    }
    if x.is_infinite() {
        return beyond.copysign(x);
    }
    let exponent = i32::try_from((x.to_bits() >> 52) & 0x7ff).expect("11 bits") - 1023;
    let quantum = exponent.max(min_exponent) - (precision - 1);
    let y = (x * exp2(-quantum)).round_ties_even() * exp2(quantum);
    if y.abs() > max { beyond.copysign(x) } else { y }
}

/// A power of two in the normal range.
fn exp2(exponent: i32) -> f64 {
    f64::from_bits(u64::try_from(exponent + 1023).expect("the power is a normal number") << 52)
}

/// The error function: a series of positive terms, so that nothing cancels.
///
/// `erf(x) = 2/sqrt(pi) * exp(-x²) * (x + 2x³/3 + 4x⁵/15 + …)`, each term the one before times `2x²/(2n+3)`.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() >= 6.0 {
        return if x.is_nan() { x } else { 1f64.copysign(x) };
    }
    let (mut term, mut sum, mut divisor) = (x, x, 3.0);
    while term.abs() > sum.abs() * 1e-17 {
        term *= 2.0 * x * x / divisor;
        sum += term;
        divisor += 2.0;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "rounding is exact or wrong")]
mod tests {
    use super::*;

    fn bits(dtype: DType, x: f64) -> u64 {
        let mut bytes = Vec::new();
        encode(dtype, x, &mut bytes);
        bytes.resize(8, 0);
        u64::from_le_bytes(first(&bytes))
    }

    #[test]
    fn ties_go_to_even_and_sticky_bits_count() {
        let ulp = 1.0 / 1024.0;
        assert_eq!(round(DType::F16, 1.0 + ulp / 2.0), 1.0);
        assert_eq!(round(DType::F16, 1.0 + ulp / 2.0 + 1e-15), 1.0 + ulp);
        assert_eq!(round(DType::F16, 1.0 + 1.5 * ulp), 1.0 + 2.0 * ulp);
        assert_eq!(round(DType::Bf16, 257.0), 256.0);
        assert_eq!(round(DType::Bf16, 259.0), 260.0);
        assert_eq!(round(DType::Tf32, 2049.0), 2048.0);
    }

    #[test]
    fn the_ends_of_the_float_types() {
        assert_eq!(round(DType::F16, 65519.9), 65504.0);
        assert_eq!(round(DType::F16, 65520.0), f64::INFINITY);
        assert_eq!(round(DType::F16, -1e300), f64::NEG_INFINITY);
        assert_eq!(round(DType::F16, exp2(-25)), 0.0);
        assert_eq!(round(DType::F16, exp2(-25) * 1.01), exp2(-24));
        assert_eq!(round(DType::Bf16, 1e-320), 0.0);
        assert_eq!(round(DType::F8e4m3, 1e9), 448.0);
        assert_eq!(round(DType::F8e5m2, f64::NEG_INFINITY), -57344.0);
        assert!(round(DType::F8e4m3, f64::NAN).is_nan());
    }

    #[test]
    fn scales_are_the_nearest_powers_of_two() {
        let numbers = [1.0, 1.49, 1.5, -3.0, 0.0, 1e-300, f64::MAX, f64::INFINITY];
        let scales = [1.0, 1.0, 2.0, 4.0, exp2(-127), exp2(-127), exp2(127), exp2(127)];
        assert_eq!(numbers.map(|it| round(DType::F8e8m0, it)), scales);
        assert!(round(DType::F8e8m0, f64::NAN).is_nan());
        assert_eq!([0.0, 1.0, f64::NAN].map(|it| bits(DType::F8e8m0, it)), [0, 127, 255]);
    }

    #[test]
    fn every_small_float_survives_bytes_and_rounding() {
        let eight = [DType::F8e4m3, DType::F8e5m2, DType::F8e8m0].map(|it| (it, 256));
        for (dtype, count) in [(DType::F16, 1u64 << 16), (DType::Bf16, 1 << 16)].into_iter().chain(eight) {
            for it in 0..count {
                let x = decode(dtype, &it.to_le_bytes());
                let finite_only = matches!(dtype, DType::F8e5m2) && x.is_infinite();
                if !x.is_nan() && !finite_only {
                    assert_eq!(bits(dtype, x), it, "{dtype} {it:#x} {x}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_less_or_equal_to_a_nan() {
        for (op, holds) in
            [(BinaryOp::Lt, 0.0), (BinaryOp::Le, 0.0), (BinaryOp::Eq, 0.0), (BinaryOp::Ne, 1.0)]
        {
            assert_eq!(binary(op, DType::F32, f64::NAN, 1.0), Some(holds), "{op:?}");
            assert_eq!(binary(op, DType::F16, f64::NAN, f64::NAN), Some(holds), "{op:?}");
        }
        assert_eq!(binary(BinaryOp::Eq, DType::F64, 0.0, -0.0), Some(1.0));
    }

    #[test]
    fn integers_wrap_and_casts_saturate() {
        assert_eq!(binary(BinaryOp::Mul, DType::I32, 65537.0, 65537.0), Some(131_073.0));
        assert_eq!(binary(BinaryOp::Add, DType::I8, 127.0, 1.0), Some(-128.0));
        assert_eq!(binary(BinaryOp::Shl, DType::I8, 65.0, 1.0), Some(-126.0));
        assert_eq!(binary(BinaryOp::Shl, DType::U32, 1.0, 33.0), Some(2.0));
        assert_eq!(binary(BinaryOp::Shr, DType::I16, -5.0, -15.0), Some(-3.0));
        assert_eq!(binary(BinaryOp::Xor, DType::I32, -1.0, 5.0), Some(-6.0));
        assert_eq!(binary(BinaryOp::Sub, DType::U8, 0.0, 1.0), Some(255.0));
        assert_eq!(binary(BinaryOp::Div, DType::I32, -7.0, 2.0), Some(-3.0));
        assert_eq!(binary(BinaryOp::Div, DType::I32, 1.0, 0.0), None);
        assert_eq!(binary(BinaryOp::Max, DType::I64, i64::MIN as f64, 3.0), Some(3.0));
        assert_eq!(unary(UnaryOp::Abs, DType::I8, -128.0), -128.0);
        assert_eq!(cast(DType::I32, DType::I8, 300.0), 44.0);
        assert_eq!(cast(DType::F32, DType::I8, 300.7), 127.0);
        assert_eq!(cast(DType::F32, DType::I32, -2.9), -2.0);
        assert_eq!(cast(DType::F32, DType::U8, f64::NAN), 0.0);
        assert_eq!(cast(DType::I32, DType::Bool, 256.0), 1.0);
    }

    #[test]
    fn erf_is_known_at_a_few_points() {
        for (x, y) in
            [(0.5, 0.520_499_877_813_046_5), (1.0, 0.842_700_792_949_714_9), (3.0, 0.999_977_909_503_001_4)]
        {
            assert!((erf(x) - y).abs() < 4e-16, "{x}: {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert_eq!((erf(0.0), erf(7.0)), (0.0, 1.0));
        assert!((erf(5.9) - 1.0).abs() < 1e-15);
    }
}
