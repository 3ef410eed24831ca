//! Which workloads a vendor library's matrix product computes, alone or followed by elementwise kernels.

mod unfused;

use codegen::device::{Gemm, MachineInfo};
use ir::{Access, BinaryOp, Block, DType, Index, IterKind, Name, Role, Stmt, Value};

pub(crate) use unfused::{Grouping, Unfused};

use crate::Case;

/// What the vendor's library is on a machine.
pub fn library(info: &MachineInfo) -> &'static str {
    if info.arch == "cpu" { "gemm" } else { "cuBLAS" }
}

/// The matrix product that a case is, and its buffers A, B, C; `None` where it is not one.
///
/// Recognised are one reduction `C[i, j] += A[i, k] * B[k, j]` (operands possibly widened, B possibly transposed,
/// one leading batch axis), and the same into a temporary that a second block only converts. A transposed A is not.
pub fn gemm_of(case: &Case) -> Option<(Gemm, [Name; 3])> {
    let func = &case.func;
    let (product, output) = match func.body.blocks().as_slice() {
        [product] => (*product, None),
        [product, convert] => (*product, Some(converted(convert)?)),
        _ => return None,
    };
    let (place, ..) = product_of(product)?;
    let output = match output {
        Some((from, to)) if from == place.buffer => to,
        Some(_) => return None,
        None => place.buffer.clone(),
    };
    let c = func.buffers.get(&output)?;
    let params = func.buffers.values().filter(|it| it.role != Role::Temp).count();
    if c.role != Role::Output || params != 3 {
        return None;
    }
    let (gemm, [a, b]) = product_into(case, product, c.dtype)?;
    (elements(case, &output)? == gemm.batch * gemm.m * gemm.n).then_some((gemm, [a, b, output]))
}

/// The matrix product of two inputs that a block is, with the output in a type, and the buffers A and B.
fn product_into(case: &Case, product: &Block, output: DType) -> Option<(Gemm, [Name; 2])> {
    let func = &case.func;
    let (place, left, right) = product_of(product)?;
    let (a, b) = (func.buffers.get(&left.buffer)?, func.buffers.get(&right.buffer)?);
    if [a.role, b.role] != [Role::Input, Role::Input] || a.dtype != b.dtype || left.buffer == right.buffer {
        return None;
    }
    let accumulator = func.dtype_of(&place.buffer).filter(|it| types_fit(a.dtype, *it, output))?;
    // `A * B` may also be written `B * A`: the row of the result belongs to A.
    let shape = Shape::of(product, place)?;
    let (left, right, b_transposed) = match (shape.operand(left)?, shape.operand(right)?) {
        (Operand::Rows, Operand::Columns { transposed }) => (left, right, transposed),
        (Operand::Columns { transposed }, Operand::Rows) => (right, left, transposed),
        (Operand::Rows, Operand::Rows) | (Operand::Columns { .. }, Operand::Columns { .. }) => return None,
    };
    let size = |var: &Name| {
        let extent = case.eval(&product.find_iter(var)?.extent)?;
        usize::try_from(extent).ok()
    };
    let gemm = Gemm {
        batch: shape.batch.as_ref().map_or(Some(1), size)?,
        m: size(&shape.i)?,
        n: size(&shape.j)?,
        k: size(&shape.k)?,
        input: a.dtype,
        accumulator,
        output,
        b_transposed,
        fast_sums: false,
    };
    let Gemm { batch, m, n, k, .. } = gemm;
    let whole = [(left, batch * m * k), (right, batch * k * n), (place, batch * m * n)];
    let whole = whole.into_iter().all(|(it, len)| elements(case, &it.buffer) == Some(len));
    whole.then(|| (gemm, [left.buffer.clone(), right.buffer.clone()]))
}

/// How many elements a buffer has.
fn elements(case: &Case, buffer: &Name) -> Option<usize> {
    let shape = &case.func.buffers.get(buffer)?.shape;
    shape.iter().try_fold(1usize, |len, it| len.checked_mul(usize::try_from(case.eval(it)?).ok()?))
}

/// The reduction's place and the two factors, if the block is `C = C + f(A) * f(B)` from zero, without guards.
pub(crate) fn product_of(block: &Block) -> Option<(&Access, &Access, &Access)> {
    product_as(block, loaded)
}

/// The same of factors that are zero under conditions, as at the end of a row.
pub(crate) fn padded_product_of(block: &Block) -> Option<(&Access, &Access, &Access)> {
    product_as(block, loaded_or_zero)
}

