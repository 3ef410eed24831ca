//! Every step of every script, made again by its typed builder and applied by the method of a session: the same step, and the same
//! program or refusal as from the text.

#![allow(clippy::unwrap_used, reason = "a test says where by its panic")]

use std::{collections::BTreeSet, fs, path::Path};

use indexmap::IndexMap;
use ir::Name;
use tilewright_schedule::{Decisions, Number, ScheduleError, Script, Session, Step, primitive};

use crate::common::{program, target};

include!(concat!(env!("OUT_DIR"), "/through_builders.rs"));

/// Whether a step says a field that it may leave out.
trait IsSomeField {
    fn is_some_field(&self) -> bool;
}

impl<T> IsSomeField for Option<T> {
    fn is_some_field(&self) -> bool {
        self.is_some()
    }
}

impl<T> IsSomeField for Vec<T> {
    fn is_some_field(&self) -> bool {
        !self.is_empty()
    }
}

impl IsSomeField for bool {
    fn is_some_field(&self) -> bool {
        *self
    }
}

impl IsSomeField for Number {
    fn is_some_field(&self) -> bool {
        true
    }
}

/// The factors of a split as a caller gives them.
fn factors(into: &IndexMap<Name, Option<Number>>) -> Vec<(Name, Option<i64>)> {
    into.iter().map(|(name, it)| (name.clone(), it.as_ref().map(|it| it.get().unwrap()))).collect()
}

/// The steps of all scripts of the tests, with the sessions that they are applied to.
fn scripts() -> Vec<(String, Session, Vec<Step>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut out = vec![];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(script) = Script::parse(&fs::read_to_string(&path).unwrap()) else { continue };
        let Ok(steps) = script.resolve(&script.params.value, &Decisions::new()) else { continue };
        let session = Session::new(program(&script.workload.value), target(&script));
        out.push((path.display().to_string(), session, steps.into_iter().map(|it| it.value).collect()));
    }
    out
}

#[test]
fn steps_of_scripts_come_out_of_their_builders() {
    let (mut with_builder, mut with_method) = (BTreeSet::new(), BTreeSet::new());
    for (path, mut from_text, steps) in scripts() {
        let mut from_builder = from_text.clone();
        for step in &steps {
            let (again, is_plain) = built(step).unwrap();
            let expected = from_text.apply(step);
            // What says two things where one is wanted is what no builder makes, and refused.
            if &again != step {
                expected.unwrap_err();
                continue;
            }
            let found =
                if is_plain { by_method(step, &mut from_builder) } else { from_builder.apply(&again) };
            assert_eq!(found, expected, "{path}: {}", step.to_ron());
            assert_eq!(from_builder.func(), from_text.func(), "{path}: {}", step.to_ron());
            if expected.is_ok() {
                with_builder.insert(step.name());
                with_method.extend(is_plain.then_some(step.name()));
            }
        }
    }
    let missing = |of: &BTreeSet<&str>| primitive::names().filter(|it| !of.contains(it)).collect::<Vec<_>>();
    assert_eq!(missing(&with_builder), Vec::<&str>::new(), "these builders made no step that was accepted");
    assert_eq!(missing(&with_method), Vec::<&str>::new(), "these methods applied none");
}

#[test]
fn steps_of_manuals_come_out_of_their_builders() {
    for name in primitive::names() {
        let manual = primitive::explain(name).unwrap();
        for example in manual.lines().filter(|it| it.starts_with(&format!("{name}("))) {
            let step = Step::from_ron(example).unwrap();
            assert_eq!(built(&step).unwrap().0, step, "{name}");
        }
    }
}
