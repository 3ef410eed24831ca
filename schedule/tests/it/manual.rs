//! The manual of each primitive is kept: its example is a step that scripts accept, and the scripts of the tests show
//! it accepted and refused.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use std::{collections::BTreeSet, fs, path::Path};

use crate::common::{program, target};
use tilewright_schedule::{Decisions, Script, Session, Step, primitive};

#[test]
fn manuals_begin_with_a_sentence_and_show_a_step() {
    for name in primitive::names() {
        let manual = primitive::explain(name).unwrap();
        let head = manual.lines().next().unwrap();
        assert!(head.ends_with('.') && head.starts_with(char::is_uppercase), "{name}: {head}");
        let mut rule = manual.lines().skip_while(|it| *it != "```text").skip(1);
        let step = Step::from_ron(rule.next().unwrap()).unwrap_or_else(|err| panic!("{name}: {err}"));
        assert_eq!(step.name(), name);
        assert!(rule.take_while(|it| *it != "```").any(|it| it == "->"), "{name} has no rewrite rule");
    }
    assert_eq!(primitive::explain("no_such_primitive"), None);
}

#[test]
fn names_are_sorted_and_are_the_words_of_steps() {
    let names: Vec<&str> = primitive::names().collect();
    assert!(names.is_sorted(), "{names:?}");
    for name in names {
        // The reader of steps lists every word it knows.
        let err = Step::from_ron(&format!("{name}(nonsense: 1)")).unwrap_err();
        assert!(!err.message.contains("no primitive"), "{name}: {err}");
    }
}

#[test]
fn every_primitive_is_accepted_by_one_script_and_refused_by_another() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let (mut accepted, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(folder).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let Ok(script) = Script::parse(&text) else { continue };
        let Ok(steps) = script.resolve(&script.params.value, &Decisions::new()) else { continue };
        let mut session = Session::new(program(&script.workload.value), target(&script));
        for step in steps {
            match session.apply(&step.value) {
                Ok(()) => accepted.insert(step.value.name()),
                Err(_) => refused.insert(step.value.name()),
            };
        }
    }
    let missing =
        |set: &BTreeSet<&str>| primitive::names().filter(|it| !set.contains(it)).collect::<Vec<_>>();
    assert_eq!(missing(&accepted), Vec::<&str>::new(), "never accepted");
    assert_eq!(missing(&refused), Vec::<&str>::new(), "never refused");
}
