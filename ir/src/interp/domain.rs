//! What numbers are to an evaluator: the machine's own, or exact ones with bounds ([`crate::reference::Near`]).

use std::fmt::Debug;

use crate::{BinaryOp, DType, UnaryOp, number};

/// Numbers that programs compute with.
pub(crate) trait Domain: Copy + Debug {
    /// The running value of a reduction.
    type Running: Running<Number = Self>;

    /// A number that is known exactly.
    fn exact(value: f64) -> Self;
    /// See [`number::cast`].
    fn cast(self, from: DType, to: DType) -> Self;
    /// See [`number::unary`].
    fn unary(self, op: UnaryOp, dtype: DType) -> Self;
    /// See [`number::binary`].
    fn binary(op: BinaryOp, dtype: DType, a: Self, b: Self) -> Option<Self>;
    /// The second number where the first, a `bool`, is true, else the third.
    fn choice(cond: Self, then: Self, otherwise: Self) -> Self;
}

/// A number to which terms are added one by one. Any number begins one.
pub(crate) trait Running: Copy + Debug + From<Self::Number> {
    type Number;

    /// The number that it is by now.
    fn total(&self) -> Self::Number;
    /// Whatever is added is cut off by a matrix unit with this unit roundoff. Says nothing to a machine's own numbers.
    fn cut_at(&mut self, _unit: f64) {}
    /// Adds a term of a floating-point type.
    fn add(&mut self, dtype: DType, term: Self::Number);
    /// Adds products of exact numbers: the type of the sum, and that of the products.
    fn add_products(&mut self, types: [DType; 2], factors: impl Iterator<Item = (f64, f64)>);
}

impl Domain for f64 {
    type Running = f64;

    fn exact(value: f64) -> f64 {
        value
    }

    #[inline]
    fn cast(self, from: DType, to: DType) -> f64 {
        number::cast(from, to, self)
    }

    #[inline]
    fn unary(self, op: UnaryOp, dtype: DType) -> f64 {
        number::unary(op, dtype, self)
    }

    #[inline]
    fn binary(op: BinaryOp, dtype: DType, a: f64, b: f64) -> Option<f64> {
        number::binary(op, dtype, a, b)
    }

    #[inline]
    fn choice(cond: f64, then: f64, otherwise: f64) -> f64 {
        if cond == 0.0 { otherwise } else { then }
    }
}

impl Running for f64 {
    type Number = f64;

    fn total(&self) -> f64 {
        *self
    }

    fn add(&mut self, dtype: DType, term: f64) {
        *self = number::round(dtype, *self + term);
    }

    fn add_products(&mut self, [sum, product]: [DType; 2], factors: impl Iterator<Item = (f64, f64)>) {
        for (a, b) in factors {
            self.add(sum, number::round(product, a * b));
        }
    }
}
