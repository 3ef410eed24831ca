//! Which workloads a vendor library's matrix product computes.

use codegen::device::Gemm;
use indexmap::IndexMap;
use ir::{Access, BinaryOp, Block, DType, Func, Index, IterKind, Name, Role, Stmt, Value};

use crate::Case;

/// The matrix product that a case is, and its buffers A, B, C; `None` where it is not one.
///
/// Recognised are one reduction `C[i, j] += A[i, k] * B[k, j]` (operands possibly widened, B possibly transposed,
/// one leading batch axis), and the same into a temporary that a second block only converts.
pub fn gemm_of(case: &Case) -> Option<(Gemm, [Name; 3])> {
    let func = &case.func;
    let (product, output) = match func.body.blocks().as_slice() {
        [product] => (*product, None),
        [product, convert] => (*product, Some(converted(convert)?)),
        _ => return None,
    };
    let (place, left, right) = product_of(product)?;
    let output = match output {
        Some((from, to)) if from == place.buffer => to,
        Some(_) => return None,
        None => place.buffer.clone(),
    };
    let (c, roles) = (func.buffers.get(&output)?, [&left.buffer, &right.buffer]);
    let inputs = roles.map(|it| func.buffers.get(it));
    let [Some(a), Some(b)] = inputs else { return None };
    let params = func.buffers.values().filter(|it| it.role != Role::Temp).count();
    if [a.role, b.role, c.role] != [Role::Input, Role::Input, Role::Output]
        || params != 3
        || a.dtype != b.dtype
        || left.buffer == right.buffer
        || !types_fit(func, a.dtype, c.dtype, &place.buffer)
    {
        return None;
    }
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
        output: c.dtype,
        b_transposed,
    };
    whole(case, &gemm, [&left.buffer, &right.buffer, &output])
        .then(|| (gemm, [left.buffer.clone(), right.buffer.clone(), output]))
}

/// The reduction's place and the two factors, if the block is `C = C + f(A) * f(B)` from zero, without guards.
fn product_of(block: &Block) -> Option<(&Access, &Access, &Access)> {
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
        | Value::Tensor(..) => None,
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
fn types_fit(func: &Func, input: DType, output: DType, accumulator: &Name) -> bool {
    let wide = if input == DType::F64 { DType::F64 } else { DType::F32 };
    let known = matches!(input, DType::F32 | DType::F64 | DType::F16 | DType::Bf16);
    known && func.dtype_of(accumulator) == Some(wide) && (output == wide || output == input)
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

/// Whether the product covers its buffers whole.
fn whole(case: &Case, gemm: &Gemm, buffers: [&Name; 3]) -> bool {
    let Gemm { batch, m, n, k, .. } = *gemm;
    let lens = [batch * m * k, batch * k * n, batch * m * n];
    let sizes: &IndexMap<Name, _> = case.params();
    buffers
        .iter()
        .zip(lens)
        .all(|(name, len)| sizes.get(*name).is_some_and(|it| it.shape.iter().product::<usize>() == len))
}
