//! `Display` for expressions: parentheses only where the reading would change without them.

use std::fmt::{self, Display, Formatter};

use crate::{Access, Annotation, Annotations, BinaryOp, Index, IndexKind, Less, Name, UnaryOp, Value};

/// How tightly the outermost operator of an expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Comparison,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Sign,
    Atom,
}

impl Display for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.kind() {
            IndexKind::Int(value) => write!(f, "{value}"),
            IndexKind::Var(name) => write!(f, "{name}"),
            IndexKind::Add(a, b) => {
                index(f, a, Level::Sum)?;
                let (sign, b) = match subtrahend(b) {
                    Some(b) => (" - ", b),
                    None => (" + ", b.clone()),
                };
                f.write_str(sign)?;
                index(f, &b, Level::Product)
            }
            IndexKind::Mul(a, b) if b.as_int() == Some(-1) => {
                f.write_str("-")?;
                match a.as_int() {
                    // A sign before digits is part of the number.
                    Some(_) => write!(f, "({a})"),
                    None => index(f, a, Level::Atom),
                }
            }
            IndexKind::Mul(a, b) => product(f, a, "*", b),
            IndexKind::FloorDiv(a, b) => product(f, a, " floordiv ", b),
            IndexKind::FloorMod(a, b) => product(f, a, " mod ", b),
            IndexKind::Min(a, b) => write!(f, "min({a}, {b})"),
            IndexKind::Max(a, b) => write!(f, "max({a}, {b})"),
            IndexKind::Xor(a, b) => write!(f, "xor({a}, {b})"),
            IndexKind::Element(table, at, below) => write!(f, "assume({table}[{at}] < {below})"),
        }
    }
}

/// What to subtract in place of adding the index, where that reads better and parses back to the same.
fn subtrahend(index: &Index) -> Option<Index> {
    let flipped = match index.kind() {
        IndexKind::Int(value) if value < 0 => Index::int(value.checked_neg()?),
        IndexKind::Mul(a, b) => match (a.as_int(), b.as_int()) {
            (_, Some(factor)) if factor < 0 => a * factor.checked_neg()?,
            (Some(factor), _) if factor < 0 => Index::int(factor.checked_neg()?) * b.clone(),
            _ => return None,
        },
        IndexKind::Int(_)
        | IndexKind::Var(_)
        | IndexKind::Add(..)
        | IndexKind::FloorDiv(..)
        | IndexKind::FloorMod(..)
        | IndexKind::Min(..)
        | IndexKind::Max(..)
        | IndexKind::Xor(..)
        | IndexKind::Element(..) => return None,
    };
    (flipped.negated() == *index).then_some(flipped)
}

fn product(f: &mut Formatter<'_>, a: &Index, sign: &str, b: &Index) -> fmt::Result {
    index(f, a, Level::Product)?;
    f.write_str(sign)?;
    index(f, b, Level::Sign)
}

/// How tightly the operands of an infix operator have to bind; `None` for what is written as a call.
fn operands(op: BinaryOp) -> Option<[Level; 2]> {
    match op {
        BinaryOp::Add | BinaryOp::Sub => Some([Level::Sum, Level::Product]),
        BinaryOp::Mul | BinaryOp::Div => Some([Level::Product, Level::Sign]),
        BinaryOp::Min | BinaryOp::Max | BinaryOp::DotE2m1x2 => None,
        BinaryOp::Shl | BinaryOp::Shr => Some([Level::Shift, Level::Sum]),
        BinaryOp::And => Some([Level::BitAnd, Level::Shift]),
        BinaryOp::Xor => Some([Level::BitXor, Level::BitAnd]),
        BinaryOp::Or => Some([Level::BitOr, Level::BitXor]),
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => Some([Level::BitOr, Level::BitOr]),
    }
}

/// Writes an operand that has to bind at least as tightly as `least`.
fn index(f: &mut Formatter<'_>, it: &Index, least: Level) -> fmt::Result {
    let level = match it.kind() {
        IndexKind::Int(value) if value < 0 => Level::Sign,
        IndexKind::Mul(_, b) if b.as_int() == Some(-1) => Level::Sign,
        IndexKind::Add(..) => Level::Sum,
        IndexKind::Mul(..) | IndexKind::FloorDiv(..) | IndexKind::FloorMod(..) => Level::Product,
        IndexKind::Int(_)
        | IndexKind::Var(_)
        | IndexKind::Min(..)
        | IndexKind::Max(..)
        | IndexKind::Xor(..)
        | IndexKind::Element(..) => Level::Atom,
    };
    if level < least { write!(f, "({it})") } else { write!(f, "{it}") }
}

