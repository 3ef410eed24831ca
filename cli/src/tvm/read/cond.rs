//! Conditions: on indices, which choose before anything is read, and on values.

use ir::{BinaryOp, DType, Index, Less, Literal, Number, Value};

/// A condition.
#[derive(Clone, Debug)]
pub(super) enum Cond {
    /// All of these hold.
    All(Vec<Less>),
    /// A `bool` that was computed.
    Value(Value),
    /// Both hold.
    And(Box<Cond>, Box<Cond>),
    /// One of them holds.
    Or(Box<Cond>, Box<Cond>),
    /// It does not hold.
    Not(Box<Cond>),
}

impl Cond {
    /// What always holds, or never.
    pub(super) fn constant(holds: bool) -> Cond {
        let always = Cond::All(vec![]);
        if holds { always } else { always.negated() }
    }

    /// A comparison of indices.
    pub(super) fn compare(op: Comparison, a: &Index, b: &Index) -> Cond {
        let less = |a: &Index, b: &Index| Less::new(a.clone(), b.clone());
        match op {
            Comparison::Lt => Cond::All(vec![less(a, b)]),
            Comparison::Le => Cond::All(vec![less(a, &(b + 1))]),
            Comparison::Gt => Cond::All(vec![less(b, a)]),
            Comparison::Ge => Cond::All(vec![less(b, &(a + 1))]),
            Comparison::Eq => Cond::All(vec![less(a, &(b + 1)), less(b, &(a + 1))]),
            Comparison::Ne => Cond::compare(Comparison::Eq, a, b).negated(),
        }
    }

    /// Both.
    pub(super) fn and(self, other: Cond) -> Cond {
        match (self, other) {
            (Cond::All(mut a), Cond::All(b)) => {
                a.extend(b);
                Cond::All(a)
            }
            (a, b) => Cond::And(a.into(), b.into()),
        }
    }

    /// The opposite.
    pub(super) fn negated(self) -> Cond {
        match self {
            Cond::Not(it) => *it,
            // Of one comparison of integers it is one, too.
            Cond::All(all) if all.len() == 1 => {
                Cond::All(all.into_iter().map(|it| Less::new(it.rhs, it.lhs + 1)).collect())
            }
            it => Cond::Not(it.into()),
        }
    }

    /// The comparisons that must all hold, if that is what it says.
    pub(super) fn into_guards(self) -> Option<Vec<Less>> {
        match self {
            Cond::All(all) => Some(all),
            Cond::And(a, b) => Some([a.into_guards()?, b.into_guards()?].concat()),
            Cond::Value(_) | Cond::Or(..) | Cond::Not(_) => None,
        }
    }

    /// The first value where it holds, else the second.
    pub(super) fn choose(self, then: Value, otherwise: Value) -> Value {
        if self.is_value() {
            return Value::choice(self.value(), then, otherwise);
        }
        match self {
            Cond::All(all) if all.is_empty() => then,
            Cond::All(all) => Value::Select(all, then.into(), otherwise.into()),
            Cond::Value(cond) => Value::choice(cond, then, otherwise),
            Cond::And(a, b) => a.choose(b.choose(then, otherwise.clone()), otherwise),
            Cond::Or(a, b) => a.choose(then.clone(), b.choose(then, otherwise)),
            Cond::Not(it) => it.choose(otherwise, then),
        }
    }

    /// How many conditions it is made of that stand alone.
    pub(super) fn alternatives(&self) -> usize {
        match self {
            Cond::All(_) | Cond::Value(_) => 1,
            Cond::And(a, b) | Cond::Or(a, b) => a.alternatives() + b.alternatives(),
            Cond::Not(it) => it.alternatives(),
        }
    }

    /// As a `bool`.
    pub(super) fn value(self) -> Value {
        match self {
            Cond::Value(it) => it,
            Cond::And(a, b) if a.is_value() && b.is_value() => {
                Value::binary(BinaryOp::And, a.value(), b.value())
            }
            Cond::Or(a, b) if a.is_value() && b.is_value() => {
                Value::binary(BinaryOp::Or, a.value(), b.value())
            }
            cond => {
                let constant = |it| Value::Const(Literal { dtype: DType::Bool, number: Number::Int(it) });
                cond.choose(constant(1), constant(0))
            }
        }
    }

    /// Whether data alone decide it.
    fn is_value(&self) -> bool {
        match self {
            Cond::Value(_) => true,
            Cond::All(_) | Cond::Not(_) => false,
            Cond::And(a, b) | Cond::Or(a, b) => a.is_value() && b.is_value(),
        }
    }
}

/// The comparisons of Python.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
}

impl Comparison {
    /// As an operator on values, and whether its operands change places.
    pub(super) fn operator(self) -> (BinaryOp, bool) {
        match self {
            Comparison::Lt => (BinaryOp::Lt, false),
            Comparison::Le => (BinaryOp::Le, false),
            Comparison::Gt => (BinaryOp::Lt, true),
            Comparison::Ge => (BinaryOp::Le, true),
            Comparison::Eq => (BinaryOp::Eq, false),
            Comparison::Ne => (BinaryOp::Ne, false),
        }
    }
}
