//! `tilewright report` on logs as files.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

#[path = "../../src/command/report/tests/fixture/mod.rs"]
mod fixture;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::common::{run, tilewright};
use fixture::Fixture;
use tuner::log::Writer;

fn write(folder: &Path, runs: &[Fixture]) {
    for it in runs {
        let mut writer = Writer::create(folder, &it.head).unwrap();
        for entry in it.entries().iter().skip(1) {
            writer.append(entry).unwrap();
        }
    }
}

fn log() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("log"), &[fixture::gpu(20), fixture::cpu()]);
    folder
}

/// The pages stay in the target folder after the tests, to be looked at.
#[test]
fn a_log_becomes_a_page() {
    let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report");
    let _ = fs::remove_dir_all(&kept);
    write(&kept.join("both"), &[fixture::gpu(400), fixture::cpu()]);
    write(&kept.join("one"), &[fixture::gpu(400)]);
    insta::assert_snapshot!(tilewright(&kept, &["report", "both"]));
    tilewright(&kept, &["report", "one"]);
    let both = fs::read_to_string(kept.join("both/report.html")).unwrap();
    assert!(both.starts_with("<!DOCTYPE html>") && both.ends_with("</html>\n"));
    // A report in the folder is no part of the log, and the same log gives the same bytes.
    tilewright(&kept, &["report", "both"]);
    assert_eq!(fs::read_to_string(kept.join("both/report.html")).unwrap(), both);
    assert!(fs::read_dir(kept.join("both")).unwrap().all(|it| !it.unwrap().path().ends_with(".part")));
}

#[test]
fn one_run_of_a_log_and_one_segment() {
    let folder = log();
    let name = fixture::cpu().head.run;
    let told = tilewright(folder.path(), &["report", "log", "--run", &name, "--out", "cpu.html", "--json"]);
    let told: serde_json::Value = serde_json::from_str(told.lines().nth(1).unwrap()).unwrap();
    assert_eq!(told["runs"], serde_json::json!([name]));
    assert_eq!((&told["out"], &told["trials"]), (&"cpu.html".into(), &60.into()));
    assert_eq!(told["costs"][0]["run"], name);
    let told = tilewright(folder.path(), &["report", "log", "--run", "other\u{1b}[2J"]);
    insta::assert_snapshot!(told);
    let segment = format!("log/run-{name}.jsonl");
    let told = tilewright(folder.path(), &["report", &segment]);
    assert!(told.contains("wrote log/report.html: 1 run, 60 trials"), "{told}");
    assert_eq!(
        fs::read(folder.path().join("log/report.html")).unwrap(),
        fs::read(folder.path().join("cpu.html")).unwrap()
    );
}