fn product_as<'a>(
    block: &'a Block,
    loaded: fn(&'a Value) -> Option<&'a Access>,
) -> Option<(&'a Access, &'a Access, &'a Access)> {
    let (Stmt::Store(store), Some(Stmt::Store(init))) = (&block.body, &block.init) else { return None };
    let Value::Binary(BinaryOp::Add, sum, product) = &store.value else { return None };
    let Value::Binary(BinaryOp::Mul, a, b) = &**product else { return None };
    let starts = matches!(&init.value, Value::Const(it) if it.to_f64() == 0.0) && init.place == store.place;
    let adds = matches!(&**sum, Value::Load(it) if *it == store.place);
    (starts && adds && block.guards.is_empty()).then_some((&store.place, loaded(a)?, loaded(b)?))
}

/// The load under casts.
fn loaded(value: &Value) -> Option<&Access> {
    match value {
        Value::Load(it) => Some(it),
        Value::Cast(_, inner) => loaded(inner),
        Value::Const(_)
        | Value::Index(..)
        | Value::Unary(..)
        | Value::Binary(..)
        | Value::Select(..)
        | Value::Where(..) => None,
    }
}

/// The load under casts and conditions, where it is zero otherwise.
fn loaded_or_zero(value: &Value) -> Option<&Access> {
    match value {
        Value::Cast(_, inner) => loaded_or_zero(inner),
        Value::Select(_, inner, other) if matches!(&**other, Value::Const(it) if it.to_f64() == 0.0) => {
            loaded_or_zero(inner)
        }
        other => loaded(other),
    }
}

/// The source and the destination of a block that only converts elements in place.
fn converted(block: &Block) -> Option<(Name, Name)> {
    let (Stmt::Store(store), None) = (&block.body, &block.init) else { return None };
    let from = loaded(&store.value)?;
    (block.guards.is_empty() && from.indices == store.place.indices)
        .then(|| (from.buffer.clone(), store.place.buffer.clone()))
}

/// Whether a library accumulates in the same type.
fn types_fit(input: DType, accumulator: DType, output: DType) -> bool {
    let accumulates = match input {
        DType::F32 | DType::Bf16 | DType::Tf32 | DType::F8e4m3 | DType::F8e5m2 => accumulator == DType::F32,
        DType::F16 => matches!(accumulator, DType::F16 | DType::F32),
        DType::F64 => accumulator == DType::F64,
        DType::I8 => accumulator == DType::I32,
        DType::Bool
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::F8e8m0 => false,
    };
    let narrow = match input {
        DType::F16 | DType::Bf16 => output == input,
        DType::F8e4m3 | DType::F8e5m2 => matches!(output, DType::F16 | DType::Bf16),
        _ => false,
    };
    accumulates && (output == accumulator || narrow)
}

/// Which iterator is which axis of the product.
struct Shape {
    batch: Option<Name>,
    i: Name,
    j: Name,
    k: Name,
}

enum Operand {
    /// A\[i, k\].
    Rows,
    /// B\[k, j\], or B\[j, k\] where transposed.
    Columns { transposed: bool },
}

impl Shape {
    fn of(block: &Block, place: &Access) -> Option<Shape> {
        let vars: Option<Vec<&Name>> = place.indices.iter().map(Index::as_var).collect();
        let reduce: Vec<_> = block.iters.iter().filter(|it| it.kind == IterKind::Reduce).collect();
        let [reduce] = reduce.as_slice() else { return None };
        let (batch, i, j) = match vars?.as_slice() {
            [i, j] => (None, *i, *j),
            [batch, i, j] => (Some((*batch).clone()), *i, *j),
            _ => return None,
        };
        let shape = Shape { batch, i: i.clone(), j: j.clone(), k: reduce.var.clone() };
        (block.iters.len() == place.indices.len() + 1 && i != j).then_some(shape)
    }

    fn operand(&self, access: &Access) -> Option<Operand> {
        let vars: Option<Vec<&Name>> = access.indices.iter().map(Index::as_var).collect();
        let vars = vars?;
        let rest = match &self.batch {
            Some(batch) => vars.strip_prefix(&[batch])?,
            None => &vars,
        };
        let [first, second] = rest else { return None };
        match (*first, *second) {
            (a, b) if *a == self.i && *b == self.k => Some(Operand::Rows),
            (a, b) if *a == self.k && *b == self.j => Some(Operand::Columns { transposed: false }),
            (a, b) if *a == self.j && *b == self.k => Some(Operand::Columns { transposed: true }),
            _ => None,
        }
    }
}
