//! The one reduction that is long enough to matter: a sum of products of inputs, a row at a time.

use super::{Source, plain::PlainPlan};
use crate::{
    BinaryOp, DType,
    interp::{
        code::{AccessCode, IndexCode, ValueCode},
        domain::Running,
    },
};

/// The factors of `carried + a * b`, the types of the sum and of the product, and what a matrix unit cuts off.
pub(super) struct Dot<'p>([(&'p Source<'p>, &'p AccessCode); 2], [DType; 2], Option<f64>);

impl<'p> Dot<'p> {
    /// The sum of products that a stage's value is, if it is one of inputs whose subscripts are affine.
    pub(super) fn of(plan: &'p PlainPlan<'p>, value: &'p ValueCode) -> Option<Dot<'p>> {
        let ValueCode::Binary(BinaryOp::Add, sum_type, sum) = value else { return None };
        let [ValueCode::Carried, term] = &**sum else { return None };
        let ValueCode::Binary(BinaryOp::Mul, product_type, product) = term else { return None };
        let factors = [factor(plan, &product[0])?, factor(plan, &product[1])?];
        let cut = plan.f8_unit.filter(|_| term.is_f8_product());
        sum_type.is_float().then_some(Dot(factors, [*sum_type, *product_type], cut))
    }

    /// Adds the products of all `size` values of the variable in a slot, in their order.
    ///
    /// `None` where an element lies outside its input; an affine subscript does so at one of the ends.
    pub(super) fn row(
        &self,
        carried: &mut impl Running,
        env: &mut [i64],
        slot: u32,
        size: i64,
    ) -> Option<()> {
        let [(a, a_at), (b, b_at)] = self.0;
        let (mut i, mut j) = (a_at.offset(env)?, b_at.offset(env)?);
        env[slot as usize] = size - 1;
        let ends = (a_at.offset(env), b_at.offset(env));
        env[slot as usize] = 0;
        let steps = usize::try_from(size - 1).ok()?;
        let (a_step, b_step) = (step(i, ends.0?, steps), step(j, ends.1?, steps));
        let factors = (0..=steps).map(|_| {
            let factors = (a.read(i), b.read(j));
            i = i.wrapping_add_signed(a_step);
            j = j.wrapping_add_signed(b_step);
            factors
        });
        if let Some(unit) = self.2 {
            carried.cut_at(unit);
        }
        carried.add_products(self.1, factors);
        Some(())
    }
}

/// How far apart neighbours lie when `steps` steps lead from one offset to another.
fn step(from: usize, to: usize, steps: usize) -> isize {
    let whole = to.cast_signed() - from.cast_signed();
    if steps == 0 { 0 } else { whole / steps.cast_signed() }
}

/// A load of an input, conversions to floats of more digits aside: they do nothing.
fn factor<'p>(plan: &'p PlainPlan<'p>, value: &'p ValueCode) -> Option<(&'p Source<'p>, &'p AccessCode)> {
    match value {
        ValueCode::Cast(from, to, a)
            if from.is_float() && matches!(to, DType::F32 | DType::F64) && from.bytes() < to.bytes() =>
        {
            factor(plan, a)
        }
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
        | ValueCode::Select(..)
        | ValueCode::Where(..) => None,
    }
}
