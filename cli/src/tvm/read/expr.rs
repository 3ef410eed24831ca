//! Expressions.

use ir::{BinaryOp, DType, Index, UnaryOp, Value};
use ruff_python_ast::{self as ast, Expr, Number, Operator};

use super::{
    args::path_below,
    cond::{Comparison, Cond},
    error::{Refusal, malformed, unsayable},
    function::Reader,
    scope::Meaning,
    span,
    term::{Term, cast, common, operation},
};

/// How deep an expression may be.
const MOST_DEPTH: usize = 200;

/// How many expressions a function may have, once each name stands for its value.
const MOST_WEIGHT: usize = 200_000;

impl Reader<'_> {
    /// An expression.
    pub(super) fn term(&mut self, expr: &Expr) -> Result<Term, Refusal> {
        self.expression_depth += 1;
        self.weight += 1;
        let term = if self.expression_depth > MOST_DEPTH {
            Err(malformed(span(expr), "this expression is too deep").help("keep parts of it in buffers"))
        } else if self.weight > MOST_WEIGHT {
            let title = "written out, the names and choices of this function are too many expressions";
            Err(malformed(span(expr), title).help("keep values that are used often in buffers"))
        } else {
            self.term_of(expr)
        };
        self.expression_depth -= 1;
        term
    }

    fn term_of(&mut self, expr: &Expr) -> Result<Term, Refusal> {
        match expr {
            Expr::NumberLiteral(it) => match &it.value {
                Number::Int(value) => match value.as_i64() {
                    Some(value) => Ok(Term::Int(value, None)),
                    None => {
                        Err(unsayable(span(expr), "this number has more than 64 bits", "write a smaller one"))
                    }
                },
                Number::Float(value) => Ok(Term::Float(*value, None)),
                Number::Complex { .. } => Err(malformed(span(expr), "tensors have no complex numbers")),
            },
            Expr::BooleanLiteral(it) => Ok(Term::Cond(Cond::constant(it.value))),
            Expr::Name(it) => self.named(it),
            Expr::UnaryOp(it) => self.unary(it),
            Expr::BinOp(it) => {
                let (a, b) = (self.term(&it.left)?, self.term(&it.right)?);
                binary(expr, it.op, a, b)
            }
            Expr::BoolOp(it) => {
                let mut all = it.values.iter();
                let first = self.cond(all.next().expect("an operation has operands"))?;
                let joined = all.try_fold(first, |a, b| {
                    let b = self.cond(b)?;
                    Ok(match it.op {
                        ast::BoolOp::And => a.and(b),
                        ast::BoolOp::Or => Cond::Or(a.into(), b.into()),
                    })
                });
                joined.map(Term::Cond)
            }
            Expr::Compare(it) => self.compare(it),
            Expr::If(it) => {
                let cond = self.cond(&it.test)?;
                self.choose(expr, cond, &it.body, &it.orelse)
            }
            Expr::Subscript(it) => {
                let access = self.access(it)?;
                let dtype = self.buffers[&access.buffer].dtype;
                Ok(Term::Value(Value::Load(access), dtype))
            }
            Expr::Call(it) => self.call(it),
            _ => Err(unsayable(
                span(expr),
                "this is no expression of TVMScript",
                "write arithmetic on elements, indices and numbers, and calls of `T`",
            )),
        }
    }

    fn named(&mut self, name: &ast::ExprName) -> Result<Term, Refusal> {
        let word = name.id.as_str();
        match self.scope.find(word).cloned() {
            Some(Meaning::Index(index, dtype)) => Ok(Term::Index(index, dtype)),
            Some(Meaning::Loop { value, dtype, .. }) => {
                if self.in_body {
                    return Err(unsayable(
                        span(name),
                        format!("the body of a block reads the variable `{word}` of a loop around it"),
                        format!("give the block an iterator for it: `v = T.axis.spatial(extent, {word})`"),
                    ));
                }
                Ok(Term::Index(value, dtype))
            }
            Some(Meaning::Outer { iter, start, dtype }) => Ok(self.outer(name, iter, start, dtype)),
            Some(Meaning::Let { term, depth, is_stale, weight }) => {
                self.weight += weight;
                if is_stale || (depth != self.loop_depth && term.loads()) {
                    return Err(unsayable(
                        span(name),
                        format!("`{word}` was read before a buffer was written that it was read from"),
                        "write the element itself in its place, or keep the value in a buffer of its own",
                    ));
                }
                Ok(term)
            }
            Some(Meaning::Buffer(_) | Meaning::View { .. } | Meaning::Handle(_)) => {
                Err(malformed(span(name), format!("`{word}` is a buffer, and no element of one")))
            }
            None => match self.constants.get(word) {
                Some(value) => Ok(Term::Int(*value, None)),
                None => Err(self.unknown(name)),
            },
        }
    }

    /// A name that means nothing.
    pub(super) fn unknown(&self, name: &ast::ExprName) -> Refusal {
        let word = name.id.as_str();
        let refusal = malformed(span(name), format!("`{word}` means nothing here"));
        match schedule::nearest(word, self.scope.words()) {
            Some(near) => refusal.help(format!("did you mean `{near}`?")),
            None => refusal.help(
                "nothing of the file is run: of what stands outside the function, only whole numbers are known. \
                 `print(mod.script())` writes it without",
            ),
        }
    }

    fn unary(&mut self, it: &ast::ExprUnaryOp) -> Result<Term, Refusal> {
        match it.op {
            ast::UnaryOp::Not => Ok(Term::Cond(self.cond(&it.operand)?.negated())),
            ast::UnaryOp::UAdd => self.term(&it.operand),
            ast::UnaryOp::USub => Ok(match self.term(&it.operand)? {
                Term::Int(value, None) => Term::Int(value.wrapping_neg(), None),
                Term::Float(value, None) => Term::Float(-value, None),
                Term::Index(index, dtype) => Term::Index(index.negated(), dtype),
                term => {
                    let (value, dtype) = term.into_value(None);
                    Term::Value(Value::Unary(UnaryOp::Neg, value.into()), dtype)
                }
            }),
            ast::UnaryOp::Invert => {
                Err(unsayable(span(it), "there is no operator `~`", "of integers, `x ^ -1` is the same"))
            }
        }
    }

    fn compare(&mut self, it: &ast::ExprCompare) -> Result<Term, Refusal> {
        let mut left = self.term(&it.left)?;
        let mut all: Option<Cond> = None;
        for (op, right) in it.ops.iter().zip(&it.comparators) {
            let sign = match op {
                ast::CmpOp::Lt => Comparison::Lt,
                ast::CmpOp::LtE => Comparison::Le,
                ast::CmpOp::Gt => Comparison::Gt,
                ast::CmpOp::GtE => Comparison::Ge,
                ast::CmpOp::Eq => Comparison::Eq,
                ast::CmpOp::NotEq => Comparison::Ne,
                ast::CmpOp::Is | ast::CmpOp::IsNot | ast::CmpOp::In | ast::CmpOp::NotIn => {
                    return Err(malformed(span(it), format!("`{}` compares no elements", op.as_str())));
                }
            };
            let right = self.term(right)?;
            let cond = comparison(span(it), sign, left, right.clone())?;
            all = Some(match all {
                Some(all) => all.and(cond),
                None => cond,
            });
            left = right;
        }
        Ok(Term::Cond(all.expect("a comparison compares")))
    }

    /// A condition.
    pub(super) fn cond(&mut self, expr: &Expr) -> Result<Cond, Refusal> {
        match self.term(expr)? {
            Term::Cond(it) => Ok(it),
            Term::Value(value, DType::Bool) => Ok(Cond::Value(value)),
            Term::Int(value, _) => Ok(Cond::constant(value != 0)),
            Term::Float(..) | Term::Index(..) | Term::Value(..) => {
                Err(malformed(span(expr), "a condition is expected here"))
            }
        }
    }

    /// One of two, by a condition.
    pub(super) fn choose(&mut self, expr: &Expr, cond: Cond, a: &Expr, b: &Expr) -> Result<Term, Refusal> {
        let before = self.weight;
        let (a, b) = (self.term(a)?, self.term(b)?);
        // Each alternative of the condition has the choices once more.
        self.weight += (self.weight - before).saturating_mul(cond.alternatives());
        let (of_a, of_b) = (a.dtype(), b.dtype());
        let (a, b) = (a.into_value(of_b), b.into_value(of_a));
        let Some(dtype) = common(a.1, b.1) else {
            return Err(malformed(span(expr), format!("the choices are of types {} and {}", a.1, b.1)));
        };
        Ok(Term::Value(cond.choose(cast(a, dtype), cast(b, dtype)), dtype))
    }

    /// An expression that has to be an index.
    pub(super) fn index(&mut self, expr: &Expr) -> Result<Index, Refusal> {
        let term = self.term(expr)?;
        term.to_index().ok_or_else(|| {
            unsayable(
                span(expr),
                "an index is expected here, and this is not one",
                "indices have + - * // %, T.min and T.max, over loops, iterators and dimensions",
            )
        })
    }

    /// What is called, if it is of the language.
    pub(super) fn path(&self, expr: &Expr) -> Option<String> {
        path_below(expr, self.alias)
    }
}

