//! TVM's files: programs and records that are read, those that are refused, and what its own tests say about us.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{collections::BTreeSet, fs, path::Path};

use crate::common::tilewright;

/// A folder with the cases of `cli/tests/tvm`, so that paths in what is printed are short.
fn cases() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for part in ["", "records"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tvm").join(part);
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|it| it.path().is_file()) {
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    folder
}

#[test]
fn programs_are_read_or_refused() {
    let folder = cases();
    insta::glob!("../tvm", "*.py", |path| {
        let file = path.file_name().unwrap().to_str().unwrap();
        let printed = tilewright(folder.path(), &["import", file]);
        assert_eq!(printed.contains("exit code 1"), file.starts_with("refused_"), "{file}: {printed}");
        insta::assert_snapshot!(printed);
    });
}

#[test]
fn records_are_read_or_refused() {
    let folder = cases();
    insta::glob!("../tvm/records", "*.json", |path| {
        let file = path.file_name().unwrap().to_str().unwrap();
        let printed = tilewright(folder.path(), &["import", file, "--program", "matmul.py"]);
        assert_eq!(printed.contains("exit code 1"), file.starts_with("refused_"), "{file}: {printed}");
        insta::assert_snapshot!(printed);
    });
}

/// A record becomes a script, the script a trace, and the trace the same script.
#[test]
fn a_trace_that_is_written_is_read_as_the_same_steps() {
    let folder = cases();
    let read = |file: &str, out: &str| {
        let printed = tilewright(folder.path(), &["import", file, "--program", "matmul.py", "--out", out]);
        assert!(printed.ends_with("exit code 0"), "{printed}");
        fs::read_to_string(folder.path().join(out)).unwrap()
    };
    let first = read("tiled.json", "first.ron");
    let shown = tilewright(folder.path(), &["show", "first.ron", "--emit", "trace"]);
    let trace = shown.lines().find(|it| it.starts_with('[')).unwrap();
    fs::write(folder.path().join("trace.json"), trace).unwrap();
    assert_eq!(read("trace.json", "second.ron"), first);
}

/// A program of TVM's is a workload as any other.
#[test]
fn a_script_names_a_program_of_tvms() {
    let folder = cases();
    let script = "schedule(workload: \"./matmul.py\", steps: [vectorize(loop: \"j\")])";
    fs::write(folder.path().join("mine.ron"), script).unwrap();
    let printed = tilewright(folder.path(), &["check", "mine.ron"]);
    insta::assert_snapshot!(printed);
    let shown = tilewright(folder.path(), &["show", "matmul.py", "--emit", "tvmscript"]);
    insta::assert_snapshot!(shown);
}

#[test]
fn nothing_is_written_where_something_is_refused() {
    let folder = cases();
    tilewright(folder.path(), &["import", "refused_range.py", "--out", "wrong.tw"]);
    tilewright(
        folder.path(),
        &["import", "refused_step.json", "--program", "matmul.py", "--out", "wrong.ron"],
    );
    assert!(!folder.path().join("wrong.tw").exists() && !folder.path().join("wrong.ron").exists());
}

/// Names of which each is twice the one before.
fn doubled() -> String {
    let line = |it: usize| {
        let before = if it == 0 { "A[v]".to_owned() } else { format!("x{}", it - 1) };
        format!("      x{it} = {before} + {before}\n")
    };
    (0..30).map(line).collect()
}

/// Choices in choices, each by one of two conditions.
fn chosen(depth: usize) -> String {
    (0..depth).fold("A[v]".to_owned(), |it, _| format!("T.if_then_else(v < 1 or v > 2, {it}, A[v])"))
}

/// Texts that want to do harm are refused, soon and without a crash.
#[test]
fn hostile_programs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let within = |value: &str| {
        format!(
            "@T.prim_func\ndef f(A: T.Buffer((4,), \"float32\"), B: T.Buffer((4,), \"float32\")):\n  for i in range(4):\n    \
             with T.block(\"B\"):\n      v = T.axis.S(4, i)\n      B[v] = {value}\n"
        )
    };
    let texts = [
        ("signs", within(&"-".repeat(100_000))),
        ("parentheses", within(&"(".repeat(100_000))),
        ("a sum", within(&"A[v] + ".repeat(100_000))),
        ("a deep sum", within(&format!("{}A[v]", "A[v] + ".repeat(1000)))),
        ("many small ones", within("A[v]").repeat(2000)),
        ("conditions in conditions", (0..300).map(|it| " ".repeat(it) + "if x:\n").collect()),
        ("names that double", within(&format!("A[v]\n{}      B[v] = x29", doubled()))),
        ("choices that double", within(&chosen(40))),
        ("a large number", within("99999999999999999999999999999999999999")),
        ("a division by zero", within("A[v // 0]")),
        ("a string that does not end", within("\"\"\"")),
        ("a bidirectional name", within("A[\u{202e}v]")),
        ("nothing", String::new()),
        ("NULs", "\0".repeat(10_000)),
    ];
    for (title, text) in texts {
        fs::write(folder.path().join("hostile.py"), text).unwrap();
        let printed = tilewright(folder.path(), &["import", "hostile.py"]);
        assert!(printed.ends_with("exit code 1") && printed.contains("error[TW"), "{title}: {printed}");
    }
}

/// The table of TVM's own tests is as large as the book says, and tells why wherever something is refused or different.
#[test]
fn the_table_of_tvms_tests_has_reasons() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/tvm/suite.csv");
    let text = fs::read_to_string(path).unwrap();
    let mut compared = BTreeSet::new();
    for line in text.lines().skip(1) {
        let name = line.split(',').next().unwrap();
        let is_equal = [",equal,", ",differently named,", ",unit loops,"].iter().any(|it| line.contains(it));
        assert!(is_equal || !line.ends_with(','), "{line}");
        if !line.contains(",outside,") && !line.contains(",program refused,") {
            compared.insert(name.split('[').next().unwrap());
        }
    }
    assert!(compared.len() >= 150, "{}", compared.len());
}
