//! Tests of the arithmetic.

mod cases;
mod properties;

use std::collections::BTreeMap;

use crate::{Index, IndexKind, Less, Name, arith::Bounds};

/// An index in the notation of the text form, with every operand of a product or quotient in parentheses.
fn show(index: &Index) -> String {
    let side = |it: &Index| match it.kind() {
        IndexKind::Add(..) => format!("({})", show(it)),
        _ => show(it),
    };
    match index.kind() {
        IndexKind::Int(it) => it.to_string(),
        IndexKind::Var(it) => it.to_string(),
        IndexKind::Add(a, b) => format!("{} + {}", show(a), show(b)),
        IndexKind::Mul(a, b) => format!("{}*{}", side(a), side(b)),
        IndexKind::FloorDiv(a, b) => format!("({} / {})", show(a), show(b)),
        IndexKind::FloorMod(a, b) => format!("({} % {})", show(a), show(b)),
        IndexKind::Min(a, b) => format!("min({}, {})", show(a), show(b)),
        IndexKind::Max(a, b) => format!("max({}, {})", show(a), show(b)),
    }
}

fn show_less(less: &Less) -> String {
    format!("{} < {}", show(&less.lhs), show(&less.rhs))
}

/// Reads the notation of [`show`] with the usual precedence; `/` and `%` are floor division and remainder.
fn read(text: &str) -> Index {
    let mut tokens: Vec<String> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(it) = chars.next() {
        if it.is_whitespace() {
            continue;
        }
        let mut token = String::from(it);
        if it.is_alphanumeric() || it == '_' {
            while let Some(next) = chars.next_if(|it| it.is_alphanumeric() || *it == '_') {
                token.push(next);
            }
        }
        tokens.push(token);
    }
    tokens.reverse();
    let out = read_sum(&mut tokens);
    assert!(tokens.is_empty(), "left of `{text}`: {tokens:?}");
    out
}

fn read_sum(tokens: &mut Vec<String>) -> Index {
    let mut out = read_product(tokens);
    while let Some(op) = tokens.pop_if(|it| it == "+" || it == "-") {
        let next = read_product(tokens);
        out = if op == "+" { out + next } else { out - next };
    }
    out
}

fn read_product(tokens: &mut Vec<String>) -> Index {
    let mut out = read_factor(tokens);
    while let Some(op) = tokens.pop_if(|it| it == "*" || it == "/" || it == "%") {
        let next = read_factor(tokens);
        out = match op.as_str() {
            "*" => out * next,
            "/" => out.floor_div(&next),
            _ => out.floor_mod(&next),
        };
    }
    out
}

fn read_factor(tokens: &mut Vec<String>) -> Index {
    let token = tokens.pop().expect("an operand");
    match token.as_str() {
        "(" => {
            let out = read_sum(tokens);
            assert_eq!(tokens.pop().as_deref(), Some(")"));
            out
        }
        "-" => read_factor(tokens) * -1,
        "min" | "max" => {
            assert_eq!(tokens.pop().as_deref(), Some("("));
            let a = read_sum(tokens);
            assert_eq!(tokens.pop().as_deref(), Some(","));
            let b = read_sum(tokens);
            assert_eq!(tokens.pop().as_deref(), Some(")"));
            if token == "min" { a.minimum(&b) } else { a.maximum(&b) }
        }
        _ => token.parse().map_or_else(|_| Index::var(&Name::new(token.as_str())), Index::int),
    }
}

fn read_less(text: &str) -> Less {
    let (lhs, rhs) = text.split_once('<').expect("a condition");
    Less::new(read(lhs), read(rhs))
}

/// Bounds as text: `n, i: n, j: 8 | i*8 + j < n` knows a dimension, two variables and a fact.
fn bounds(text: &str) -> Bounds {
    let mut out = Bounds::default();
    let (vars, facts) = text.split_once('|').unwrap_or((text, ""));
    for var in vars.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        match var.split_once(':') {
            Some((var, extent)) => out.insert(&Name::new(var.trim()), &read(extent)),
            None => out.insert_dim(&Name::new(var)),
        }
    }
    facts.split(',').filter(|it| !it.trim().is_empty()).for_each(|it| out.assume(&read_less(it)));
    out
}

fn eval(index: &Index, values: &BTreeMap<Name, i64>) -> Option<i64> {
    index.eval(&|name| values.get(name).copied())
}
