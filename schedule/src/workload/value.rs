//! Values of expressions as the IR has them, each operation in the one type of its operands.

use std::{ops::Range, sync::Arc};

use indexmap::IndexMap;
use ir::{Access, BinaryOp, Buffers, DType, Index, Literal, Name, Number, Storage, UnaryOp, Value, number};

use super::{
    error::{Problem, WorkloadError},
    expr::{Expr, Node, Op, binary_of, unary_of},
    form::Form,
    index::{compares_indices, conditions, index, is_condition, is_index, overflows, range},
    param::{Chosen, Meaning},
};

/// The names that a stage's expressions may use, and what they stand for.
pub(super) struct Scope<'a> {
    pub(super) form: &'a Form,
    pub(super) chosen: &'a Chosen,
    pub(super) buffers: &'a Buffers,
    /// The order in which each tensor's dimensions are stored.
    pub(super) orders: &'a IndexMap<String, Vec<usize>>,
    /// The extent of each axis.
    pub(super) extents: &'a IndexMap<String, Index>,
}

/// The block's iterator over an axis.
pub(super) fn iterator(axis: &str) -> Name {
    Name::new(format!("v{axis}"))
}

impl Scope<'_> {
    /// The index that a name stands for, an axis's iterator before a size, or an element of a table.
    fn leaf(&self, expr: &Expr, always: bool) -> Result<Option<Index>, WorkloadError> {
        match &expr.node {
            Node::Name(name) if self.extents.contains_key(name) => Ok(Some(Index::var(&iterator(name)))),
            Node::Name(name) => Ok(size_named(self.chosen, name)),
            Node::Access(table, subscripts) => {
                let access = self.access(table, subscripts, always)?;
                let Some(buffer) = self.buffers.get(&access.buffer) else { return Ok(None) };
                let at = Storage::of(buffer).linear(&access.indices);
                Ok(buffer.below.clone().map(|below| Index::element(&access.buffer, at, below)))
            }
            _ => Ok(None),
        }
    }

    fn index(&self, expr: &Expr, always: bool) -> Result<Index, WorkloadError> {
        index(expr, &|it| self.leaf(it, always))
    }

    /// The constant extent of an iterator.
    fn extent(&self, iter: &Name) -> Option<i64> {
        iter.as_str().strip_prefix('v').and_then(|axis| self.extents.get(axis)?.as_int())
    }

    fn dtype(&self, tensor: &str) -> Option<DType> {
        self.buffers.get(tensor).map(|it| it.dtype)
    }

    /// An element of a tensor in stored order.
    pub(super) fn access(
        &self,
        tensor: &str,
        subscripts: &[Expr],
        always: bool,
    ) -> Result<Access, WorkloadError> {
        let indices: Vec<_> = subscripts.iter().map(|it| self.index(it, always)).collect::<Result<_, _>>()?;
        let order = &self.orders[tensor];
        for (place, dimension) in order.iter().enumerate().filter(|_| always) {
            let size = self.buffers.get(tensor).and_then(|it| it.shape[place].as_int());
            let range = range(&indices[*dimension], &|iter| self.extent(iter));
            if let (Some(size), Some((low, high))) = (size, range)
                && (low < 0 || high >= i128::from(size))
            {
                let (tensor, dimension, at) = (tensor.to_owned(), *dimension, &subscripts[*dimension].span);
                let problem = Problem::OutOfBounds { tensor, dimension, low, high, size };
                return Err(WorkloadError::new(problem, at.clone()));
            }
            if overflows(&indices[*dimension], &|iter| self.extent(iter)) {
                return Err(WorkloadError::new(Problem::Overflow, subscripts[*dimension].span.clone()));
            }
        }
        Ok(Access::new(&Name::new(tensor), order.iter().map(|it| indices[*it].clone()).collect()))
    }

    /// The type that an expression has by itself; `None` for numbers, which take the type of their surroundings.
    fn typed(&self, expr: &Expr) -> Option<DType> {
        match &expr.node {
            Node::Int(_) | Node::Float(_) | Node::Name(_) => None,
            Node::Access(tensor, _) => self.dtype(tensor),
            Node::Neg(a) => self.typed(a),
            Node::Op(op, _) if op.is_condition() => Some(DType::Bool),
            Node::Op(_, ab) => ab.iter().find_map(|it| self.typed(it)),
            Node::Call(name, args) => match name.as_str() {
                "select" | "where" => args[1..].iter().find_map(|it| self.typed(it)),
                _ if unary_of(name).is_some() => args.iter().find_map(|it| self.typed(it)),
                _ if let Some(op) = binary_of(name) => {
                    args.iter().find_map(|it| self.typed(it)).map(|it| op.result(it))
                }
                _ => self.chosen.dtype_of(name),
            },
        }
    }

    /// A value of the wanted type. Where `always` is false, a select decides whether it is evaluated at all.
    pub(super) fn value(&self, expr: &Expr, want: DType, always: bool) -> Result<Value, WorkloadError> {
        if let Some(found) = self.typed(expr).filter(|it| *it != want) {
            let problem = Problem::Types { left: want, right: found };
            return Err(WorkloadError::new(problem, expr.span.clone()));
        }
        match &expr.node {
            Node::Int(_) | Node::Float(_) | Node::Name(_) => self.literal(expr, 1.0, want).map(Value::Const),
            Node::Neg(a) if matches!(a.node, Node::Int(_) | Node::Float(_) | Node::Name(_)) => {
                self.literal(a, -1.0, want).map(Value::Const)
            }
            Node::Neg(a) => Ok(Value::Unary(UnaryOp::Neg, Arc::new(self.value(a, want, always)?))),
            Node::Access(tensor, subscripts) => self.access(tensor, subscripts, always).map(Value::Load),
            Node::Op(op, ab) => self.operation(expr, *op, ab, want, always),
            Node::Call(name, args) => self.call(expr, name, args, want, always),
        }
    }

    /// An operation on two operands. Comparisons, and what else has a result of another type, compute in the type of the operands.
    fn binary(
        &self,
        at: &Range<usize>,
        op: BinaryOp,
        [a, b]: [&Expr; 2],
        want: DType,
        always: bool,
    ) -> Result<Value, WorkloadError> {
        let fail = |problem| Err(WorkloadError::new(problem, at.clone()));
        let of = if op.keeps_type() { Some(want) } else { self.typed(a).or_else(|| self.typed(b)) };
        match of {
            None => fail(Problem::Untyped),
            Some(dtype) if !op.takes(dtype) => fail(Problem::Operand { op: op.as_str(), dtype }),
            Some(of) => Ok(Value::binary(op, self.value(a, of, always)?, self.value(b, of, always)?)),
        }
    }

    /// An infix operation.
    fn operation(
        &self,
        expr: &Expr,
        op: Op,
        ab: &[Expr; 2],
        want: DType,
        always: bool,
    ) -> Result<Value, WorkloadError> {
        let Some((binary, swaps)) = op.on_values() else { return Err(not_a_value("an index", &expr.span)) };
        let [a, b] = if swaps { [&ab[1], &ab[0]] } else { [&ab[0], &ab[1]] };
        if op.compares() && compares_indices(self.form, ab) {
            let [a, b] = [a, b].map(|it| converted(&self.index(it, always)?, DType::I64, &it.span));
            return Ok(Value::binary(binary, a?, b?));
        }
        self.binary(&expr.span, binary, [a, b], want, always)
    }

    /// The conditions that are on indices alone make what they guard conditional, as `select` does.
    fn choice(&self, args: &[Expr; 3], want: DType, always: bool) -> Result<Value, WorkloadError> {
        let [cond, a, b] = args;
        let (then, otherwise) = (self.value(a, want, always)?, self.value(b, want, always)?);
        if !is_condition(self.form, cond) {
            return Ok(Value::choice(self.value(cond, DType::Bool, always)?, then, otherwise));
        }
        let mut less = Vec::new();
        conditions(cond, &|it| self.leaf(it, always), &mut less)?;
        Ok(Value::Select(less, Arc::new(then), Arc::new(otherwise)))
    }

    fn call(
        &self,
        expr: &Expr,
        name: &str,
        args: &[Expr],
        want: DType,
        always: bool,
    ) -> Result<Value, WorkloadError> {
        match (name, args) {
            ("select", [condition, a, b]) => {
                let mut less = Vec::new();
                conditions(condition, &|it| self.leaf(it, always), &mut less)?;
                let (a, b) = (self.value(a, want, false)?, self.value(b, want, false)?);
                Ok(Value::Select(less, Arc::new(a), Arc::new(b)))
            }
            ("where", args) if let Ok(args) = args.try_into() => self.choice(args, want, always),
            (_, [a, b]) if let Some(op) = binary_of(name) => {
                self.binary(&expr.span, op, [a, b], want, always)
            }
            (_, [a]) if let Some(op) = unary_of(name) => {
                if !op.takes(want) {
                    let problem = Problem::NotFloat { function: op.as_str(), dtype: want };
                    return Err(WorkloadError::new(problem, expr.span.clone()));
                }
                Ok(Value::Unary(op, Arc::new(self.value(a, want, always)?)))
            }
            (_, [a]) if is_index(self.form, a) => converted(&self.index(a, always)?, want, &expr.span),
            (_, [a]) => match self.typed(a) {
                Some(from) if from != want => Ok(Value::Cast(want, Arc::new(self.value(a, from, always)?))),
                Some(_) | None => self.value(a, want, always),
            },
            _ => Err(not_a_value("this", &expr.span)),
        }
    }

    fn literal(&self, expr: &Expr, sign: f64, want: DType) -> Result<Literal, WorkloadError> {
        let (value, text) = match &expr.node {
            Node::Int(it) => (*it as f64, it.to_string()),
            Node::Float(it) => (*it, format!("{it:?}")),
            Node::Name(name) => match self.chosen.params.get(name) {
                Some(Meaning::Number(it)) => (*it, format!("{it:?}")),
                None if name == "inf" => (f64::INFINITY, name.clone()),
                Some(Meaning::Index(_) | Meaning::Type(_) | Meaning::Word(_)) | None => {
                    return Err(WorkloadError::new(Problem::NotConverted(name.clone()), expr.span.clone()));
                }
            },
            Node::Access(..) | Node::Call(..) | Node::Neg(_) | Node::Op(..) => {
                return Err(not_a_value("this", &expr.span));
            }
        };
        literal(value * sign, &text, want, &expr.span)
    }
}

