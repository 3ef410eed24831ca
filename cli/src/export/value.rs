//! Values of the reference: machine arithmetic as expressions of C and of Rust.

use ir::{Access, BinaryOp, DType, Less, Literal, Number, UnaryOp, Value};

use super::{
    expr::Lang,
    reference::{Printer, c_name, rust_name},
};

impl Printer<'_> {
    /// A value and its type; `own` is the place whose running value is `acc`.
    pub(super) fn value(&self, value: &Value, own: &Access) -> (String, DType) {
        match value {
            Value::Const(it) => (self.literal(*it), it.dtype),
            Value::Load(access) => {
                let dtype = self.func.dtype_of(&access.buffer).expect("the program is verified");
                let text = if self.is_own(access, own) { "acc".to_owned() } else { self.load(access, dtype) };
                (text, dtype)
            }
            Value::Index(dtype, index) => (self.cast(&self.index(index), DType::I64, *dtype), *dtype),
            Value::Cast(to, a) => {
                let (a, from) = self.value(a, own);
                (self.cast(&a, from, *to), *to)
            }
            Value::Unary(op, a) => {
                let (a, dtype) = self.value(a, own);
                (self.unary(*op, &a, dtype), dtype)
            }
            Value::Binary(op, a, b) => {
                let ((a, dtype), (b, _)) = (self.value(a, own), self.value(b, own));
                (self.binary(*op, &a, &b, dtype), op.result(dtype))
            }
            Value::Where(cond, a, b) => {
                let ((cond, _), (a, dtype), (b, _)) =
                    (self.value(cond, own), self.value(a, own), self.value(b, own));
                (self.either(&format!("{cond} != 0"), &a, &b), dtype)
            }
            Value::Select(conditions, a, b) => {
                let ((a, dtype), (b, _)) = (self.value(a, own), self.value(b, own));
                let less = |it: &Less| format!("{} < {}", self.index(&it.lhs), self.index(&it.rhs));
                let all: Vec<_> = conditions.iter().map(less).collect();
                let all = if all.is_empty() { "1 == 1".to_owned() } else { all.join(" && ") };
                (self.either(&all, &a, &b), dtype)
            }
        }
    }

    fn either(&self, condition: &str, a: &str, b: &str) -> String {
        match self.lang {
            Lang::C => format!("({condition} ? {a} : {b})"),
            Lang::Rust => format!("(if {condition} {{ {a} }} else {{ {b} }})"),
        }
    }

    fn literal(&self, it: Literal) -> String {
        let value = match it.number {
            Number::Int(value) => return self.lang.int(value),
            Number::Float(bits) => f64::from_bits(bits),
        };
        let word = |c: &str, rust: &str| match self.lang {
            Lang::C => c.to_owned(),
            Lang::Rust => rust.to_owned(),
        };
        match value {
            it if it.is_nan() => word("NAN", "f64::NAN"),
            it if it == f64::INFINITY => word("INFINITY", "f64::INFINITY"),
            it if it == f64::NEG_INFINITY => word("(-INFINITY)", "f64::NEG_INFINITY"),
            it if it < 0.0 => word(&format!("({it:?})"), &format!("({it:?}_f64)")),
            it => word(&format!("{it:?}"), &format!("{it:?}_f64")),
        }
    }

    /// Floats are not rounded to narrower ones: the reference is exact.
    fn cast(&self, a: &str, from: DType, to: DType) -> String {
        match (self.lang, from.is_float(), to.is_float()) {
            (_, true, true) => a.to_owned(),
            (Lang::C, true, false) => format!("tw_int({}, {a})", c_name(to)),
            (Lang::Rust, true, false) => format!("int({}, {a})", rust_name(to)),
            (Lang::C, false, true) => format!("(double)({a})"),
            (Lang::Rust, false, true) => format!("(({a}) as f64)"),
            (_, false, false) => self.wrap(a, to),
        }
    }

    /// An integer modulo the size of its type.
    fn wrap(&self, a: &str, dtype: DType) -> String {
        match self.lang {
            _ if dtype == DType::I64 => a.to_owned(),
            Lang::C => format!("tw_wrap({}, {a})", c_name(dtype)),
            Lang::Rust => format!("wrap({}, {a})", rust_name(dtype)),
        }
    }

    fn unary(&self, op: UnaryOp, a: &str, dtype: DType) -> String {
        if !dtype.is_float() {
            // Of integers there is negation and the magnitude.
            let minus = self.int_call("sub", &self.lang.int(0), a);
            let either =
                if op == UnaryOp::Abs { self.either(&format!("({a}) < 0"), &minus, a) } else { minus };
            return self.wrap(&either, dtype);
        }
        let (c, rust) = match op {
            UnaryOp::Neg => return format!("(-({a}))"),
            UnaryOp::Abs => ("fabs", "abs"),
            UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Log2
            | UnaryOp::Sqrt
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tanh
            | UnaryOp::Erf
            | UnaryOp::Floor
            | UnaryOp::Ceil => (op.as_str(), op.as_str()),
            UnaryOp::Log => ("log", "ln"),
            UnaryOp::Rint => ("rint", "round_ties_even"),
            UnaryOp::Rsqrt => {
                return match self.lang {
                    Lang::C => format!("(1.0 / sqrt({a}))"),
                    Lang::Rust => format!("(1.0 / f64::sqrt({a}))"),
                };
            }
        };
        match self.lang {
            Lang::C => format!("{c}({a})"),
            Lang::Rust if op == UnaryOp::Erf => format!("erf({a})"),
            Lang::Rust => format!("f64::{rust}({a})"),
        }
    }

    fn binary(&self, op: BinaryOp, a: &str, b: &str, dtype: DType) -> String {
        let word = op.word();
        if op == BinaryOp::DotE2m1x2 {
            return match self.lang {
                Lang::C => format!("tw_{word}({a}, {b})"),
                Lang::Rust => format!("{word}({a}, {b})"),
            };
        }
        if op.is_comparison() {
            let [yes, no] = [1, 0].map(|it| self.lang.int(it));
            return self.either(&format!("{a} {} {b}", op.as_str()), &yes, &no);
        }
        match (op.is_extremum(), dtype.is_float(), self.lang) {
            (true, true, Lang::C) => format!("f{word}({a}, {b})"),
            (true, true, Lang::Rust) => format!("f64::{word}({a}, {b})"),
            (true, false, Lang::C) => format!("tw_{word}({a}, {b})"),
            (true, false, Lang::Rust) => format!("size_{word}({a}, {b})"),
            (false, true, _) => format!("({a} {} {b})", op.as_str()),
            (false, false, _) => self.wrap(&self.integer(op, a, b, dtype), dtype),
        }
    }

    fn integer(&self, op: BinaryOp, a: &str, b: &str, dtype: DType) -> String {
        match op {
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => format!("({a} {} {b})", op.as_str()),
            BinaryOp::Shl | BinaryOp::Shr => {
                let by = format!("({b} & {})", dtype.bytes() * 8 - 1);
                match self.lang {
                    Lang::C => format!("tw_int_{}({a}, {by})", op.word()),
                    Lang::Rust => format!("(({a}) {} {by})", op.as_str()),
                }
            }
            _ => self.int_call(op.word(), a, b),
        }
    }

    fn int_call(&self, word: &str, a: &str, b: &str) -> String {
        match self.lang {
            Lang::C => format!("tw_int_{word}({a}, {b})"),
            Lang::Rust if word == "div" => format!("int_div({a}, {b})"),
            Lang::Rust => format!("i64::wrapping_{word}({a}, {b})"),
        }
    }
}
