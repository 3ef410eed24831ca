//! No silent defaults where correctness is decided.

use std::fs;

use crate::{
    tidy::{CRATES, files, relative, root},
    tokens::{tokens, without_tests},
};

/// Calls whose failure says that something is not as the code around believes.
const MUST_HOLD: [&str; 5] = ["try_from", "try_into", "loops_of", "path_to_loop", "dtype_of"];

/// What goes on with a value of its own where such a call fails.
const DEFAULTS: [&str; 5] = ["unwrap_or", "unwrap_or_default", "unwrap_or_else", "map_or", "map_or_else"];

/// The silent defaults of a source: a made-up value where a number does not fit, a block is not there or a type is not known.
fn silent_defaults(text: &str) -> Vec<String> {
    let tokens = without_tests(&tokens(text));
    let is_at = |at: usize, words: &[&str]| words.iter().zip(&tokens[at..]).all(|(a, b)| a == b);
    let mut out = vec![];
    for (at, token) in tokens.iter().enumerate() {
        let is_default = |at: usize| is_at(at, &["."]) && DEFAULTS.contains(&tokens[at + 1].as_str());
        if DEFAULTS.contains(&token.as_str()) && is_at(at + 1, &["(", "DType", "::"]) {
            out.push(format!("{token}(DType::{}", tokens[at + 4]));
        }
        if !MUST_HOLD.contains(&token.as_str()) || !is_at(at + 1, &["("]) {
            continue;
        }
        let (mut depth, mut end) = (0, at + 1);
        loop {
            depth += i32::from(tokens[end] == "(") - i32::from(tokens[end] == ")");
            end += 1;
            if depth == 0 {
                break;
            }
        }
        let ok = [".", "ok", "(", ")"];
        end += if is_at(end, &ok) { ok.len() } else { 0 };
        if is_default(end) {
            out.push(format!("{token}(…).{}", tokens[end + 1]));
        }
    }
    out
}

#[test]
fn nothing_goes_on_with_a_value_that_is_made_up() {
    let mut found = vec![];
    for path in CRATES.iter().flat_map(|it| files(&root().join(it).join("src"), "rs")) {
        let name = relative(&path);
        if !name.ends_with("tests.rs") && !name.contains("/tests/") {
            let all = silent_defaults(&fs::read_to_string(&path).unwrap());
            found.extend(all.into_iter().map(|it| format!("{name}: {it}")));
        }
    }
    let found = found.join("\n");
    assert!(found.is_empty(), "make errors of these, or `expect` with why they cannot fail\n{found}");
    let silent = "u32::try_from(f(n)).ok().map_or(0, g); m.get(n).unwrap_or(DType::F32); it.loops_of(n)\n.unwrap_or_default()";
    let found = ["try_from(…).map_or", "unwrap_or(DType::F32", "loops_of(…).unwrap_or_default"];
    assert_eq!(silent_defaults(silent), found);
    assert!(
        silent_defaults("u32::try_from(n).ok().filter(f).unwrap_or(1); a.try_into().expect(\"few\")")
            .is_empty()
    );
}
