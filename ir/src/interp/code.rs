//! A program with its names resolved to slots and its dimensions to numbers: what the evaluators run.

use std::sync::Arc;

use super::domain::{Domain, Running};
use crate::{BinaryOp, DType, Name, UnaryOp};

/// An index over the slots of the environment.
#[derive(Debug)]
pub(crate) enum IndexCode {
    /// What a slot holds.
    Slot(u32),
    /// `constant + Σ factor * slot`, the form of most indices.
    Affine { constant: i64, terms: Box<[(i64, u32)]> },
    /// An element of an input at a position.
    Element(Arc<[i64]>, Box<IndexCode>),
    /// Anything else.
    Op(IndexOp, Box<[IndexCode; 2]>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum IndexOp {
    Add,
    Mul,
    FloorDiv,
    FloorMod,
    Min,
    Max,
    Xor,
}

#[derive(Debug)]
pub(crate) struct LessCode {
    pub(crate) lhs: IndexCode,
    pub(crate) rhs: IndexCode,
}

/// An element of the buffer numbered `buffer`, whose shape is repeated here to be near.
#[derive(Debug)]
pub(crate) struct AccessCode {
    pub(crate) buffer: usize,
    pub(crate) subscripts: Box<[(IndexCode, i64)]>,
}

#[derive(Debug)]
pub(crate) enum ValueCode {
    Const(f64),
    Load(AccessCode),
    /// The running value of the reduction that is being evaluated.
    Carried,
    Index(DType, IndexCode),
    Cast(DType, DType, Box<ValueCode>),
    Unary(UnaryOp, DType, Box<ValueCode>),
    Binary(BinaryOp, DType, Box<[ValueCode; 2]>),
    Select(Box<[LessCode]>, Box<[ValueCode; 2]>),
    Where(Box<[ValueCode; 3]>),
}

#[derive(Debug)]
pub(crate) enum StmtCode {
    Loop {
        name: Name,
        slot: u32,
        extent: IndexCode,
        /// What is computed at the beginning of each turn.
        lets: Box<[Let]>,
        body: Box<StmtCode>,
    },
    Block(Box<BlockCode>),
    Seq(Vec<StmtCode>),
    Store(AccessCode, ValueCode),
}

#[derive(Debug)]
pub(crate) struct BlockCode {
    pub(crate) name: Name,
    pub(crate) guards: Box<[LessCode]>,
    pub(crate) iters: Vec<IterCode>,
    /// What is computed once the iterators have their values.
    pub(crate) lets: Box<[Let]>,
    pub(crate) init: Option<StmtCode>,
    pub(crate) body: StmtCode,
}

#[derive(Debug)]
pub(crate) struct IterCode {
    pub(crate) name: Name,
    pub(crate) slot: u32,
    pub(crate) extent: IndexCode,
    pub(crate) binding: IndexCode,
    pub(crate) is_reduce: bool,
}

/// An index that is computed before it is asked for; [`super::hoist`] alone makes some, of indices that always have values.
#[derive(Debug)]
pub(crate) enum Let {
    /// `slot = base + factor * by`, all but the factor slots.
    Step { slot: u32, base: u32, factor: i64, by: u32 },
    /// Anything else.
    Index { slot: u32, value: IndexCode },
}

/// What goes wrong below a statement; the statements around it add where.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Fault {
    OutOfBounds { buffer: usize, index: Vec<i64>, write: bool },
    Unwritten { buffer: usize, offset: usize },
    OutsideDomain { iter: Name, value: i64, extent: i64 },
    BadIndex,
    DivisionByZero,
}

/// Where values come from. A fault is kept by the memory, so that evaluation itself yields plain numbers.
pub(crate) trait Memory {
    /// What numbers are.
    type Number: Domain;

    /// The element that an access names; a number of no meaning after a fault.
    fn load(&mut self, access: &AccessCode, env: &[i64]) -> Self::Number;
    /// The running value of a reduction.
    fn carried(&self) -> <Self::Number as Domain>::Running;
    /// Keeps the first fault.
    fn fail(&mut self, fault: Fault);
    /// The unit roundoff of sums of products of eight-bit floats, if they have another one than their type.
    fn f8_unit(&self) -> Option<f64> {
        None
    }
}

impl IndexCode {
    /// The value; `None` where the arithmetic overflows or a divisor is not positive.
    #[inline]
    pub(crate) fn eval(&self, env: &[i64]) -> Option<i64> {
        match self {
            IndexCode::Slot(slot) => Some(env[*slot as usize]),
            IndexCode::Affine { constant, terms } => {
                let mut sum = *constant;
                for (factor, slot) in terms {
                    sum = sum.checked_add(factor.checked_mul(env[*slot as usize])?)?;
                }
                Some(sum)
            }
            IndexCode::Element(table, at) => table.get(usize::try_from(at.eval(env)?).ok()?).copied(),
            IndexCode::Op(op, operands) => {
                let (a, b) = (operands[0].eval(env)?, operands[1].eval(env)?);
                match op {
                    IndexOp::Add => a.checked_add(b),
                    IndexOp::Mul => a.checked_mul(b),
                    IndexOp::FloorDiv => (b > 0).then(|| a.div_euclid(b)),
                    IndexOp::FloorMod => (b > 0).then(|| a.rem_euclid(b)),
                    IndexOp::Min => Some(a.min(b)),
                    IndexOp::Max => Some(a.max(b)),
                    IndexOp::Xor => Some(a ^ b),
                }
            }
        }
    }
}

impl Let {
    #[inline]
    pub(crate) fn run(&self, env: &mut [i64]) {
        match self {
            Let::Step { slot, base, factor, by } => {
                env[*slot as usize] = env[*base as usize] + factor * env[*by as usize];
            }
            Let::Index { slot, value } => {
                env[*slot as usize] = value.eval(env).expect("it is proved to have a value");
            }
        }
    }
}

impl LessCode {
    #[inline]
    pub(crate) fn eval(&self, env: &[i64]) -> Option<bool> {
        Some(self.lhs.eval(env)? < self.rhs.eval(env)?)
    }

