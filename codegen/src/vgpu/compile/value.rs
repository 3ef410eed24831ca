//! Values, and what copies take.

use ir::{DType, Literal, Value, number};

use super::{Compiler, VgpuError};
use crate::vgpu::program::{CopyCode, ValueCode};

impl Compiler<'_> {
    pub(super) fn copy(&mut self, value: &Value) -> Result<CopyCode, VgpuError> {
        Ok(match value {
            Value::Load(it) => CopyCode::Source(vec![], self.place(it, false)?, ValueCode::Const(0.0)),
            Value::Select(cond, a, b) if let Value::Load(it) = &**a => {
                CopyCode::Source(self.conditions(cond)?, self.place(it, false)?, self.value(b)?.0)
            }
            Value::Select(..)
            | Value::Const(_)
            | Value::Index(..)
            | Value::Cast(..)
            | Value::Unary(..)
            | Value::Binary(..)
            | Value::Where(..) => CopyCode::Value(self.value(value)?.0),
        })
    }

    pub(super) fn value(&mut self, value: &Value) -> Result<(ValueCode, DType), VgpuError> {
        Ok(match value {
            Value::Const(it) => (ValueCode::Const(number::round(it.dtype, Literal::to_f64(*it))), it.dtype),
            Value::Load(it) => {
                let place = self.place(it, false)?;
                let dtype = self.buffers[place.buffer].dtype;
                (ValueCode::Load(place), dtype)
            }
            Value::Index(dtype, index) => (ValueCode::Index(*dtype, self.index(index)?), *dtype),
            Value::Cast(to, a) => {
                let (a, from) = self.value(a)?;
                (ValueCode::Cast(from, *to, Box::new(a)), *to)
            }
            Value::Unary(op, a) => {
                let (a, dtype) = self.value(a)?;
                (ValueCode::Unary(*op, dtype, Box::new(a)), dtype)
            }
            Value::Binary(op, a, b) => {
                let ((a, dtype), (b, _)) = (self.value(a)?, self.value(b)?);
                (ValueCode::Binary(*op, dtype, Box::new([a, b])), op.result(dtype))
            }
            Value::Select(cond, a, b) => {
                let cond = self.conditions(cond)?;
                let ((a, dtype), (b, _)) = (self.value(a)?, self.value(b)?);
                (ValueCode::Select(cond, Box::new([a, b])), dtype)
            }
            Value::Where(cond, a, b) => {
                let ((cond, _), (a, dtype), (b, _)) = (self.value(cond)?, self.value(a)?, self.value(b)?);
                (ValueCode::Where(Box::new([cond, a, b])), dtype)
            }
        })
    }
}
