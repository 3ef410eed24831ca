//! What the instruction `cp.async` can do: copies of 4, 8 or 16 bytes from global to shared memory.

use ir::{Access, DType, Less, Name, Number, Scope, Value};

/// The least compute capability (times ten) that has the instruction.
pub(crate) const LEAST_SM: u32 = 80;

/// A copy that is one instruction.
pub(crate) struct CpAsync<'a> {
    /// How many bytes: 4, 8 or 16.
    pub(crate) bytes: usize,
    /// Where they come from.
    pub(crate) from: &'a Access,
    /// The conditions under which they are copied; where one does not hold, zeros are written.
    pub(crate) cond: &'a [Less],
}

/// An assignment as one instruction, or the reason why it cannot be one, fit to follow a colon.
///
/// That both sides start at a multiple of the bytes is for the caller to know: accesses of several lanes do, as
/// `vectorize` makes them.
pub(crate) fn cp_async<'a>(
    place: &Access,
    value: &'a Value,
    memory: &dyn Fn(&Name) -> Option<(DType, Scope)>,
) -> Result<CpAsync<'a>, String> {
    let (from, cond) = pure_copy(place, value, memory)?;
    if from.lanes != place.lanes {
        return Err(format!("it writes {} elements for {} of `{}`", place.lanes, from.lanes, from.buffer));
    }
    let element = memory(&place.buffer).map_or(0, |it| it.0.bytes());
    let bytes = element * place.lanes as usize;
    if !is_width(bytes) {
        return Err(format!("a thread copies {bytes} adjacent bytes at a time, and cp.async 4, 8 or 16"));
    }
    Ok(CpAsync { bytes, from, cond })
}

/// Whether the instruction copies that many bytes.
pub(crate) const fn is_width(bytes: usize) -> bool {
    matches!(bytes, 4 | 8 | 16)
}

/// What an assignment copies from global to shared memory unchanged, and under which conditions it is not zero.
pub(crate) fn pure_copy<'a>(
    place: &Access,
    value: &'a Value,
    memory: &dyn Fn(&Name) -> Option<(DType, Scope)>,
) -> Result<(&'a Access, &'a [Less]), String> {
    let (from, cond): (_, &[Less]) = match value {
        Value::Load(from) => (from, &[]),
        Value::Select(cond, a, b) => match (&**a, &**b) {
            (Value::Load(from), Value::Const(it)) if is_zero(it.number) => (from, cond),
            (Value::Load(_), Value::Const(_)) => {
                return Err("where it copies nothing it writes something else than zero".to_owned());
            }
            _ => return Err("it chooses between two computed values".to_owned()),
        },
        Value::Const(_) | Value::Index(..) => return Err("it copies nothing".to_owned()),
        Value::Cast(..) | Value::Unary(..) | Value::Binary(..) => {
            return Err("it computes with what it loads".to_owned());
        }
    };
    let (Some((dtype, scope)), Some((source, source_scope))) = (memory(&place.buffer), memory(&from.buffer))
    else {
        return Err(format!("`{}` or `{}` is unknown", place.buffer, from.buffer));
    };
    if scope != Scope::Shared || source_scope != Scope::Global {
        let (from, to) = (source_scope.as_str(), scope.as_str());
        return Err(format!("it copies from {from} to {to} memory, and cp.async from global to shared"));
    }
    if dtype != source {
        return Err(format!("`{}` has elements of {source}, and `{}` of {dtype}", from.buffer, place.buffer));
    }
    Ok((from, cond))
}

/// Whether all bits of the number are zero in every type: minus zero is another number.
const fn is_zero(number: Number) -> bool {
    matches!(number, Number::Int(0) | Number::Float(0))
}
