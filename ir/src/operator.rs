//! The operators and functions of [`Value`](crate::Value)s: their words, and on which types they compute.

use crate::DType;

/// Operations on one operand, whose type the result has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[expect(missing_docs, reason = "the names are those of the C library")]
pub enum UnaryOp {
    Neg,
    Abs,
    Exp,
    Exp2,
    Log,
    Log2,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Tanh,
    Erf,
    Floor,
    Ceil,
    /// To the nearest integer, ties to the even one.
    Rint,
}

/// Operations on two operands of one type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BinaryOp {
    /// The sum.
    Add,
    /// The difference.
    Sub,
    /// The product.
    Mul,
    /// The quotient; of integers cut off towards zero.
    Div,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// The bits that both have. Of `bool`s: whether both are true.
    And,
    /// The bits that one has. Of `bool`s: whether one is true.
    Or,
    /// The bits that only one has. Of `bool`s: whether they differ.
    Xor,
    /// The first shifted to the left by the second, taken modulo the bits of the type; what leaves it is lost.
    Shl,
    /// The first shifted to the right by the second, taken modulo the bits of the type; signed types keep the sign.
    Shr,
    /// Whether the first is less. Of a NaN nothing is, here and below.
    Lt,
    /// Whether the first is less or equal.
    Le,
    /// Whether they are equal.
    Eq,
    /// Whether they are not equal, as a NaN is to anything.
    Ne,
    /// The sum of the two products of bytes that hold two floats of four bits each (`e2m1`: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives;
    /// OCP Microscaling Formats, 5.3.3), the first in the low bits. It is exact in `f32`, which is what it gives.
    DotE2m1x2,
}

/// The kinds of operators, by which types they compute on, and to which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Numbers to numbers.
    Arithmetic,
    /// The smaller or larger of anything.
    Extremum,
    /// Bits of integers and `bool`s.
    Bitwise,
    /// Integers to integers.
    Shift,
    /// Anything to a `bool`.
    Comparison,
    /// Bytes that hold several floats to one.
    Packed,
}

impl UnaryOp {
    /// Every operation, in declaration order.
    pub const ALL: [UnaryOp; 15] = [
        UnaryOp::Neg,
        UnaryOp::Abs,
        UnaryOp::Exp,
        UnaryOp::Exp2,
        UnaryOp::Log,
        UnaryOp::Log2,
        UnaryOp::Sqrt,
        UnaryOp::Rsqrt,
        UnaryOp::Sin,
        UnaryOp::Cos,
        UnaryOp::Tanh,
        UnaryOp::Erf,
        UnaryOp::Floor,
        UnaryOp::Ceil,
        UnaryOp::Rint,
    ];

    /// The word in expressions: `exp(x)`. Negation prints as `-x`.
    pub const fn as_str(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Abs => "abs",
            UnaryOp::Exp => "exp",
            UnaryOp::Exp2 => "exp2",
            UnaryOp::Log => "log",
            UnaryOp::Log2 => "log2",
            UnaryOp::Sqrt => "sqrt",
            UnaryOp::Rsqrt => "rsqrt",
            UnaryOp::Sin => "sin",
            UnaryOp::Cos => "cos",
            UnaryOp::Tanh => "tanh",
            UnaryOp::Erf => "erf",
            UnaryOp::Floor => "floor",
            UnaryOp::Ceil => "ceil",
            UnaryOp::Rint => "rint",
        }
    }

    /// Whether it computes on a type: negation and magnitude on all numbers, functions on floats.
    pub fn takes(self, dtype: DType) -> bool {
        match self {
            UnaryOp::Neg | UnaryOp::Abs => dtype != DType::Bool,
            _ => dtype.is_float(),
        }
    }

    /// Whether the result is exact if the operand is: a sign changed, or rounding to integers.
    pub const fn is_exact(self) -> bool {
        matches!(self, UnaryOp::Neg | UnaryOp::Abs) || self.rounds_to_integer()
    }

    /// Whether it is [`UnaryOp::Floor`] or one of its kind.
    pub const fn rounds_to_integer(self) -> bool {
        matches!(self, UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Rint)
    }
}

impl BinaryOp {
    /// Every operation, in declaration order.
    pub const ALL: [BinaryOp; 16] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Min,
        BinaryOp::Max,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Xor,
        BinaryOp::Shl,
        BinaryOp::Shr,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::DotE2m1x2,
    ];

    /// The sign between the operands, or the word before them ([`BinaryOp::is_call`]).
    pub const fn as_str(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Min => "min",
            BinaryOp::Max => "max",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::DotE2m1x2 => "dot_e2m1x2",
        }
    }

    /// The word in names of functions: `tw_add_f16`.
    pub const fn word(self) -> &'static str {
        match self {
            BinaryOp::Add => "add",
            BinaryOp::Sub => "sub",
            BinaryOp::Mul => "mul",
            BinaryOp::Div => "div",
            BinaryOp::Min => "min",
            BinaryOp::Max => "max",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::Xor => "xor",
            BinaryOp::Shl => "shl",
            BinaryOp::Shr => "shr",
            BinaryOp::Lt => "lt",
            BinaryOp::Le => "le",
            BinaryOp::Eq => "eq",
            BinaryOp::Ne => "ne",
            BinaryOp::DotE2m1x2 => "dot_e2m1x2",
        }
    }

    const fn kind(self) -> Kind {
        match self {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div => Kind::Arithmetic,
            BinaryOp::Min | BinaryOp::Max => Kind::Extremum,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => Kind::Bitwise,
            BinaryOp::Shl | BinaryOp::Shr => Kind::Shift,
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => Kind::Comparison,
            BinaryOp::DotE2m1x2 => Kind::Packed,
        }
    }

    /// Whether it computes on a type.
    pub fn takes(self, dtype: DType) -> bool {
        match self.kind() {
            Kind::Arithmetic => dtype != DType::Bool,
            Kind::Extremum | Kind::Comparison => true,
            Kind::Bitwise => !dtype.is_float(),
            Kind::Shift => !dtype.is_float() && dtype != DType::Bool,
            Kind::Packed => dtype == DType::U8,
        }
    }

    /// The type of the result for operands of a type.
    pub fn result(self, operands: DType) -> DType {
        match self.kind() {
            Kind::Comparison => DType::Bool,
            Kind::Packed => DType::F32,
            Kind::Arithmetic | Kind::Extremum | Kind::Bitwise | Kind::Shift => operands,
        }
    }

    /// Whether the result has the type of the operands.
    pub fn keeps_type(self) -> bool {
        !matches!(self.kind(), Kind::Comparison | Kind::Packed)
    }

    /// Whether it is written as a call, `min(a, b)`, and not between its operands.
    pub fn is_call(self) -> bool {
        matches!(self.kind(), Kind::Extremum | Kind::Packed)
    }

    /// Whether it multiplies: it commutes, bit for bit, and a zero that meets a number gives zero.
    pub const fn is_product(self) -> bool {
        matches!(self, BinaryOp::Mul | BinaryOp::DotE2m1x2)
    }

    /// Whether it is `+ - * /`.
    pub fn is_arithmetic(self) -> bool {
        self.kind() == Kind::Arithmetic
    }

    /// Whether it is `min` or `max`.
    pub fn is_extremum(self) -> bool {
        self.kind() == Kind::Extremum
    }

    /// Whether it combines bits, each with that of the same place.
    pub fn is_bitwise(self) -> bool {
        self.kind() == Kind::Bitwise
    }

    /// Whether it compares, so that the result is a `bool`.
    pub fn is_comparison(self) -> bool {
        self.kind() == Kind::Comparison
    }
}
