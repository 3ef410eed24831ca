//! What `top` and `log` print about tuning logs.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

#[path = "../../../tuner/tests/it/log/sample.rs"]
mod sample;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use crate::common::tilewright;
use tuner::log::{self, Entry, Happening, Reason, Writer};

fn write(folder: &Path, run: &str, entries: &[Entry]) -> PathBuf {
    let mut writer = Writer::create(folder, &sample::head(run)).unwrap();
    for it in entries {
        writer.append(it).unwrap();
    }
    writer.path().to_owned()
}

/// A folder with a whole run as the log `a`.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a"), "20261121T191300Z-00000001", &sample::body("20261121T191300Z-00000001"));
    folder
}

/// What these command lines print, one after the other.
fn session(folder: &Path, lines: &[&str]) -> String {
    let mut out = String::new();
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        out.extend([format!("$ tilewright {line}\n{}\n\n", tilewright(folder, &words))]);
    }
    out
}

#[test]
fn the_best_trials() {
    let folder = folder();
    write(&folder.path().join("b"), "b", &sample::body("b")[..2]);
    write(&folder.path().join("empty"), "c", &[]);
    let lines = [
        "top a",
        "top a b -k 3",
        "top a -k 1 --json",
        "top empty",
        "top nothing",
        "top .",
        "top a -k 0",
        "top",
    ];
    insta::assert_snapshot!(session(folder.path(), &lines));
}

/// What has no operations is told in bytes, and ranked by its times.
#[test]
fn trials_of_a_transpose() {
    let folder = tempfile::tempdir().unwrap();
    let mut head = sample::head("t");
    head.workload.flops = 0.0;
    let mut writer = Writer::create(&folder.path().join("t"), &head).unwrap();
    for (n, microseconds) in [(0, 30.0), (1, 10.0), (2, 20.0)] {
        let mut trial = sample::trial("t", n, microseconds);
        trial.result.as_mut().unwrap().gflops = 0.0;
        writer.append(&Entry::Trial(trial)).unwrap();
    }
    drop(writer);
    insta::assert_snapshot!(session(folder.path(), &["top t", "log verify t"]));
    tilewright(folder.path(), &["report", "t", "--out", "t.html"]);
    let page = fs::read_to_string(folder.path().join("t.html")).unwrap();
    assert!(page.contains("GB/s in the search") && !page.contains("not to be believed"), "{page}");
}

#[test]
fn damage_is_told_by_line() {
    let folder = folder();
    let segment = folder.path().join("a/run-20261121T191300Z-00000001.jsonl");
    let mut bytes = fs::read(&segment).unwrap();
    let second = bytes.iter().position(|it| *it == b'\n').unwrap() + 1;
    bytes[second + 30] ^= 1;
    bytes.extend(b"{\"k\":\"tri");
    let mut head = sample::head("newer");
    head.v = 2;
    Writer::create(&folder.path().join("newer"), &head).unwrap();
    let lines = ["log verify a", "log verify a --json"];
    let whole = session(folder.path(), &lines);
    fs::write(&segment, bytes).unwrap();
    fs::write(folder.path().join("foreign.json"), "{\"cache\": {}}\n").unwrap();
    let lines = [
        "log verify a",
        "log verify a --json",
        "top a -k 1",
        "top newer",
        "log verify newer",
        "log verify foreign.json",
        "log cat foreign.json",
    ];
    insta::assert_snapshot!(whole + &session(folder.path(), &lines));
}

#[test]
fn records_as_they_stand_there() {
    let folder = folder();
    let lines = ["log cat a --kind event", "log cat a --kind trial --n 3", "log cat a --n 77"];
    insta::assert_snapshot!(session(folder.path(), &lines));
    let all = tilewright(folder.path(), &["log", "cat", "a"]);
    let text = fs::read_to_string(folder.path().join("a/run-20261121T191300Z-00000001.jsonl")).unwrap();
    assert_eq!(all, format!("--- stdout\n{text}--- exit code 0"));
}

