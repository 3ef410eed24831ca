//! Texts that are refused, each with what is said about it: `parse_*` by the parser, `verify_*` by the verifier, and
//! `kernel_*` by the verifier of lowered programs.

use std::{fs, path::Path};

use tilewright_ir::{Func, text, verify, verify_module};

#[test]
fn refused() {
    insta::glob!("../refused", "*.tw", |path| {
        let source = fs::read_to_string(path).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if stem.starts_with("kernel_") {
            let module =
                text::parse_module(&source).unwrap_or_else(|err| panic!("{stem} does not parse: {err}"));
            let errors = verify_module(&module).expect_err(&format!("{stem} is refused"));
            insta::assert_snapshot!(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
            return;
        }
        insta::assert_snapshot!(match text::parse(&source) {
            Err(err) => {
                assert!(stem.starts_with("parse_"), "{stem} does not parse: {err}");
                format!("{err}\n{}", underlined(&source, err.line, err.column))
            }
            Ok(func) => {
                assert!(stem.starts_with("verify_"), "{stem} parses");
                refusals(&func, path)
            }
        });
    });
}

/// The line of an error, the column marked.
fn underlined(source: &str, line: usize, column: usize) -> String {
    let text = source.split('\n').nth(line - 1).expect("the line exists").replace('\t', " ");
    format!("| {text}\n| {}^", " ".repeat(column - 1))
}

/// What the verifier says, each message with the line that introduces the culprit.
fn refusals(func: &Func, path: &Path) -> String {
    let listing = text::print(func);
    let errors = verify(func).expect_err(&format!("{} is refused", path.display()));
    let shown = errors.iter().map(|err| match err.place(&listing) {
        Some(head) => format!("{err}\n| {}", &listing.text[head.clone()]),
        None => err.to_string(),
    });
    shown.collect::<Vec<_>>().join("\n")
}
