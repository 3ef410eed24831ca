//! Operations on integers: as machines do them, wrapping, and on bytes that hold several floats.

use ir::{BinaryOp, DType};

use super::{Dialect, types};

/// An unsigned type, not promoted to a signed one, in which integers of the type wrap.
pub(super) fn arithmetic_unsigned(dialect: Dialect, dtype: DType) -> &'static str {
    if dtype.bytes() < 8 { types::unsigned32(dialect) } else { types::unsigned(dialect, dtype) }
}

/// The result of an operation on the integers `a` and `b`, which wraps.
pub(super) fn binary(dialect: Dialect, op: BinaryOp, dtype: DType) -> String {
    let (of, unsigned) = (types::scalar(dialect, dtype), arithmetic_unsigned(dialect, dtype));
    let sign = op.as_str();
    let is_signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    match op {
        BinaryOp::Min => "a < b ? a : b".to_owned(),
        BinaryOp::Max => "a > b ? a : b".to_owned(),
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div if dtype == DType::Bool => {
            format!("(a {sign} b) != 0")
        }
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
            format!("({of})(({unsigned})a {sign} ({unsigned})b)")
        }
        BinaryOp::Shl => format!("({of})(({unsigned})a << (b & {}))", dtype.bytes() * 8 - 1),
        BinaryOp::Shr => format!("({of})(a >> (b & {}))", dtype.bytes() * 8 - 1),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => format!("({of})(a {sign} b)"),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => format!("a {sign} b"),
        // The least integer over minus one wraps; the machine would trap.
        BinaryOp::Div if is_signed => format!("b == -1 ? ({of})(0 - ({unsigned})a) : ({of})(a / b)"),
        BinaryOp::Div => "a / b".to_owned(),
        BinaryOp::DotE2m1x2 => unreachable!("it is a function of its own"),
    }
}

/// The sum of the products of the two floats `e2m1` of each byte. Twice such a float is an integer, and twice its magnitude a digit of the constant.
pub(super) fn define_dot_e2m1x2(name: &str, of: &str, to: &str) -> String {
    format!(
        "TW_INLINE int tw_twice_e2m1(int a) {{\n  \
           const int magnitude = (int)(0xc8643210u >> (a & 7) * 4 & 15);\n  \
           return a & 8 ? -magnitude : magnitude;\n}}\n\
         TW_INLINE {to} {name}({of} a, {of} b) {{\n  \
           const int low = tw_twice_e2m1(a) * tw_twice_e2m1(b), high = tw_twice_e2m1(a >> 4) * tw_twice_e2m1(b >> 4);\n  \
           return ({to})(low + high) * 0.25f;\n}}\n"
    )
}
