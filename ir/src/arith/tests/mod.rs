//! Tests of the arithmetic.

mod cases;
mod properties;
mod rules;

use std::collections::BTreeMap;

use crate::{Index, Less, Name, arith::Bounds};

/// Reads an index; `/` and `%` stand for `floordiv` and `mod` to keep tables narrow.
fn read(text: &str) -> Index {
    text.replace('/', " floordiv ").replace('%', " mod ").parse().expect("an index")
}

fn read_less(text: &str) -> Less {
    let (lhs, rhs) = text.split_once('<').expect("a condition");
    Less::new(read(lhs), read(rhs))
}

/// The notation that [`read`] reads.
fn show(it: &impl ToString) -> String {
    it.to_string().replace(" floordiv ", "/").replace(" mod ", "%")
}

/// Bounds as text: `n; i: n; j: 8 | i*8 + j < n` knows a dimension, two variables and a fact.
fn bounds(text: &str) -> Bounds {
    let mut out = Bounds::default();
    let (vars, facts) = text.split_once('|').unwrap_or((text, ""));
    for var in vars.split(';').map(str::trim).filter(|it| !it.is_empty()) {
        match var.split_once(':') {
            Some((var, extent)) => out.insert(&Name::new(var.trim()), &read(extent)),
            None => out.insert_dim(&Name::new(var)),
        }
    }
    facts.split(';').filter(|it| !it.trim().is_empty()).for_each(|it| out.assume(&read_less(it)));
    out
}

fn eval(index: &Index, values: &BTreeMap<Name, i64>) -> Option<i64> {
    index.eval(&|name| values.get(name).copied())
}
