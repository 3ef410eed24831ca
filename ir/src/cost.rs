//! What an unscheduled program costs: operations and bytes.

use indexmap::IndexMap;

use crate::{DType, Func, Index, Name, Role, Stmt, Value};

/// The most bytes that all buffers of a program may take together, its dimensions as small as they can be.
pub const MOST_BYTES: i64 = 1 << 40;

/// The number of arithmetic operations that a program does under given dimensions, as it is written.
///
/// Every unary and binary operation counts one, `exp` and the like included; casts, loads, stores, selects and
/// index arithmetic count nothing, and the inits of reductions nothing either. A matrix product has exactly
/// `2*m*n*k`. Both sides of a select count as the costlier one. `None` where a dimension has no value, an extent
/// depends on a loop variable, or the number overflows.
///
/// A scheduled program may count more: guards are not evaluated. Ask the workload's own program.
pub fn flops(func: &Func, dims: &IndexMap<Name, i64>) -> Option<i64> {
    count(&func.body, &|name| dims.get(name).copied())
}

/// [`flops`] as an expression over the symbolic dimensions. `None` where an extent depends on a loop variable or a number
/// overflows.
pub fn symbolic_flops(func: &Func) -> Option<Index> {
    fn count(stmt: &Stmt, dims: &[Name]) -> Option<Index> {
        match stmt {
            Stmt::Loop(it) if it.extent.any_var(&|name| !dims.contains(name)) => None,
            Stmt::Loop(it) => Some(&it.extent * &count(&it.body, dims)?),
            Stmt::Block(it) => count(&it.body, dims),
            Stmt::Seq(stmts) => stmts.iter().try_fold(Index::int(0), |sum, it| Some(sum + count(it, dims)?)),
            Stmt::Store(it) => Some(Index::int(operations(&it.value))),
        }
    }
    count(&func.body, &func.dims)
}

/// The bytes that a program must move at least: each input read once and each output written once.
///
/// `None` where a dimension has no value or the number overflows.
pub fn bytes(func: &Func, dims: &IndexMap<Name, i64>) -> Option<i64> {
    let outside = func.buffers.values().filter(|it| it.role != Role::Temp);
    outside.clone().try_fold(0, |sum: i64, it| sum.checked_add(size(it.dtype, &it.shape, dims)?))
}

/// The bytes of all buffers of a program, temporaries included.
///
/// `None` where a dimension has no value or the number overflows.
pub fn footprint(func: &Func, dims: &IndexMap<Name, i64>) -> Option<i64> {
    func.buffers.values().try_fold(0, |sum: i64, it| sum.checked_add(size(it.dtype, &it.shape, dims)?))
}

fn size(dtype: DType, shape: &[Index], dims: &IndexMap<Name, i64>) -> Option<i64> {
    let element = i64::try_from(dtype.bytes()).ok()?;
    shape.iter().try_fold(element, |all, it| all.checked_mul(it.eval(&|name| dims.get(name).copied())?))
}

fn count(stmt: &Stmt, dims: &dyn Fn(&Name) -> Option<i64>) -> Option<i64> {
    match stmt {
        Stmt::Loop(it) => it.extent.eval(dims)?.max(0).checked_mul(count(&it.body, dims)?),
        Stmt::Block(it) => count(&it.body, dims),
        Stmt::Seq(stmts) => stmts.iter().try_fold(0, |sum: i64, it| sum.checked_add(count(it, dims)?)),
        Stmt::Store(it) => Some(operations(&it.value)),
    }
}

fn operations(value: &Value) -> i64 {
    match value {
        // A tensor intrinsic stands in kernels only, and programs are counted before.
        Value::Const(_) | Value::Load(_) | Value::Index(..) | Value::Tensor(..) => 0,
        Value::Cast(_, a) => operations(a),
        Value::Unary(_, a) => 1 + operations(a),
        Value::Binary(_, a, b) => 1 + operations(a) + operations(b),
        Value::Select(_, a, b) => operations(a).max(operations(b)),
    }
}
