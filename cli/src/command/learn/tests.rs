//! Every exercise is open, every solution solves it, and so do others; what misses the point does not.

use std::{fs, path::Path};

use super::{
    Learner,
    check::check,
    course::{Exercise, exercises, find},
    exercise_folder::ExerciseFolder,
    watch::{Heard, watch},
};
use crate::{term::globals::Globals, term::shell::Shell};

fn solved(exercise: &Exercise, text: &str) -> bool {
    let mut out = vec![];
    let mut shell = Shell::new(&mut out, &Globals::default());
    check(exercise, Path::new(&format!("{}.ron", exercise.name)), text, &mut shell).is_solved()
}

/// A text with the steps of a solution replaced.
fn instead(exercise: &Exercise, from: &str, to: &str) -> String {
    assert!(exercise.solution.contains(from), "{from} in {}", exercise.solution);
    exercise.solution.replacen(from, to, 1)
}

#[test]
fn each_exercise_is_open_and_each_solution_solves_it() {
    let all = exercises();
    assert!(all.iter().filter(|it| it.name.starts_with("cpu/")).count() >= 8);
    assert!(all.iter().filter(|it| it.name.starts_with("cuda/")).count() >= 10);
    assert!(all.iter().filter(|it| it.name.starts_with("hopper/")).count() >= 4);
    for exercise in &all {
        assert!(!solved(exercise, &exercise.start), "{} is solved as it is handed out", exercise.name);
        assert!(solved(exercise, &exercise.solution), "{} is not solved by its solution", exercise.name);
        assert_eq!(exercise.lesson.hints.len(), 3, "{}: the idea, the primitive, the line", exercise.name);
        assert!(exercise.start.contains("// ???") && !exercise.solution.contains("???"), "{}", exercise.name);
        // What the last hint says is in the solution.
        for step in exercise.lesson.hints[2].split('`').skip(1).step_by(2) {
            assert!(
                exercise.solution.contains(step.trim_end_matches(')')),
                "{step} in the solution of {}",
                exercise.name
            );
        }
    }
}

