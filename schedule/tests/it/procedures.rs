//! Expansions of the scripts in `tests/procedures`, whose libraries lie beside them as `NAME.lib.ron`; and what is true of all.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use std::{fmt::Write as _, fs, path::Path};

use ir::Coded;
use proptest::prelude::*;
use tilewright_schedule::{
    Script,
    procedure::{Definitions, Expanded, Frame, ProcedureError, expand},
};

/// A library of `tests/procedures`.
fn find(name: &str, _: &str) -> Result<(String, String), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/procedures/{name}.lib.ron"));
    let text = fs::read_to_string(path).map_err(|_| "look beside the scripts".to_owned())?;
    Ok((name.to_owned(), text))
}

#[test]
fn procedures() {
    insta::glob!("../procedures", "*.ron", |path| {
        if path.display().to_string().ends_with(".lib.ron") {
            return;
        }
        let text = fs::read_to_string(path).unwrap();
        let res = expand("script.ron", &text, &find);
        if let Ok(it) = &res {
            expect_frames(it);
        }
        insta::assert_snapshot!(told(&res));
    });
}

/// What becomes of a script.
fn told(res: &Result<Expanded, ProcedureError>) -> String {
    match res {
        // Ends of lines are seen where they are not those of the others.
        Ok(it) => it.text().replace('\r', "\\r"),
        Err(err) => {
            let help = err.error.help.as_ref().map(|it| format!("help: {it}\n")).unwrap_or_default();
            format!("{}: {err}\n{help}{}", err.error.code(), frames(&err.frames))
        }
    }
}

fn frames(all: &[Frame]) -> String {
    let mut out = String::new();
    for it in all {
        let before = &it.text[..it.span.start];
        let line = before.lines().count().max(1) + usize::from(before.ends_with('\n'));
        let what = it.calls.as_ref().map(|it| format!(" in this call of {it}")).unwrap_or_default();
        let text = &it.text[it.span.clone()];
        let text: String = text.chars().take(100).collect();
        writeln!(out, "at {}:{line}{what}: {text}", it.source).unwrap();
    }
    out
}

/// Every place of an expansion leads to places that lie in their texts, the outermost in the script.
fn expect_frames(it: &Expanded) {
    let ends: Vec<usize> = (0..=it.text().len()).filter(|at| it.text().is_char_boundary(*at)).collect();
    let step = (ends.len() / 40).max(1);
    for (n, from) in ends.iter().enumerate() {
        for to in ends[n..].iter().take(3).chain(ends[n..].iter().step_by(step)) {
            let found = it.frames(&(*from..*to));
            let last = found.last().unwrap();
            assert_eq!(&*last.text, it.original(), "{from}..{to}");
            for frame in &found {
                assert!(frame.text.get(frame.span.clone()).is_some(), "{from}..{to}: {:?}", frame.span);
            }
        }
    }
}

#[test]
fn places_lead_through_calls_to_the_script() {
    let text = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/procedures/choose_and_when_within.ron"),
    )
    .unwrap();
    let it = expand("script.ron", &text, &find).unwrap();
    let at = |word: &str| it.text().find(word).map(|at| at..at + word.len()).unwrap();
    let told = ["\"i\")", "\"j_w_2\"", "unroll(loop: \"i\"),", "i_copy", "workload"]
        .map(|word| format!("{word}\n{}", frames(&it.frames(&at(word)))));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_script_with_procedures_is_not_read_as_it_is() {
    let text = r#"schedule(use: [], define: {}, workload: "matmul", steps: [])"#;
    let err = Script::parse(text).unwrap_err();
    assert_eq!((err.code().to_string().as_str(), err.more.len()), ("TW0120", 1));
    assert_eq!(expand("s", text, &find).unwrap().text(), r#"schedule( workload: "matmul", steps: [])"#);
    // What is wrong elsewhere is told as it is without procedures.
    let err = Script::parse(r#"schedule(use: [], workload: "matmul", steps: [unroll(loop: )])"#).unwrap_err();
    assert_eq!(err.code().to_string(), "TW0101", "{err}");
}

#[test]
fn a_library_says_what_it_has() {
    let (name, text) = find("outer", "").unwrap();
    let it = Definitions::of_library(&name, &text, &find).unwrap();
    let own: Vec<_> = it.own().map(|it| it.name.to_string()).collect();
    assert_eq!(
        (it.name(), it.about.as_str(), own),
        ("outer", "Calls another library.", vec!["outer".to_owned()])
    );
    insta::assert_snapshot!(format!("{}\n{}", it.overview(), it.manual(it.own().next().unwrap())));
}

/// Plain steps and what stands between them.
fn plain_steps() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        Just(r#"split(loop: "i", into: {"io": None, "ii": 8})"#.to_owned()),
        Just(r#"choose(knob: "a", one_of: [[], [unroll(loop: "j")]])"#.to_owned()),
        Just(r#"when(cond: "a {b}", then: [unroll(loop: "{for_each}")])"#.to_owned()),
        Just(r##"annotate(loop: "é\"", key: r#"{x}"#, value: "\u{e9}")"##.to_owned()),
    ];
    let between =
        prop_oneof![Just(", "), Just(",\n  "), Just(", // for_each, \"\n"), Just(",\r\n/* for_each( */ ")];
    prop::collection::vec((step, between), 0..6)
        .prop_map(|all| all.into_iter().flat_map(|(step, between)| [step, between.to_owned()]).collect())
}

/// Words that mean something to the expansion, in any order.
fn hostile() -> impl Strategy<Value = String> {
    let words = [
        "for_each(",
        "params: [\"x\"],",
        "in: [1, \"a\"],",
        "in: {\"a\": 1},",
        "steps: [",
        "unroll(loop: \"{x}\")",
        "a(",
        "x: \"{x}\"",
        "x: \"é{x}\"",
        ")",
        "]",
        "{",
        "}",
        "\"",
        "\\",
        "r#\"",
        "\"#",
        "//",
        "/*",
        "*/",
        "\n",
        "\r\n",
        ",",
        "é",
        "'",
        "use:",
        "define:",
        "choose(knob: \"k\", one_of: [[",
        "]])",
        "when(cond: 1, then: [",
        "])",
        "a(x: 1)",
        "a(x: \"é\"),",
        "{x}",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..24).prop_map(|all| all.concat())
}

fn script(define: &str, steps: &str) -> String {
    format!(
        "schedule(define: {{\"a\": procedure(params: [\"x\"], steps: [{define}])}}, workload: \"matmul\", steps: [{steps}])"
    )
}

proptest! {
    #[test]
    fn a_script_of_plain_steps_expands_to_itself(steps in plain_steps()) {
        let text = format!("schedule(workload: \"matmul\", steps: [{steps}])");
        let it = expand("s", &text, &find).unwrap();
        prop_assert_eq!(it.text(), &text);
        expect_frames(&it);
    }

    #[test]
    fn hostile_steps_expand_or_are_refused_with_places(define in hostile(), steps in hostile()) {
        for text in [script(&define, &steps), script("unroll(loop: \"{x}\"), unroll(loop: \"é\")", &steps), script(&define, "a(x: 1)")] {
            match expand("s", &text, &find) {
                Ok(it) => expect_frames(&it),
                Err(err) => {
                    frames(&err.frames);
                    prop_assert!(!err.frames.is_empty());
                }
            }
        }
    }
}
