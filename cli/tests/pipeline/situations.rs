//! `SITUATIONS.md` says which file is about which situation: it names every file, and no other.

use std::{collections::BTreeSet, fs, path::Path};

use crate::corpus::folder;

#[test]
fn every_file_is_listed_and_every_listed_file_exists() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pipeline/SITUATIONS.md");
    let text = fs::read_to_string(list).unwrap();
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
