//! The bytes of single elements: what a machine stores, and the number it means.

use half::{bf16, f16};
use ir::DType;

/// The number that the bytes of one element mean. Integers beyond 2^53 lose their low bits.
pub fn decode(dtype: DType, bytes: &[u8]) -> f64 {
    match dtype {
        DType::Bool => f64::from(u8::from(bytes[0] != 0)),
        DType::U8 => f64::from(bytes[0]),
        DType::I8 => f64::from(i8::from_le_bytes(array(bytes))),
        DType::I16 => f64::from(i16::from_le_bytes(array(bytes))),
        DType::U16 => f64::from(u16::from_le_bytes(array(bytes))),
        DType::I32 => f64::from(i32::from_le_bytes(array(bytes))),
        DType::U32 => f64::from(u32::from_le_bytes(array(bytes))),
        DType::I64 => i64::from_le_bytes(array(bytes)) as f64,
        DType::F16 => f16::from_le_bytes(array(bytes)).to_f64(),
        DType::Bf16 => bf16::from_le_bytes(array(bytes)).to_f64(),
        DType::Tf32 | DType::F32 => f64::from(f32::from_le_bytes(array(bytes))),
        DType::F64 => f64::from_le_bytes(array(bytes)),
        DType::F8e4m3 | DType::F8e5m2 => Small::of(dtype).decode(bytes[0]),
    }
}

/// Writes a number as one element, rounding to nearest even; integers saturate.
pub fn encode(dtype: DType, value: f64, out: &mut [u8]) {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "casts from floats saturate, which is what is wanted"
    )]
    #[expect(clippy::cast_sign_loss, reason = "casts from floats saturate, which is what is wanted")]
    match dtype {
        DType::Bool => out[0] = u8::from(value != 0.0),
        DType::U8 => out[0] = value as u8,
        DType::I8 => out.copy_from_slice(&(value as i8).to_le_bytes()),
        DType::I16 => out.copy_from_slice(&(value as i16).to_le_bytes()),
        DType::U16 => out.copy_from_slice(&(value as u16).to_le_bytes()),
        DType::I32 => out.copy_from_slice(&(value as i32).to_le_bytes()),
        DType::U32 => out.copy_from_slice(&(value as u32).to_le_bytes()),
        DType::I64 => out.copy_from_slice(&(value as i64).to_le_bytes()),
        DType::F16 => out.copy_from_slice(&f16::from_f64(value).to_le_bytes()),
        DType::Bf16 => out.copy_from_slice(&bf16::from_f64(value).to_le_bytes()),
        DType::Tf32 => out.copy_from_slice(&to_tf32(value as f32).to_le_bytes()),
        DType::F32 => out.copy_from_slice(&(value as f32).to_le_bytes()),
        DType::F64 => out.copy_from_slice(&value.to_le_bytes()),
        DType::F8e4m3 | DType::F8e5m2 => out[0] = Small::of(dtype).encode(value),
    }
}

/// The unit roundoff of a floating-point type: the largest relative error of rounding to it. Zero for integers.
pub(crate) fn unit_roundoff(dtype: DType) -> f64 {
    let bits = match dtype {
        DType::F8e5m2 => 3,
        DType::F8e4m3 => 4,
        DType::Bf16 => 8,
        DType::F16 | DType::Tf32 => 11,
        DType::F32 => 24,
        DType::F64 => 53,
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32 => return 0.0,
    };
    (-f64::from(bits)).exp2()
}

/// Rounds to ten explicit mantissa bits, to nearest even.
pub(crate) fn to_tf32(value: f32) -> f32 {
    if !value.is_finite() {
        return value;
    }
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0xfff + ((bits >> 13) & 1)) & !0x1fff;
    f32::from_bits(rounded)
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("callers pass exactly the bytes of one element")
}

/// An eight-bit float: `1 + exponent + mantissa` bits.
struct Small {
    mantissa: u32,
    bias: i32,
    infinities: bool,
}

impl Small {
    fn of(dtype: DType) -> Small {
        match dtype {
            DType::F8e4m3 => Small { mantissa: 3, bias: 7, infinities: false },
            _ => Small { mantissa: 2, bias: 15, infinities: true },
        }
    }

    fn decode(&self, byte: u8) -> f64 {
        let magnitude = u32::from(byte & 0x7f);
        let fraction = magnitude & ((1 << self.mantissa) - 1);
        let exponent = magnitude >> self.mantissa;
        let sign = if byte & 0x80 == 0 { 1.0 } else { -1.0 };
        let top = (0x7f >> self.mantissa) == exponent;
        let value = if top && self.infinities {
            if fraction == 0 { f64::INFINITY } else { f64::NAN }
        } else if magnitude == 0x7f {
            f64::NAN
        } else {
            let scale = f64::from(1 - self.bias + exponent.cast_signed().max(1) - 1).exp2();
            let whole = if exponent == 0 { 0.0 } else { 1.0 };
            scale * (whole + f64::from(fraction) / f64::from(1u32 << self.mantissa))
        };
        sign * value
    }

    /// The nearest finite value (ties to the even byte), by bisection over the ordered magnitudes; beyond the
    /// largest it saturates.
    fn encode(&self, value: f64) -> u8 {
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        if value.is_nan() {
            return sign | 0x7f;
        }
        let largest = if self.infinities { 0x7b } else { 0x7e };
        let magnitude = value.abs();
        let above = (0..=largest).find(|it| self.decode(*it) >= magnitude).unwrap_or(largest);
        if above == 0 {
            return sign;
        }
        let (low, high) = (magnitude - self.decode(above - 1), self.decode(above) - magnitude);
        let down = low < high || (low <= high && above % 2 == 1);
        sign | if down { above - 1 } else { above }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these numbers are exact")]
mod tests {
    use super::*;

    #[test]
    fn every_small_float_survives_the_round_trip() {
        for dtype in [DType::F8e4m3, DType::F8e5m2] {
            for byte in 0..=255u8 {
                let value = decode(dtype, &[byte]);
                if value.is_finite() {
                    let mut out = [0];
                    encode(dtype, value, &mut out);
                    assert_eq!(out[0], byte, "{dtype} {value}");
                }
            }
        }
    }

    #[test]
    fn small_floats_have_their_published_limits() {
        assert_eq!(decode(DType::F8e4m3, &[0x7e]), 448.0);
        assert_eq!(decode(DType::F8e4m3, &[0x01]), 2f64.powi(-9));
        assert_eq!(decode(DType::F8e5m2, &[0x7b]), 57344.0);
        assert_eq!(decode(DType::F8e5m2, &[0x01]), 2f64.powi(-16));
        assert!(decode(DType::F8e4m3, &[0xff]).is_nan());
        assert_eq!(decode(DType::F8e5m2, &[0xfc]), f64::NEG_INFINITY);
    }

    #[test]
    fn ties_go_to_even_and_tf32_drops_thirteen_bits() {
        let mut out = [0];
        encode(DType::F8e4m3, 17.0, &mut out); // between 16 and 18
        assert_eq!(decode(DType::F8e4m3, &out), 16.0);
        assert_eq!(to_tf32(1.0 + 2f32.powi(-11)), 1.0);
        assert_eq!(to_tf32(1.0 + 3.0 * 2f32.powi(-11)), 1.0 + 2f32.powi(-9));
        assert_eq!(unit_roundoff(DType::F32), f64::from(f32::EPSILON) / 2.0);
    }
}
