//! Every script in `tests/scripts`, against what it prints; and the laws that every accepted script keeps.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use std::{fmt::Write as _, fs};

use crate::common::{difference, program, target};
use tilewright_schedule::{Decisions, Script, ScriptError, Session, Step};

#[test]
fn scripts() {
    insta::glob!("../scripts", "*.ron", |path| {
        let text = fs::read_to_string(path).unwrap();
        insta::assert_snapshot!(transcript(&text));
    });
}

/// What a session prints: a diff a step, and the refusal if there is one.
fn transcript(text: &str) -> String {
    let script = match Script::parse(text) {
        Ok(it) => it,
        Err(err) => return script_refusal(text, &err),
    };
    let func = program(&script.workload.value);
    let target = target(&script);
    let mut session = Session::new(func.clone(), target.clone());
    let mut out = String::new();
    let params = &script.params.value;
    let steps = script.axes(params).and_then(|_| script.resolve(params, &Decisions::new()));
    let steps = match steps {
        Ok(it) => it,
        Err(err) => return script_refusal(text, &err),
    };
    for step in &steps {
        writeln!(out, "{}", &text[step.span.clone()]).unwrap();
        match session.apply(&step.value) {
            Ok(()) => writeln!(out, "{}", session.last_diff(3)).unwrap(),
            Err(err) => {
                writeln!(out, "refused: {err}").unwrap();
                for name in err.names() {
                    writeln!(out, "  at {}", &text[step.place_of(text, name)]).unwrap();
                }
                err.help().iter().for_each(|help| writeln!(out, "  help: {help}").unwrap());
                return out;
            }
        }
    }
    laws(&script, &session, target);
    assert_eq!(difference(&func, session.func()), None);
    out
}

/// Replay gives the same program, steps survive RON and JSON, and undoing everything leads back.
fn laws(script: &Script, session: &Session, target: Option<ir::Target>) {
    let mut undone = session.clone();
    while undone.undo().is_some() {}
    let mut replayed = Session::new(undone.func().clone(), target);
    for step in session.trace() {
        replayed.apply(&through_ron_and_json(step)).unwrap();
    }
    assert_eq!(replayed.func(), session.func());
    for step in script.steps() {
        assert_eq!(through_ron_and_json(&step.value), step.value);
    }
    let printed = ir::text::print(session.func()).text;
    assert_eq!(&ir::text::parse(&printed).unwrap(), session.func(), "{printed}");
}

fn through_ron_and_json(step: &Step) -> Step {
    let ron = Step::from_ron(&step.to_ron()).unwrap_or_else(|err| panic!("{}: {err}", step.to_ron()));
    let json = serde_json::to_string(&ron).unwrap();
    let back: Step = serde_json::from_str(&json).unwrap_or_else(|err| panic!("{json}: {err}"));
    assert_eq!(ron.to_ron(), back.to_ron());
    back
}

fn script_refusal(text: &str, err: &ScriptError) -> String {
    let mut out = format!("refused: {err}\n  at {}\n", &text[err.span.clone()]);
    err.help.iter().for_each(|help| writeln!(out, "  help: {help}").unwrap());
    out
}