#[test]
fn copies_and_compressed_copies() {
    let folder = folder();
    write(&folder.path().join("b"), "b", &sample::body("b")[..2]);
    let other = write(&folder.path().join("c"), "b", &sample::body("b")[1..3]);
    let lines = [
        "log merge all a b",
        "log merge all a b --json",
        "log merge all c a",
        "log pack all",
        "log pack all --json",
        "log verify all",
        "top all -k 2",
        "log merge all nothing",
        "log merge a/run-20261121T191300Z-00000001.jsonl b",
    ];
    assert!(other.exists());
    let told = session(folder.path(), &lines);
    // The length of compressed bytes is that of the library.
    let told: Vec<_> = told
        .lines()
        .map(|it| match it.split_once(" bytes became ") {
            Some((from, _)) => format!("{from} bytes became N"),
            None => it.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn other_tools() {
    let folder = folder();
    let mut head = sample::head("z");
    head.machine.name = "NVIDIA B200".to_owned();
    Writer::create(&folder.path().join("two"), &head).unwrap();
    write(&folder.path().join("two"), "b", &sample::body("b"));
    let lines = [
        "log export a --to kernel-tuner",
        "log export a --to t4",
        "log export a --to csv",
        "log export two --to t4",
        "log export two --to t4 --run b --out t4.json",
        "log export two --to t4 --run b --out t4.json",
        "log export two --to t4 --run b --out t4.json --force",
        "log export two --to csv --run b --force",
        "log export a --to csv --run c",
        "log export a --to xml",
        "log export a --to csv --out nothing/a.csv",
    ];
    insta::assert_snapshot!(session(folder.path(), &lines));
    assert!(
        fs::read_to_string(folder.path().join("t4.json")).unwrap().starts_with("{\n  \"schema_version\"")
    );
}

/// Names and messages of a hostile log do not reach the terminal as they are.
#[test]
fn control_characters_are_shown() {
    const EVIL: &str = "\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\n";
    let folder = tempfile::tempdir().unwrap();
    let mut head = sample::head("a");
    head.machine.name = EVIL.to_owned();
    head.workload.name = EVIL.to_owned();
    head.script.params.insert(EVIL.to_owned(), EVIL.into());
    let mut writer = Writer::create(folder.path(), &head).unwrap();
    let mut trial = sample::trial("a", 0, 10.0);
    trial.run = "b\u{1b}".to_owned();
    trial.worker = EVIL.to_owned();
    writer.append(&Entry::Trial(trial)).unwrap();
    let mut odd = sample::trial("a", 1, 10.0);
    odd.src = EVIL.to_owned();
    writer.append(&Entry::Trial(odd)).unwrap();
    writer.append(&Entry::Trial(sample::failed("a", 2, "run", "hang", EVIL))).unwrap();
    writer.append(&Entry::Event(sample::event("a", Happening::Other, EVIL))).unwrap();
    let segment = writer.path().to_owned();
    drop(writer);
    // No writer of ours puts such bytes into a line.
    let line = "{\"k\":\"weather\",\"sky\":\"\u{1b}[2J\",\"crc\":\"1973a942\"}\n";
    fs::OpenOptions::new().append(true).open(&segment).unwrap().write_all(line.as_bytes()).unwrap();
    let log = log::read(&segment).unwrap();
    assert!(matches!(log.damage[0].reason, Reason::Entry(_)), "{:?}", log.damage);
    let lines = [
        "top .",
        "top . --json",
        "log verify .",
        "log verify . --json",
        "log cat .",
        "log export . --to csv",
        "log export . --to t4",
        "log export . --to kernel-tuner",
        "log export . --to csv --run \u{1b}[2J",
    ];
    for line in lines {
        let words: Vec<_> = line.split(' ').collect();
        let told = tilewright(folder.path(), &words);
        let bad = told.chars().find(|it| log::is_control(*it) && !matches!(it, '\n' | '\r'));
        assert_eq!(bad, None, "{line}: {told:?}");
        assert!(!told.contains("exit code 101"), "{told}");
    }
}

fn pipe(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Every reader goes on with the others, and says what it leaves out.
#[test]
fn one_segment_that_is_not_read() {
    let folder = folder();
    let log = folder.path().join("a");
    fs::create_dir(log.join("run-a.jsonl")).unwrap();
    pipe(&log.join("run-b.jsonl"));
    fs::write(log.join("run-c.jsonl"), "a,b\n").unwrap();
    fs::write(log.join("run-d.jsonl"), "{\"k\":\"run\",\"v\":2}\n").unwrap();
    fs::create_dir(folder.path().join("none")).unwrap();
    pipe(&folder.path().join("none/run-b.jsonl"));
    let lines = [
        "log verify a",
        "log verify a --json",
        "top a -k 1",
        "top a/run-20261121T191300Z-00000001.jsonl a/run-b.jsonl -k 1",
        "log cat a --kind finals --n 77",
        "log export a --to t4 --out a.json",
        "report a",
        "replay a --run b",
        "resume a --run c",
        "resume a --run d",
        "log verify none",
        "top none",
        "log cat none",
        "log export none --to csv",
        "report none",
        "replay none",
        "resume none",
    ];
    insta::assert_snapshot!(session(folder.path(), &lines));
    assert!(
        fs::read_to_string(folder.path().join("a/report.html"))
            .unwrap()
            .contains("run-b.jsonl: the segment is not read")
    );
    assert!(!folder.path().join("none/report.html").exists());
}

/// None of these waits, or reads on and on.
#[test]
fn what_is_no_file_is_no_log() {
    let folder = folder();
    pipe(&folder.path().join("pipe"));
    pipe(&folder.path().join("pipe.jsonl"));
    pipe(&folder.path().join("pipe.html"));
    pipe(&folder.path().join("pipe.tw"));
    let sparse = fs::File::create(folder.path().join("sparse.jsonl")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let lines = [
        "top pipe",
        "log verify /dev/zero",
        "log cat /dev/zero",
        "replay pipe",
        "resume pipe",
        "report sparse.jsonl",
        "log merge all pipe a sparse.jsonl",
        "log pack sparse.jsonl",
        "report a --out pipe.html",
        "report a --out pipe.html --force",
        "log export a --to csv --out pipe",
        "log export a --to csv --out pipe --force",
        "log export a --to csv --out /dev/null --force",
        "compare pipe.jsonl sparse.jsonl",
        "show pipe.tw",
    ];
    insta::assert_snapshot!(session(folder.path(), &lines));
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}
