//! Whatever the text, reading a script ends with a script or a placed error.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use proptest::prelude::*;
use tilewright_schedule::{Choice, Script, Step, script::MAX_LENGTH};

const SCRIPT: &str = r#"schedule(
    about: "Ärger (mit [Klammern", workload: "matmul", target: "cuda:sm_90a", // ein Kommentar
    params: {"m": 64, "dtype": "f32"}, knobs: {"bk": [8, 16]},
    steps: [
        split(loop: "k", into: {"ko": None, "ki": "bk"}),
        software_pipeline_stage(loop: "ko", stages: {"A_shared": 0, "C": "bk"}),
        software_pipeline_order(loop: "ko", order: ["C", "A_shared"]),
        annotate(loop: "ko", key: "note", value: "x"),
    ],
)"#;

/// Reads a text, and looks at the place of the error.
fn read(text: &str) {
    if let Err(err) = Script::parse(text) {
        assert!(text.get(err.span.clone()).is_some(), "{err:?} in {text:?}");
        assert!(!err.message.is_empty());
    }
    let _ = Step::from_ron(text);
}

#[test]
fn deep_and_long_texts_are_refused() {
    for open in ["(", "[", "{", "split(loop: ", "[[(", "Some("] {
        read(&open.repeat(20_000));
        // A raw string hides the brackets after it from the check of the depth.
        read(&format!("schedule(workload: r\"\\\", steps: {}", open.repeat(20_000)));
        read(&format!("schedule(workload: \"x\", steps: [{}", open.repeat(20_000)));
    }
    read(&"/*".repeat(20_000));
    read(&"é".repeat(MAX_LENGTH));
    read("");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn cut_and_changed_texts_are_refused(at in 0..SCRIPT.len(), len in 0..40usize, put in "[\\[\\](){}\",:a-z0-9é -]{0,6}") {
        let floor = |mut at: usize| {
            at = at.min(SCRIPT.len());
            while !SCRIPT.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (from, to) = (floor(at), floor(at + len));
        read(&SCRIPT[..from]);
        read(&format!("{}{put}{}", &SCRIPT[..from], &SCRIPT[to..]));
    }
}

#[test]
fn the_script_itself_is_read() {
    let script = Script::parse(SCRIPT).unwrap();
    assert_eq!(script.items.len(), 4);
    let steps = script.steps();
    assert_eq!(&SCRIPT[steps[3].span.clone()], r#"annotate(loop: "ko", key: "note", value: "x")"#);
    assert_eq!(&SCRIPT[steps[1].place_of(SCRIPT, &"C".into())], "\"C\"");
    let params = &script.params.value;
    assert_eq!(script.axes(params).unwrap()["bk"][0], Choice::Int(8));
    let steps = script.resolve(params, &[("bk".into(), 16.into())].into_iter().collect()).unwrap();
    assert_eq!(steps[0].value.to_ron(), r#"split(loop: "k", into: {"ko": None, "ki": 16})"#);
}
