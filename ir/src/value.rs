//! `Value`: machine arithmetic on elements. Nothing in tilewright reassociates or otherwise rewrites it.

use std::sync::Arc;

use crate::{BinaryOp, DType, Index, Less, Name, UnaryOp, number};

/// An expression over elements, evaluated in the type of its operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A constant.
    Const(Literal),
    /// An element of a buffer (in a `Kernel`, possibly several adjacent ones).
    Load(Access),
    /// An index as an element of an integer type.
    Index(DType, Index),
    /// A conversion, rounding to nearest even where the target is narrower; float to integer truncates.
    Cast(DType, Arc<Value>),
    /// An operation on one operand.
    Unary(UnaryOp, Arc<Value>),
    /// An operation on two operands of the same type; what type the result has, [`BinaryOp::result`] says.
    Binary(BinaryOp, Arc<Value>, Arc<Value>),
    /// The first value where all conditions hold, else the second; only the chosen one is evaluated.
    Select(Vec<Less>, Arc<Value>, Arc<Value>),
    /// The second value where the first, a `bool`, is true, else the third. All three are evaluated: unlike a
    /// [`Value::Select`], whose conditions are on indices, it makes no load conditional.
    Where(Arc<Value>, Arc<Value>, Arc<Value>),
}

/// A place in a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The buffer.
    pub buffer: Name,
    /// One subscript a dimension; in a `Kernel` one flat element offset.
    pub indices: Vec<Index>,
    /// How many adjacent elements, from the place on: 1 in a `Func`, a power of two in a `Kernel`.
    pub lanes: u32,
}

/// A typed constant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Literal {
    /// Its type.
    pub dtype: DType,
    /// Its value.
    pub number: Number,
}

/// The number of a [`Literal`]: integers (and booleans) exactly, floats as the bits of an `f64`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// An integer; booleans are 0 and 1.
    Int(i64),
    /// `f64::to_bits` of the value.
    Float(u64),
}

impl BinaryOp {
    /// The value that leaves every operand unchanged, if the operation is a reducer.
    pub fn identity(self, dtype: DType) -> Option<Literal> {
        match self {
            BinaryOp::Add => Some(Literal::zero(dtype)),
            BinaryOp::Mul => Some(Literal::from_f64(dtype, 1.0)),
            BinaryOp::Min => Some(Literal::highest(dtype)),
            BinaryOp::Max => Some(Literal::lowest(dtype)),
            _ => None,
        }
    }
}

impl Literal {
    /// Zero of a type.
    pub fn zero(dtype: DType) -> Literal {
        Literal::from_f64(dtype, 0.0)
    }

    /// A number as a constant of a type; fractions of integer types are cut off.
    pub fn from_f64(dtype: DType, value: f64) -> Literal {
        #[expect(clippy::cast_possible_truncation, reason = "cutting off the fraction is the meaning here")]
        let number =
            if dtype.is_float() { Number::Float(value.to_bits()) } else { Number::Int(value as i64) };
        Literal { dtype, number }
    }

    /// The constant as an `f64`.
    pub fn to_f64(self) -> f64 {
        match self.number {
            Number::Int(it) => it as f64,
            // It has no zero.
            Number::Float(bits) if self.dtype == DType::F8e8m0 => {
                number::round(self.dtype, f64::from_bits(bits))
            }
            Number::Float(bits) => f64::from_bits(bits),
        }
    }

    /// The identity of `max`: minus infinity for floats, the least integer otherwise.
    pub fn lowest(dtype: DType) -> Literal {
        Literal::bound(dtype, f64::NEG_INFINITY, |bits| -(1i64 << (bits - 1)), 0)
    }

    /// The identity of `min`: infinity for floats, the greatest integer otherwise.
    pub fn highest(dtype: DType) -> Literal {
        Literal::bound(dtype, f64::INFINITY, |bits| i64::MAX >> (64 - bits), 1)
    }

