//! Floats of eight bits and of four, by their bits.

use super::{exp2, int, round_float};

/// The number that eight bits of `f8e4m3` stand for.
pub(super) fn decode_e4m3(bits: u8) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
    let magnitude = match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => mantissa * exp2(-9),
        _ => (8.0 + mantissa) * exp2(exponent - 10),
    };
    if bits & 0x80 == 0 { magnitude } else { -magnitude }
}

/// The bits of a value that `f8e4m3` has.
pub(super) fn encode_e4m3(x: f64) -> u8 {
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    // No number is at most a NaN.
    let rest = (0..127u8).rev().find(|it| decode_e4m3(*it) <= x.abs());
    sign | rest.unwrap_or(0x7f)
}

/// The power of two next to a magnitude, of those from 2^-127 to 2^127: of two the greater one.
pub(super) fn round_e8m0(x: f64) -> f64 {
    let magnitude = x.abs().clamp(exp2(-127), exp2(127));
    if x.is_nan() { x } else { round_float(magnitude, 1, -127, exp2(127), exp2(127)) }
}

pub(super) const fn decode_e8m0(bits: u8) -> f64 {
    if bits == u8::MAX { f64::NAN } else { f64::from_bits((bits as u64 + 1023 - 127) << 52) }
}

/// The bits of a value that `f8e8m0` has: its exponent, 127 more than that, and all ones for a NaN.
pub(super) fn encode_e8m0(x: f64) -> u8 {
    (0..u8::MAX).rev().find(|it| decode_e8m0(*it) <= x).unwrap_or(u8::MAX)
}

/// The sum of the products of the low and of the high four bits of two bytes, each a float `e2m1`.
pub fn dot_e2m1x2(a: f64, b: f64) -> f64 {
    let (a, b) = (int(a), int(b));
    let product = |shift: u32| twice_e2m1(a >> shift) * twice_e2m1(b >> shift);
    (product(0) + product(4)) as f64 / 4.0
}

/// Twice the float `e2m1` of the low four bits of a number, which is an integer: a sign, two bits of an exponent and one of a fraction.
const fn twice_e2m1(bits: i64) -> i64 {
    let (exponent, fraction) = (bits >> 1 & 3, bits & 1);
    let magnitude = if exponent == 0 { fraction } else { (2 + fraction) << (exponent - 1) };
    if bits & 8 == 0 { magnitude } else { -magnitude }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "the numbers are exact")]
mod tests {
    use super::*;

    #[test]
    fn floats_of_four_bits_are_those_of_the_format() {
        let magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        let all: Vec<f64> = (0..16).map(|it| dot_e2m1x2(f64::from(it), 2.0)).collect();
        let negatives = magnitudes.iter().map(|it| -it);
        assert_eq!(all, magnitudes.into_iter().chain(negatives).collect::<Vec<_>>());
        // 6 · -6 + 0.5 · 3.
        assert_eq!(dot_e2m1x2(f64::from(0x17), f64::from(0x5f)), -34.5);
    }
}
