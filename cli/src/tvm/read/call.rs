//! Calls in expressions: functions, conversions and constants of a type.

use ir::{BinaryOp, DType, Literal, UnaryOp, Value};
use ruff_python_ast::{Expr, ExprCall, Operator};

use super::{
    args::{Args, text_of},
    cond::{Comparison, Cond},
    error::{Refusal, malformed, unsayable},
    expr::{binary, comparison, operate},
    function::Reader,
    span,
    term::Term,
};

/// TVM's word for an element type.
pub(in crate::tvm) const fn dtype_word(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "bool",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::F16 => "float16",
        DType::Bf16 => "bfloat16",
        DType::F8e4m3 => "float8_e4m3fn",
        DType::F8e5m2 => "float8_e5m2",
        DType::F8e8m0 => "float8_e8m0fnu",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::Tf32 => return None,
    })
}

/// The element type of a word of TVM's.
pub(in crate::tvm) fn dtype_of(word: &str) -> Option<DType> {
    match word {
        "e4m3_float8" => Some(DType::F8e4m3),
        "e5m2_float8" => Some(DType::F8e5m2),
        "boolean" => Some(DType::Bool),
        _ => DType::ALL.into_iter().find(|it| dtype_word(*it) == Some(word)),
    }
}

/// Functions of one float.
fn unary_of(word: &str) -> Option<UnaryOp> {
    Some(match word {
        "exp" => UnaryOp::Exp,
        "exp2" => UnaryOp::Exp2,
        "log" => UnaryOp::Log,
        "log2" => UnaryOp::Log2,
        "sqrt" => UnaryOp::Sqrt,
        "rsqrt" => UnaryOp::Rsqrt,
        "sin" => UnaryOp::Sin,
        "cos" => UnaryOp::Cos,
        "tanh" => UnaryOp::Tanh,
        "erf" => UnaryOp::Erf,
        "floor" => UnaryOp::Floor,
        "ceil" => UnaryOp::Ceil,
        "nearbyint" => UnaryOp::Rint,
        "abs" | "fabs" => UnaryOp::Abs,
        _ => return None,
    })
}

/// What is written as a call and means an operator.
fn operator_of(word: &str) -> Option<Operator> {
    Some(match word {
        "Add" => Operator::Add,
        "Sub" => Operator::Sub,
        "Mul" => Operator::Mult,
        "Div" => Operator::Div,
        "floordiv" | "FloorDiv" => Operator::FloorDiv,
        "floormod" | "FloorMod" => Operator::Mod,
        "bitwise_and" | "BitwiseAnd" => Operator::BitAnd,
        "bitwise_or" | "BitwiseOr" => Operator::BitOr,
        "bitwise_xor" | "BitwiseXor" => Operator::BitXor,
        "shift_left" | "LShift" => Operator::LShift,
        "shift_right" | "RShift" => Operator::RShift,
        _ => return None,
    })
}

fn comparison_of(word: &str) -> Option<Comparison> {
    Some(match word {
        "LT" => Comparison::Lt,
        "LE" => Comparison::Le,
        "GT" => Comparison::Gt,
        "GE" => Comparison::Ge,
        "EQ" => Comparison::Eq,
        "NE" => Comparison::Ne,
        _ => return None,
    })
}

