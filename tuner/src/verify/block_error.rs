//! A tolerance for all elements of an output, for programs that carry no bounds through their computation.

use ir::{Block, DType, Func, Index, IterKind, Name, Value, reference::unit_roundoff};

/// What one block adds to a tolerance for all elements of an output, which programs go by that carry no bounds through
/// their computation: those of exported bundles. It is relative to the largest magnitude of the output.
///
/// ```text
/// sum over blocks of ( 8 u(written) + 4 sqrt(K) u(written) + 8 sqrt(K) sum of u(cast) )
/// ```
///
/// has `u(type)` for the unit roundoff of a type, `written` for the type that the block stores, `K` for how many values one
/// element of the block combines (1 without a reduction, where the second term is dropped), and the last sum goes over the
/// casts to a type of lower precision in its body.
#[derive(Clone, PartialEq, Debug)]
pub struct BlockError {
    /// The block.
    pub block: Name,
    /// The unit roundoff of what it writes: zero for integers.
    pub written: f64,
    /// The sum of the unit roundoffs of its casts to a type of lower precision.
    pub casts: f64,
    /// The extents of its reduction iterators: one element combines their product.
    pub reduce: Vec<Index>,
}

impl BlockError {
    /// One for each block of an unscheduled program; one that makes up the tolerance of a program that has one.
    pub fn of(func: &Func) -> Vec<BlockError> {
        if let Some(tolerance) = func.tolerance {
            let written = tolerance.to_f64() / 8.0;
            return vec![BlockError { block: func.name.clone(), written, casts: 0.0, reduce: vec![] }];
        }
        let dtype = |name: &Name| func.dtype_of(name);
        let block = |it: &Block| {
            let (mut written, mut casts) = (0.0, 0.0);
            it.body.each_store(&mut |store| {
                written += dtype(&store.place.buffer).map_or(0.0, unit_roundoff);
                casts += cast_error(&store.value, &dtype);
            });
            let reduce = it.iters.iter().filter(|it| it.kind == IterKind::Reduce);
            BlockError {
                block: it.name.clone(),
                written,
                casts,
                reduce: reduce.map(|it| it.extent.clone()).collect(),
            }
        };
        func.body.blocks().into_iter().map(block).collect()
    }

    /// What it adds where one element combines so many values.
    pub fn at(&self, steps: u64) -> f64 {
        let steps = steps.max(1) as f64;
        let growth = if steps > 1.0 { 4.0 * steps.sqrt() } else { 0.0 };
        (8.0 + growth) * self.written + 8.0 * steps.sqrt() * self.casts
    }
}

fn cast_error(value: &Value, dtype: &dyn Fn(&Name) -> Option<DType>) -> f64 {
    match value {
        Value::Const(_) | Value::Load(_) | Value::Index(..) => 0.0,
        Value::Cast(to, inner) => {
            let from = inner.dtype(dtype).map_or(0.0, unit_roundoff);
            let narrower = unit_roundoff(*to) > from && from > 0.0;
            cast_error(inner, dtype) + if narrower { unit_roundoff(*to) } else { 0.0 }
        }
        Value::Unary(_, a) => cast_error(a, dtype),
        Value::Binary(_, a, b) | Value::Select(_, a, b) | Value::Where(_, a, b) => {
            cast_error(a, dtype) + cast_error(b, dtype)
        }
    }
}
