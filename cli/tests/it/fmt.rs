//! `tilewright fmt`: which files it takes, what it leaves alone, and how.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    fs,
    io::Write,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
};

use crate::{common::tilewright, tidy::root};

const UGLY: &str = "schedule(workload:\"matmul\",steps:[unroll(loop:\"k\",)]) // all";
const NICE: &str = "schedule(workload: \"matmul\", steps: [unroll(loop: \"k\")]) // all\n";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn text(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn what_ships_is_laid_out() {
    let told = tilewright(&root(), &["fmt", "--check", "-q", "workloads"]);
    assert_eq!(told, "--- exit code 0");
}

#[test]
fn folders_are_walked_and_strangers_left_alone() {
    let folder = folder(&[
        ("a.ron", UGLY),
        ("below/nice.ron", NICE),
        ("below/other.ron", "Config( a:1 )"),
        ("below/broken.ron", "schedule(workload: "),
        ("below/notes.txt", UGLY),
        (".hidden/b.ron", UGLY),
        ("target/c.ron", UGLY),
    ]);
    let told = ["--check", "."].map(|it| tilewright(folder.path(), &["fmt", it]));
    insta::assert_snapshot!(told.join("\n\n"));
    assert_eq!(text(folder.path(), "a.ron"), NICE);
    for name in [".hidden/b.ron", "target/c.ron", "below/notes.txt"] {
        assert_eq!(text(folder.path(), name), UGLY);
    }
    assert_eq!(text(folder.path(), "below/broken.ron"), "schedule(workload: ");
}

#[test]
fn what_is_named_has_to_be_ours() {
    let folder = folder(&[("other.ron", "Config( a:1 )"), ("a.ron", UGLY), ("k.tw", "func f\n")]);
    let requests: [&[&str]; 5] =
        [&["other.ron"], &["nothing.ron"], &["k.tw"], &["-", "a.ron"], &["a.ron", "--json"]];
    let told = requests.map(|it| {
        let line = [&["fmt"], it].concat();
        format!("$ tilewright {}\n{}", line.join(" "), tilewright(folder.path(), &line))
    });
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn files_keep_their_permissions_and_links_lead_to_them() {
    let folder = folder(&[("real.ron", UGLY)]);
    let real = folder.path().join("real.ron");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real.ron", folder.path().join("link.ron")).unwrap();
    tilewright(folder.path(), &["fmt", "link.ron"]);
    assert_eq!(text(folder.path(), "real.ron"), NICE);
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(folder.path().join("link.ron")).unwrap().is_symlink());
    // Nothing is left over beside it.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn standard_input_goes_to_standard_output() {
    let format = |text: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        command.args(["fmt", "-"]).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        let words = String::from_utf8(out.stderr).unwrap();
        (String::from_utf8(out.stdout).unwrap(), words, out.status.code())
    };
    assert_eq!(format(UGLY, &[]), (NICE.to_owned(), String::new(), Some(0)));
    let (out, words, code) = format(UGLY, &["--check"]);
    assert!(out.starts_with("--- stdin\n+++ stdin\n@@ ") && words.contains("TW5061"), "{out}{words}");
    assert_eq!(code, Some(1));
    let (out, words, code) = format("schedule(", &[]);
    assert!(out.is_empty() && words.contains("--> stdin:1:9") && code == Some(1), "{words}");
}
