//! Running error analysis: numbers as exact arithmetic gives them, and how far a machine's may be from them.
//!
//! A [`Near`] is carried through a program in place of each number. Its value is computed in `f64`; its bounds grow by
//! what every operation may be wrong in its own type, and through every operation as its operands' do:
//!
//! * `+ - * /` and conversions to fewer bits add one unit roundoff of the result (tf32 two, because machines cut it
//!   off), functions eight: four units in the last place, twice what CUDA documents for the worst of them. Below the
//!   normal numbers it is the least subnormal, and `exp2` in f32 may be zero there, as `ex2.approx.ftz` is.
//! * A function's operand may be anywhere between its bounds. The functions are monotone, so that their values at
//!   the bounds are the new ones: this is the conditioning of `exp(20*x)`, and of `log` near 1. (`sin` and `cos` are not, and spread no
//!   further than their operands.) Products and quotients are taken at their corners; differences keep the bounds of what cancels.
//! * A comparison of what may be either way round may be either, and what is chosen by it one of both.
//! * What may overflow, or divide by zero, or be the root of a negative number, has no bound, and may then be anything.
//!
//! # Sums
//!
//! A schedule may add the terms of a reduction in any order, in parts, or with a matrix unit that cuts off instead of
//! rounding. What the terms bring along is added up. What the additions do wrong is bounded by
//!
//! ```text
//! min(2 n, 4 sqrt(n)) * u * (2 max|partial sum| + 2 sqrt(sum of the squares of the terms))
//! ```
//!
//! for `n` terms and the unit roundoff `u` of the sum. No partial sum is larger than about the last factor: a stretch of
//! the program's order is the difference of two of its partial sums, and a choice of terms without regard to their
//! values strays from its share by the root of the sum of squares. Up to four terms the bound is Wilkinson's, which
//! always holds, with two units for cutting off. Of many terms the single errors have either sign, and add up like a random
//! walk: four of its standard deviations. (Measured kernels stay below a quarter of that; a product forgotten of
//! a row of 4096 is a hundred times it in f32.)
//!
//! The matrix units of some architectures keep fewer bits of sums of products of eight-bit floats than f32 has
//! ([`Caps::f8_sum_bits`](crate::Caps)). They cut off each term at `2^-bits` of the largest number that they add it to, so that `u` is
//! half of that. What is cut off has the sign of the term. Where most terms have one sign it adds up instead of walking, to no more
//! than
//!
//! ```text
//! 2 n u * max|partial sum| * |sum| / sqrt(n * sum of the squares of the terms)
//! ```
//!
//! whose last factor is 1 for equal terms and `1/sqrt(n)` for random signs; the bound is the larger of the two. (Simulated sums of 128
//! to 16384 terms, N(0, 1) and their magnitudes, stay below a quarter of it.)

mod compare;
mod edges;
mod types;

pub use types::unit_roundoff;

use crate::{
    BinaryOp, DType, UnaryOp,
    interp::domain::{Domain, Running},
    number,
};
use types::{holds, least};

/// A number, and where a machine's may be: anywhere in `value - below ..= value + above`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Near {
    /// What exact arithmetic gives.
    pub value: f64,
    /// How much less a machine's number may be.
    pub below: f64,
    /// How much more.
    pub above: f64,
}

impl Near {
    /// A number that every machine has.
    pub const fn exact(value: f64) -> Near {
        Near { value, below: 0.0, above: 0.0 }
    }

    /// A number and the same bound on both sides.
    pub const fn within(value: f64, error: f64) -> Near {
        Near { value, below: error, above: error }
    }

    /// Whether nothing is known of a machine's number: it may be anything, and none.
    pub const fn is_unbounded(&self) -> bool {
        self.below == f64::INFINITY || self.above == f64::INFINITY
    }

    /// How large an error on the side of a machine's number is allowed, and how large it is.
    pub fn error(&self, got: f64) -> (f64, f64) {
        #[expect(clippy::float_cmp, reason = "equal infinities are equal, though their difference is not 0")]
        let same = got == self.value || (got.is_nan() && self.value.is_nan());
        let allowed = if got < self.value { self.below } else { self.above };
        if same || self.is_unbounded() {
            return (0.0, allowed);
        }
        let error = (got - self.value).abs();
        (if error.is_nan() { f64::INFINITY } else { error }, allowed)
    }

