//! First schedules for workloads that do not ship: those in `cli/tests/auto`, each with the targets and parameters that its first
//! lines list.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may stop")]

use std::{fmt::Write as _, fs, path::Path};

use codegen::lower::set_vector_bytes;
use indexmap::IndexMap;
use ir::{Arch, Target};
use schedule::workload::Param;

use crate::common::{WIDTH, tilewright};

/// The target and the parameters of a line such as `// cuda:sm_80 m=3 dtype=f16`.
fn request(line: &str) -> (Target, IndexMap<String, Param>) {
    let mut words = line.split_whitespace();
    let target = match words.next().unwrap().strip_prefix("cuda:") {
        Some(arch) => Target::Cuda(Arch::parse(arch).unwrap()),
        None => Target::Cpu,
    };
    let param = |it: &str| {
        let (name, value) = it.split_once('=').unwrap();
        (name.to_owned(), value.parse().map_or_else(|_| Param::Text(value.to_owned()), Param::Int))
    };
    (target, words.map(param).collect())
}

/// Each is by the rule that knows it, and computes what the workload says: on the CPU, or on the virtual GPU without findings.
#[test]
fn own_workloads_have_the_schedules_of_their_rules() {
    set_vector_bytes(WIDTH);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/auto");
    let folder = tempfile::tempdir().unwrap();
    let mut files: Vec<_> = fs::read_dir(source).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    let mut printed = String::new();
    for file in files {
        writeln!(printed, "{}", file.file_name().unwrap().to_str().unwrap()).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines().map_while(|it| it.strip_prefix("// ")) {
            let (target, params) = request(line);
            let made = tilewright::auto(file.to_str().unwrap(), &params, &target, None);
            let made = made.unwrap_or_else(|err| panic!("{}: {line}: {err}", file.display()));
            writeln!(printed, "    {line}: {}", made.rule).unwrap();
            fs::write(folder.path().join("made.ron"), &made.script).unwrap();
            let is_cpu = target == Target::Cpu;
            if is_cpu && codegen::device::cc::find().is_err() {
                continue;
            }
            let on: &[&str] = if is_cpu { &[] } else { &["--target", "vgpu"] };
            let told = tilewright(folder.path(), &[&["run", "made.ron"], on].concat());
            let is_right = told.ends_with("exit code 0") && (is_cpu || told.contains("findings   none"));
            assert!(is_right, "{}: {line}\n{}\n{told}", file.display(), made.script);
        }
    }
    insta::assert_snapshot!(printed);
}
