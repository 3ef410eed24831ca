//! Rules about the repository that no compiler knows.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

const CRATES: [&str; 6] = ["ir", "schedule", "codegen", "tuner", "workloads", "cli"];

/// Files that may be longer than [`MAX_LINES`] lines, each with the reason.
const LONG: &[(&str, &str)] = &[];
const MAX_LINES: usize = 400;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The names under `[section]` of a manifest.
fn dependencies(krate: &str, section: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(krate).join("Cargo.toml")).unwrap();
    let lines = text.lines().skip_while(|it| it.trim() != section).skip(1);
    let lines = lines.take_while(|it| !it.starts_with('['));
    lines.filter_map(|it| Some(it.split_once('=')?.0.trim().to_owned())).collect()
}

fn all_dependencies(krate: &str) -> BTreeSet<String> {
    let mut out = dependencies(krate, "[dependencies]");
    out.extend(dependencies(krate, "[dev-dependencies]"));
    out
}

fn sources() -> Vec<PathBuf> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|it| it == "rs") {
                out.push(path);
            }
        }
    }
    let mut out = vec![];
    for krate in CRATES {
        for folder in ["src", "tests", "benches"] {
            let dir = root().join(krate).join(folder);
            if dir.is_dir() {
                walk(&dir, &mut out);
            }
        }
    }
    out
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().display().to_string()
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let allowed = BTreeMap::from([
        ("ir", vec![]),
        ("schedule", vec!["ir"]),
        ("codegen", vec!["ir"]),
        ("workloads", vec!["ir", "schedule"]),
        ("tuner", vec!["codegen", "ir", "schedule"]),
        ("cli", vec!["codegen", "ir", "schedule", "tuner", "workloads"]),
    ]);
    for krate in CRATES {
        let found = dependencies(krate, "[dependencies]");
        let edges: Vec<_> = CRATES.into_iter().filter(|it| found.contains(*it)).collect();
        let strange: Vec<_> = edges.iter().filter(|it| !allowed[krate].contains(it)).collect();
        assert!(strange.is_empty(), "`{krate}` depends on {strange:?}");
    }
}

#[test]
fn each_of_these_dependencies_has_one_home() {
    let homes = [
        ("ron", "schedule"),
        ("cudarc", "codegen"),
        ("libloading", "codegen"),
        ("rand", "tuner"),
        ("clap", "cli"),
        ("annotate-snippets", "cli"),
    ];
    for (dependency, home) in homes {
        for krate in CRATES.into_iter().filter(|it| *it != home) {
            // An example shows how a program of somebody else's launches a kernel.
            let is_example = (dependency, krate) == ("cudarc", "cli");
            let found =
                if is_example { dependencies(krate, "[dependencies]") } else { all_dependencies(krate) };
            let found = found.contains(dependency);
            assert!(!found, "`{krate}` depends on `{dependency}`, which only `{home}` may");
        }
    }
}