    fn bound(dtype: DType, float: f64, signed: fn(u32) -> i64, top: i64) -> Literal {
        let number = match dtype {
            DType::Bool => Number::Int(top),
            DType::U8 => Number::Int(top * i64::from(u8::MAX)),
            DType::U16 => Number::Int(top * i64::from(u16::MAX)),
            DType::U32 => Number::Int(top * i64::from(u32::MAX)),
            DType::I8 => Number::Int(signed(8)),
            DType::I16 => Number::Int(signed(16)),
            DType::I32 => Number::Int(signed(32)),
            DType::I64 => Number::Int(if top == 0 { i64::MIN } else { i64::MAX }),
            DType::F8e4m3 if float < 0.0 => Number::Float((-448.0f64).to_bits()), // e4m3 has no infinity
            DType::F8e4m3 => Number::Float(448.0f64.to_bits()),
            // The least of them is 2^-127.
            DType::F8e8m0 if float < 0.0 => Number::Float(number::round(dtype, 0.0).to_bits()),
            DType::F8e8m0 => Number::Float(dtype.largest_finite().to_bits()),
            DType::F16 | DType::Bf16 | DType::Tf32 | DType::F8e5m2 | DType::F32 | DType::F64 => {
                Number::Float(float.to_bits())
            }
        };
        Literal { dtype, number }
    }
}

impl Access {
    /// One element of a buffer.
    pub fn new(buffer: &Name, indices: Vec<Index>) -> Access {
        Access { buffer: buffer.clone(), indices, lanes: 1 }
    }

    /// The access with each subscript rewritten by `f`.
    #[must_use]
    pub fn map_indices(&self, f: &mut dyn FnMut(&Index) -> Index) -> Access {
        Access { indices: self.indices.iter().map(f).collect(), ..self.clone() }
    }

    /// The access with the variables of its subscripts replaced where `with` answers.
    #[must_use]
    pub fn subst(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Access {
        self.map_indices(&mut |it| it.subst(with))
    }
}

impl Value {
    /// A load of one element.
    pub fn load(buffer: &Name, indices: Vec<Index>) -> Value {
        Value::Load(Access::new(buffer, indices))
    }

    /// An operation on two operands.
    pub fn binary(op: BinaryOp, a: Value, b: Value) -> Value {
        Value::Binary(op, Arc::new(a), Arc::new(b))
    }

    /// One of two values, by a third.
    pub fn choice(cond: Value, then: Value, otherwise: Value) -> Value {
        Value::Where(Arc::new(cond), Arc::new(then), Arc::new(otherwise))
    }

    /// The value with each load rewritten by `f`, conditions and indices left alone.
    #[must_use]
    pub fn map_loads(&self, f: &mut dyn FnMut(&Access) -> Value) -> Value {
        match self {
            Value::Const(_) | Value::Index(..) => self.clone(),
            Value::Load(access) => f(access),
            Value::Cast(dtype, a) => Value::Cast(*dtype, Arc::new(a.map_loads(f))),
            Value::Unary(op, a) => Value::Unary(*op, Arc::new(a.map_loads(f))),
            Value::Binary(op, a, b) => Value::binary(*op, a.map_loads(f), b.map_loads(f)),
            Value::Select(cond, a, b) => {
                Value::Select(cond.clone(), Arc::new(a.map_loads(f)), Arc::new(b.map_loads(f)))
            }
            Value::Where(c, a, b) => Value::choice(c.map_loads(f), a.map_loads(f), b.map_loads(f)),
        }
    }

    /// The value with each index expression in it, conditions included, rewritten by `f`.
    #[must_use]
    pub fn map_indices(&self, f: &mut dyn FnMut(&Index) -> Index) -> Value {
        match self {
            Value::Const(_) => self.clone(),
            Value::Index(dtype, index) => Value::Index(*dtype, f(index)),
            Value::Load(access) => Value::Load(access.map_indices(f)),
            Value::Cast(dtype, a) => Value::Cast(*dtype, Arc::new(a.map_indices(f))),
            Value::Unary(op, a) => Value::Unary(*op, Arc::new(a.map_indices(f))),
            Value::Binary(op, a, b) => Value::binary(*op, a.map_indices(f), b.map_indices(f)),
            Value::Select(cond, a, b) => {
                let cond = cond.iter().map(|it| Less::new(f(&it.lhs), f(&it.rhs))).collect();
                Value::Select(cond, Arc::new(a.map_indices(f)), Arc::new(b.map_indices(f)))
            }
            Value::Where(c, a, b) => Value::choice(c.map_indices(f), a.map_indices(f), b.map_indices(f)),
        }
    }

