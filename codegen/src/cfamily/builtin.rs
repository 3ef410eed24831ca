//! Functions of the language and its library that compute what an operation does.

use ir::{BinaryOp, DType, UnaryOp};

use super::Dialect;

/// The function of the language, or of its library, that computes exactly this.
pub(super) fn builtin_unary(dialect: Dialect, op: UnaryOp, dtype: DType) -> Option<String> {
    let suffix = match dtype {
        DType::F32 => "f",
        DType::F64 => "",
        _ => return None,
    };
    let word = match op {
        UnaryOp::Neg => return None,
        UnaryOp::Rsqrt if dialect.is_c() => return None,
        UnaryOp::Exp2 if !dialect.is_c() && dtype == DType::F32 => return None,
        UnaryOp::Abs => "fabs",
        _ => op.as_str(),
    };
    let prefix = if dialect.is_c() { "__builtin_" } else { "" };
    Some(format!("{prefix}{word}{suffix}"))
}

pub(super) fn builtin_binary(dialect: Dialect, op: BinaryOp, dtype: DType) -> Option<&'static str> {
    match (dialect, op, dtype) {
        (Dialect::Cuda(_), BinaryOp::Min, DType::F32) => Some("fminf"),
        (Dialect::Cuda(_), BinaryOp::Max, DType::F32) => Some("fmaxf"),
        (Dialect::Cuda(_), BinaryOp::Min, DType::F64) => Some("fmin"),
        (Dialect::Cuda(_), BinaryOp::Max, DType::F64) => Some("fmax"),
        _ => None,
    }
}