#[test]
fn unsafe_code_lives_in_the_device_modules() {
    // The attribute that lets a module use it, and the keyword before a block or a declaration.
    let words =
        ["expect(unsafe_code", "allow(unsafe_code", "unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
    for path in sources() {
        let name = relative(&path);
        if name.starts_with("codegen/src/device/") || name == "cli/tests/tidy.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let found = words.iter().find(|it| text.contains(**it));
        assert!(found.is_none(), "{name} contains `{}`", found.unwrap());
    }
    let lints = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(lints.contains("unsafe_code = \"deny\""));
}

/// The files that say what each instruction is: its definition, its texts, its source, its step on the virtual GPU.
const OF_INSTRUCTIONS: [&str; 4] =
    ["ir/src/instr.rs", "ir/src/text/instr.rs", "codegen/src/cfamily/stmt.rs", "codegen/src/vgpu/compile.rs"];

#[test]
fn passes_ask_what_instructions_do_and_not_which_they_are() {
    let definition = fs::read_to_string(root().join("ir/src/instr.rs")).unwrap();
    let (_, rest) = definition.split_once("pub enum Instr {").unwrap();
    let (body, _) = rest.split_once("\n}").unwrap();
    let variant = |line: &str| {
        let word: String =
            line.strip_prefix("    ")?.chars().take_while(char::is_ascii_alphanumeric).collect();
        (!word.is_empty()).then(|| format!("Instr::{word}"))
    };
    let variants: Vec<_> = body.lines().filter_map(variant).collect();
    assert!(variants.len() >= 10, "{variants:?}");
    for path in sources() {
        let name = relative(&path);
        if OF_INSTRUCTIONS.contains(&&*name) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let named: Vec<_> = variants.iter().filter(|it| text.contains(it.as_str())).collect();
        let few = named.len() <= variants.len() / 2;
        assert!(few, "{name} tells {named:?} apart: ask for their effects");
    }
}

/// Numbers of the technical specifications of GPUs that stand nowhere but in the table of architectures, as they would
/// be written.
const OF_ARCHITECTURES: [&str; 13] = [
    "65536",
    "65535",
    "2147483647",
    "48*1024",
    "99*1024",
    "100*1024",
    "163*1024",
    "164*1024",
    "227*1024",
    "228*1024",
    "101376",
    "166912",
    "232448",
];

/// Lines with such a number that means something else.
const NO_ARCHITECTURE: [(&str, &str); 3] = [
    ("schedule/src/error.rs", "the factor is 1 to 65535"),
    ("schedule/src/spot.rs", "E::BadAlignment { factor, .. } if !(1..=65_535)"),
    ("codegen/src/device/cublas_product.rs", "cuBLAS takes matrices of at most 2147483647 rows"),
];

#[test]
fn what_architectures_can_do_stands_in_one_table() {
    for path in sources() {
        let name = relative(&path);
        let is_code = name.contains("/src/") && !name.ends_with("tests.rs") && !name.contains("/tests/");
        if !is_code || name.starts_with("ir/src/arch") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let (code, _) = text.split_once("#[cfg(test)]\nmod ").unwrap_or((&text, ""));
        let is_other = |line: &str| NO_ARCHITECTURE.iter().any(|it| it.0 == name && line.contains(it.1));
        for line in code.lines().filter(|it| !it.trim_start().starts_with("//") && !is_other(it)) {
            let compares =
                ["sm < ", "sm <= ", "sm > ", "sm >= ", "match arch.sm", "match self.sm", "match sm "];
            let found = compares.iter().find(|it| line.contains(**it));
            assert!(found.is_none(), "{name} tells architectures apart: ask `Arch::caps`\n{line}");
            let line: String = line.chars().filter(|it| *it != '_' && *it != ' ').collect();
            let found = OF_ARCHITECTURES.iter().find(|it| holds_number(&line, it));
            assert!(found.is_none(), "{name} has a number of an architecture: ask `Arch::caps`\n{line}");
        }
    }
}

/// Whether a line has a number, and not as a part of a longer one.
fn holds_number(line: &str, number: &str) -> bool {
    line.match_indices(number).any(|(at, _)| {
        let is_more = |it: char| it.is_ascii_alphanumeric() || it == '.';
        let (before, after) = (&line[..at], &line[at + number.len()..]);
        !before.ends_with(is_more) && !after.starts_with(is_more)
    })
}

#[test]
fn files_are_short() {
    let long: BTreeMap<_, _> = LONG.iter().copied().collect();
    for path in sources() {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        let name = relative(&path);
        let fits = lines <= MAX_LINES || long.contains_key(&*name);
        assert!(fits, "{name} has {lines} lines: split it by ideas");
    }
}

#[test]
fn each_primitive_is_accepted_and_refused_by_a_script() {
    let folder = root().join("schedule/tests/scripts");
    let scripts: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|it| it.extension().is_some_and(|it| it == "ron"))
        .map(|it| (it.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(it).unwrap()))
        .collect();
    for primitive in schedule::primitive::names() {
        let step = format!(" {primitive}(");
        let named = |refused: bool| {
            scripts.iter().any(|(name, text)| name.starts_with("refuse_") == refused && text.contains(&step))
        };
        assert!(named(false), "no script shows `{primitive}` accepted");
        assert!(named(true), "no script shows `{primitive}` refused");
    }
    assert!(scripts.len() >= 40);
}

#[test]
fn every_crate_obeys_the_lints_of_the_workspace() {
    for krate in CRATES {
        let text = fs::read_to_string(root().join(krate).join("Cargo.toml")).unwrap();
        assert!(text.contains("[lints]\nworkspace = true"), "{krate}");
    }
}

#[test]
fn no_test_is_ignored() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let attribute = concat!("#[", "ignore");
        assert!(!text.contains(attribute), "{}", relative(&path));
    }
}