/// An operation by an operator of Python.
pub(super) fn binary(expr: &Expr, op: Operator, a: Term, b: Term) -> Result<Term, Refusal> {
    if let (Some(a), Some(b)) = (a.as_index(), b.as_index())
        && let Some(index) = index_operation(op, &a.0, &b.0)
    {
        let dtype = common(a.1, b.1).expect("both are integers of a variable");
        return Ok(match index.as_int() {
            Some(value) if a.0.as_int().is_some() && b.0.as_int().is_some() => Term::Int(value, None),
            _ => Term::Index(index, dtype),
        });
    }
    let op = match op {
        Operator::Add => BinaryOp::Add,
        Operator::Sub => BinaryOp::Sub,
        Operator::Mult => BinaryOp::Mul,
        Operator::Div => BinaryOp::Div,
        Operator::BitAnd => BinaryOp::And,
        Operator::BitOr => BinaryOp::Or,
        Operator::BitXor => BinaryOp::Xor,
        Operator::LShift => BinaryOp::Shl,
        Operator::RShift => BinaryOp::Shr,
        Operator::FloorDiv | Operator::Mod => {
            if let (Some(a), Some(b)) = (a.to_index(), b.to_index()) {
                let index = if op == Operator::Mod { a.floor_mod(&b) } else { a.floor_div(&b) };
                return Ok(Term::Index(index, DType::I64));
            }
            return Err(unsayable(
                span(expr),
                format!("`{}` is for indices, and this is data", op.as_str()),
                "of floats, `T.floor(a / b)` rounds down; of integers, `/` cuts off",
            ));
        }
        Operator::Pow | Operator::MatMult => {
            let help = "write the product, or `T.exp(y * T.log(x))`";
            return Err(unsayable(span(expr), format!("there is no operator `{}`", op.as_str()), help));
        }
    };
    if let (Some(a), Some(b)) = (plain(&a), plain(&b))
        && let Some(value) = folded(op, a, b)
    {
        return Ok(Term::Float(value, None));
    }
    operate(expr, op, a, b)
}

