//! The hidden command `tilewright worker`, as a tuner and as a curious user start it.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use crate::common::tilewright;

fn worker(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    tilewright(folder.path(), arguments).replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn a_worker_with_nothing_to_do_says_hello_and_ends() {
    insta::assert_snapshot!(worker(&["worker", "--compile-only"]), @r#"
    --- stdout
    {"k":"hello","proto":1,"tool":"tilewright VERSION","capacity":1,"machine":null,"problem":null,"warnings":[]}
    --- exit code 0
    "#);
}

#[test]
fn devices_are_numbers_or_cpu() {
    insta::assert_snapshot!(worker(&["worker", "--device", "gpu"]), @"
    --- stderr
    error[TW5024]: invalid value 'gpu' for '--device <N|cpu>': a number, or cpu

    For more information, try '--help'.
    --- exit code 2
    ");
}

/// Lines in, lines out, and the exit code.
fn talk(input: &str, answers: usize) -> (Vec<String>, Option<i32>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(["worker", "--compile-only"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let lines: Vec<String> = lines.take(answers).collect();
    drop(stdin);
    (lines, child.wait().unwrap().code())
}

#[test]
fn jobs_that_cannot_be_understood() {
    let job = r#"{"id":7,"task":{"mode":"dance"}}"#;
    let (lines, code) = talk(&format!("{job}\n"), 2);
    assert!(lines[1].starts_with(r#"{"k":"answer","id":7,"#), "{}", lines[1]);
    assert!(lines[1].contains("unknown variant `dance`") && lines[1].contains(r#""kind":"protocol""#));
    assert_eq!(code, Some(0));
    // Without a number there is nothing to answer to.
    let (lines, code) = talk("hello?\n", 1);
    assert_eq!((lines.len(), code), (1, Some(1)));
}

/// The lock of a device is advice: whatever stands in its place costs a warning and no time.
#[test]
fn something_else_in_the_place_of_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("tilewright-device-cpu.lock");
    let hello = || {
        let temporary = folder.path().to_str().unwrap();
        let told =
            crate::common::run(folder.path(), &["worker", "--device", "cpu"], &[("TMPDIR", temporary)]);
        let start = told.find("\"warnings\":").unwrap();
        told[start..].lines().next().unwrap().replace(temporary, "TMP")
    };
    assert_eq!(hello(), "\"warnings\":[]}");
    std::fs::remove_file(&lock).unwrap();
    assert!(Command::new("mkfifo").arg(&lock).status().unwrap().success());
    insta::assert_snapshot!(hello(), @r#""warnings":["TMP/tilewright-device-cpu.lock: it is a pipe, no regular file; whether another tilewright measures on the same device (cpu) cannot be told"]}"#);
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    insta::assert_snapshot!(hello(), @r#""warnings":["TMP/tilewright-device-cpu.lock: it is a folder; whether another tilewright measures on the same device (cpu) cannot be told"]}"#);
}
