//! Whole-number expressions over knobs and parameters: what they are and what they give.
//!
//! Truth is 1 and falsehood 0, and any number but 0 is true. Nothing here panics: a result that does not fit in 64
//! bits and a division by zero are errors, and depth is limited where expressions are read.

use std::{fmt, ops::Range, sync::Arc};

use ir::Name;

use super::parse::{SyntaxError, parse};

/// An expression in a script: the text, what it says, and where it stands.
#[derive(Clone, Debug)]
pub struct Expr {
    text: Arc<str>,
    tree: Arc<Tree<Ref>>,
    place: Range<usize>,
}

/// A knob, a part of a tile, or a parameter in an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ref {
    /// The name.
    pub name: Name,
    /// Whether it is the bytes of an element that are meant, of the type that the parameter is: `bytes(dtype)`.
    pub bytes: bool,
    /// Which part of a tile, from 0.
    pub part: Option<usize>,
    /// Where it stands in the text of the expression.
    pub at: Range<usize>,
}

/// What an expression says, with `V` for its variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tree<V> {
    /// A number.
    Int(i64),
    /// A variable.
    Var(V),
    /// `-x`.
    Neg(Box<Tree<V>>),
    /// `!x`.
    Not(Box<Tree<V>>),
    /// An operator or a function of two operands.
    Binary(Op, Box<[Tree<V>; 2]>),
    /// `select(c, a, b)`: `a` if `c` holds, else `b`. Only the chosen one is evaluated.
    Select(Box<[Tree<V>; 3]>),
}

/// What is done with two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Op {
    Add,
    Sub,
    Mul,
    /// Rounds down.
    Div,
    /// What the division that rounds down leaves.
    Rem,
    /// Division that rounds up.
    CeilDiv,
    Min,
    Max,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    /// The second operand is evaluated only if the first is true.
    And,
    /// The second operand is evaluated only if the first is false.
    Or,
}

/// Why an expression has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvalError {
    /// A number does not fit in 64 bits.
    #[error("does not fit in 64 bits")]
    Overflow,
    /// A division by zero.
    #[error("divides by zero")]
    DivisionByZero,
}

impl Expr {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Expr, SyntaxError> {
        let tree = parse(text)?;
        Ok(Expr { text: text.into(), tree: Arc::new(tree), place: 0..text.len() })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says.
    pub fn tree(&self) -> &Tree<Ref> {
        &self.tree
    }

    /// Where it stands in the script.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }

    /// Where some bytes of it stand in the script; all of it where the script writes it with escapes.
    pub fn place_of(&self, part: &Range<usize>) -> Range<usize> {
        if self.place.len() == self.text.len() {
            return self.place.start + part.start..self.place.start + part.end;
        }
        self.place.clone()
    }

    /// The same text, which says more by the values that it names.
    pub(crate) fn with(&self, tree: Arc<Tree<Ref>>) -> Expr {
        Expr { tree, ..self.clone() }
    }

    /// The same expression at a place in a script.
    pub(crate) fn at(self, place: Range<usize>) -> Expr {
        Expr { place, ..self }
    }
}

/// Expressions are equal if they are written alike, wherever they stand.
impl PartialEq for Expr {
    fn eq(&self, other: &Expr) -> bool {
        self.text == other.text
    }
}

impl Eq for Expr {}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<V> Tree<V> {
    /// The value for some values of the variables.
    pub fn eval<E: From<EvalError>>(&self, of: &impl Fn(&V) -> Result<i64, E>) -> Result<i64, E> {
        match self {
            Tree::Int(it) => Ok(*it),
            Tree::Var(it) => of(it),
            Tree::Neg(it) => Ok(it.eval(of)?.checked_neg().ok_or(EvalError::Overflow)?),
            Tree::Not(it) => Ok(i64::from(it.eval(of)? == 0)),
            Tree::Binary(op, both) => {
                let left = both[0].eval(of)?;
                match (op, left != 0) {
                    (Op::And, false) => Ok(0),
                    (Op::Or, true) => Ok(1),
                    (_, _) => Ok(op.apply(left, both[1].eval(of)?)?),
                }
            }
            Tree::Select(all) => {
                let chosen = if all[0].eval(of)? != 0 { &all[1] } else { &all[2] };
                chosen.eval(of)
            }
        }
    }