    /// Whether all conditions hold; later ones are not evaluated once one fails.
    #[inline]
    pub(crate) fn all(conditions: &[LessCode], env: &[i64]) -> Option<bool> {
        for it in conditions {
            if !it.eval(env)? {
                return Some(false);
            }
        }
        Some(true)
    }
}

impl AccessCode {
    /// The row-major offset of the element, if it is one of the buffer's.
    #[inline]
    pub(crate) fn offset(&self, env: &[i64]) -> Option<usize> {
        let mut offset = 0;
        for (index, size) in &self.subscripts {
            let at = index.eval(env)?;
            if at < 0 || at >= *size {
                return None;
            }
            offset = offset * size + at;
        }
        usize::try_from(offset).ok()
    }

    /// The subscripts' values; `None` where one has none.
    #[cold]
    pub(crate) fn indices(&self, env: &[i64]) -> Option<Vec<i64>> {
        self.subscripts.iter().map(|(it, _)| it.eval(env)).collect()
    }

    /// Why there is no offset.
    #[cold]
    pub(crate) fn fault(&self, env: &[i64], write: bool) -> Fault {
        match self.indices(env) {
            Some(index) => Fault::OutOfBounds { buffer: self.buffer, index, write },
            None => Fault::BadIndex,
        }
    }
}

impl ValueCode {
    /// The value; a number of no meaning once the memory keeps a fault.
    pub(crate) fn eval<M: Memory>(&self, env: &[i64], memory: &mut M) -> M::Number {
        match self {
            ValueCode::Const(it) => M::Number::exact(*it),
            ValueCode::Load(access) => memory.load(access, env),
            ValueCode::Carried => memory.carried().total(),
            ValueCode::Index(dtype, index) => match index.eval(env) {
                Some(it) => M::Number::exact(it as f64).cast(DType::I64, *dtype),
                None => failed(memory, Fault::BadIndex),
            },
            ValueCode::Cast(from, to, a) => a.eval(env, memory).cast(*from, *to),
            ValueCode::Unary(op, dtype, a) => a.eval(env, memory).unary(*op, *dtype),
            ValueCode::Binary(op, dtype, operands) => {
                let a = operands[0].eval(env, memory);
                let b = operands[1].eval(env, memory);
                match M::Number::binary(*op, *dtype, a, b) {
                    Some(it) => it,
                    None => failed(memory, Fault::DivisionByZero),
                }
            }
            ValueCode::Select(conditions, operands) => match LessCode::all(conditions, env) {
                Some(true) => operands[0].eval(env, memory),
                Some(false) => operands[1].eval(env, memory),
                None => failed(memory, Fault::BadIndex),
            },
            ValueCode::Where(operands) => {
                let [cond, then, otherwise] = operands.each_ref().map(|it| it.eval(env, memory));
                M::Number::choice(cond, then, otherwise)
            }
        }
    }

    /// Whether it is a product of eight-bit floats, converted to another type.
    pub(crate) fn is_f8_product(&self) -> bool {
        let is_f8 = |it: &ValueCode| matches!(it, ValueCode::Cast(DType::F8e4m3 | DType::F8e5m2, ..));
        matches!(self, ValueCode::Binary(BinaryOp::Mul, _, factors) if factors.iter().all(is_f8))
    }

    /// The running value after a store of this value to its own place: of a sum that gets a term, the same sum.
    pub(crate) fn fold<M: Memory>(&self, env: &[i64], memory: &mut M) -> <M::Number as Domain>::Running {
        let (op, dtype, term_code) = match self {
            ValueCode::Binary(op, dtype, operands) if dtype.is_float() => match (op, &**operands) {
                (BinaryOp::Add | BinaryOp::Sub, [ValueCode::Carried, term])
                | (BinaryOp::Add, [term, ValueCode::Carried]) => (*op, *dtype, term),
                _ => return self.eval(env, memory).into(),
            },
            _ => return self.eval(env, memory).into(),
        };
        let term = term_code.eval(env, memory);
        let mut sum = memory.carried();
        if let Some(unit) = memory.f8_unit().filter(|_| term_code.is_f8_product()) {
            sum.cut_at(unit);
        }
        sum.add(dtype, if op == BinaryOp::Sub { term.unary(UnaryOp::Neg, dtype) } else { term });
        sum
    }
}

#[cold]
fn failed<M: Memory>(memory: &mut M, fault: Fault) -> M::Number {
    memory.fail(fault);
    M::Number::exact(0.0)
}
