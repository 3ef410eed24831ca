//! Constants: the shortest text that a C compiler reads back as the same bits.

use half::{bf16, f16};
use ir::{DType, Literal, Number};

use super::{Dialect, Printer, helper::Helper, types};

/// An integer of 64 bits, or of 32 where it fits.
pub(super) fn integer(value: i64) -> String {
    if value == i64::MIN {
        "(-9223372036854775807LL - 1)".to_owned()
    } else if i32::try_from(value).is_ok_and(|it| it != i32::MIN) {
        value.to_string()
    } else {
        format!("{value}LL")
    }
}

impl Printer<'_> {
    /// A typed constant, as an operand of a unary operator.
    pub(super) fn literal(&mut self, literal: Literal) -> String {
        let value = literal.to_f64();
        match literal.dtype {
            DType::F64 => double(self.dialect, value),
            DType::F32 => float(self.dialect, value),
            DType::F16 => self.bits(DType::F16, f16::from_f64(value).to_bits()),
            DType::Bf16 => self.bits(DType::Bf16, bf16::from_f64(value).to_bits()),
            // Rare enough to leave the rounding to the compiler.
            to @ (DType::Tf32 | DType::F8e4m3 | DType::F8e5m2 | DType::F8e8m0) => {
                let name = self.require(Helper::Cast { to, from: DType::F64, lanes: 1 });
                format!("{name}({})", double(self.dialect, value))
            }
            DType::Bool
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U8
            | DType::U16
            | DType::U32 => self.whole(literal),
        }
    }

    fn whole(&self, literal: Literal) -> String {
        let value = match literal.number {
            Number::Int(it) => it,
            #[expect(
                clippy::cast_possible_truncation,
                reason = "cutting off the fraction is the meaning here"
            )]
            Number::Float(it) => f64::from_bits(it) as i64,
        };
        let text = integer(value);
        let is_int = literal.dtype == DType::I32 && i32::try_from(value).is_ok_and(|it| it != i32::MIN);
        if is_int { text } else { format!("({}){text}", types::scalar(self.dialect, literal.dtype)) }
    }

    fn bits(&mut self, dtype: DType, bits: u16) -> String {
        let name = self.require(Helper::Type(dtype, 1));
        if self.dialect.is_c() { format!("({name}){bits:#x}") } else { format!("{name}{{{bits:#x}}}") }
    }
}

fn float(dialect: Dialect, value: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding to the type of the constant is the meaning here"
    )]
    let value = value as f32;
    let sign = if value < 0.0 { "-" } else { "" };
    match dialect {
        _ if value.is_finite() => format!("{value:?}f"),
        Dialect::Cuda(_) if value.is_nan() => "__int_as_float(0x7fffffff)".to_owned(),
        Dialect::Cuda(_) => format!("{sign}__int_as_float(0x7f800000)"),
        Dialect::C if value.is_nan() => "__builtin_nanf(\"\")".to_owned(),
        Dialect::C => format!("{sign}__builtin_inff()"),
    }
}

fn double(dialect: Dialect, value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    match dialect {
        _ if value.is_finite() => format!("{value:?}"),
        Dialect::Cuda(_) if value.is_nan() => "__longlong_as_double(0x7fffffffffffffffLL)".to_owned(),
        Dialect::Cuda(_) => format!("{sign}__longlong_as_double(0x7ff0000000000000LL)"),
        Dialect::C if value.is_nan() => "__builtin_nan(\"\")".to_owned(),
        Dialect::C => format!("{sign}__builtin_inf()"),
    }
}