    /// Whether the expression holds: it has a value, and not 0.
    pub fn holds(&self, of: &impl Fn(&V) -> i64) -> bool {
        self.eval(&|it| Ok::<_, EvalError>(of(it))).is_ok_and(|it| it != 0)
    }

    /// How many numbers, variables and operators it has.
    pub fn nodes(&self) -> usize {
        1 + self.parts().iter().map(Tree::nodes).sum::<usize>()
    }

    /// How many of them lie within each other.
    pub fn depth(&self) -> usize {
        1 + self.parts().iter().map(Tree::depth).max().unwrap_or(0)
    }

    fn parts(&self) -> &[Tree<V>] {
        match self {
            Tree::Int(_) | Tree::Var(_) => &[],
            Tree::Neg(it) | Tree::Not(it) => std::slice::from_ref(it),
            Tree::Binary(_, both) => &**both,
            Tree::Select(all) => &**all,
        }
    }

    /// Calls `seen` for each variable, from left to right.
    pub fn each_var<'a>(&'a self, seen: &mut impl FnMut(&'a V)) {
        if let Tree::Var(it) = self {
            seen(it);
        }
        self.parts().iter().for_each(|it| it.each_var(seen));
    }

    /// The same expression with something else for each variable.
    pub fn try_map<W, E>(&self, with: &mut impl FnMut(&V) -> Result<Tree<W>, E>) -> Result<Tree<W>, E> {
        Ok(match self {
            Tree::Int(it) => Tree::Int(*it),
            Tree::Var(it) => with(it)?,
            Tree::Neg(it) => Tree::Neg(Box::new(it.try_map(with)?)),
            Tree::Not(it) => Tree::Not(Box::new(it.try_map(with)?)),
            Tree::Binary(op, both) => {
                Tree::Binary(*op, Box::new([both[0].try_map(with)?, both[1].try_map(with)?]))
            }
            Tree::Select(all) => {
                let [a, b, c] = &**all;
                Tree::Select(Box::new([a.try_map(with)?, b.try_map(with)?, c.try_map(with)?]))
            }
        })
    }
}

impl Op {
    /// The value for two operands.
    pub fn apply(self, a: i64, b: i64) -> Result<i64, EvalError> {
        let fits = |it: Option<i64>| it.ok_or(EvalError::Overflow);
        let divisor = || if b == 0 { Err(EvalError::DivisionByZero) } else { Ok(b) };
        match self {
            Op::Add => fits(a.checked_add(b)),
            Op::Sub => fits(a.checked_sub(b)),
            Op::Mul => fits(a.checked_mul(b)),
            Op::Div => floor_div(a, divisor()?),
            // The remainder fits even where the quotient does not.
            Op::Rem => Ok(a
                .checked_rem(divisor()?)
                .map_or(0, |it| if it != 0 && (it < 0) != (b < 0) { it + b } else { it })),
            Op::CeilDiv => {
                let down = floor_div(a, divisor()?)?;
                Ok(if down.wrapping_mul(b) == a { down } else { down + 1 })
            }
            Op::Min => Ok(a.min(b)),
            Op::Max => Ok(a.max(b)),
            Op::Less => Ok(i64::from(a < b)),
            Op::LessEqual => Ok(i64::from(a <= b)),
            Op::Greater => Ok(i64::from(a > b)),
            Op::GreaterEqual => Ok(i64::from(a >= b)),
            Op::Equal => Ok(i64::from(a == b)),
            Op::NotEqual => Ok(i64::from(a != b)),
            Op::And => Ok(i64::from(a != 0 && b != 0)),
            Op::Or => Ok(i64::from(a != 0 || b != 0)),
        }
    }
}

fn floor_div(a: i64, b: i64) -> Result<i64, EvalError> {
    let quotient = a.checked_div(b).ok_or(EvalError::Overflow)?;
    Ok(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}