#[test]
fn other_right_answers_are_right() {
    let all = exercises();
    let mut wrong = vec![];
    for (name, from, to) in [
        ("loop_order", "reorder(order: [\"k\", \"j\"])", "reorder(order: [\"k\", \"i\", \"j\"])"),
        (
            "loop_order",
            "reorder(order: [\"k\", \"j\"])",
            "split(loop: \"j\", into: {\"a\": None, \"b\": 8}), reorder(order: [\"a\", \"i\", \"k\", \"b\"])",
        ),
        ("zero_once", "loop: \"k\"", "loop: \"i\""),
        ("03_tile", "\"ji\": 128", "\"ji\": 32"),
        (
            "vectorize",
            "vectorize(loop: \"ji_init\")",
            "split(loop: \"ji_init\", into: {\"x\": 2, \"y\": 8}), vectorize(loop: \"y\")",
        ),
        (
            "pack",
            "compute_at(block: \"B_global\", loop: \"ko\")",
            "compute_at(block: \"B_global\", loop: \"jo\")",
        ),
        (
            "pack",
            "cache_read(block: \"C\", buffer: \"B\", scope: \"global\")",
            "cache_read(block: \"C\", buffer: \"B\", scope: \"global\", name: \"B_global\")",
        ),
        ("register_tile", "\"ii\": 8", "\"ii\": 4"),
        (
            "cpu/08_threads",
            "parallel(loop: \"jo\")",
            "fuse(loops: [\"jo\", \"io\"], into: \"t\"), parallel(loop: \"t\")",
        ),
        (
            "refused",
            "reorder(order: [\"i\", \"k\"]),\n        parallel(loop: \"i\")",
            "reorder(order: [\"j\", \"k\", \"i\"]), parallel(loop: \"j\")",
        ),
        ("bind", "bind(loop: \"i\", axis: \"blockIdx.y\")", "bind(loop: \"i\", axis: \"blockIdx.z\")"),
        (
            "coalesce",
            "bind(loop: \"ty\", axis: \"threadIdx.y\")",
            "bind(loop: \"ty\", axis: \"threadIdx.z\")",
        ),
        ("banks", "offset: 4", "offset: 12"),
        ("ring", "\"C\": 3", "\"C\": 4"),
        ("in_flight", "slots: 4", "slots: 5"),
        ("roles", "\"load\": 40, \"compute\": 232", "\"load\": 24, \"compute\": 240"),
        ("persistent", "group: 1", "group: 4"),
    ] {
        let exercise = find(&all, name).unwrap();
        wrong.extend((!solved(exercise, &instead(exercise, from, to))).then(|| format!("{name}: {to}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_misses_the_point_is_not() {
    let all = exercises();
    let mut wrong = vec![];
    for (name, from, to) in [
        ("loop_order", "reorder(order: [\"k\", \"j\"])", "reorder(order: [\"j\", \"i\", \"k\"])"),
        ("loop_order", "\"n\": 512", "\"n\": 1"),
        ("03_tile", "\"ji\": 128", "\"ji\": 256"),
        (
            "03_tile",
            "\"jo\", \"ko\", \"io\", \"ii\", \"ki\", \"ji\"",
            "\"jo\", \"io\", \"ko\", \"ki\", \"ji\", \"ii\"",
        ),
        ("vectorize", "vectorize(loop: \"ji_init\"),", ""),
        ("pack", "compute_at(block: \"B_global\", loop: \"ko\"),", ""),
        ("registers", "reverse_compute_at(block: \"C_local\", loop: \"io\"),", ""),
        ("register_tile", "\"ii\": 8", "\"ii\": 64"),
        ("cpu/08_threads", "parallel(loop: \"jo\")", "parallel(loop: \"io\")"),
        ("03_shared", "bind(loop: \"B_shared_tx\", axis: \"threadIdx.x\"),", ""),
        ("banks", "offset: 4", "offset: 0"),
        ("wide", "vectorize(loop: \"B_shared_v\"),", ""),
        ("ring", "\"C\": 3", "\"C\": 2"),
        ("swizzle", "swizzle(buffer: \"A_pad\"),", ""),
        // One of two buffers; a group at the cost of a copy that is late; a slot that is filled as early as before.
        ("in_flight", "slots: 4", "slots: 3"),
        ("in_flight", "\"C_acc\": 3", "\"C_acc\": 2"),
        ("in_flight", "\"C_acc\": 3", "\"C_acc\": 4"),
        ("roles", "registers: {\"load\": 40, \"compute\": 232},", ""),
        ("roles", "\"A_pad\", \"B_pad\"]", "\"A_pad\"]"),
        ("persistent", "blocks: 132", "blocks: 264"),
        ("cluster", "axis: \"cluster.x\"", "axis: \"blockIdx.y\""),
    ] {
        let exercise = find(&all, name).unwrap();
        wrong.extend(solved(exercise, &instead(exercise, from, to)).then(|| format!("{name}: {to}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_refused_is_told_why() {
    let all = exercises();
    for (name, from, to, why) in [
        (
            "hardware_swizzle",
            "swizzle(buffer: \"A_pad\"),",
            "",
            "`A_pad`: its rows are not swizzled by a mode",
        ),
        (
            "hardware_swizzle",
            "swizzle(buffer: \"B_pad\"),",
            "",
            "`B_pad`: its rows are not swizzled by a mode",
        ),
        ("roles", "\"load\": 40", "\"load\": 20", "cannot have 20 registers"),
        ("roles", "loop: \"by\",\n            roles", "loop: \"ko\", roles", "`wg` stands around it"),
        ("roles", "\"B_pad\"]}", "\"B_pad\", \"C_acc\"]}", "does not copy asynchronously"),
        ("persistent", "loop: \"tile\", blocks", "loop: \"wg\", blocks", "blockIdx"),
    ] {
        let exercise = find(&all, name).unwrap();
        let mut out = vec![];
        let mut shell = Shell::new(&mut out, &Globals::default());
        let text = instead(exercise, from, to);
        let refused = check(exercise, Path::new("x.ron"), &text, &mut shell).refused;
        let told = refused.map(|it| it.message().to_owned()).unwrap_or_default();
        assert!(told.contains(why), "{name}: {to}: `{told}`");
    }
}

#[test]
fn watching_goes_on_to_the_next_exercise() {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<Exercise> = exercises().into_iter().take(2).collect();
    let root = folder.path().join("exercises");
    let mut learner = Learner::new(ExerciseFolder::init(&root, &all).unwrap());
    let wrong = all[0].start.replace("steps: [", "steps: [ reordr(order: [\"k\", \"j\"]),");
    let mut texts = [wrong, all[0].solution.clone(), all[1].solution.clone()].into_iter();
    let mut out = vec![];
    let mut seen = vec![];
    let mut wait = |path: &Path, text: &str| {
        seen.push((path.file_stem().unwrap().to_str().unwrap().to_owned(), text.to_owned()));
        let Some(it) = texts.next() else { return Ok(Heard::Quit) };
        fs::write(path, it).unwrap();
        Ok(Heard::Changed)
    };
    watch(&mut learner, &all, false, &mut wait, &mut Shell::new(&mut out, &Globals::default())).unwrap();
    let names: Vec<&str> = seen.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(names, ["01_loop_order", "01_loop_order", "02_zero_once"]);
    assert_eq!(seen[2].1, all[1].start);
    let text = String::from_utf8(out).unwrap().replace(&folder.path().display().to_string(), "");
    insta::assert_snapshot!(text);
}

#[test]
fn watching_ends_where_nothing_changes_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<Exercise> = exercises().into_iter().take(1).collect();
    let mut learner = Learner::new(ExerciseFolder::init(&folder.path().join("x"), &all).unwrap());
    let mut out = vec![];
    let mut wait = |_: &Path, _: &str| Ok(Heard::Quit);
    watch(&mut learner, &all, false, &mut wait, &mut Shell::new(&mut out, &Globals::default())).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("waiting for"));
}

#[test]
fn keys_give_hints_and_go_round() {
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<Exercise> = exercises().into_iter().take(2).collect();
    let mut learner = Learner::new(ExerciseFolder::init(&folder.path().join("exercises"), &all).unwrap());
    let solve = |path: &Path| {
        let mine = all.iter().find(|it| path.ends_with(format!("{}.ron", it.name))).unwrap();
        fs::write(path, &mine.solution).unwrap();
        Heard::Changed
    };
    // Two hints, on to the second exercise, which is solved, back to the first one, which is the only one now.
    let mut said =
        [Some(Heard::Hint), Some(Heard::Hint), Some(Heard::Next), None, Some(Heard::Next), None].into_iter();
    let mut wait = |path: &Path, _: &str| Ok(said.next().unwrap().unwrap_or_else(|| solve(path)));
    let mut out = vec![];
    watch(&mut learner, &all, true, &mut wait, &mut Shell::new(&mut out, &Globals::default())).unwrap();
    let text = String::from_utf8(out).unwrap();
    let told: Vec<&str> =
        text.lines().filter(|it| it.starts_with(['[', '✓', 'a']) || it.contains(" of 3")).collect();
    let name = |at: usize| all[at].name.as_str();
    let is = |n: usize, words: &[&str]| words.iter().all(|it| told[n].contains(it));
    assert!(is(0, &["[0/2]", name(0)]) && is(1, &["1 of 3"]) && is(2, &["2 of 3"]), "{text}");
    assert!(is(3, &["[0/2]", name(1)]) && is(4, &["✓", name(1)]), "{text}");
    assert!(is(5, &["[1/2]", name(0)]) && is(6, &["[1/2]", name(0)]) && is(7, &["✓", name(0)]), "{text}");
    assert!(is(8, &["all 2 exercises are solved"]) && told.len() == 9, "{text}");
}
