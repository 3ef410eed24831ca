//! The least time that a machine needs for the arithmetic of a workload.
//!
//! Matrix products of types that matrix units take run there; everything else in f32 and f64 runs on the plain lanes. Both
//! work at once, so the slower of the two is the limit. Arithmetic whose peak is not known, such as that in f16 without
//! matrix units, costs nothing here: the limit stays one.

use codegen::device::MachineInfo;
use ir::{Block, DType, Func, Name, Stmt, Value, cost};

use crate::{Case, baseline::padded_product_of};

/// Seconds for the arithmetic of a case on that share of a machine; `None` where nothing is known of any of it.
pub(crate) fn least_seconds(case: &Case, info: &MachineInfo, share: f64) -> Option<f64> {
    let parts = match &case.func.body {
        Stmt::Seq(parts) => parts.as_slice(),
        Stmt::Loop(_) | Stmt::Block(_) | Stmt::Store(_) | Stmt::Instr(_) => {
            std::slice::from_ref(&case.func.body)
        }
    };
    let (mut lanes, mut units) = (0.0, 0.0);
    for part in parts {
        let Some(kind) = kind_of(&case.func, part) else { continue };
        let factors = match kind {
            UnitKind::Lanes => DType::F32,
            UnitKind::Product(factors) => factors,
        };
        let peak = info.peak_product_gflops(factors).filter(|it| *it > 0.0);
        let work = cost::flops(&Func { body: part.clone(), ..case.func.clone() }, &case.dims);
        let seconds = peak.zip(work).map_or(0.0, |(peak, work)| work as f64 / (peak * 1e9 * share));
        match kind {
            UnitKind::Lanes => lanes += seconds,
            UnitKind::Product(_) => units += seconds,
        }
    }
    let most = f64::max(lanes, units);
    (most > 0.0).then_some(most)
}

/// Where a part of a program can run fastest.
enum UnitKind {
    /// On the plain lanes, in f32 or f64.
    Lanes,
    /// On matrix units, with factors of a type.
    Product(DType),
}

fn kind_of(func: &Func, part: &Stmt) -> Option<UnitKind> {
    let blocks = part.blocks();
    if let [block] = blocks.as_slice()
        && let Some((_, a, b)) = padded_product_of(block)
    {
        let types = func.dtype_of(&a.buffer).zip(func.dtype_of(&b.buffer));
        let (a, b) = types?;
        return match a {
            DType::F32 | DType::F64 => (a == b).then_some(UnitKind::Lanes),
            _ => (a == b).then_some(UnitKind::Product(a)),
        };
    }
    blocks.iter().all(|it| is_plain(func, it)).then_some(UnitKind::Lanes)
}

/// Whether all arithmetic of a block is in f32 or f64.
fn is_plain(func: &Func, block: &Block) -> bool {
    let dtype = |name: &Name| func.dtype_of(name);
    let mut plain = true;
    block.body.each_store(&mut |store| plain &= is_plain_value(&store.value, &dtype));
    plain
}

fn is_plain_value(value: &Value, dtype: &dyn Fn(&Name) -> Option<DType>) -> bool {
    let here = || matches!(value.dtype(dtype), Some(DType::F32 | DType::F64));
    match value {
        Value::Const(_) | Value::Load(_) | Value::Index(..) => true,
        Value::Cast(_, a) => is_plain_value(a, dtype),
        Value::Unary(_, a) => here() && is_plain_value(a, dtype),
        Value::Binary(_, a, b) => here() && is_plain_value(a, dtype) && is_plain_value(b, dtype),
        Value::Select(_, a, b) => is_plain_value(a, dtype) && is_plain_value(b, dtype),
        Value::Where(cond, a, b) => [cond, a, b].into_iter().all(|it| is_plain_value(it, dtype)),
    }
}
