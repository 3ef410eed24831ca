//! What an expression is: a number whose type its surroundings say, an index, a value, or a condition.

use ir::{BinaryOp, DType, Index, IndexKind, Literal, Name, Number, Value};

use super::cond::Cond;

/// The type of TVM's whole numbers, variables and loops where nothing else is said.
pub(super) const INTEGER: DType = DType::I32;

/// The type of its other numbers and of buffers where nothing else is said.
pub(super) const FLOAT: DType = DType::F32;

/// An expression that was read.
#[derive(Clone, Debug)]
pub(super) enum Term {
    /// A whole number, and its type where it has one.
    Int(i64, Option<DType>),
    /// Another number, and its type where it has one.
    Float(f64, Option<DType>),
    /// An integer over variables.
    Index(Index, DType),
    /// Machine arithmetic.
    Value(Value, DType),
    /// A condition.
    Cond(Cond),
}

impl Term {
    /// Its type, unless its surroundings say it.
    pub(super) fn dtype(&self) -> Option<DType> {
        match self {
            Term::Int(_, dtype) | Term::Float(_, dtype) => *dtype,
            Term::Index(_, dtype) | Term::Value(_, dtype) => Some(*dtype),
            Term::Cond(_) => Some(DType::Bool),
        }
    }

    /// As an index, if it is one.
    pub(super) fn as_index(&self) -> Option<(Index, DType)> {
        match self {
            Term::Int(value, dtype) if dtype.is_none_or(|it| !it.is_float()) => {
                Some((Index::int(*value), dtype.unwrap_or(INTEGER)))
            }
            Term::Index(index, dtype) => Some((index.clone(), *dtype)),
            Term::Int(..) | Term::Float(..) | Term::Value(..) | Term::Cond(_) => None,
        }
    }

    /// The same of what was converted to a type of integers, which an index may be where only an index can stand.
    pub(super) fn to_index(&self) -> Option<Index> {
        match self {
            Term::Value(value, dtype) if !dtype.is_float() => index_of(value),
            term => term.as_index().map(|it| it.0),
        }
    }

    /// As a value; a number without a type has the one that is wanted, else that of TVM's constants.
    pub(super) fn into_value(self, wanted: Option<DType>) -> (Value, DType) {
        match self {
            Term::Int(value, dtype) => {
                let dtype = dtype.or(wanted).unwrap_or(INTEGER);
                (Value::Const(whole(value, dtype)), dtype)
            }
            Term::Float(value, dtype) => {
                let wanted = wanted.filter(|it| it.is_float());
                let dtype = dtype.or(wanted).unwrap_or(FLOAT);
                (Value::Const(Literal::from_f64(dtype, value)), dtype)
            }
            Term::Index(index, dtype) => match index.as_int() {
                Some(value) => (Value::Const(whole(value, dtype)), dtype),
                None => (Value::Index(dtype, index), dtype),
            },
            Term::Value(value, dtype) => (value, dtype),
            Term::Cond(cond) => (cond.value(), DType::Bool),
        }
    }

    /// Whether it reads a buffer.
    pub(super) fn loads_from(&self, buffer: &Name) -> bool {
        self.any_load(&mut |it| it == buffer)
    }

    /// Whether it reads any buffer.
    pub(super) fn loads(&self) -> bool {
        self.any_load(&mut |_| true)
    }

    fn any_load(&self, pred: &mut dyn FnMut(&Name) -> bool) -> bool {
        let mut found = false;
        let (value, _) = self.clone().into_value(None);
        value.each_load(&mut |access| found |= pred(&access.buffer));
        value.each_index(&mut |index| found |= any_element(index, pred));
        found
    }
}

fn any_element(index: &Index, pred: &mut dyn FnMut(&Name) -> bool) -> bool {
    let mut found = false;
    let mut parts = vec![index.clone()];
    while let Some(part) = parts.pop() {
        if let IndexKind::Element(table, _, _) = part.kind() {
            found |= pred(table);
        }
        let _ = part.map_parts(&mut |it| {
            parts.push(it.clone());
            it.clone()
        });
    }
    found
}

/// A whole number as a constant of a type.
fn whole(value: i64, dtype: DType) -> Literal {
    if dtype.is_float() {
        Literal::from_f64(dtype, value as f64)
    } else {
        Literal { dtype, number: Number::Int(value) }
    }
}

/// A value in another type.
pub(super) fn cast((value, from): (Value, DType), to: DType) -> Value {
    if from == to { value } else { Value::Cast(to, value.into()) }
}

/// A value of integers as an index, if it is made of indices alone.
fn index_of(value: &Value) -> Option<Index> {
    match value {
        Value::Index(_, index) => Some(index.clone()),
        Value::Const(Literal { number: Number::Int(it), .. }) => Some(Index::int(*it)),
        Value::Cast(dtype, a) if !dtype.is_float() => index_of(a),
        Value::Binary(op, a, b) => {
            let (a, b) = (index_of(a)?, index_of(b)?);
            match op {
                BinaryOp::Add => Some(a + b),
                BinaryOp::Sub => Some(a - b),
                BinaryOp::Mul => Some(a * b),
                BinaryOp::Min => Some(a.minimum(&b)),
                BinaryOp::Max => Some(a.maximum(&b)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The type in which two operands meet, as TVM converts them; none where it does not.
pub(super) fn common(a: DType, b: DType) -> Option<DType> {
    match (a.is_float(), b.is_float()) {
        _ if a == b => Some(a),
        (true, false) => Some(a),
        (false, true) => Some(b),
        _ if a == DType::Bool => Some(b),
        _ if b == DType::Bool => Some(a),
        _ if a.bytes() != b.bytes() => Some(if a.bytes() > b.bytes() { a } else { b }),
        _ => None,
    }
}

/// An operation on two values, each converted to the type in which they meet.
pub(super) fn operation(op: BinaryOp, a: Term, b: Term) -> Result<Term, (DType, DType)> {
    let wanted = match (a.dtype(), b.dtype()) {
        // A fraction makes a float of the other's type, or the usual one.
        (None, None) if matches!((&a, &b), (Term::Float(..), _) | (_, Term::Float(..))) => Some(DType::F32),
        (Some(it), None) | (None, Some(it)) => {
            let is_fraction = matches!((&a, &b), (Term::Float(_, None), _) | (_, Term::Float(_, None)));
            Some(if is_fraction && !it.is_float() { DType::F32 } else { it })
        }
        (None, None) | (Some(_), Some(_)) => None,
    };
    let (a, b) = (a.into_value(wanted), b.into_value(wanted));
    let dtype = common(a.1, b.1).ok_or((a.1, b.1))?;
    let value = Value::binary(op, cast(a, dtype), cast(b, dtype));
    Ok(Term::Value(value, op.result(dtype)))
}