    const fn unknown(value: f64) -> Near {
        Near::within(value, f64::INFINITY)
    }

    const fn is_exact(&self) -> bool {
        self.below == 0.0 && self.above == 0.0
    }

    const fn ends(&self) -> [f64; 2] {
        [self.value - self.below, self.value + self.above]
    }

    /// A value, and what else it may be.
    fn among(value: f64, others: &[f64]) -> Near {
        let mut out = Near::exact(value);
        for it in others {
            if it.is_nan() || !value.is_finite() {
                return Near::unknown(value);
            }
            out.below = out.below.max(value - it);
            out.above = out.above.max(it - value);
        }
        out
    }

    /// The result of an operation with the errors of its rounding, so many unit roundoffs.
    #[inline]
    fn rounded(self, dtype: DType, units: f64) -> Near {
        let Near { value, below, above } = self;
        if dtype == DType::F8e8m0 {
            return self.to_power_of_two();
        }
        if !value.is_finite() {
            return if self.is_exact() { self } else { Near::unknown(value) };
        }
        let most = value.abs() + below.max(above);
        let error = units * unit_roundoff(dtype) * most + least(dtype);
        let (out, limit) =
            (Near { value, below: below + error, above: above + error }, dtype.largest_finite());
        if most + error <= limit { out } else { out.overflowing(dtype, limit) }
    }

    /// The power of two that it becomes: the errors of its rounding are as large as itself, and it has no sign.
    fn to_power_of_two(self) -> Near {
        let power = |it: f64| number::round(DType::F8e8m0, it);
        if self.is_unbounded() {
            return Near::unknown(power(self.value));
        }
        let [low, high] = self.ends();
        let least = if low < 0.0 && high > 0.0 { power(0.0) } else { power(low) };
        Near::among(power(self.value), &[least, power(low), power(high)])
    }

    #[cold]
    fn overflowing(self, dtype: DType, limit: f64) -> Near {
        let [low, high] = self.ends();
        if matches!(dtype, DType::F8e4m3 | DType::F8e5m2) {
            let [value, low, high] = [self.value, low, high].map(|it| it.clamp(-limit, limit));
            return Near { value, below: value - low, above: high - value };
        }
        let below = if low < -limit { f64::INFINITY } else { self.below };
        let above = if high > limit { f64::INFINITY } else { self.above };
        Near { below, above, ..self }
    }

    #[inline]
    fn float(op: BinaryOp, dtype: DType, a: Near, b: Near) -> Near {
        let (x, y) = (a.value, b.value);
        match op {
            // What a mask has made infinite stays so, whatever else is added.
            BinaryOp::Add | BinaryOp::Sub if a.is_infinite_beside(b) => Near::exact(x),
            BinaryOp::Add if b.is_infinite_beside(a) => Near::exact(y),
            BinaryOp::Sub if b.is_infinite_beside(a) => Near::exact(-y),
            BinaryOp::Add => {
                Near { value: x + y, below: a.below + b.below, above: a.above + b.above }.rounded(dtype, 1.0)
            }
            BinaryOp::Sub => {
                Near { value: x - y, below: a.below + b.above, above: a.above + b.below }.rounded(dtype, 1.0)
            }
            BinaryOp::Mul if a.is_infinite_times(b) || b.is_infinite_times(a) => Near::exact(x * y),
            BinaryOp::Mul if a.is_exact() && b.is_exact() => Near::exact(x * y).rounded(dtype, 1.0),
            BinaryOp::Mul => a.product(b).rounded(dtype, 1.0),
            BinaryOp::Div if b.is_exact() && a.is_exact() => Near::exact(x / y).rounded(dtype, 1.0),
            BinaryOp::Div if b.ends()[0] <= 0.0 && b.ends()[1] >= 0.0 => Near::unknown(x / y),
            BinaryOp::Div => a.corners(b, x / y, |x, y| x / y).rounded(dtype, 1.0),
            BinaryOp::Min => a.corners(b, x.min(y), f64::min),
            BinaryOp::Max => a.corners(b, x.max(y), f64::max),
            // Not of floats.
            _ => Near::unknown(f64::NAN),
        }
    }

