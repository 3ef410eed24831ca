//! What an unscheduled program costs: operations and bytes.

use indexmap::IndexMap;

use crate::{DType, Func, Index, Loop, Name, Role, Stmt, Value, scan};

/// The most bytes that all buffers of a program may take together, its dimensions as small as they can be.
pub const MOST_BYTES: i64 = 1 << 40;

/// The number of arithmetic operations that a program does under given dimensions, as it is written.
///
/// Every unary and binary operation counts one, `exp` and the like included; casts, loads, stores, choices and
/// index arithmetic count nothing, and the inits of reductions nothing either. A matrix product has exactly
/// `2*m*n*k`. A scan counts one term a result, as a running sum takes ([`crate::Scan`]). Both sides of a select count as the costlier one. `None` where a dimension has no value or the number
/// overflows.
///
/// Where the extents of loops depend on a loop around them, as in a triangle, that loop is gone through, up to 2^20
/// iterations in all; of what is beyond, the middle iterations stand for the others, which is exact where extents are
/// affine in one loop.
///
/// A scheduled program may count more: guards are not evaluated. Ask the workload's own program.
pub fn flops(func: &Func, dims: &IndexMap<Name, i64>) -> Option<i64> {
    Count { dims, around: vec![], left: MOST_ITERATIONS }.stmt(&func.body)
}

/// How many iterations are gone through to count operations.
const MOST_ITERATIONS: i64 = 1 << 20;

/// [`flops`] as an expression over the symbolic dimensions. `None` where an extent depends on a loop variable or a number
/// overflows.
pub fn symbolic_flops(func: &Func) -> Option<Index> {
    fn count(stmt: &Stmt, dims: &[Name]) -> Option<Index> {
        match stmt {
            Stmt::Loop(it) if it.extent.any_var(&|name| !dims.contains(name)) => None,
            Stmt::Loop(it) if scan::is_over_terms(it) => count(&it.body, dims),
            Stmt::Loop(it) => Some(&it.extent * &count(&it.body, dims)?),
            Stmt::Block(it) => count(&it.body, dims),
            Stmt::Seq(stmts) => stmts.iter().try_fold(Index::int(0), |sum, it| Some(sum + count(it, dims)?)),
            Stmt::Store(it) => Some(Index::int(operations(&it.value))),
            // Programs are counted before lowering puts instructions in.
            Stmt::Instr(_) => None,
        }
    }
    count(&func.body, &func.dims)
}

/// The bytes that a program must move at least: each input read once and each output written once. Of an input that is read where a
/// table says, such as an embedding, no more elements count than there are reads.
///
/// `None` where a dimension has no value or the number overflows.
pub fn bytes(func: &Func, dims: &IndexMap<Name, i64>) -> Option<i64> {
    let mut outside = func.buffers.iter().filter(|(_, it)| it.role != Role::Temp);
    outside.try_fold(0, |sum: i64, (name, it)| {
        let all = size(it.dtype, &it.shape, dims)?;
        let read =
            reads_by_tables(func, name, dims).and_then(|it_reads| it_reads.checked_mul(it.dtype.bytes_i64()));
        sum.checked_add(read.map_or(all, |read| read.min(all)))
    })
}

/// How many iterations read a buffer, if all that do so go through tables; `None` else.
fn reads_by_tables(func: &Func, buffer: &Name, dims: &IndexMap<Name, i64>) -> Option<i64> {
    let mut sum: Option<i64> = None;
    for block in func.body.blocks() {
        for read in block.reads().into_iter().filter(|it| it.buffer == *buffer) {
            if !read.indices.iter().any(Index::has_element) {
                return None;
            }
            let extents = block.iters.iter().map(|it| it.extent.eval(&|name| dims.get(name).copied()));
            let count = extents.into_iter().try_fold(1, |all: i64, it| all.checked_mul(it?))?;
            sum = Some(sum.unwrap_or(0).checked_add(count)?);
        }
    }
    sum
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

/// Counts operations.
struct Count<'a> {
    dims: &'a IndexMap<Name, i64>,
    /// The loops around on which extents inside depend, and their values.
    around: Vec<(&'a Name, i64)>,
    /// How many iterations may still be gone through.
    left: i64,
}

impl<'a> Count<'a> {
    fn stmt(&mut self, stmt: &'a Stmt) -> Option<i64> {
        match stmt {
            Stmt::Loop(it) if scan::is_over_terms(it) => self.stmt(&it.body),
            Stmt::Loop(it) => {
                let around = |name: &Name| self.around.iter().find(|it| it.0 == name).map(|it| it.1);
                let value = |name: &Name| around(name).or_else(|| self.dims.get(name).copied());
                let extent = it.extent.eval(&value)?.max(0);
                if !sizes_depend(&it.body, &it.var) {
                    return extent.checked_mul(self.stmt(&it.body)?);
                }
                if extent <= self.left {
                    self.left -= extent;
                    return (0..extent).try_fold(0, |sum: i64, at| sum.checked_add(self.at(it, at)?));
                }
                let middle = self.at(it, (extent - 1) / 2)?.checked_add(self.at(it, extent / 2)?)?;
                Some(extent.checked_mul(middle)? / 2)
            }
            Stmt::Block(it) => self.stmt(&it.body),
            Stmt::Seq(stmts) => stmts.iter().try_fold(0, |sum: i64, it| sum.checked_add(self.stmt(it)?)),
            Stmt::Store(it) => Some(operations(&it.value)),
            Stmt::Instr(_) => None,
        }
    }

    /// One iteration of a loop.
    fn at(&mut self, it: &'a Loop, value: i64) -> Option<i64> {
        self.around.push((&it.var, value));
        let count = self.stmt(&it.body);
        self.around.pop();
        count
    }
}

/// Whether the extent of a loop in a statement depends on a variable.
fn sizes_depend(stmt: &Stmt, var: &Name) -> bool {
    let mut found = false;
    stmt.walk(&mut |stmt| {
        if let Stmt::Loop(it) = stmt {
            found |= it.extent.any_var(&|name| name == var);
        }
    });
    found
}

fn operations(value: &Value) -> i64 {
    match value {
        Value::Const(_) | Value::Load(_) | Value::Index(..) => 0,
        Value::Cast(_, a) => operations(a),
        Value::Unary(_, a) => 1 + operations(a),
        Value::Binary(_, a, b) => 1 + operations(a) + operations(b),
        Value::Select(_, a, b) => operations(a).max(operations(b)),
        Value::Where(cond, a, b) => operations(cond) + operations(a) + operations(b),
    }
}