impl Display for Less {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} < {}", self.lhs, self.rhs)
    }
}

/// Conditions that must all hold; `true` where there are none.
pub(super) struct All<'a>(pub(super) &'a [Less]);

impl Display for All<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("true");
        }
        separated(f, " && ", self.0)
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.buffer)?;
        separated(f, ", ", &self.indices)?;
        if self.lanes != 1 {
            write!(f, " +: {}", self.lanes)?;
        }
        f.write_str("]")
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Value::Const(literal) => write!(f, "{literal}"),
            Value::Load(access) => write!(f, "{access}"),
            Value::Index(dtype, index) => write!(f, "{dtype}{{{index}}}"),
            Value::Cast(dtype, a) => write!(f, "{dtype}({a})"),
            Value::Unary(UnaryOp::Neg, a) => {
                f.write_str("-")?;
                match &**a {
                    // A sign before digits is part of the number.
                    Value::Const(_) => write!(f, "({a})"),
                    _ => value(f, a, Level::Atom),
                }
            }
            Value::Unary(op, a) => write!(f, "{}({a})", op.as_str()),
            Value::Binary(op, a, b) => match operands(*op) {
                Some([left, right]) => {
                    value(f, a, left)?;
                    write!(f, " {} ", op.as_str())?;
                    value(f, b, right)
                }
                None => write!(f, "{}({a}, {b})", op.as_str()),
            },
            Value::Select(cond, a, b) => write!(f, "select({}, {a}, {b})", All(cond)),
            Value::Where(cond, a, b) => write!(f, "where({cond}, {a}, {b})"),
        }
    }
}

/// Writes an operand that has to bind at least as tightly as `least`.
fn value(f: &mut Formatter<'_>, it: &Value, least: Level) -> fmt::Result {
    let level = match it {
        Value::Binary(op, ..) => match operands(*op) {
            // A comparison of comparisons is one of `bool`s, in parentheses.
            Some([_, Level::BitOr]) => Level::Comparison,
            Some([left, _]) => left,
            None => Level::Atom,
        },
        Value::Unary(UnaryOp::Neg, _) => Level::Sign,
        Value::Const(literal) if literal.is_signed() => Level::Sign,
        Value::Const(_)
        | Value::Load(_)
        | Value::Index(..)
        | Value::Cast(..)
        | Value::Unary(..)
        | Value::Select(..)
        | Value::Where(..) => Level::Atom,
    };
    if level < least { write!(f, "({it})") } else { write!(f, "{it}") }
}

impl Display for Annotation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Annotation::Int(value) => write!(f, "{value}"),
            Annotation::Text(text) => write!(f, "{}", Quoted(text)),
            Annotation::List(list) => {
                f.write_str("[")?;
                separated(f, ", ", list)?;
                f.write_str("]")
            }
            Annotation::Map(map) => {
                let entries = map.iter().map(|(name, value)| format!("{}: {value}", Key(name.as_str())));
                f.write_str("{")?;
                separated(f, ", ", entries)?;
                f.write_str("}")
            }
            Annotation::Words(map) => {
                let entry =
                    |(name, word): (&Name, &String)| format!("{}: {}", Key(name.as_str()), Quoted(word));
                f.write_str("{")?;
                separated(f, ", ", map.iter().map(entry))?;
                f.write_str("}")
            }
        }
    }
}

/// The annotations of a loop or block with a blank before them; nothing where there are none.
pub(super) struct Attached<'a>(pub(super) &'a Annotations);

impl Display for Attached<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        f.write_str(" #{")?;
        separated(f, ", ", self.0.iter().map(|(key, value)| format!("{}: {value}", Key(key))))?;
        f.write_str("}")
    }
}

/// A key of an annotation: quoted unless it is an identifier.
struct Key<'a>(&'a str);

impl Display for Key<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if Name::new(self.0).is_valid() { f.write_str(self.0) } else { write!(f, "{}", Quoted(self.0)) }
    }
}

/// A text in quotes, control characters escaped.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for ch in self.0.chars() {
            match ch {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                ch if ch.is_control() => write!(f, "\\u{{{:x}}}", u32::from(ch))?,
                ch => write!(f, "{ch}")?,
            }
        }
        f.write_str("\"")
    }
}

/// Writes the items with a separator between them.
pub(super) fn separated<T: Display>(
    f: &mut impl fmt::Write,
    separator: &str,
    items: impl IntoIterator<Item = T>,
) -> fmt::Result {
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}