    /// The product, whose bounds stay exact where they are far below the value.
    fn product(self, other: Near) -> Near {
        let value = self.value * other.value;
        let (mut below, mut above) = (0f64, 0f64);
        for a in [-self.below, self.above] {
            for b in [-other.below, other.above] {
                let change = self.value * b + other.value * a + a * b;
                if change.is_nan() {
                    return Near::unknown(value);
                }
                below = below.max(-change);
                above = above.max(change);
            }
        }
        Near { value, below, above }
    }

    /// An operation that is monotone in both operands, at the corners.
    fn corners(self, other: Near, value: f64, op: impl Fn(f64, f64) -> f64) -> Near {
        if self.is_exact() && other.is_exact() {
            return Near::exact(value);
        }
        if self.is_unbounded() || other.is_unbounded() {
            return Near::unknown(value);
        }
        let ([a, b], [c, d]) = (self.ends(), other.ends());
        Near::among(value, &[op(a, c), op(a, d), op(b, c), op(b, d)])
    }

    /// Integers, which are exact unless they come from floats.
    fn integer(op: BinaryOp, dtype: DType, a: Near, b: Near) -> Option<Near> {
        let value = number::binary(op, dtype, a.value, b.value)?;
        if a.is_exact() && b.is_exact() {
            return Some(Near::exact(value));
        }
        let divides_by_zero = op == BinaryOp::Div && b.ends()[0] <= 0.0 && b.ends()[1] >= 0.0;
        // In f64 nothing wraps: where a corner leaves the type, the machine's number is somewhere else.
        let plain = |x: f64, y: f64| match op {
            BinaryOp::Add => x + y,
            BinaryOp::Sub => x - y,
            BinaryOp::Mul => x * y,
            BinaryOp::Div => (x / y).trunc(),
            BinaryOp::Min => x.min(y),
            BinaryOp::Max => x.max(y),
            // Of bits that are not known nothing is.
            _ => f64::NAN,
        };
        let found = a.corners(b, plain(a.value, b.value), plain);
        let wraps = [found.value, found.ends()[0], found.ends()[1]].iter().any(|it| !holds(dtype, *it));
        Some(if divides_by_zero || wraps { Near::unknown(value) } else { found })
    }

    fn to_integer(self, from: DType, to: DType) -> Near {
        let cast = |it: f64| number::cast(from, to, it);
        let value = cast(self.value);
        if self.is_exact() {
            return Near::exact(value);
        }
        let [low, high] = self.ends();
        // Truncating keeps the order of numbers; wrapping does not.
        let wraps = |it: f64| !from.is_float() && to != DType::Bool && !holds(to, it);
        if self.is_unbounded() || wraps(low) || wraps(high) {
            return Near::unknown(value);
        }
        // Anything but zero is true.
        let zero = if to == DType::Bool && low <= 0.0 && high >= 0.0 { 0.0 } else { value };
        Near::among(value, &[zero, cast(low), cast(high)])
    }
}

impl Domain for Near {
    type Running = Sum;

    fn exact(value: f64) -> Near {
        Near::exact(value)
    }

    #[inline]
    fn cast(self, from: DType, to: DType) -> Near {
        match (from.is_float(), to.is_float()) {
            (true, true) => {
                let (finer, wider) =
                    (unit_roundoff(to) <= unit_roundoff(from), to.largest_finite() >= from.largest_finite());
                let units = if to == DType::Tf32 { 2.0 } else { 1.0 };
                if finer && wider { self } else { self.rounded(to, if finer { 0.0 } else { units }) }
            }
            (false, true) if self.is_exact() && holds(to, self.value) => self,
            (false, true) => self.rounded(to, 1.0),
            (_, false) => self.to_integer(from, to),
        }
    }