/// A log that holds all 36 points of its space says what both strategies would have needed, in words, numbers and drawings, and
/// on a narrow terminal without quartiles.
#[test]
fn a_whole_space_tells_what_searches_cost() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let log = root.join("bench/results/2026-11-22-h200-tune-f16-4096.twlog");
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["report", log.to_str().unwrap(), "--out", "x.html"];
    insta::assert_snapshot!(tilewright(folder.path(), &arguments));
    let page = fs::read_to_string(folder.path().join("x.html")).unwrap();
    assert!(page.contains("The cost of the search") && page.contains("class=\"evolution quartile\""));
    let told = tilewright(folder.path(), &[&arguments[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(told.lines().nth(1).unwrap()).unwrap();
    let cost = &json["costs"][0];
    assert_eq!((&cost["whole_space"], &cost["strategies"][1]["strategy"]), (&36.into(), &"evolution".into()));
    assert_eq!(cost["strategies"][0]["after"][0]["trials"], 1);
    let narrow = run(folder.path(), &arguments, &[("COLUMNS", "40")]);
    assert!(narrow.lines().all(|it| it.chars().count() <= 40) && narrow.contains("evolution"), "{narrow}");
}

#[test]
fn other_files_are_not_overwritten() {
    let folder = log();
    let mine = folder.path().join("mine.html");
    fs::write(&mine, "<!DOCTYPE html>\nmine").unwrap();
    let arguments = ["report", "log", "--out", "mine.html"];
    insta::assert_snapshot!(tilewright(folder.path(), &arguments));
    assert_eq!(fs::read_to_string(&mine).unwrap(), "<!DOCTYPE html>\nmine");
    assert!(tilewright(folder.path(), &[&arguments[..], &["--force"]].concat()).contains("exit code 0"));
    // Now it is ours.
    assert!(tilewright(folder.path(), &arguments).contains("exit code 0"));
    let told = tilewright(folder.path(), &["report", "log", "--out", "log", "--force"]);
    assert!(told.contains("it is a folder") && told.contains("exit code 2"), "{told}");
    let told = tilewright(folder.path(), &["report", "log", "--out", "none/x.html"]);
    assert!(told.contains("there is no such file") && told.contains("exit code 2"), "{told}");
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn logs_that_are_damaged_or_none() {
    let folder = log();
    let told = tilewright(folder.path(), &["report", "nowhere"]);
    assert!(told.contains("exit code 2"), "{told}");
    let segment = folder.path().join("log").join(format!("run-{}.jsonl", fixture::cpu().head.run));
    let text = fs::read_to_string(&segment).unwrap();
    let broken = text.replacen("\"worker\":\"measure-0\"", "\"worker\":\"measure-1\"", 1);
    fs::write(&segment, broken).unwrap();
    let told = tilewright(folder.path(), &["report", "log"]);
    assert!(told.contains("2 runs, 79 trials"), "{told}");
    let page = fs::read_to_string(folder.path().join("log/report.html")).unwrap();
    assert!(page.contains("run-20261121T200000Z-00c0ffee.jsonl, line 2: the checksum"));
    assert!(!page.contains(&*folder.path().to_string_lossy()));
}

/// The README shows the picture of records that stand in `bench/results`.
#[test]
fn records_become_a_picture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let records = root.join("bench/results/2026-11-23-h200-matmul-hopper-nine-rungs.jsonl");
    let folder = tempfile::tempdir().unwrap();
    fs::copy(&records, folder.path().join("ladder.jsonl")).unwrap();
    let told = tilewright(folder.path(), &["report", "ladder.jsonl"]);
    insta::assert_snapshot!(told);
    let picture = fs::read_to_string(folder.path().join("ladder.svg")).unwrap();
    assert_eq!(picture, fs::read_to_string(root.join("docs/hopper-ladder.svg")).unwrap());

    let again = tilewright(folder.path(), &["report", "ladder.jsonl"]);
    assert!(again.contains("there is such a file") && again.contains("exit code 2"), "{again}");
    assert!(tilewright(folder.path(), &["report", "ladder.jsonl", "--force"]).contains("exit code 0"));
    let first = fs::read_to_string(&records).unwrap();
    let first = first.lines().next().unwrap();
    fs::write(folder.path().join("odd.jsonl"), format!("{first}\n{{\"v\":1}}\n")).unwrap();
    let told = tilewright(folder.path(), &["report", "odd.jsonl"]);
    assert!(told.contains("line 2 is not a record") && told.contains("exit code 2"), "{told}");
}

/// Without a library beside all of them, bars are GFLOPS; what has none has no bar, and names are no markup.
#[test]
fn records_without_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(root.join("bench/results/2026-11-23-h200-matmul-hopper-nine-rungs.jsonl"))
        .unwrap();
    let mut records: Vec<serde_json::Value> =
        text.lines().take(3).map(|it| serde_json::from_str(it).unwrap()).collect();
    records[0].as_object_mut().unwrap().remove("versus_baseline");
    records[1]["gflops"] = serde_json::Value::Null;
    records[2]["script"]["name"] = "a/<b>.ron".into();
    let lines: Vec<_> = records.iter().map(|it| format!("{it}\n")).collect();
    fs::write(folder.path().join("x.jsonl"), lines.concat()).unwrap();
    assert!(tilewright(folder.path(), &["report", "x.jsonl"]).contains("3 records"));
    let picture = fs::read_to_string(folder.path().join("x.svg")).unwrap();
    assert!(picture.contains(">GFLOPS<") && picture.contains("&lt;b&gt;") && !picture.contains("<b>"));
    assert_eq!(picture.matches("font-size=\"10\"").count(), 2);
}
