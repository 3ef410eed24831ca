//! What occurs in an index, and what value it has.

use std::collections::BTreeSet;

use super::{Form, Index, IndexKind};
use crate::Name;

impl Index {
    /// Calls `f` with the name of each variable, from left to right, repeats included.
    pub fn each_var<'a>(&'a self, f: &mut dyn FnMut(&'a Name)) {
        match self.kind() {
            IndexKind::Int(_) => {}
            IndexKind::Var(name) => f(name),
            IndexKind::Add(a, b)
            | IndexKind::Mul(a, b)
            | IndexKind::FloorDiv(a, b)
            | IndexKind::FloorMod(a, b)
            | IndexKind::Min(a, b)
            | IndexKind::Max(a, b)
            | IndexKind::Xor(a, b)
            | IndexKind::Element(_, a, b) => {
                a.each_var(f);
                b.each_var(f);
            }
        }
    }

    /// Calls `f` with each element of an input that occurs, those in positions of others before these.
    pub fn each_element<'a>(&'a self, f: &mut dyn FnMut(&'a Index)) {
        match &self.0 {
            Form::Int(_) | Form::Var(_) => {}
            Form::Binary(it) => [&it.a, &it.b].into_iter().for_each(|it| it.each_element(f)),
            Form::Element(it) => {
                it.at.each_element(f);
                it.below.each_element(f);
                f(self);
            }
        }
    }

    /// Whether an element of an input occurs.
    pub fn has_element(&self) -> bool {
        let mut found = false;
        self.each_element(&mut |_| found = true);
        found
    }

    /// The variables that occur.
    pub fn vars(&self) -> BTreeSet<Name> {
        let mut out = BTreeSet::new();
        self.each_var(&mut |name| {
            out.insert(name.clone());
        });
        out
    }

    /// Whether any variable that occurs satisfies `pred`.
    pub fn any_var(&self, pred: &dyn Fn(&Name) -> bool) -> bool {
        match &self.0 {
            Form::Int(_) => false,
            Form::Var(name) => pred(name),
            Form::Binary(it) => it.a.any_var(pred) || it.b.any_var(pred),
            Form::Element(it) => it.at.any_var(pred) || it.below.any_var(pred),
        }
    }

    /// The value under an assignment of all its variables.
    ///
    /// `None` where a variable has no value, a divisor is not positive, or the arithmetic overflows 64 bits; and of elements of inputs.
    pub fn eval(&self, value: &dyn Fn(&Name) -> Option<i64>) -> Option<i64> {
        match self.kind() {
            IndexKind::Int(it) => Some(it),
            IndexKind::Var(name) => value(name),
            IndexKind::Add(a, b) => a.eval(value)?.checked_add(b.eval(value)?),
            IndexKind::Mul(a, b) => a.eval(value)?.checked_mul(b.eval(value)?),
            IndexKind::FloorDiv(a, b) => {
                let (a, b) = (a.eval(value)?, b.eval(value)?);
                (b > 0).then(|| a.div_euclid(b))
            }
            IndexKind::FloorMod(a, b) => {
                let (a, b) = (a.eval(value)?, b.eval(value)?);
                (b > 0).then(|| a.rem_euclid(b))
            }
            IndexKind::Min(a, b) => Some(a.eval(value)?.min(b.eval(value)?)),
            IndexKind::Max(a, b) => Some(a.eval(value)?.max(b.eval(value)?)),
            IndexKind::Xor(a, b) => Some(a.eval(value)? ^ b.eval(value)?),
            IndexKind::Element(..) => None,
        }
    }
}

impl Index {
    /// Whether the arithmetic overflows 64 bits under an assignment, if only on the way to a small value.
    pub fn overflows(&self, value: &dyn Fn(&Name) -> Option<i64>) -> bool {
        match self.kind() {
            IndexKind::Int(_) | IndexKind::Var(_) => false,
            IndexKind::Add(a, b) | IndexKind::Mul(a, b) => {
                let known = a.eval(value).is_some() && b.eval(value).is_some();
                known && self.eval(value).is_none() || a.overflows(value) || b.overflows(value)
            }
            IndexKind::FloorDiv(a, b)
            | IndexKind::FloorMod(a, b)
            | IndexKind::Min(a, b)
            | IndexKind::Max(a, b)
            | IndexKind::Xor(a, b)
            | IndexKind::Element(_, a, b) => a.overflows(value) || b.overflows(value),
        }
    }
}