    fn unary(self, op: UnaryOp, dtype: DType) -> Near {
        let exactly = |x: f64| {
            if dtype.is_float() { number::unary(op, DType::F64, x) } else { number::unary(op, dtype, x) }
        };
        let value = exactly(self.value);
        let spread = if self.is_exact() {
            Near::exact(value)
        } else if self.is_unbounded() {
            return Near::unknown(value);
        } else {
            let [low, high] = self.ends();
            let (low, high) = (exactly(low), exactly(high));
            match op {
                // No steeper than one, and nowhere beyond one.
                UnaryOp::Sin | UnaryOp::Cos => {
                    let spread = self.below.max(self.above);
                    Near { value, below: spread.min(value + 1.0), above: spread.min(1.0 - value) }
                }
                UnaryOp::Neg => Near { value, below: self.above, above: self.below },
                UnaryOp::Abs if self.ends()[0] < 0.0 && self.ends()[1] > 0.0 => {
                    Near::among(value, &[low, high, 0.0])
                }
                _ => Near::among(value, &[low, high]),
            }
        };
        match op {
            _ if op.is_exact() && dtype != DType::F8e8m0 => spread,
            UnaryOp::Exp2 if dtype == DType::F32 => spread.rounded(dtype, 8.0).flushed(),
            _ => spread.rounded(dtype, 8.0),
        }
    }

    #[inline]
    fn binary(op: BinaryOp, dtype: DType, a: Near, b: Near) -> Option<Near> {
        if op.is_comparison() {
            return Some(Near::compare(op, a, b));
        }
        if dtype.is_float() { Some(Near::float(op, dtype, a, b)) } else { Near::integer(op, dtype, a, b) }
    }

    fn choice(cond: Near, then: Near, otherwise: Near) -> Near {
        Near::chosen(cond, then, otherwise)
    }
}

/// A running sum, and what bounds its roundings in whatever order the terms are added. See the module.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Sum {
    /// What it began with, and all terms since, without the roundings of the additions.
    near: Near,
    dtype: DType,
    /// The unit roundoff of a matrix unit that cuts off more than the type would; 0 where none does.
    cut: f64,
    terms: f64,
    squares: f64,
    peak: f64,
}

impl From<Near> for Sum {
    fn from(near: Near) -> Sum {
        Sum { near, dtype: DType::F64, cut: 0.0, terms: 0.0, squares: 0.0, peak: near.value.abs() }
    }
}

impl Running for Sum {
    type Number = Near;

    #[inline]
    fn total(&self) -> Near {
        let near = self.near;
        if self.terms == 0.0 || (near.is_exact() && !near.value.is_finite()) {
            return near;
        }
        let growth = (2.0 * self.terms).min(4.0 * self.terms.sqrt());
        let size = 2.0 * self.peak + 2.0 * self.squares.sqrt();
        let mut error = growth * unit_roundoff(self.dtype).max(self.cut) * size;
        if self.cut > 0.0 {
            let bias = near.value.abs() / (self.terms * self.squares).sqrt().max(f64::MIN_POSITIVE);
            error = error.max(2.0 * self.terms * self.cut * self.peak * bias);
        }
        if error.is_nan() || self.peak + error > self.dtype.largest_finite() {
            return Near::unknown(near.value);
        }
        Near { value: near.value, below: near.below + error, above: near.above + error }
            .rounded(self.dtype, 0.0)
    }

    fn cut_at(&mut self, unit: f64) {
        self.cut = unit;
    }

    #[inline]
    fn add(&mut self, dtype: DType, term: Near) {
        self.dtype = dtype;
        self.near.value += term.value;
        self.near.below += term.below;
        self.near.above += term.above;
        self.terms += 1.0;
        self.squares += term.value * term.value;
        self.peak = self.peak.max(self.near.value.abs());
    }

    #[inline]
    fn add_products(&mut self, [sum, product]: [DType; 2], factors: impl Iterator<Item = (f64, f64)>) {
        let (mut value, mut squares, mut peak, mut terms) = (self.near.value, 0.0, self.peak, 0u32);
        for (a, b) in factors {
            let term = a * b;
            value += term;
            squares += term * term;
            peak = if value.abs() > peak { value.abs() } else { peak };
            terms += 1;
        }
        // The magnitudes of n numbers add up to at most the root of n times the sum of their squares.
        let terms = f64::from(terms);
        let error = unit_roundoff(product) * (terms * squares).sqrt() + terms * least(product);
        self.dtype = sum;
        self.near = Near { value, below: self.near.below + error, above: self.near.above + error };
        self.terms += terms;
        self.squares += squares;
        self.peak = peak;
    }
}