impl Reader<'_> {
    /// A call in an expression.
    pub(super) fn call(&mut self, call: &ExprCall) -> Result<Term, Refusal> {
        if let Expr::Attribute(it) = &*call.func
            && it.attr.as_str() == "astype"
        {
            let dtype = self.dtype(Args::of(call, &["dtype"])?.need("dtype")?)?;
            let term = self.term(&it.value)?;
            return Ok(converted(term, dtype));
        }
        let Some(word) = self.path(&call.func) else {
            return Err(malformed(
                span(&*call.func),
                format!("only functions of `{}` are known", self.alias),
            ));
        };
        if let Some(dtype) = dtype_of(&word) {
            return self.typed(call, dtype);
        }
        if let Some(op) = unary_of(&word) {
            let (value, dtype) = self.term(Args::of(call, &["x", "span"])?.need("x")?)?.into_value(None);
            return Ok(Term::Value(Value::Unary(op, value.into()), dtype));
        }
        if let Some(op) = operator_of(&word) {
            let (a, b) = self.two(call)?;
            return binary(&Expr::Call(call.clone()), op, a, b);
        }
        if let Some(op) = comparison_of(&word) {
            let (a, b) = self.two(call)?;
            return comparison(span(call), op, a, b).map(Term::Cond);
        }
        self.other_call(call, &word)
    }

    fn other_call(&mut self, call: &ExprCall, word: &str) -> Result<Term, Refusal> {
        let whole = Expr::Call(call.clone());
        match word {
            "max" | "Max" => self.extremum(call, BinaryOp::Max),
            "min" | "Min" => self.extremum(call, BinaryOp::Min),
            "And" | "Or" => {
                let args = Args::of(call, &["a", "b", "span"])?;
                let (a, b) = (self.cond(args.need("a")?)?, self.cond(args.need("b")?)?);
                Ok(Term::Cond(if word == "And" { a.and(b) } else { Cond::Or(a.into(), b.into()) }))
            }
            "Not" => Ok(Term::Cond(self.cond(Args::of(call, &["a", "span"])?.need("a")?)?.negated())),
            "if_then_else" | "Select" => {
                let names = if word == "Select" {
                    &["condition", "true_value", "false_value", "span"]
                } else {
                    &["cond", "t", "f", "span"]
                };
                let args = Args::of(call, names)?;
                let cond = self.cond(args.need(names[0])?)?;
                self.choose(&whole, cond, args.need(names[1])?, args.need(names[2])?)
            }
            "Cast" | "cast" => {
                let names =
                    if word == "Cast" { &["dtype", "value", "span"] } else { &["value", "dtype", "span"] };
                let args = Args::of(call, names)?;
                let dtype = self.dtype(args.need("dtype")?)?;
                let term = self.term(args.need("value")?)?;
                Ok(converted(term, dtype))
            }
            "likely" => self.term(Args::of(call, &["cond", "span"])?.need("cond")?),
            "ceildiv" => {
                let args = Args::of(call, &["lhs", "rhs", "span"])?;
                let (a, b) = (self.index(args.need("lhs")?)?, self.index(args.need("rhs")?)?);
                Ok(Term::Index(a.ceil_div(&b), DType::I32))
            }
            "truncdiv" | "truncmod" | "Mod" => self.truncated(call, word),
            "min_value" | "max_value" | "infinity" => {
                let dtype = self.dtype(Args::of(call, &["dtype", "span"])?.need("dtype")?)?;
                Ok(Term::Value(Value::Const(extreme(word, dtype)), dtype))
            }
            "sigmoid" => {
                let (value, dtype) = self.term(Args::of(call, &["x"])?.need("x")?)?.into_value(None);
                let one = || Value::Const(Literal::from_f64(dtype, 1.0));
                let minus = Value::Unary(UnaryOp::Neg, value.into());
                let sum = Value::binary(BinaryOp::Add, one(), Value::Unary(UnaryOp::Exp, minus.into()));
                Ok(Term::Value(Value::binary(BinaryOp::Div, one(), sum), dtype))
            }
            _ => Err(unsayable(
                span(&*call.func),
                format!("there is no function `{word}` here"),
                "there are exp, exp2, log, log2, sqrt, rsqrt, sin, cos, tanh, erf, sigmoid, floor, ceil, nearbyint, abs, \
                 min, max, Select, if_then_else and Cast",
            )),
        }
    }

    fn two(&mut self, call: &ExprCall) -> Result<(Term, Term), Refusal> {
        let (mut all, mut given) = (vec![], call.arguments.args.iter().collect::<Vec<_>>());
        given.extend(call.arguments.keywords.iter().map(|it| &it.value));
        for arg in given.into_iter().filter(|it| !matches!(it, Expr::NoneLiteral(_))) {
            all.push(self.term(arg)?);
        }
        match <[Term; 2]>::try_from(all) {
            Ok([a, b]) => Ok((a, b)),
            Err(_) => Err(malformed(span(call), "it takes two operands")),
        }
    }

    fn extremum(&mut self, call: &ExprCall, op: BinaryOp) -> Result<Term, Refusal> {
        let (a, b) = self.two(call)?;
        if let (Some((a, dtype)), Some((b, _))) = (a.as_index(), b.as_index()) {
            let index = if op == BinaryOp::Min { a.minimum(&b) } else { a.maximum(&b) };
            return Ok(Term::Index(index, dtype));
        }
        operate(&Expr::Call(call.clone()), op, a, b)
    }

    /// A division that cuts off: of data it is `/`, of indices that are constants it rounds down where none is negative.
    fn truncated(&mut self, call: &ExprCall, word: &str) -> Result<Term, Refusal> {
        let (a, b) = self.two(call)?;
        if let (Term::Int(a, _), Term::Int(b, _)) = (&a, &b)
            && let (Some(quotient), Some(rest)) = (a.checked_div(*b), a.checked_rem(*b))
        {
            return Ok(Term::Int(if word == "truncdiv" { quotient } else { rest }, None));
        }
        if word == "truncdiv" && (a.as_index().is_none() || b.as_index().is_none()) {
            return operate(&Expr::Call(call.clone()), BinaryOp::Div, a, b);
        }
        Err(unsayable(
            span(call),
            format!("`{word}` cuts off towards zero, and indices here are divided rounding down"),
            "where nothing is negative, `//` and `%` are the same",
        ))
    }

    /// A constant of a type, or a conversion to it.
    fn typed(&mut self, call: &ExprCall, dtype: DType) -> Result<Term, Refusal> {
        let args = Args::of(call, &["expr", "is_size_var", "span"])?;
        let arg = args.need("expr").map_err(|it| {
            it.help("a dimension is declared at the beginning of the function: `n = T.int32()`")
        })?;
        if let Expr::StringLiteral(it) = arg {
            let value = it.value.to_str().parse().ok().filter(|_| dtype.is_float());
            let value: f64 = value.ok_or_else(|| malformed(span(arg), "this is no number of the type"))?;
            return Ok(Term::Float(value, Some(dtype)));
        }
        Ok(match self.term(arg)? {
            Term::Int(value, _) if dtype.is_float() => Term::Float(value as f64, Some(dtype)),
            Term::Int(value, _) => Term::Int(value, Some(dtype)),
            Term::Float(value, _) if dtype.is_float() => Term::Float(value, Some(dtype)),
            Term::Cond(cond) if dtype == DType::Bool => Term::Value(cond.value(), dtype),
            term => converted(term, dtype),
        })
    }

    /// A type by its word.
    pub(super) fn dtype(&self, expr: &Expr) -> Result<DType, Refusal> {
        let word = match expr {
            Expr::StringLiteral(_) => text_of(expr)?,
            _ => self
                .path(expr)
                .ok_or_else(|| malformed(span(expr), "a type such as \"float32\" is expected here"))?,
        };
        dtype_of(&word).ok_or_else(|| {
            let known: Vec<_> = DType::ALL.into_iter().filter_map(dtype_word).collect();
            unsayable(
                span(expr),
                format!("there are no elements of type `{word}`"),
                format!("there is {}", known.join(", ")),
            )
        })
    }
}

/// A conversion that the file asks for: it stays one, also from a type to itself.
fn converted(term: Term, dtype: DType) -> Term {
    match term {
        Term::Index(index, _) if !dtype.is_float() && dtype != DType::Bool => {
            Term::Value(Value::Index(dtype, index), dtype)
        }
        Term::Int(value, None) if dtype.is_float() => Term::Float(value as f64, Some(dtype)),
        Term::Int(value, None) => Term::Int(value, Some(dtype)),
        Term::Float(value, None) if dtype.is_float() => Term::Float(value, Some(dtype)),
        term => Term::Value(Value::Cast(dtype, term.into_value(None).0.into()), dtype),
    }
}

/// The least, the greatest and the infinite number of a type; TVM's least float is finite.
fn extreme(word: &str, dtype: DType) -> Literal {
    match (word, dtype.is_float()) {
        ("infinity", true) => Literal::from_f64(dtype, f64::INFINITY),
        ("min_value", true) => Literal::from_f64(dtype, -dtype.largest_finite()),
        (_, true) => Literal::from_f64(dtype, dtype.largest_finite()),
        ("min_value", false) => Literal::lowest(dtype),
        (_, false) => Literal::highest(dtype),
    }
}
