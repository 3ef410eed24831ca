//! Workloads that are refused, each with the message and the place that a user sees.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;

use indexmap::IndexMap;
use tilewright_schedule::workload::{Param, WorkloadError, parse};

const BASE: &str = r#"workload(
    name: "blend",
    about: "A product, scaled.",
    params: {
        "m": size(default: 4),
        "n": size(default: 5),
        "k": size(),
        "pad": int(default: 1),
        "scale": number(default: 0.5),
        "dtype": dtype(default: "f16", of: ["f16", "f32", "i32"]),
        "layout": word(default: "NN", of: ["NN", "NT"]),
    },
    types: {"acc": by(param: "dtype", is: {"f16": "f32", "f32": "f32", "i32": "i32"})},
    axes: {"i": "m", "j": "n", "k": "k"},
    tensors: {
        "A": input(dtype: "dtype", shape: ["m", "k"]),
        "B": input(dtype: "dtype", shape: ["k", "n"], stored: by(param: "layout", is: {"NN": [0, 1], "NT": [1, 0]})),
        "C": temp(dtype: "acc", shape: ["m", "n"]),
        "D": output(dtype: "f32", shape: ["m", "n"]),
    },
    stages: [
        "C[i, j] += acc(A[i, k]) * acc(B[k, j])",
        "D[i, j] = scale * f32(select(pad <= i, C[i - pad, j], 0))",
    ],
)
"#;

/// The message, the line, and a mark under the place, as the command line shows them.
fn rendered(text: &str, err: &WorkloadError) -> String {
    let mut out = err.to_string();
    if let Some(span) = &err.span {
        let start = text[..span.start].rfind('\n').map_or(0, |it| it + 1);
        let line = text[start..].lines().next().unwrap_or_default();
        let blanks = text[start..span.start].chars().count();
        let marks = text[span.start..span.end.min(start + line.len()).max(span.start)].chars().count().max(1);
        write!(out, "\n  {line}\n  {:blanks$}{}", "", "^".repeat(marks)).unwrap();
    }
    if let Some(help) = err.help() {
        write!(out, "\n  help: {help}").unwrap();
    }
    out + "\n"
}

