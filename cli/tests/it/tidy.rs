//! Rules about the repository that no compiler knows.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

pub(crate) const CRATES: [&str; 7] = ["ir", "schedule", "codegen", "tuner", "workloads", "cli", "python"];

/// Files that may be longer than [`MAX_LINES`] lines, each with the reason.
const LONG: &[(&str, &str)] = &[];
const MAX_LINES: usize = 400;

pub(crate) fn root() -> PathBuf {
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

/// What a folder holds, in the order of names; nothing if there is no such folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let mut out: Vec<_> = entries.map(|it| it.unwrap().path()).collect();
    out.sort();
    out
}

/// All files of an extension below a folder.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut out = vec![];
    for path in entries(folder) {
        if path.is_dir() {
            out.extend(files(&path, extension));
        } else if path.extension().is_some_and(|it| it == extension) {
            out.push(path);
        }
    }
    out
}

fn sources() -> Vec<PathBuf> {
    let folders =
        CRATES.iter().flat_map(|it| ["src", "tests", "benches"].map(|folder| root().join(it).join(folder)));
    folders.flat_map(|it| files(&it, "rs")).collect()
}

pub(crate) fn relative(path: &Path) -> String {
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
        // It has the library of `cli` under its own name.
        ("python", vec!["codegen", "ir", "schedule", "tuner"]),
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
        ("axum", "cli"),
        ("tokio", "cli"),
        ("annotate-snippets", "cli"),
        ("ruff_python_parser", "cli"),
        ("pyo3", "python"),
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

/// What only the command needs, which a program that links the library must not have to compile.
const OF_THE_COMMAND: [&str; 11] = [
    "axum",
    "clap",
    "clap_complete",
    "clap_mangen",
    "futures-util",
    "gen-lsp-types",
    "lsp-server",
    "ruff_python_parser",
    "schemars",
    "terminal_size",
    "tokio",
];

#[test]
fn the_library_has_no_command_line() {
    let manifest = fs::read_to_string(root().join("cli/Cargo.toml")).unwrap();
    for name in OF_THE_COMMAND {
        let line = format!("\n{name} = {{ workspace = true, optional = true }}");
        assert!(manifest.contains(&line), "`{name}` is not optional");
    }
    let lib = fs::read_to_string(root().join("cli/src/lib.rs")).unwrap();
    let gated = lib.split("#[cfg(feature = \"cli\")]\n").skip(1);
    let gated = gated.map(|it| it.split(';').next().unwrap().rsplit(' ').next().unwrap());
    let gated: BTreeSet<&str> = gated.collect();
    assert!(gated.contains("command") && gated.contains("term"), "{gated:?}");
    for path in files(&root().join("cli/src"), "rs") {
        let name = relative(&path);
        let module = name.trim_start_matches("cli/src/").split(['/', '.']).next().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(gated.contains(module) || !text.contains("clap::"), "{name} uses clap");
    }
}

#[test]
fn unsafe_code_lives_in_the_device_modules() {
    // The attribute that lets a module use it, and the keyword before a block or a declaration.
    let words =
        ["expect(unsafe_code", "allow(unsafe_code", "unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
    for path in sources() {
        let name = relative(&path);
        let is_home = ["codegen/src/device/", "python/src/exchange/"].iter().any(|it| name.starts_with(it));
        if is_home || name == "cli/tests/it/tidy.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let found = words.iter().find(|it| text.contains(**it));
        assert!(found.is_none(), "{name} contains `{}`", found.unwrap());
    }
    let lints = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(lints.contains("unsafe_code = \"deny\""));
}

/// The binding panics at the first call of a function that an old driver lacks.
#[test]
fn calls_of_the_driver_are_looked_up_before() {
    let folder = root().join("codegen/src/device");
    let driver = fs::read_to_string(folder.join("cuda_driver.rs")).unwrap();
    for path in files(&folder, "rs") {
        let (name, text) = (relative(&path), fs::read_to_string(&path).unwrap());
        for rest in text.split("sys::cu").skip(1).filter(|it| it.starts_with(|it: char| it.is_uppercase())) {
            let call: String = rest.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
            let looked_up = format!("c\"cu{call}\"");
            assert!(driver.contains(&looked_up) || text.contains(&looked_up), "{name}: cu{call}");
        }
    }
}

/// The files that say what each instruction is: its definition, its texts, its source, its step on the virtual GPU, and what can
/// be wrong with it.
const OF_INSTRUCTIONS: [&str; 7] = [
    "ir/src/instr.rs",
    "ir/src/instr/rewrite.rs",
    "ir/src/text/instr.rs",
    "codegen/src/cfamily/stmt.rs",
    "codegen/src/vgpu/compile/mod.rs",
    "codegen/src/vgpu/compile/asynchronous.rs",
    "codegen/tests/it/hopper/mutants.rs",
];

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
    assert!(variants.len() >= 9, "{variants:?}");
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
    ("schedule/src/error.rs", "if (1..=65_535).contains(factor)"),
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

/// Test programs beside the one in `tests/it` of their crate, each with the reason.
const APART: [(&str, &str); 4] = [
    ("cli/tests/fuzz.rs", "it silences all panics of its process"),
    ("codegen/tests/cuda_device.rs", "a kernel that fails takes the GPU from its whole process"),
    ("tuner/tests/faulty/main.rs", "it is its own worker, without a harness"),
    ("workloads/tests/shipped.rs", "it is the only one of its crate"),
];

/// Each test program is linked with all of its crate: many of them take longer to build than to run.
#[test]
fn the_integration_tests_of_a_crate_are_one_program() {
    let apart = APART.map(|it| it.0);
    for path in CRATES.iter().flat_map(|it| entries(&root().join(it).join("tests"))) {
        let main = if path.is_dir() { path.join("main.rs") } else { path };
        if main.extension().is_some_and(|it| it == "rs") && main.is_file() {
            let name = relative(&main);
            let fits = name.ends_with("/tests/it/main.rs") || apart.contains(&&*name);
            assert!(fits, "{name}: make it a module of `tests/it/main.rs`, or say in `APART` why not");
        }
    }
    for name in apart {
        assert!(root().join(name).is_file(), "{name}");
    }
}

/// A file that no module names would not be compiled, and its tests not be run.
#[test]
fn every_file_of_the_integration_tests_is_a_module() {
    for path in CRATES.iter().flat_map(|it| files(&root().join(it).join("tests/it"), "rs")) {
        let is_folder = path.ends_with("mod.rs");
        let module = if is_folder { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        if module.ends_with("it/main") {
            continue;
        }
        let folder = module.parent().unwrap();
        let parents = [folder.join("main.rs"), folder.join("mod.rs"), folder.with_extension("rs")];
        let parent = parents.iter().find(|it| it.is_file()).unwrap();
        let line = format!("mod {};", module.file_name().unwrap().to_str().unwrap());
        let named = fs::read_to_string(parent).unwrap().lines().any(|it| it.ends_with(&line));
        assert!(named, "{} is not in {}", relative(&path), relative(parent));
    }
}

/// Snapshots are named after the module that compares with them, and stand beside its file.
#[test]
fn every_snapshot_of_the_integration_tests_has_its_module() {
    let mut count = 0;
    for krate in CRATES {
        let home = root().join(krate).join("tests/it");
        for path in files(&home, "snap") {
            let stem = path.file_name().unwrap().to_str().unwrap().split(['@', '.']).next().unwrap();
            let mut words = stem.split("__");
            assert_eq!(words.next(), Some("it"), "{}", relative(&path));
            let (mut module, mut beside) = (home.clone(), home.clone());
            for word in words {
                module.push(word);
                if module.join("mod.rs").is_file() {
                    beside.clone_from(&module);
                } else if module.with_extension("rs").is_file() {
                    module.parent().unwrap().clone_into(&mut beside);
                } else {
                    break;
                }
            }
            assert_eq!(path.parent().unwrap(), beside.join("snapshots"), "no module has this snapshot");
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
}
