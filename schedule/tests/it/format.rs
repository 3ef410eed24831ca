//! The layout of texts: stable, and nothing but layout.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{fs, path::Path};

use proptest::prelude::*;
use ron::Value;
use schedule::{
    Document,
    format::{WIDTH, format},
    ron_text::options,
    ron_tokens::{TokenKind, tokens},
};

use tilewright_schedule as schedule;

/// The RON files below a folder of the repository, in the order of their names.
fn texts_below(folder: &Path, out: &mut Vec<String>) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            texts_below(&path, out);
        } else if path.extension().is_some_and(|it| it == "ron") {
            out.push(fs::read_to_string(path).unwrap());
        }
    }
}

/// What ships, and all scripts of the tests of this crate that are RON.
fn texts() -> Vec<String> {
    let mut out = vec![];
    for folder in ["../workloads", "tests/scripts", "tests/procedures"] {
        texts_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut out);
    }
    out.retain(|it| format(it).is_ok());
    assert!(out.len() > 500, "{}", out.len());
    out
}

/// What of a text a layout may not touch: comments and everything else, apart from commas behind last elements.
fn kept(text: &str) -> (Vec<String>, Vec<String>) {
    let all = tokens(text);
    let word = |at: usize| text[all[at].span.clone()].to_owned();
    let (comments, others): (Vec<_>, Vec<_>) = (0..all.len()).partition(|it| all[*it].kind.is_comment());
    let is_last = |n: usize| others.get(n + 1).is_some_and(|it| all[*it].kind == TokenKind::Close);
    let others = others.iter().enumerate();
    let others = others.filter(|(n, at)| all[**at].kind != TokenKind::Comma || !is_last(*n));
    (comments.into_iter().map(word).collect(), others.map(|it| word(*it.1)).collect())
}

fn value(text: &str) -> Value {
    options().from_str(text).unwrap()
}

/// Lays out a text, and expects that it says the same, comments and all, and stays so.
fn expect_sound(text: &str) -> String {
    let out = format(text).unwrap();
    assert_eq!(kept(&out), kept(text), "{text}");
    assert_eq!(value(&out), value(text), "{text}");
    assert_eq!(Document::of(&out), Document::of(text), "{text}");
    assert_eq!(format(&out).unwrap(), out, "{text}");
    out
}

#[test]
fn what_ships_keeps_its_meaning_and_its_comments() {
    for it in texts() {
        expect_sound(&it);
    }
}

/// What may stand between two tokens.
const GAPS: [&str; 9] = ["", "", " ", "   ", "\n", "\n\n\n", "\t", " // c, d\n", " /* e: , */ "];

/// The text with other blanks, and some comments, between its tokens; each number decides one gap.
fn respaced(text: &str, gaps: &[usize]) -> String {
    let all = tokens(text);
    let mut out = String::new();
    for (at, token) in all.iter().enumerate() {
        let before = at.checked_sub(1).map(|it| all[it].kind);
        let gap = GAPS[gaps[at % gaps.len()] % GAPS.len()];
        let is_glued = |it: TokenKind| matches!(it, TokenKind::Word | TokenKind::Text);
        match before {
            Some(TokenKind::LineComment) if !gap.contains('\n') => out.push('\n'),
            Some(it) if is_glued(it) && is_glued(token.kind) && gap.is_empty() => out.push(' '),
            // A name has to be followed by its bracket, and `/` would begin a comment.
            Some(_) | None => {}
        }
        out.push_str(gap);
        out.push_str(&text[token.span.clone()]);
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_blanks_are_laid_out_alike(pick in any::<prop::sample::Index>(), gaps in prop::collection::vec(0..99usize, 1..200)) {
        thread_local!(static TEXTS: Vec<String> = texts());
        let text = TEXTS.with(|it| pick.get(it).clone());
        expect_sound(&respaced(&text, &gaps));
    }

    #[test]
    fn no_text_is_too_strange(text in "[a-z()\\[\\]{}:,\"'/*#!r\n é]{0,40}") {
        if let Ok(out) = format(&text) {
            prop_assert_eq!(format(&out).unwrap(), out);
        }
    }
}

/// A text and what becomes of it.
fn laid_out(text: &str) -> String {
    expect_sound(text)
}

#[test]
fn lines_of_the_author_stay() {
    let text = "\
// What it is about.
schedule(
    workload: \"matmul\", target: \"cpu\",
    knobs: {
        \"a\": [8, 16],    // these
        \"b\": [1],        // and these
    },

    steps: [
        // First.
        split(loop: \"i\", into: {\"io\": None, \"ii\": 8}),

        for_each(params: [\"it\"], in: [\"io\", \"ii\"], steps: [
            unroll(loop: \"{it}\"), // both
        ]),
        /* before */ vectorize(loop: \"j\"), /* behind */
        // Last.
    ],
)
";
    assert_eq!(laid_out(text), text);
}

#[test]
fn blanks_and_commas_are_put_in_order() {
    let text = "schedule ( workload:\"matmul\" , steps :[\n\n  unroll( loop : \"i\" ,) , unroll(loop: \"j\") // why\n  ,bind(\n  loop: \"k\", axis: \"a\"\n)\n\n\n  ] )";
    insta::assert_snapshot!(laid_out(text), @r#"
    schedule(workload: "matmul", steps: [
        unroll(loop: "i"),
        unroll(loop: "j"), // why
        bind(
            loop: "k", axis: "a",
        ),
    ])
    "#);
}

#[test]
fn long_lists_of_steps_are_broken() {
    let step = "unroll(loop: \"a_loop_with_a_long_name\")";
    let line = format!("schedule(workload: \"matmul\", steps: [{step}, {step}, {step}])");
    assert!(line.len() > WIDTH);
    insta::assert_snapshot!(laid_out(&line), @r#"
    schedule(
        workload: "matmul",
        steps: [
            unroll(loop: "a_loop_with_a_long_name"),
            unroll(loop: "a_loop_with_a_long_name"),
            unroll(loop: "a_loop_with_a_long_name"),
        ],
    )
    "#);
}

#[test]
fn comments_within_values_stay_within_them() {
    let text = "schedule(\n    steps /* a */ : /* b */ [ /* c */ ], // d\n workload: // e\n \"matmul\" /* f */, /* g */\n /* h */ )";
    insta::assert_snapshot!(laid_out(text), @r#"
    schedule(
        steps /* a */: /* b */ [/* c */], // d
        workload: // e
            "matmul", /* f */ /* g */
        /* h */
    )
    "#);
}

#[test]
fn tuples_and_values_in_parentheses_keep_what_they_are() {
    for text in [
        "(1,)\n",
        "(1)\n",
        "(\n    1\n)\n",
        "[1]\n",
        "some((\"a\", \"b\"))\n",
        "#![enable(implicit_some)]\n(a: 1)\n",
    ] {
        assert_eq!(laid_out(text), text);
    }
    assert_eq!(laid_out("[1,]"), "[1]\n");
}

#[test]
fn lines_end_as_they_did() {
    assert_eq!(laid_out("(\r\na:1)"), "(\r\n    a: 1,\r\n)\r\n");
}

#[test]
fn what_is_no_ron_is_refused() {
    for text in ["", "schedule(", "schedule(a: \"x)", "a b", "(1", "]"] {
        assert!(format(text).is_err(), "{text}");
    }
}
