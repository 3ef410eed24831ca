//! Expressions, with parentheses only where Python would read them otherwise.

use ir::{Access, BinaryOp, DType, Func, Index, IndexKind, Less, Literal, Name, Number, UnaryOp, Value};

use super::{Unwritable, word};
use crate::tvm::read::dtype_word;

/// Prints the expressions of a part of a program.
pub(super) struct Printer<'a> {
    pub(super) func: &'a Func,
    /// The loop, block or buffer that they belong to.
    pub(super) at: &'a Name,
}

/// How tightly what was printed holds together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Comparison,
    Other,
    Sum,
    Product,
    Sign,
    Atom,
}

type Printed = (String, Level);

impl<'a> Printer<'a> {
    /// The same for another part.
    pub(super) fn about<'b>(&self, at: &'b Name) -> Printer<'b>
    where
        'a: 'b,
    {
        Printer { func: self.func, at }
    }

    pub(super) fn unwritable(&self, message: String) -> Unwritable {
        Unwritable { at: self.at.clone(), message }
    }

    /// An index.
    pub(super) fn index(&self, index: &Index) -> Result<String, Unwritable> {
        Ok(self.index_at(index)?.0)
    }

    fn index_at(&self, index: &Index) -> Result<Printed, Unwritable> {
        let infix = |a: &Index, sign: &str, b: &Index, left: Level, right: Level| {
            let (a, b) = (at_least(self.index_at(a)?, left), at_least(self.index_at(b)?, right));
            Ok((format!("{a} {sign} {b}"), left))
        };
        let call = |word: &str, a: &Index, b: &Index| {
            Ok((format!("T.{word}({}, {})", self.index(a)?, self.index(b)?), Level::Atom))
        };
        match index.kind() {
            IndexKind::Int(it) if it < 0 => Ok((it.to_string(), Level::Sign)),
            IndexKind::Int(it) => Ok((it.to_string(), Level::Atom)),
            IndexKind::Var(name) => Ok((word(name), Level::Atom)),
            IndexKind::Add(a, b) => match subtracted(b) {
                Some(b) => infix(a, "-", &b, Level::Sum, Level::Product),
                None => infix(a, "+", b, Level::Sum, Level::Product),
            },
            IndexKind::Mul(a, b) => infix(a, "*", b, Level::Product, Level::Sign),
            IndexKind::FloorDiv(a, b) => infix(a, "//", b, Level::Product, Level::Sign),
            IndexKind::FloorMod(a, b) => infix(a, "%", b, Level::Product, Level::Sign),
            IndexKind::Min(a, b) => call("min", a, b),
            IndexKind::Max(a, b) => call("max", a, b),
            IndexKind::Xor(a, b) => call("bitwise_xor", a, b),
            IndexKind::Element(table, _, _) => Err(self.unwritable(format!(
                "an element of `{table}` inside an index, where only a whole subscript may be one"
            ))),
        }
    }

    /// A place in a buffer.
    pub(super) fn access(&self, access: &Access) -> Result<String, Unwritable> {
        let subscripts = access.indices.iter().map(|it| self.subscript(it)).collect::<Result<Vec<_>, _>>()?;
        let all = if subscripts.is_empty() { "()".to_owned() } else { subscripts.join(", ") };
        Ok(format!("{}[{all}]", word(&access.buffer)))
    }

    /// A subscript: an index, or an element of an input that is one.
    fn subscript(&self, index: &Index) -> Result<String, Unwritable> {
        let IndexKind::Element(table, at, _) = index.kind() else { return self.index(index) };
        let rank = self.func.buffers.get(table).map_or(1, |it| it.shape.len());
        let mut digits = vec![];
        let mut rest = at.clone();
        for extent in self.func.buffers.get(table).iter().flat_map(|it| it.shape.iter().skip(1).rev()) {
            let split = match rest.kind() {
                IndexKind::Add(outer, digit) => match outer.kind() {
                    IndexKind::Mul(outer, of) if of == extent => Some((outer.clone(), digit.clone())),
                    _ => None,
                },
                _ => None,
            };
            let (outer, digit) = split.ok_or_else(|| {
                self.unwritable(format!(
                    "an element of `{table}` at a place in its memory, and not by its {rank} subscripts"
                ))
            })?;
            digits.insert(0, self.index(&digit)?);
            rest = outer;
        }
        digits.insert(0, self.index(&rest)?);
        Ok(format!("{}[{}]", word(table), digits.join(", ")))
    }

    /// Conditions that must all hold.
    pub(super) fn conditions(&self, all: &[Less]) -> Result<String, Unwritable> {
        let one = |it: &Less| Ok(format!("{} < {}", self.index(&it.lhs)?, self.index(&it.rhs)?));
        Ok(all.iter().map(one).collect::<Result<Vec<_>, _>>()?.join(" and "))
    }

    /// A value.
    pub(super) fn value(&self, value: &Value) -> Result<String, Unwritable> {
        Ok(self.value_at(value)?.0)
    }

    fn value_at(&self, value: &Value) -> Result<Printed, Unwritable> {
        let text = match value {
            Value::Const(literal) => self.literal(*literal)?,
            Value::Load(access) => self.access(access)?,
            Value::Index(dtype, index) => {
                format!("T.Cast(\"{}\", {})", self.dtype(*dtype)?, self.index(index)?)
            }
            Value::Cast(dtype, a) => format!("T.Cast(\"{}\", {})", self.dtype(*dtype)?, self.value(a)?),
            Value::Unary(UnaryOp::Neg, a) => {
                return Ok((format!("-{}", at_least(self.value_at(a)?, Level::Atom)), Level::Sign));
            }
            Value::Unary(UnaryOp::Rint, a) => format!("T.nearbyint({})", self.value(a)?),
            Value::Unary(op, a) => format!("T.{}({})", op.as_str(), self.value(a)?),
            Value::Binary(op, a, b) => return self.binary(*op, a, b),
            Value::Select(cond, a, b) => {
                let cond = if cond.is_empty() { "True".to_owned() } else { self.conditions(cond)? };
                format!("T.if_then_else({cond}, {}, {})", self.value(a)?, self.value(b)?)
            }
            Value::Where(cond, a, b) => {
                format!("T.Select({}, {}, {})", self.value(cond)?, self.value(a)?, self.value(b)?)
            }
        };
        Ok((text, Level::Atom))
    }

    fn binary(&self, op: BinaryOp, a: &Value, b: &Value) -> Result<Printed, Unwritable> {
        let is_bool = a.dtype(&|it| self.func.dtype_of(it)) == Some(DType::Bool);
        let is_whole = a.dtype(&|it| self.func.dtype_of(it)).is_some_and(|it| !it.is_float());
        let call = match op {
            BinaryOp::DotE2m1x2 => {
                return Err(self.unwritable(format!("TVM has no `{}`", op.as_str())));
            }
            BinaryOp::Min => Some("min"),
            BinaryOp::Max => Some("max"),
            BinaryOp::And if is_bool => Some("And"),
            BinaryOp::Or if is_bool => Some("Or"),
            BinaryOp::And => Some("bitwise_and"),
            BinaryOp::Or => Some("bitwise_or"),
            BinaryOp::Xor => Some("bitwise_xor"),
            BinaryOp::Shl => Some("shift_left"),
            BinaryOp::Shr => Some("shift_right"),
            BinaryOp::Div if is_whole => Some("truncdiv"),
            _ => None,
        };
        if let Some(word) = call {
            return Ok((format!("T.{word}({}, {})", self.value(a)?, self.value(b)?), Level::Atom));
        }
        let (left, right) = match op {
            BinaryOp::Add | BinaryOp::Sub => (Level::Sum, Level::Product),
            BinaryOp::Mul | BinaryOp::Div => (Level::Product, Level::Sign),
            // Comparisons of comparisons are a chain in Python.
            _ => (Level::Other, Level::Other),
        };
        let (a, b) = (at_least(self.value_at(a)?, left), at_least(self.value_at(b)?, right));
        let level = if op.is_comparison() { Level::Comparison } else { left };
        Ok((format!("{a} {} {b}", op.as_str()), level))
    }

    fn dtype(&self, dtype: DType) -> Result<&'static str, Unwritable> {
        dtype_word(dtype).ok_or_else(|| self.unwritable(format!("TVM has no elements of type {dtype}")))
    }

    fn literal(&self, literal: Literal) -> Result<String, Unwritable> {
        let dtype = self.dtype(literal.dtype)?;
        Ok(match literal.number {
            Number::Int(it) if literal.dtype == DType::Bool => {
                format!("T.bool({})", if it == 0 { "False" } else { "True" })
            }
            Number::Int(it) => format!("T.{dtype}({it})"),
            Number::Float(bits) => match f64::from_bits(bits) {
                it if it.is_finite() => format!("T.{dtype}({it:?})"),
                it if it.is_nan() => format!("T.{dtype}(\"nan\")"),
                it => format!("T.{dtype}(\"{it}\")"),
            },
        })
    }
}

/// What was printed, in parentheses where it has to hold together more tightly.
fn at_least((text, level): Printed, least: Level) -> String {
    if level < least { format!("({text})") } else { text }
}

/// What to subtract in place of adding an index, where that is read as the same.
fn subtracted(index: &Index) -> Option<Index> {
    let flipped = match index.kind() {
        IndexKind::Int(it) if it < 0 => Index::int(it.checked_neg()?),
        IndexKind::Mul(a, b) if b.as_int() == Some(-1) => a.clone(),
        IndexKind::Mul(a, b) => a * b.as_int().filter(|it| *it < 0)?.checked_neg()?,
        _ => return None,
    };
    (flipped.negated() == *index).then_some(flipped)
}
