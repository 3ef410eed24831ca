//! The one reduction that is long enough to matter: a sum of products of inputs, a row at a time.

use super::{Plan, Source};
use crate::{
    BinaryOp, DType,
    interp::code::{AccessCode, IndexCode, ValueCode},
};

/// The factors of `carried + a * b`, computed in `f64`.
pub(super) struct Dot<'p>([(&'p Source<'p>, &'p AccessCode); 2]);

impl<'p> Dot<'p> {
    /// The sum of products that a stage's value is, if it is one of inputs whose subscripts are affine.
    pub(super) fn of(plan: &'p Plan<'p>, value: &'p ValueCode) -> Option<Dot<'p>> {
        let ValueCode::Binary(BinaryOp::Add, DType::F64, sum) = value else { return None };
        let [ValueCode::Carried, ValueCode::Binary(BinaryOp::Mul, DType::F64, product)] = &**sum else {
            return None;
        };
        Some(Dot([factor(plan, &product[0])?, factor(plan, &product[1])?]))
    }

    /// The running value after all `size` values of the variable in a slot, in their order.
    ///
    /// `None` where an element lies outside its input; an affine subscript does so at one of the ends.
    pub(super) fn row(&self, mut carried: f64, env: &mut [i64], slot: u32, size: i64) -> Option<f64> {
        let [(a, a_at), (b, b_at)] = self.0;
        let (mut i, mut j) = (a_at.offset(env)?, b_at.offset(env)?);
        env[slot as usize] = size - 1;
        let ends = (a_at.offset(env), b_at.offset(env));
        env[slot as usize] = 0;
        let steps = usize::try_from(size - 1).ok()?;
        let (a_step, b_step) = (step(i, ends.0?, steps), step(j, ends.1?, steps));
        for _ in 0..=steps {
            carried += a.read(i) * b.read(j);
            i = i.wrapping_add_signed(a_step);
            j = j.wrapping_add_signed(b_step);
        }
        Some(carried)
    }
}

/// How far apart neighbours lie when `steps` steps lead from one offset to another.
fn step(from: usize, to: usize, steps: usize) -> isize {
    let whole = to.cast_signed() - from.cast_signed();
    if steps == 0 { 0 } else { whole / steps.cast_signed() }
}

/// A load of an input, conversions between floats aside: in `f64` they do nothing.
fn factor<'p>(plan: &'p Plan<'p>, value: &'p ValueCode) -> Option<(&'p Source<'p>, &'p AccessCode)> {
    match value {
        ValueCode::Cast(DType::F64, DType::F64, a) => factor(plan, a),
        ValueCode::Load(access) => {
            let source = &plan.sources[access.buffer];
            let affine = access.subscripts.iter().all(|(it, _)| matches!(it, IndexCode::Affine { .. }));
            (affine && matches!(source, Source::Input(..))).then_some((source, access))
        }
        ValueCode::Const(_)
        | ValueCode::Carried
        | ValueCode::Index(..)
        | ValueCode::Cast(..)
        | ValueCode::Unary(..)
        | ValueCode::Binary(..)
        | ValueCode::Select(..) => None,
    }
}
