//! Values: machine arithmetic, in the order in which the program writes it.

use std::sync::Arc;

use ir::{Access, BinaryOp, DType, UnaryOp, Value};

use super::{Printer, helper::Helper, names::identifier, types, words};

/// How tightly the outermost operator of an expression binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binds {
    Choice,
    /// Comparisons and operators on bits, whose operands stand in parentheses: nobody knows by heart how they bind in C.
    Relation,
    Sum,
    Product,
    Unary,
    Atom,
}

impl Printer<'_> {
    /// A value of `lanes` lanes, fit to stand right of `=` or in an argument list.
    pub(super) fn value(&mut self, value: &Value, lanes: u32) -> String {
        self.value_at(value, lanes).0
    }

    /// The place of an access, fit to be assigned to.
    pub(super) fn place(&mut self, access: &Access) -> String {
        self.access(access, "")
    }

    fn value_binding(&mut self, value: &Value, lanes: u32, least: Binds) -> String {
        let (text, binds) = self.value_at(value, lanes);
        if binds < least { ["(", &text, ")"].concat() } else { text }
    }

    fn value_at(&mut self, value: &Value, lanes: u32) -> (String, Binds) {
        let dtype = self.dtype(value);
        if lanes > 1 && lanes_of(value) == 1 {
            let (splat, scalar) = (self.require(Helper::Splat(dtype, lanes)), self.value(value, 1));
            return (format!("{splat}({scalar})"), Binds::Atom);
        }
        match value {
            Value::Const(it) => {
                let text = self.literal(*it);
                let is_atom = text.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '_');
                (text, if is_atom { Binds::Atom } else { Binds::Unary })
            }
            Value::Load(access) => {
                let text = self.access(access, "const ");
                let binds = if text.starts_with('*') { Binds::Unary } else { Binds::Atom };
                (text, binds)
            }
            Value::Index(to, index) => {
                let (name, index) = (types::scalar(self.dialect, *to), self.index_atom(index));
                let text =
                    if *to == DType::Bool { format!("({index} != 0)") } else { format!("({name}){index}") };
                (text, Binds::Unary)
            }
            Value::Cast(to, a) => self.cast(*to, a, lanes),
            Value::Unary(UnaryOp::Neg, a) if self.is_native(dtype, lanes) => {
                (format!("-{}", self.value_binding(a, lanes, Binds::Atom)), Binds::Unary)
            }
            Value::Unary(op, a) => {
                let name = self.require(Helper::Unary(*op, dtype, lanes));
                (format!("{name}({})", self.value(a, lanes)), Binds::Atom)
            }
            Value::Binary(op, a, b) => {
                let operands = self.dtype(a);
                self.binary(*op, (a, b), operands, lanes)
            }
            Value::Where(cond, a, b) if lanes > 1 => {
                let name = self.require(Helper::Where(dtype, lanes));
                let [cond, a, b] = [cond, a, b].map(|it| self.value(it, lanes));
                (format!("{name}({cond}, {a}, {b})"), Binds::Atom)
            }
            Value::Where(cond, a, b) => {
                let cond = self.value_binding(cond, 1, Binds::Relation);
                let [a, b] = [a, b].map(|it| self.value_binding(it, 1, Binds::Sum));
                (format!("{cond} ? {a} : {b}"), Binds::Choice)
            }
            Value::Select(cond, a, b) => {
                let cond = self.choice_conditions(cond);
                let (a, b) = (self.chosen(a, dtype, lanes), self.chosen(b, dtype, lanes));
                (format!("{cond} ? {a} : {b}"), Binds::Choice)
            }
        }
    }

    /// One of two values between which a condition decides. To C the result of an operator on vectors is of another type than a vector
    /// with a name, until it is converted.
    fn chosen(&mut self, value: &Value, dtype: DType, lanes: u32) -> String {
        let (text, binds) = self.value_at(value, lanes);
        if lanes > 1 && self.dialect.is_c() && binds < Binds::Atom && !matches!(value, Value::Load(_)) {
            let vector = self.require(Helper::Type(dtype, lanes));
            return format!("({vector})({text})");
        }
        if binds < Binds::Sum { format!("({text})") } else { text }
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        (a, b): (&Value, &Value),
        dtype: DType,
        lanes: u32,
    ) -> (String, Binds) {
        let binds = match op {
            BinaryOp::Add | BinaryOp::Sub => Binds::Sum,
            BinaryOp::Mul | BinaryOp::Div => Binds::Product,
            BinaryOp::Shl | BinaryOp::Shr => Binds::Atom,
            _ if op.is_call() => Binds::Atom,
            _ => Binds::Relation,
        };
        if has_relation(op, dtype, lanes) {
            let [a, b] = [a, b].map(|it| self.value_binding(it, lanes, Binds::Sum));
            return (format!("{a} {} {b}", op.as_str()), binds);
        }
        if let Some((helper, bytes)) = self.halves_less(op, (a, b), lanes) {
            return (format!("{}({})", self.require(helper), self.value(bytes, lanes)), Binds::Atom);
        }
        let infix = op.is_arithmetic() && self.is_native(dtype, lanes);
        if infix || self.has_operator(op, dtype, lanes) {
            if !infix {
                self.require(Helper::Binary(op, dtype, lanes));
            }
            // The right operand needs parentheses even around an equal operator: floats do not associate.
            let right = if binds == Binds::Sum { Binds::Product } else { Binds::Unary };
            let (a, b) = (self.value_binding(a, lanes, binds), self.value_binding(b, lanes, right));
            return (format!("{a} {} {b}", op.as_str()), binds);
        }
        if lanes_of(b) == 1 && words::shifts(self.dialect, op, dtype, lanes) {
            let name = self.require(Helper::ShiftAll(op, dtype, lanes));
            return (format!("{name}({}, {})", self.value(a, lanes), self.value(b, 1)), Binds::Atom);
        }
        let name = self.require(Helper::Binary(op, dtype, lanes));
        (format!("{name}({}, {})", self.value(a, lanes), self.value(b, lanes)), Binds::Atom)
    }

    fn cast(&mut self, to: DType, a: &Value, lanes: u32) -> (String, Binds) {
        let from = self.dtype(a);
        if from == to {
            return self.value_at(a, lanes);
        }
        if let Some(factors) = self.half_product(to, a) {
            let [a, b] = factors.map(|it| Value::Cast(DType::F16, it));
            return self.binary(BinaryOp::Mul, (&a, &b), DType::F16, lanes);
        }
        if lanes == 1 && is_plain_cast(from, to) {
            let name = types::scalar(self.dialect, to);
            return (format!("({name}){}", self.value_binding(a, 1, Binds::Atom)), Binds::Unary);
        }
        let name = self.require(Helper::Cast { to, from, lanes });
        (format!("{name}({})", self.value(a, lanes)), Binds::Atom)
    }

    /// The conversion of bytes to halves that takes away what an operation takes from the halves.
    fn halves_less<'v>(
        &self,
        op: BinaryOp,
        (a, b): (&'v Value, &Value),
        lanes: u32,
    ) -> Option<(Helper, &'v Value)> {
        let (BinaryOp::Sub, Value::Cast(to, bytes), Value::Const(number)) = (op, a, b) else { return None };
        let from = self.dtype(bytes);
        self.words_of_bytes(*to, from, lanes)?;
        Some((Helper::HalvesLess(from, lanes, words::less(number.to_f64())?), bytes))
    }

    /// The factors of a product in f32 that becomes f16, where both are halves or bytes: the product is exact in f32, so that halves multiplied by each
    /// other, which the GPU does two at a time, are rounded as it is.
    fn half_product(&self, to: DType, value: &Value) -> Option<[Arc<Value>; 2]> {
        let Value::Binary(BinaryOp::Mul, a, b) = value else { return None };
        let factor = |it: &Value| match it {
            Value::Cast(DType::F32, it) => Some(it.clone()).filter(|it| is_half_exactly(self.dtype(it))),
            _ => None,
        };
        let (a, b) = (factor(a)?, factor(b)?);
        (to == DType::F16 && !self.dialect.is_c()).then_some([a, b])
    }

    /// The element, or the adjacent elements, of an access.
    fn access(&mut self, access: &Access, qualifier: &str) -> String {
        let name = identifier(&access.buffer).into_owned();
        if self.frame.registers.get(&access.buffer) == Some(&access.lanes) {
            return name;
        }
        let name = self.in_cluster(access, name);
        let at = access.indices.last().map_or_else(|| "0".to_owned(), |it| self.index(it));
        if access.lanes == 1 {
            return [&name, "[", &at, "]"].concat();
        }
        let dtype = self.frame.memory[&access.buffer].0;
        let vector = self.require(Helper::Type(dtype, access.lanes));
        ["*(", qualifier, &vector, " *)&", &name, "[", &at, "]"].concat()
    }

    /// The type of a value; buffers of a module are all known.
    pub(super) fn dtype(&self, value: &Value) -> DType {
        value
            .dtype(&|name| self.frame.memory.get(name).map(|it| it.0))
            .expect("the buffers of a module are known")
    }

    /// Whether the dialect's own operators compute in this type exactly as the program means it.
    ///
    /// They do not for integers: a signed overflow is undefined, and narrow ones are computed as `int`.
    pub(super) fn is_native(&self, dtype: DType, lanes: u32) -> bool {
        matches!(dtype, DType::F32 | DType::F64) && (lanes == 1 || self.dialect.is_c())
    }
}

/// Whether the languages compare elements of the type, or combine their bits, as the program means it. Lanes are compared one by one.
pub(super) fn has_relation(op: BinaryOp, dtype: DType, lanes: u32) -> bool {
    lanes == 1 && !types::is_emulated(dtype) && (op.is_comparison() || op.is_bitwise())
}

/// Whether every number of the type is one of f16.
fn is_half_exactly(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::I8 | DType::U8)
}

/// Whether a cast in parentheses rounds, wraps and saturates as the program means it.
pub(super) fn is_plain_cast(from: DType, to: DType) -> bool {
    match to {
        DType::F32 | DType::F64 => !types::is_emulated(from),
        DType::Bool
        | DType::F16
        | DType::Bf16
        | DType::Tf32
        | DType::F8e4m3
        | DType::F8e5m2
        | DType::F8e8m0 => false,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8 | DType::U16 | DType::U32 => {
            !from.is_float()
        }
    }
}

/// The number of lanes that a value's loads have.
pub(super) fn lanes_of(value: &Value) -> u32 {
    let mut lanes = 1;
    value.each_load(&mut |access| lanes = lanes.max(access.lanes));
    lanes
}