/// An operation on values.
pub(super) fn operate(expr: &Expr, op: BinaryOp, a: Term, b: Term) -> Result<Term, Refusal> {
    operation(op, a, b).map_err(|(a, b)| {
        let title = format!("the operands are of types {a} and {b}, which do not meet");
        malformed(span(expr), title).help("convert one of them: `T.Cast(\"float32\", x)`")
    })
}

/// A comparison of two.
pub(super) fn comparison(
    at: std::ops::Range<usize>,
    op: Comparison,
    a: Term,
    b: Term,
) -> Result<Cond, Refusal> {
    if let (Some(a), Some(b)) = (a.as_index(), b.as_index()) {
        return Ok(Cond::compare(op, &a.0, &b.0));
    }
    let (op, is_swapped) = op.operator();
    let (a, b) = if is_swapped { (b, a) } else { (a, b) };
    match operation(op, a, b) {
        Ok(term) => Ok(Cond::Value(term.into_value(None).0)),
        Err((a, b)) => {
            let title = format!("the operands are of types {a} and {b}, which do not meet");
            Err(malformed(at, title).help("convert one of them: `T.Cast(\"float32\", x)`"))
        }
    }
}

/// An operation on indices; none where the result is no index.
fn index_operation(op: Operator, a: &Index, b: &Index) -> Option<Index> {
    let power = |it: &Index| it.as_int().filter(|it| (0..62).contains(it)).map(|it| Index::int(1 << it));
    match op {
        Operator::Add => Some(a + b),
        Operator::Sub => Some(a - b),
        Operator::Mult => Some(a * b),
        Operator::FloorDiv => divisor(b).map(|b| a.floor_div(b)),
        Operator::Mod => divisor(b).map(|b| a.floor_mod(b)),
        Operator::LShift => power(b).map(|it| a * &it),
        Operator::RShift => power(b).map(|it| a.floor_div(&it)),
        Operator::BitXor => Some(a.xor(b)),
        Operator::BitAnd => {
            let mask = b.as_int().and_then(|it| it.checked_add(1)).filter(|it| it.count_ones() == 1);
            mask.filter(|it| *it > 0).map(|it| a.floor_mod(&Index::int(it)))
        }
        Operator::BitOr | Operator::Div | Operator::Pow | Operator::MatMult => None,
    }
}

/// A divisor, unless it is a constant that is none.
fn divisor(index: &Index) -> Option<&Index> {
    Some(index).filter(|it| it.as_int().is_none_or(|it| it > 0))
}

/// A number of Python's, which has no type yet.
fn plain(term: &Term) -> Option<f64> {
    match term {
        Term::Int(value, None) => Some(*value as f64),
        Term::Float(value, None) => Some(*value),
        Term::Int(..) | Term::Float(..) | Term::Index(..) | Term::Value(..) | Term::Cond(_) => None,
    }
}

/// What Python makes of two numbers.
fn folded(op: BinaryOp, a: f64, b: f64) -> Option<f64> {
    match op {
        BinaryOp::Add => Some(a + b),
        BinaryOp::Sub => Some(a - b),
        BinaryOp::Mul => Some(a * b),
        BinaryOp::Div => Some(a / b),
        _ => None,
    }
}
