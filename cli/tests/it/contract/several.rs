//! Several errors of a script are told at once, and none that would go away with another.

use std::fs;

use crate::common::tilewright;

const SCRIPT: &str = r#"schedule(
    workload: "matmul", target: "cuda",
    params: {"m": 64, "n": 48, "k": 40, "dtype": "f32"},
    knobs: {"ty": [8, 16]},
    steps: [
        split(loop: "i", into: {"by": None, "ty": "ty"}),
        split(loop: "j", into: {"bx": None, "tx": 16}),
        reorder(order: ["by", "bx", "ty", "tx", "k"]),
        bind(loop: "by", axis: "blockIdx.y"),
        bind(loop: "bx", axis: "blockIdx.x"),
        bind(loop: "ty", axis: "threadIdx.y"),
        bind(loop: "tx", axis: "threadIdx.x"),
        split(loop: "k", into: {"ko": None, "ki": 8}),
        cache_read(block: "C", buffer: "A", scope: "shared"),
        compute_at(block: "A_shared", loop: "ko"),
    ],
)
"#;

/// What `check` says of the script with these words in place of others.
fn told(changes: &[(&str, &str)], arguments: &[&str]) -> String {
    let mut text = SCRIPT.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ron"), text).unwrap();
    let arguments: Vec<_> = ["check", "a.ron"].iter().chain(arguments).copied().collect();
    tilewright(folder.path(), &arguments)
}

#[test]
fn independent_errors_are_told_at_once() {
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("two names in steps", &[("loop: \"bx\"", "loop: \"bxx\""), ("loop: \"ty\"", "loop: \"tyy\"")]),
        (
            "three, the last in words",
            &[
                ("loop: \"by\"", "loop: \"qq\""),
                ("loop: \"tx\", axis: \"threadIdx.x\"", "loop: \"tx\", axis: \"threadIdx.w\""),
                ("\"ki\": 8", "\"ki\": 0"),
            ],
        ),
        (
            "every part of the text",
            &[
                ("\"matmul\"", "\"matmull\""),
                ("\"cuda\"", "\"cudda\""),
                ("[8, 16]", "[8, 16"),
                ("[8, 16", "power_of_two(from: 8, to: 16)"),
                ("reorder(", "reorderr("),
                ("loop: \"bx\", axis", "loop: \"bx\", axs"),
                ("\"ki\": 8", "\"ki\": \"8 +\""),
            ],
        ),
        ("names in expressions", &[("\"ty\": \"ty\"", "\"ty\": \"tyy\""), ("\"ki\": 8", "\"ki\": \"tz\"")]),
        ("a parameter and a step", &[("\"dtype\"", "\"dtyp\""), ("reorder(", "reorderr(")]),
    ];
    let told = cases.iter().map(|(what, changes)| format!("## {what}\n{}\n", told(changes, &[])));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}

/// Errors that follow from another are not told.
#[test]
fn an_error_hides_what_follows_from_it() {
    let cases: &[&[(&str, &str)]] = &[
        // Loops that are not made: the reorder and four binds follow.
        &[("loop: \"i\"", "loop: \"ii\""), ("bind(loop: \"by\"", "bind(loop: \"by\"")],
        &[("loop: \"j\"", "loop: \"jj\"")],
        // A buffer and a block that are not made.
        &[("buffer: \"A\"", "buffer: \"AA\"")],
        &[("buffer: \"A\"", "buffer: \"weights\"")],
        // The loop that a copy moves to.
        &[("loop: \"k\", into", "loop: \"kk\", into")],
        // A knob that is used twice, and is not there.
        &[("\"ty\": [8, 16]", "\"tyy\": [8, 16]"), ("\"tx\": 16", "\"tx\": \"ty\"")],
        &[("\"by\", \"bx\", \"ty\"", "\"by\", \"zz\", \"ty\"")],
    ];
    for changes in cases {
        let told = told(changes, &[]);
        assert_eq!(told.matches("error[").count(), 1, "{changes:?}: {told}");
    }
}

#[test]
fn more_than_ten_are_counted() {
    let unknown = "bnd(loop: \"by\"), ".repeat(13);
    let told = told(&[("steps: [", &format!("steps: [{unknown}"))], &[]);
    assert_eq!(told.matches("error[").count(), 10, "{told}");
    assert!(told.contains("\nand 3 more\n"), "{told}");
}

#[test]
fn several_errors_are_data() {
    let changes = [("loop: \"bx\"", "loop: \"bxx\""), ("loop: \"ty\"", "loop: \"tyy\"")];
    let told = told(&changes, &["--json"]);
    let line = told.lines().find(|it| it.starts_with('{')).unwrap();
    let value: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(value["error"], "bind: there is no loop `bxx`");
    assert_eq!(value["more"][0]["error"], "bind: there is no loop `tyy`");
    assert_eq!(value["more"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&value["places"][0]["line"], &value["more"][0]["places"][0]["line"]),
        (&10.into(), &11.into())
    );
}
