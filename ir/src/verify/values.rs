//! Accesses, the types of values, and divisors.

use super::{Part, Verifier, VerifyErrorKind};
use crate::{Access, Block, DType, Index, IndexKind, Literal, Name, Number, Store, Value};

impl Verifier<'_> {
    /// Checks a store in the init or body of a block, below the loops `inside` it.
    pub(super) fn store(&mut self, block: &Block, part: &Part, store: &Store, inside: &[&Name]) {
        let mut it = Values { verifier: self, block, part, inside };
        store.place.indices.iter().for_each(|index| it.verifier.elements(&block.name, index, false));
        let holds = it.access(&store.place);
        let stored = it.value(&store.value);
        let mut all = Vec::new();
        store.value.each_index(&mut |index| all.push(index));
        for index in all {
            it.verifier.elements(&block.name, index, true);
        }
        if let (Some(holds), Some(stored)) = (holds, stored)
            && holds != stored
        {
            it.report(VerifyErrorKind::StoreType { buffer: store.place.buffer.clone(), holds, stored });
        }
    }
}

struct Values<'v, 'f, 'b> {
    verifier: &'v mut Verifier<'f>,
    block: &'b Block,
    part: &'b Part,
    inside: &'b [&'b Name],
}

impl Values<'_, '_, '_> {
    fn report(&mut self, kind: VerifyErrorKind) {
        self.verifier.report(&self.block.name, kind);
    }

    /// Checks an access; answers the type of the buffer, if there is one.
    fn access(&mut self, access: &Access) -> Option<DType> {
        for index in &access.indices {
            self.verifier.inner_index(self.block, self.part, index, self.inside);
        }
        let buffer = access.buffer.clone();
        if access.lanes != 1 {
            self.report(VerifyErrorKind::Lanes { buffer: buffer.clone(), lanes: access.lanes });
        }
        let Some(found) = self.verifier.func.buffers.get(&buffer) else {
            self.report(VerifyErrorKind::NoSuchBuffer { buffer });
            return None;
        };
        let (rank, subscripts) = (found.shape.len(), access.indices.len());
        if rank != subscripts {
            self.report(VerifyErrorKind::Rank { buffer, rank, subscripts });
        }
        Some(found.dtype)
    }

    /// Checks a value; answers its type, unless something below it has none.
    fn value(&mut self, value: &Value) -> Option<DType> {
        match value {
            Value::Const(literal) => {
                if !is_of_its_type(*literal) {
                    self.report(VerifyErrorKind::Literal { literal: *literal });
                }
                Some(literal.dtype)
            }
            Value::Load(access) => self.access(access),
            Value::Index(dtype, index) => {
                self.verifier.inner_index(self.block, self.part, index, self.inside);
                if dtype.is_float() || *dtype == DType::Bool {
                    self.report(VerifyErrorKind::IndexType { dtype: *dtype });
                }
                Some(*dtype)
            }
            Value::Cast(dtype, a) => {
                self.value(a);
                Some(*dtype)
            }
            Value::Unary(op, a) => {
                let dtype = self.value(a)?;
                if !op.takes(dtype) {
                    self.report(VerifyErrorKind::OperandType { op: op.as_str(), dtype });
                }
                Some(dtype)
            }
            Value::Binary(op, a, b) => {
                let dtype = self.same(op.as_str(), a, b)?;
                if !op.takes(dtype) {
                    self.report(VerifyErrorKind::OperandType { op: op.as_str(), dtype });
                }
                Some(op.result(dtype))
            }
            Value::Select(cond, a, b) => {
                for index in cond.iter().flat_map(|it| [&it.lhs, &it.rhs]) {
                    self.verifier.inner_index(self.block, self.part, index, self.inside);
                }
                self.same("select", a, b)
            }
            Value::Where(cond, a, b) => {
                if let Some(dtype) = self.value(cond).filter(|it| *it != DType::Bool) {
                    self.report(VerifyErrorKind::OperandType { op: "where", dtype });
                }
                self.same("where", a, b)
            }
        }
    }

    /// Checks two values that must have one type; answers that type.
    fn same(&mut self, op: &'static str, a: &Value, b: &Value) -> Option<DType> {
        let (left, right) = (self.value(a), self.value(b));
        if let (Some(left), Some(right)) = (left, right)
            && left != right
        {
            self.report(VerifyErrorKind::OperandTypes { op, left, right });
            return None;
        }
        left.or(right)
    }
}

/// Whether the number is one that the type has.
fn is_of_its_type(literal: Literal) -> bool {
    match literal.number {
        Number::Float(_) => literal.dtype.is_float(),
        Number::Int(value) => match literal.dtype {
            DType::Bool => (0..=1).contains(&value),
            DType::I8 => i8::try_from(value).is_ok(),
            DType::I16 => i16::try_from(value).is_ok(),
            DType::I32 => i32::try_from(value).is_ok(),
            DType::I64 => true,
            DType::U8 => u8::try_from(value).is_ok(),
            DType::U16 => u16::try_from(value).is_ok(),
            DType::U32 => u32::try_from(value).is_ok(),
            DType::F16
            | DType::Bf16
            | DType::Tf32
            | DType::F8e4m3
            | DType::F8e5m2
            | DType::F8e8m0
            | DType::F32
            | DType::F64 => false,
        },
    }
}

/// A constant divisor in the index that is not positive.
pub(super) fn bad_divisor(index: &Index) -> Option<i64> {
    match index.kind() {
        IndexKind::Int(_) | IndexKind::Var(_) => None,
        IndexKind::FloorDiv(a, b) | IndexKind::FloorMod(a, b) => {
            b.as_int().filter(|it| *it < 1).or_else(|| bad_divisor(a)).or_else(|| bad_divisor(b))
        }
        IndexKind::Add(a, b)
        | IndexKind::Mul(a, b)
        | IndexKind::Min(a, b)
        | IndexKind::Max(a, b)
        | IndexKind::Xor(a, b)
        | IndexKind::Element(_, a, b) => bad_divisor(a).or_else(|| bad_divisor(b)),
    }
}
