//! Every script in `tests/scripts`.
//!
//! Comments at the top say what is run. `// case: m=33 dtype=f16 @n=5` is one run with these parameters and, after
//! `@`, values of symbolic dimensions; `// tolerance: 1e-5` allows results that differ by rounding.

use std::{
    fs,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use ir::Name;
use schedule::workload::Param;

use super::check::Case;

/// How many tests share the scripts, to run beside each other.
const PARTS: usize = 4;

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts")
}

pub(crate) fn cases(path: &Path) -> Vec<Case> {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_stem().unwrap().to_string_lossy().into_owned();
    let of = |key: &str| text.lines().filter_map(move |it| it.strip_prefix(key)).collect::<Vec<_>>();
    let tolerance = of("// tolerance: ").first().map_or(0.0, |it| it.parse().unwrap());
    let case = |line: &str| {
        let (mut params, mut dims) = (Vec::new(), IndexMap::new());
        for word in line.split_whitespace() {
            let (key, value) = word.split_once('=').unwrap();
            if let Some(dim) = key.strip_prefix('@') {
                dims.insert(Name::new(dim), value.parse().unwrap());
            } else {
                let text = Param::Text(value.to_owned());
                params.push((key.to_owned(), value.parse().map_or(text, Param::Int)));
            }
        }
        Case { what: format!("{name}: {line}"), text: text.clone(), params, dims, tolerance }
    };
    let cases: Vec<_> = of("// case: ").into_iter().map(case).collect();
    assert!(!cases.is_empty(), "{name} says no case");
    cases
}

fn part(part: usize) {
    let mut paths: Vec<_> = fs::read_dir(folder()).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    // One script is enough where somebody looks for the cause of a failure.
    let wanted = std::env::var("TILEWRIGHT_SCRIPT").unwrap_or_default();
    assert!(paths.len() >= 30);
    for path in paths.iter().skip(part).step_by(PARTS) {
        if path.to_string_lossy().contains(&wanted) {
            cases(path).iter().for_each(Case::check);
        }
    }
}

#[test]
fn part_0() {
    part(0);
}

#[test]
fn part_1() {
    part(1);
}

#[test]
fn part_2() {
    part(2);
}

#[test]
fn part_3() {
    part(3);
}
