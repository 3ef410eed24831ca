//! Expressions of scripts, against the same arithmetic in 128 bits; and texts that are no expressions.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use proptest::prelude::*;
use tilewright_schedule::{EvalError, Expr, Ref};

/// An expression and its value with a = 7, b = -3, c = 0; none where it has no value.
type Case = (String, Option<i128>);

fn leaf() -> impl Strategy<Value = Case> {
    prop_oneof![
        (0..20i64).prop_map(|it| (it.to_string(), Some(i128::from(it)))),
        Just((i64::MAX.to_string(), Some(i128::from(i64::MAX)))),
        prop::sample::select(vec![("a", 7), ("b", -3), ("c", 0)])
            .prop_map(|(name, it)| (name.to_owned(), Some(it))),
    ]
}

fn fits(it: i128) -> Option<i128> {
    i64::try_from(it).ok().map(i128::from)
}

fn floor(x: i128, y: i128) -> Option<i128> {
    (y != 0).then(|| x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0))
}

fn binary(op: &str, x: Option<i128>, y: Option<i128>) -> Option<i128> {
    let x = x?;
    match (op, x != 0) {
        ("&&", false) => return Some(0),
        ("||", true) => return Some(1),
        _ => {}
    }
    let y = y?;
    fits(match op {
        "+" => x + y,
        "-" => x - y,
        "*" => x * y,
        "/" => floor(x, y)?,
        "%" => x - y * floor(x, y)?,
        "<" => i128::from(x < y),
        "<=" => i128::from(x <= y),
        ">" => i128::from(x > y),
        ">=" => i128::from(x >= y),
        "==" => i128::from(x == y),
        "!=" => i128::from(x != y),
        "&&" | "||" => i128::from(y != 0),
        "min" => x.min(y),
        "max" => x.max(y),
        _ => -floor(-x, y)?,
    })
}

fn case() -> impl Strategy<Value = Case> {
    const SIGNS: [&str; 13] = ["+", "-", "*", "/", "%", "<", "<=", ">", ">=", "==", "!=", "&&", "||"];
    leaf().prop_recursive(6, 40, 3, |inner| {
        let signs = (prop::sample::select(SIGNS.to_vec()), inner.clone(), inner.clone());
        let functions = (prop::sample::select(vec!["min", "max", "ceildiv"]), inner.clone(), inner.clone());
        prop_oneof![
            6 => signs.prop_map(|(op, (x, v), (y, w))| (format!("({x}) {op} ({y})"), binary(op, v, w))),
            2 => functions.prop_map(|(op, (x, v), (y, w))| (format!("{op}({x}, {y})"), binary(op, v, w))),
            1 => inner.clone().prop_map(|(x, v)| (format!("-({x})"), v.and_then(|it| fits(-it)))),
            1 => inner.clone().prop_map(|(x, v)| (format!("!({x})"), v.map(|it| i128::from(it == 0)))),
            1 => (inner.clone(), inner.clone(), inner).prop_map(|((c, u), (x, v), (y, w))| {
                (format!("select({c}, {x}, {y})"), u.and_then(|it| if it != 0 { v } else { w }))
            }),
        ]
    })
}

fn eval(expr: &Expr) -> Result<i64, EvalError> {
    expr.tree().eval(&|it: &Ref| {
        Ok(match it.name.as_str() {
            "a" => 7,
            "b" => -3,
            _ => 0,
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn values_are_those_of_the_integers((text, wanted) in case()) {
        // What nests too deep is refused, and nothing else.
        if let Ok(expr) = Expr::parse(&text) {
            prop_assert_eq!(eval(&expr).ok().map(i128::from), wanted, "{}", text);
        } else {
            prop_assert!(Expr::parse(&text).unwrap_err().message.contains("deeper"));
        }
    }

    #[test]
    fn any_text_is_read_or_refused_at_a_place(text in "[a-c0-9 ()<>=!&|+*/%,\\[\\]é-]{0,40}") {
        match Expr::parse(&text) {
            Ok(expr) => drop(eval(&expr)),
            Err(err) => prop_assert!(text.get(err.at).is_some()),
        }
    }
}

#[test]
fn operators_bind_as_in_c() {
    for (text, value) in [
        ("2 + 3 * 4", 14),
        ("20 - 3 - 4", 13),
        ("64 / 4 / 2", 8),
        ("-7 / 2", -4),
        ("-7 % 4", 1),
        ("1 + 1 == 2 && 3 < 2 || 5 > 4", 1),
        ("!0 + 1", 2),
        ("ceildiv(7, 2) * 2", 8),
        ("select(a > b, 10, 1 / c)", 10),
        ("c != 0 && 1 / c > 0", 0),
    ] {
        assert_eq!(eval(&Expr::parse(text).unwrap()), Ok(value), "{text}");
    }
    let long = vec!["1"; 100_000].join(" + ");
    assert!(Expr::parse(&long).unwrap_err().message.contains("deeper"));
    assert!(Expr::parse(&"(".repeat(100_000)).unwrap_err().message.contains("deeper"));
}
