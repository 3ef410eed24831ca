//! Typed constants as text: the digits, then the type.
//!
//! Floats are written with the fewest digits that give the same `f64`, and always with a point or an exponent.
//! `inf_f32` and `nan_f32` join the word and the type with `_`; a NaN that is not the default one shows its bits,
//! `nan_x7ff8000000000001_f32`.

use std::fmt::{self, Display, Formatter};

use super::lex::ParseErrorKind;
use crate::{DType, Literal, Number};

const NAN: u64 = 0x7ff8_0000_0000_0000;
const SIGN: u64 = 1 << 63;

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let dtype = self.dtype;
        match self.number {
            Number::Int(0) if dtype == DType::Bool => f.write_str("false"),
            Number::Int(1) if dtype == DType::Bool => f.write_str("true"),
            Number::Int(value) => write!(f, "{value}{dtype}"),
            Number::Float(bits) => {
                let value = f64::from_bits(bits);
                let sign = if bits & SIGN == 0 { "" } else { "-" };
                if value.is_infinite() {
                    write!(f, "{sign}inf_{dtype}")
                } else if value.is_nan() && bits & !SIGN == NAN {
                    write!(f, "{sign}nan_{dtype}")
                } else if value.is_nan() {
                    write!(f, "{sign}nan_x{:x}_{dtype}", bits & !SIGN)
                } else {
                    write!(f, "{value:?}{dtype}")
                }
            }
        }
    }
}

impl Literal {
    /// Whether its text begins with a minus sign.
    pub(super) fn is_signed(self) -> bool {
        match self.number {
            Number::Int(value) => value < 0,
            Number::Float(bits) => bits & SIGN != 0,
        }
    }

    /// The constant of digits and a type; a float type takes whole digits too.
    pub(super) fn parse(negative: bool, digits: &str, dtype: DType) -> Result<Literal, ParseErrorKind> {
        let too_large = || ParseErrorKind::TooLarge { digits: format!("{digits}{dtype}") };
        let text = if negative { format!("-{digits}") } else { digits.to_owned() };
        let number = if dtype.is_float() {
            let value = text.parse().ok().filter(|it: &f64| it.is_finite()).ok_or_else(too_large)?;
            Number::Float(value.to_bits())
        } else if digits.bytes().all(|it| it.is_ascii_digit()) {
            Number::Int(text.parse().map_err(|_| too_large())?)
        } else {
            return Err(ParseErrorKind::expected("a whole number", format!("`{digits}{dtype}`")));
        };
        Ok(Literal { dtype, number })
    }

    /// The constant of a word such as `true`, `inf_f32` or `nan_f32`.
    pub(super) fn parse_word(negative: bool, word: &str) -> Option<Literal> {
        match word {
            "true" if !negative => return Some(Literal { dtype: DType::Bool, number: Number::Int(1) }),
            "false" if !negative => return Some(Literal { dtype: DType::Bool, number: Number::Int(0) }),
            _ => {}
        }
        let (stem, dtype) = word.rsplit_once('_')?;
        let dtype: DType = dtype.parse().ok()?;
        let magnitude = match stem {
            "inf" => f64::INFINITY.to_bits(),
            "nan" => NAN,
            _ => {
                let digits = stem.strip_prefix("nan_x")?;
                let plain = digits.bytes().all(|it| it.is_ascii_hexdigit());
                let bits = u64::from_str_radix(digits, 16).ok().filter(|bits| plain && bits & SIGN == 0)?;
                f64::from_bits(bits).is_nan().then_some(bits)?
            }
        };
        let sign = if negative { SIGN } else { 0 };
        dtype.is_float().then_some(Literal { dtype, number: Number::Float(magnitude | sign) })
    }
}