    /// The value with the variables of its indices replaced where `with` answers.
    #[must_use]
    pub fn subst(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Value {
        self.map_indices(&mut |index| index.subst(with))
    }

    /// Calls `f` with each load, from left to right.
    pub fn each_load<'a>(&'a self, f: &mut dyn FnMut(&'a Access)) {
        match self {
            Value::Const(_) | Value::Index(..) => {}
            Value::Load(access) => f(access),
            Value::Cast(_, a) | Value::Unary(_, a) => a.each_load(f),
            Value::Binary(_, a, b) | Value::Select(_, a, b) => {
                a.each_load(f);
                b.each_load(f);
            }
            Value::Where(c, a, b) => [c, a, b].into_iter().for_each(|it| it.each_load(f)),
        }
    }

    /// Calls `f` with each condition by which it chooses.
    pub fn each_condition<'a>(&'a self, f: &mut dyn FnMut(&'a Less)) {
        match self {
            Value::Const(_) | Value::Index(..) | Value::Load(_) => {}
            Value::Cast(_, a) | Value::Unary(_, a) => a.each_condition(f),
            Value::Binary(_, a, b) => {
                a.each_condition(f);
                b.each_condition(f);
            }
            Value::Where(c, a, b) => {
                c.each_condition(f);
                a.each_condition(f);
                b.each_condition(f);
            }
            Value::Select(cond, a, b) => {
                cond.iter().for_each(&mut *f);
                a.each_condition(f);
                b.each_condition(f);
            }
        }
    }

    /// The value where the conditions hold of which `holds` says so, given each and the value that it is asked for.
    #[must_use]
    pub fn where_holds(&self, holds: &dyn Fn(&Less, &Value) -> bool) -> Value {
        let of = |it: &Value| it.where_holds(holds);
        match self {
            Value::Const(_) | Value::Index(..) | Value::Load(_) => self.clone(),
            Value::Cast(dtype, a) => Value::Cast(*dtype, Arc::new(of(a))),
            Value::Unary(op, a) => Value::Unary(*op, Arc::new(of(a))),
            Value::Binary(op, a, b) => Value::binary(*op, of(a), of(b)),
            Value::Where(c, a, b) => Value::choice(of(c), of(a), of(b)),
            Value::Select(cond, a, b) => {
                let cond: Vec<Less> = cond.iter().filter(|it| !holds(it, a)).cloned().collect();
                if cond.is_empty() { of(a) } else { Value::Select(cond, Arc::new(of(a)), Arc::new(of(b))) }
            }
        }
    }

    /// Calls `f` with each index expression, from left to right, conditions included.
    pub fn each_index<'a>(&'a self, f: &mut dyn FnMut(&'a Index)) {
        match self {
            Value::Const(_) => {}
            Value::Index(_, index) => f(index),
            Value::Load(access) => access.indices.iter().for_each(f),
            Value::Cast(_, a) | Value::Unary(_, a) => a.each_index(f),
            Value::Binary(_, a, b) => {
                a.each_index(f);
                b.each_index(f);
            }
            Value::Select(cond, a, b) => {
                for less in cond {
                    f(&less.lhs);
                    f(&less.rhs);
                }
                a.each_index(f);
                b.each_index(f);
            }
            Value::Where(c, a, b) => [c, a, b].into_iter().for_each(|it| it.each_index(f)),
        }
    }

    /// The type of the value, given the types of the buffers; `None` where a buffer is unknown.
    pub fn dtype(&self, buffer: &dyn Fn(&Name) -> Option<DType>) -> Option<DType> {
        match self {
            Value::Const(literal) => Some(literal.dtype),
            Value::Load(access) => buffer(&access.buffer),
            Value::Index(dtype, _) | Value::Cast(dtype, _) => Some(*dtype),
            Value::Binary(op, a, _) => Some(op.result(a.dtype(buffer)?)),
            Value::Unary(_, a) | Value::Select(_, a, _) | Value::Where(_, a, _) => a.dtype(buffer),
        }
    }
}