/// An index as a number of a type.
fn converted(index: &Index, want: DType, at: &Range<usize>) -> Result<Value, WorkloadError> {
    match index.as_int() {
        Some(it) => literal(it as f64, &it.to_string(), want, at).map(Value::Const),
        None if want.is_float() => Ok(Value::Cast(want, Arc::new(Value::Index(DType::I64, index.clone())))),
        None => Ok(Value::Index(want, index.clone())),
    }
}

/// A number as a constant of a type: rounded for floats, exact for integers.
fn literal(value: f64, text: &str, want: DType, at: &Range<usize>) -> Result<Literal, WorkloadError> {
    let rounded = number::round(want, value);
    let overflows = rounded.is_infinite() && value.is_finite();
    #[expect(clippy::float_cmp, reason = "integers are exact or refused")]
    let inexact = !want.is_float() && rounded != value;
    if overflows || inexact {
        let problem = Problem::BadLiteral { number: text.to_owned(), dtype: want };
        return Err(WorkloadError::new(problem, at.clone()));
    }
    let number = if want.is_float() {
        Number::Float(rounded.to_bits())
    } else {
        Literal::from_f64(want, rounded).number
    };
    Ok(Literal { dtype: want, number })
}

fn not_a_value(what: &'static str, at: &Range<usize>) -> WorkloadError {
    WorkloadError::new(Problem::NotAValue(what), at.clone())
}

/// The size or integer that a parameter stands for.
pub(super) fn size_named(chosen: &Chosen, name: &str) -> Option<Index> {
    match chosen.params.get(name)? {
        Meaning::Index(it) => Some(it.clone()),
        Meaning::Number(_) | Meaning::Type(_) | Meaning::Word(_) => None,
    }
}