fn given(list: &[(&str, Param)]) -> IndexMap<String, Param> {
    list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// What the base says with one change, under given parameters.
fn refused(from: &str, to: &str, params: &[(&str, Param)]) -> String {
    assert!(BASE.contains(from), "`{from}` is not in the base");
    let text = BASE.replacen(from, to, 1);
    let result = parse(&text).and_then(|it| it.instantiate(&given(params)));
    match result {
        Ok(_) => format!("`{from}` -> `{to}`: accepted\n"),
        Err(err) => rendered(&text, &err),
    }
}

fn all(changes: &[(&str, &str)]) -> String {
    let k = [("k", Param::Int(3))];
    let messages: Vec<_> = changes.iter().map(|(from, to)| refused(from, to, &k)).collect();
    messages.join("\n")
}

#[test]
fn the_base_is_accepted() {
    let workload = parse(BASE).unwrap();
    assert_eq!(workload.name(), "blend");
    let func = workload.instantiate(&given(&[("k", Param::Int(3))])).unwrap();
    insta::assert_snapshot!(func.to_string());
    insta::assert_debug_snapshot!(workload.params());
    insta::assert_debug_snapshot!(workload.complete(&given(&[("k", Param::Text("kk".into()))])).unwrap());
}

#[test]
fn texts_of_another_form() {
    insta::assert_snapshot!(all(&[
        ("about:", "abuot:"),
        ("name: \"blend\"", "name: \"7 blend\""),
        ("name: \"blend\"", "name: blend"),
        ("\"m\": size(default: 4)", "\"m\": size(default: \"four\")"),
        ("\"m\": size(default: 4)", "\"m\": extent(default: 4)"),
        ("\"m\": size(default: 4)", "\"m\": size(default: 0)"),
        ("\"m\": size(default: 4)", "\"m m\": size(default: 4)"),
        ("\"n\": size(default: 5)", "\"m\": size(default: 5)"),
        ("default: \"f16\"", "default: \"f61\""),
        ("of: [\"f16\", \"f32\", \"i32\"]", "of: [\"f16\", \"f23\"]"),
        ("of: [\"NN\", \"NT\"]", "of: [\"NN\", \"NN\"]"),
        ("of: [\"NN\", \"NT\"]", "of: []"),
        (", \"i32\": \"i32\"}", "}"),
        ("\"i32\": \"i32\"}", "\"i32\": \"i32\", \"i23\": \"i32\"}"),
        ("by(param: \"dtype\"", "by(param: \"dtpye\""),
        ("by(param: \"dtype\"", "by(param: \"pad\""),
        ("by(param: \"dtype\"", "by(parm: \"dtype\""),
        ("\"f16\": \"f32\", ", "\"f16\": \"accum\", "),
        ("[1, 0]", "[1, 1]"),
        ("[1, 0]", "[0]"),
        ("temp(dtype: \"acc\"", "temp(dtype: \"ac\""),
        ("stages: [", "stages: [7, "),
        ("    ],\n)", "    ]"),
    ]));
}

#[test]
fn names_that_do_not_fit() {
    insta::assert_snapshot!(all(&[
        ("\"scale\": number", "\"exp\": number"),
        ("types: {\"acc\"", "types: {\"f64\""),
        ("types: {\"acc\"", "types: {\"pad\""),
        ("axes: {\"i\": \"m\"", "axes: {\"scale\": \"m\""),
        ("axes: {\"i\": \"m\"", "axes: {\"A\": \"m\""),
        ("axes: {\"i\": \"m\"", "axes: {\"blend\": \"m\""),
        ("axes: {\"i\": \"m\"", "axes: {\"an_axis_with_a_name_of_many_letters\": \"m\""),
        ("\"A\": input", "\"m\": input"),
        ("name: \"blend\"", "name: \"double\""),
        ("axes: {\"i\": \"m\"", "axes: {\"for\": \"m\""),
        ("axes: {\"i\": \"m\"", "axes: {\"oid\": \"m\""),
        ("\"A\": input", "\"tw_A\": input"),
        ("axes: {", "axes: {\"l\": \"n\", "),
        ("tensors: {", "tensors: {\"Z\": input(dtype: \"f32\", shape: [\"m\"]), "),
        ("params: {", "params: {\"z\": size(default: 1), "),
        ("types: {", "types: {\"big\": \"f64\", "),
        ("\"i\": \"m\"", "\"i\": \"mm\""),
        ("\"i\": \"m\"", "\"i\": \"m / 2\""),
        ("\"i\": \"m\"", "\"i\": \"m floordiv (1 - pad)\""),
        ("\"i\": \"m\"", "\"i\": \"m - 4\""),
        ("\"i\": \"m\"", "\"i\": \"m + 1\""),
    ]));
}

#[test]
fn choices_and_indices_that_are_none() {
    let with = |to: &'static str| ("C[i, j] += acc(A[i, k]) * acc(B[k, j])", to);
    insta::assert_snapshot!(all(&[
        with("C[i, j] += where(A[i, k] > 0, acc(A[i, k])) * acc(B[k, j])"),
        with("C[i, j] += where(A[i, k], acc(A[i, k]), 0) * acc(B[k, j])"),
        with("C[i, j] += where(1 < 2, acc(A[i, k]), 0) * acc(B[k, j])"),
        with("C[i, j] += where(A[i, k] < C[i, j], acc(A[i, k]), 0) * acc(B[k, j])"),
        with("C[i, j] += where(A[i, k] < acc(B[k, j]), acc(A[i, k]), 0)"),
        with("C[i, j] += acc(A[i, k] & B[k, j])"),
        with("C[i, j] += acc(A[i & 1, k]) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, k]) << acc(B[k, j])"),
        with("C[i, j] += dot_e2m1x2(A[i, k], B[k, j])"),
        with("C[i, j] += dot_e2m1x2(u8(A[i, k]))"),
        with("C[i, j] += dot_e2m1x2(1, 2) * acc(A[i, k]) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, dot_e2m1x2(k, k)]) * acc(B[k, j])"),
        ("\"A\": input(dtype: \"dtype\", ", "\"A\": input(dtype: \"dtype\", below: \"k\", "),
        ("\"C\": temp(dtype: \"acc\", ", "\"C\": temp(dtype: \"acc\", below: \"k\", "),
    ]));
}

#[test]
fn stages_that_make_no_sense() {
    let stage = "C[i, j] += acc(A[i, k]) * acc(B[k, j])";
    let with = |to: &'static str| (stage, to);
    insta::assert_snapshot!(all(&[
        with("C[i, j] += acc(A[i, k]) * acc(B[k, j]"),
        with("C[i, j] += acc(A[i, k]) * * acc(B[k, j])"),
        with("C[i, j] acc(A[i, k])"),
        with("C[i, j] += acc(A[i, k]) # 2"),
        with("C[i, j] += acc(A[i, k]) * 12ab"),
        with("C += acc(A[i, k])"),
        with("C[i, i] += acc(A[i, k])"),
        with("C[i, 0] += acc(A[i, k])"),
        with("C[i] += acc(A[i, k]) * acc(B[k, i])"),
        with("C[j, i] += acc(A[i, k]) * acc(B[k, j])"),
        with("A[i, k] += acc(B[k, j])"),
        with("E[i, j] += acc(A[i, k]) * acc(B[k, j])"),
        with("C[i, l] += acc(A[i, k]) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, k]) * acc(B[kk, j])"),
        with("C[i, j] += acc(A[i, k]) * acc(b[k, j])"),
        with("C[i, j] += acc(A[i, k, 0]) * acc(B[k, j])"),
        with("C[i, j] = acc(A[i, k]) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, 0]) * acc(B[0, j])"),
        with("C[i, j] += A[i, k] * B[k, j]"),
        with("C[i, j] += acc(A[i, k]) * f64(B[k, j])"),
        with("C[i, j] += acc(A[i, k + 1]) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i - 1, k]) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, k * 9223372036854775807]) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, (k * 9223372036854775807) mod 3]) * acc(B[k, j])"),
        with("C[i, j] += select(A[i, k] > 0, acc(A[i, k]), 0) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, k]) * acc(B[k, j]) * k"),
        with("C[i, j] += acc(A[i, k]) * acc(B[k, j]) * n"),
        with("C[i, j] += acc(A[i, k]) * acc(B[k, j]) * layout"),
        with("C[i, j] += acc(A[i, k]) * acc(B[k, j]) * C"),
        with("C[i, j] += acc(A[i, k]) * acc(B[k, j]) * D[i, j]"),
        with("C[i, j] += acc(A[i, k]) * acc(B[k, j]) * scal"),
        with("C[i, j] += ac(A[i, k]) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, k], 1) * acc(B[k, j])"),
        with("C[i, j] += max(acc(A[i, k])) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, B[k, j]])"),
        with("C[i, j] += acc(A[i, k]) * acc(B[k, j]) mod 2"),
        with("C[i, j] += acc(A[i, k]) < acc(B[k, j])"),
        with("C[i, j] += select(acc(A[i, k]), 1, 0) * acc(B[k, j])"),
        with("C[i, j] += select(i && j < k, acc(A[i, k]), 0) * acc(B[k, j])"),
        with("C[i, j] += acc(A[i, k] + f16(1e9)) * acc(B[k, j])"),
        with("D[i, j] += f32(A[i, k]) * f32(B[k, j])"),
        ("D[i, j] = scale", "C[i, j] = scale"),
        ("\"D[i, j] = scale * f32(select(pad <= i, C[i - pad, j], 0))\",", "\"D[i, j] = scale\","),
        ("        \"D[i, j] = scale * f32(select(pad <= i, C[i - pad, j], 0))\",\n", ""),
        ("D[i, j] = scale * f32(", "D[i, j] = exp(i32(C[i, j])) + f32("),
        ("\"C[i, j] += acc", "\"\\u{43}[i, j] += acd"),
        ("\"C[i, j] += acc(", "r#\"C[i, j] += \"#, \"("),
    ]));
}

#[test]
fn parameters_that_are_not_allowed() {
    let big = Param::Int(1 << 30);
    let text = |it: &str| Param::Text(it.to_owned());
    let lists: Vec<Vec<(&str, Param)>> = vec![
        vec![],
        vec![("k", Param::Int(0))],
        vec![("k", Param::Int(-7))],
        vec![("k", Param::Int(i64::MAX))],
        vec![("k", Param::Float(2.0))],
        vec![("k", text("2k"))],
        vec![("k", text("select"))],
        vec![("k", text("double"))],
        vec![("k", text("threadIdx_x"))],
        vec![("k", text("i"))],
        vec![("k", text("A"))],
        vec![("k", text("blend"))],
        vec![("k", text("vi"))],
        vec![("kk", Param::Int(3))],
        vec![("k", Param::Int(3)), ("layuot", text("NN"))],
        vec![("k", Param::Int(3)), ("zzzzzz", text("NN"))],
        vec![("k", Param::Int(3)), ("layout", text("TN"))],
        vec![("k", Param::Int(3)), ("layout", Param::Int(1))],
        vec![("k", Param::Int(3)), ("dtype", text("f64"))],
        vec![("k", Param::Int(3)), ("pad", text("p"))],
        vec![("k", Param::Int(3)), ("pad", Param::Int(-1))],
        vec![("k", Param::Int(3)), ("scale", text("half"))],
        vec![("k", Param::Int(3)), ("scale", Param::Float(f64::NAN))],
        vec![("k", Param::Int(3)), ("scale", Param::Float(1e300))],
        vec![("k", big.clone()), ("m", big.clone())],
        vec![("k", big.clone()), ("m", big.clone()), ("n", big)],
        vec![("k", Param::Int(3)), ("dtype", text("i32"))],
    ];
    let messages = lists.iter().map(|list| match parse(BASE).unwrap().instantiate(&given(list)) {
        Ok(_) => format!("{list:?}: accepted\n"),
        Err(err) => format!("{:?}\n{}", err.param(), rendered(BASE, &err)),
    });
    insta::assert_snapshot!(messages.collect::<Vec<_>>().join("\n"));
}

#[test]
fn long_and_deep_expressions_are_refused() {
    let deep = format!("{}C[i, j]{}", "(".repeat(5000), ")".repeat(5000));
    let minus = "-".repeat(5000);
    let long = "1 + ".repeat(5000);
    for value in [deep, format!("{minus}1"), format!("{long}1")] {
        let text = BASE.replacen("D[i, j] = ", &format!("D[i, j] = {value} + "), 1);
        assert_eq!(parse(&text).unwrap_err().to_string(), "the expression is too long or too deeply nested");
    }
}

#[test]
fn parameters_are_read_from_ron() {
    let text = r#"{"m": 4, "scale": 0.5, "layout": "NT", "low": -3}"#;
    let params: IndexMap<String, Param> = tilewright_schedule::ron_text::parse(text).unwrap();
    insta::assert_debug_snapshot!(params);
    assert_eq!(serde_json::to_string(&params).unwrap(), r#"{"m":4,"scale":0.5,"layout":"NT","low":-3}"#);
}

#[test]
fn elements_below_something_are_compared_with_indices() {
    let of = |condition: &str| {
        let text = format!(
            r#"workload(
    name: "lengths",
    about: "What lies ahead of a length.",
    params: {{"m": size(default: 4), "n": size(default: 8)}},
    axes: {{"i": "m", "j": "n"}},
    tensors: {{
        "len": input(dtype: "i32", shape: ["m"], below: "n + 1"),
        "X": input(dtype: "f32", shape: ["m", "n"]),
        "Y": output(dtype: "f32", shape: ["m", "n"]),
    }},
    stages: ["Y[i, j] = where({condition}, X[i, j], 0)"],
)"#
        );
        match parse(&text).and_then(|it| it.instantiate(&IndexMap::new())) {
            Ok(func) => func.to_string(),
            Err(err) => rendered(&text, &err),
        }
    };
    let conditions = [
        "j < len[i]",
        "j + 1 <= len[i] - len[0] && i < j",
        "len[i] == len[0]",
        "j < len[i] || X[i, j] > 0",
        "j != len[i]",
        "j < len[i] / 2",
        "j < len[j]",
    ];
    insta::assert_snapshot!(conditions.map(of).join("\n"));
}
