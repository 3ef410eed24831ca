//! `SITUATIONS.md` says which file is about which situation: it names every file, and no other.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::corpus::folder;

#[test]
fn every_file_is_listed_and_every_listed_file_exists() {
    let text = fs::read_to_string(list()).unwrap();
    let quoted = text.split('`').skip(1).step_by(2);
    let listed: BTreeSet<String> =
        quoted.filter_map(|it| it.strip_suffix(".ron")).map(str::to_owned).collect();
    let names = |extension: &str| -> BTreeSet<String> {
        let paths = fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path());
        let paths = paths.filter(|it| it.extension().is_some_and(|it| it == extension));
        paths.map(|it| it.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    };
    let scripts = names("ron");
    assert_eq!(scripts.difference(&listed).collect::<Vec<_>>(), Vec::<&String>::new(), "not listed");
    assert_eq!(listed.difference(&scripts).collect::<Vec<_>>(), Vec::<&String>::new(), "no such file");

    let used: BTreeSet<String> = scripts
        .iter()
        .map(|it| fs::read_to_string(folder().join(format!("{it}.ron"))).unwrap())
        .map(|it| it.split("workload: \"./").nth(1).unwrap().split(".tw").next().unwrap().to_owned())
        .collect();
    assert_eq!(names("tw"), used, "a program that no script is about, or the other way round");
}

#[test]
fn every_situation_has_a_file_or_a_reason() {
    let text = fs::read_to_string(list()).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|it| it.starts_with('|') && !it.starts_with("| ---"))
        .map(|it| it.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() > 130, "{} rows", rows.len());
    let reasons = ["not expressible", "need", "structural", "no TMA", "not a pipeline", "all of them"];
    for row in &rows {
        let [situation, answer] = row[..] else { panic!("not two cells: {row:?}") };
        let answered = answer.contains(".ron`") || reasons.iter().any(|it| answer.contains(it));
        assert!(answered || answer == "file", "{situation}: {answer}");
    }
    for number in 1..=20 {
        let name = format!("A{number} ");
        assert!(rows.iter().any(|it| it[0].starts_with(&name)), "TVM's {name}is not listed");
    }
}

fn list() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pipeline/SITUATIONS.md")
}
