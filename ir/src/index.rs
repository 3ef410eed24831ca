//! `Index`: exact integer expressions, the world of loops, extents and subscripts.
//!
//! The constructors fold constants and drop neutral elements so that printed text is never silly; anything
//! deeper is the business of [`crate::arith`]. Division and remainder round towards minus infinity, as TVM's
//! `floordiv` and `floormod` do; the emitted code may use the machine's truncating ones because every index of a
//! verified program is non-negative.

use std::{
    fmt,
    ops::{Add, Mul, Sub},
    sync::Arc,
};

use crate::Name;

mod walk;

/// An exact integer expression. Cloning shares.
///
/// Constants and variables, which most of them are, need no memory of their own.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Index(Form);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Form {
    Int(i64),
    Var(Name),
    Binary(Arc<Binary>),
    Element(Arc<Element>),
}

#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Binary {
    op: Op,
    a: Index,
    b: Index,
}

/// What an input holds somewhere.
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Element {
    table: Name,
    at: Index,
    below: Index,
}

/// The operations, in the order of [`IndexKind`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Op {
    Add,
    Mul,
    FloorDiv,
    FloorMod,
    Min,
    Max,
    Xor,
}

/// The forms of an [`Index`], to match on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexKind<'a> {
    /// A constant.
    Int(i64),
    /// A loop variable, a block iterator, a thread axis or a symbolic dimension.
    Var(&'a Name),
    /// The sum of two.
    Add(&'a Index, &'a Index),
    /// The product of two.
    Mul(&'a Index, &'a Index),
    /// The quotient, rounded towards minus infinity. The divisor is positive.
    FloorDiv(&'a Index, &'a Index),
    /// The remainder with the sign of the divisor. The divisor is positive.
    FloorMod(&'a Index, &'a Index),
    /// The smaller of two.
    Min(&'a Index, &'a Index),
    /// The larger of two.
    Max(&'a Index, &'a Index),
    /// The bitwise exclusive or, of two's complements where an operand is negative.
    Xor(&'a Index, &'a Index),
    /// The element of an input of integers at a row-major position, of which is assumed that it is at least zero and less than
    /// the last index: what makes reads indirect (`E[ids[i], j]`). Nothing writes inputs, so that it is a function of its position,
    /// of which no law of integers knows more than that.
    Element(&'a Name, &'a Index, &'a Index),
}

impl Index {
    /// A constant.
    pub fn int(value: i64) -> Index {
        Index(Form::Int(value))
    }

    /// A variable.
    pub fn var(name: &Name) -> Index {
        Index(Form::Var(name.clone()))
    }

    /// The element of an input at a row-major position, assumed to be in `0..below`.
    pub fn element(table: &Name, at: Index, below: Index) -> Index {
        Index(Form::Element(Arc::new(Element { table: table.clone(), at, below })))
    }

    fn binary(op: Op, a: &Index, b: &Index) -> Index {
        Index::operation(op, a.clone(), b.clone())
    }

    fn operation(op: Op, a: Index, b: Index) -> Index {
        Index(Form::Binary(Arc::new(Binary { op, a, b })))
    }

    /// The expression itself, to match on.
    pub fn kind(&self) -> IndexKind<'_> {
        let Binary { op, a, b } = match &self.0 {
            Form::Int(value) => return IndexKind::Int(*value),
            Form::Var(name) => return IndexKind::Var(name),
            Form::Element(it) => return IndexKind::Element(&it.table, &it.at, &it.below),
            Form::Binary(it) => &**it,
        };
        match op {
            Op::Add => IndexKind::Add(a, b),
            Op::Mul => IndexKind::Mul(a, b),
            Op::FloorDiv => IndexKind::FloorDiv(a, b),
            Op::FloorMod => IndexKind::FloorMod(a, b),
            Op::Min => IndexKind::Min(a, b),
            Op::Max => IndexKind::Max(a, b),
            Op::Xor => IndexKind::Xor(a, b),
        }
    }

    /// The value, if this is a constant.
    pub fn as_int(&self) -> Option<i64> {
        match &self.0 {
            Form::Int(value) => Some(*value),
            Form::Var(_) | Form::Binary(_) | Form::Element(_) => None,
        }
    }

    /// The name, if this is a variable.
    pub fn as_var(&self) -> Option<&Name> {
        match &self.0 {
            Form::Var(name) => Some(name),
            Form::Int(_) | Form::Binary(_) | Form::Element(_) => None,
        }
    }

    /// `floor(self / divisor)`. Folds only where the divisor is a positive constant.
    #[must_use]
    pub fn floor_div(&self, divisor: &Index) -> Index {
        match (self.as_int(), divisor.as_int()) {
            (Some(a), Some(b)) if b > 0 => Index::int(a.div_euclid(b)),
            (_, Some(1)) => self.clone(),
            _ => Index::binary(Op::FloorDiv, self, divisor),
        }
    }

    /// `self - divisor * floor(self / divisor)`. Folds only where the divisor is a positive constant.
    #[must_use]
    pub fn floor_mod(&self, divisor: &Index) -> Index {
        match (self.as_int(), divisor.as_int()) {
            (Some(a), Some(b)) if b > 0 => Index::int(a.rem_euclid(b)),
            (_, Some(1)) => Index::int(0),
            _ => Index::binary(Op::FloorMod, self, divisor),
        }
    }

    /// `ceil(self / divisor)` for a positive divisor.
    #[must_use]
    pub fn ceil_div(&self, divisor: &Index) -> Index {
        (self + &(divisor - &Index::int(1))).floor_div(divisor)
    }

    /// The smaller of two.
    #[must_use]
    pub fn minimum(&self, other: &Index) -> Index {
        match (self.as_int(), other.as_int()) {
            (Some(a), Some(b)) => Index::int(a.min(b)),
            _ if self == other => self.clone(),
            _ => Index::binary(Op::Min, self, other),
        }
    }

    /// The larger of two.
    #[must_use]
    pub fn maximum(&self, other: &Index) -> Index {
        match (self.as_int(), other.as_int()) {
            (Some(a), Some(b)) => Index::int(a.max(b)),
            _ if self == other => self.clone(),
            _ => Index::binary(Op::Max, self, other),
        }
    }

    /// The bitwise exclusive or of two.
    #[must_use]
    pub fn xor(&self, other: &Index) -> Index {
        match (self.as_int(), other.as_int()) {
            (Some(a), Some(b)) => Index::int(a ^ b),
            (Some(0), _) => other.clone(),
            (_, Some(0)) => self.clone(),
            _ if self == other => Index::int(0),
            _ => Index::binary(Op::Xor, self, other),
        }
    }

    /// Minus the expression: a constant factor changes its sign, anything else is multiplied by -1.
    #[must_use]
    pub fn negated(&self) -> Index {
        let flip = |it: &Index| it.as_int().and_then(i64::checked_neg).map(Index::int);
        match self.kind() {
            IndexKind::Int(_) => flip(self),
            IndexKind::Mul(a, b) => match (flip(a), flip(b)) {
                (_, Some(b)) => Some(a.clone() * b),
                (Some(a), None) => Some(a * b.clone()),
                (None, None) => None,
            },
            IndexKind::Var(_)
            | IndexKind::Add(..)
            | IndexKind::FloorDiv(..)
            | IndexKind::FloorMod(..)
            | IndexKind::Min(..)
            | IndexKind::Max(..)
            | IndexKind::Xor(..)
            | IndexKind::Element(..) => None,
        }
        .unwrap_or_else(|| self * -1)
    }

    /// The expression with each variable replaced where `with` answers.
    #[must_use]
    pub fn subst(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Index {
        self.replaced(with).unwrap_or_else(|| self.clone())
    }

    /// What variables are replaced by; `None` where none of them is, so that what stays is shared.
    fn replaced(&self, with: &dyn Fn(&Name) -> Option<Index>) -> Option<Index> {
        let Binary { op, a, b } = match &self.0 {
            Form::Int(_) => return None,
            Form::Var(name) => return with(name),
            Form::Element(it) => {
                let (at, below) = (it.at.replaced(with), it.below.replaced(with));
                let or = |new: Option<Index>, old: &Index| new.unwrap_or_else(|| old.clone());
                let changes = at.is_some() || below.is_some();
                return changes.then(|| Index::element(&it.table, or(at, &it.at), or(below, &it.below)));
            }
            Form::Binary(it) => &**it,
        };
        let (new_a, new_b) = (a.replaced(with), b.replaced(with));
        if new_a.is_none() && new_b.is_none() {
            return None;
        }
        let (a, b) = (new_a.as_ref().unwrap_or(a), new_b.as_ref().unwrap_or(b));
        Some(match op {
            Op::Add => a + b,
            Op::Mul => a * b,
            Op::FloorDiv => a.floor_div(b),
            Op::FloorMod => a.floor_mod(b),
            Op::Min => a.minimum(b),
            Op::Max => a.maximum(b),
            Op::Xor => a.xor(b),
        })
    }

    /// The expression with both operands of its outermost operation rewritten by `f`.
    #[must_use]
    pub fn map_parts(&self, f: &mut dyn FnMut(&Index) -> Index) -> Index {
        match self.kind() {
            IndexKind::Int(_) | IndexKind::Var(_) => self.clone(),
            IndexKind::Add(a, b) => f(a) + f(b),
            IndexKind::Mul(a, b) => f(a) * f(b),
            IndexKind::FloorDiv(a, b) => f(a).floor_div(&f(b)),
            IndexKind::FloorMod(a, b) => f(a).floor_mod(&f(b)),
            IndexKind::Min(a, b) => f(a).minimum(&f(b)),
            IndexKind::Max(a, b) => f(a).maximum(&f(b)),
            IndexKind::Xor(a, b) => f(a).xor(&f(b)),
            IndexKind::Element(table, at, below) => Index::element(table, f(at), f(below)),
        }
    }
}

impl From<i64> for Index {
    fn from(value: i64) -> Index {
        Index::int(value)
    }
}

fn add(a: Index, b: Index) -> Index {
    match (a.as_int(), b.as_int()) {
        (Some(0), _) => b,
        (_, Some(0)) => a,
        (Some(x), Some(y)) if x.checked_add(y).is_some() => Index::int(x + y),
        _ => Index::operation(Op::Add, a, b),
    }
}

fn mul(a: Index, b: Index) -> Index {
    match (a.as_int(), b.as_int()) {
        (Some(0), _) | (_, Some(0)) => Index::int(0),
        (Some(1), _) => b,
        (_, Some(1)) => a,
        (Some(x), Some(y)) if x.checked_mul(y).is_some() => Index::int(x * y),
        _ => Index::operation(Op::Mul, a, b),
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Index").field(&self.kind()).finish()
    }
}

/// The operator traits for owned and borrowed operands, and for an `i64` on the right.
macro_rules! operators {
    ($($trait:ident::$method:ident = |$a:ident, $b:ident| $body:expr;)*) => {$(
        impl $trait<Index> for Index {
            type Output = Index;
            fn $method(self, other: Index) -> Index {
                let ($a, $b) = (self, other);
                $body
            }
        }
        impl $trait<&Index> for &Index {
            type Output = Index;
            fn $method(self, other: &Index) -> Index {
                self.clone().$method(other.clone())
            }
        }
        impl $trait<i64> for &Index {
            type Output = Index;
            fn $method(self, other: i64) -> Index {
                self.clone().$method(Index::int(other))
            }
        }
        impl $trait<i64> for Index {
            type Output = Index;
            fn $method(self, other: i64) -> Index {
                self.$method(Index::int(other))
            }
        }
    )*};
}

operators! {
    Add::add = |a, b| add(a, b);
    Mul::mul = |a, b| mul(a, b);
    Sub::sub = |a, b| add(a, b.negated());
}
