//! Every program in `tests/lower`, against what lowering makes of it.
//!
//! The first line says what is asked: `test lower cuda` for the result of all passes, `test NAME cuda` for the
//! program after one pass. A refusal is a result as well.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write as _;

use ir::{Arch, Target};
use tilewright_codegen::lower::{State, lower};

#[test]
fn programs() {
    insta::glob!("../lower", "*.tw", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        insta::assert_snapshot!(transcript(&text));
    });
}

/// What the named pass makes of the program, or the refusal.
fn transcript(text: &str) -> String {
    let (head, program) = text.split_once('\n').unwrap();
    let mut words = head.trim_start_matches("test ").split(' ');
    let (wanted, target) = (words.next().unwrap(), words.next().unwrap());
    let target = match target {
        "cpu" => Target::Cpu,
        "cuda" => Target::Cuda(Arch { sm: 80, suffix: None }),
        arch => Target::Cuda(Arch::parse(arch).unwrap_or_else(|| panic!("no target `{arch}`"))),
    };
    let func = ir::text::parse(program).unwrap();

    let mut seen = String::new();
    let result = lower(&func, &target, &mut |pass, state| {
        if pass.name == wanted {
            seen = match state {
                State::Func(func) => ir::text::print(func).text,
                State::Module(module) => module.to_string(),
            };
        }
    });
    match result {
        Ok(module) if wanted == "lower" => module.to_string(),
        Ok(_) => seen,
        Err(err) => {
            let mut out = format!("refused: {err}\nabout: {:?}\n", err.names());
            err.help().iter().for_each(|help| writeln!(out, "help: {help}").unwrap());
            out
        }
    }
}
