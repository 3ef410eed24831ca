//! Runs of the tuner as a user starts them, on the CPU.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// A space of 12 points, of which a constraint leaves 10, and two make one source.
const SPACE: &str = r#"schedule(
    workload: "matmul", target: "cpu",
    params: {"m": 48, "n": 48, "k": 48, "dtype": "f32"},
    knobs: {"ii": [4, 6, 8], "ji": [16, 24]},
    constraints: ["ii * ji < 192"],
    steps: [
        split(loop: "i", into: {"io": None, "ii": "ii"}),
        split(loop: "j", into: {"jo": None, "ji": "ji"}),
        reorder(order: ["io", "jo", "k", "ii", "ji"]),
        choose(knob: "vector", one_of: [[vectorize(loop: "ji")], []]),
    ],
)"#;

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("space.ron"), SPACE).unwrap();
    folder
}

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut it = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    it.current_dir(folder).args(args).stdin(Stdio::null());
    it
}

/// Exit code, standard output and standard error.
fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let out = command(folder, args).output().unwrap();
    let text = |it: &[u8]| String::from_utf8(it.to_vec()).unwrap();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

/// The trials that `--json` tells of: number and name.
fn told(out: &str) -> Vec<(u64, String)> {
    out.lines().filter_map(|line| trial(&serde_json::from_str(line).unwrap())).collect()
}

fn trial(entry: &Value) -> Option<(u64, String)> {
    (entry["k"] == "trial").then(|| (entry["n"].as_u64().unwrap(), entry["id"].as_str().unwrap().to_owned()))
}

/// The trials of a log.
fn logged(log: &Path) -> Vec<(u64, String)> {
    let mut out = vec![];
    for segment in fs::read_dir(log).unwrap() {
        let text = fs::read_to_string(segment.unwrap().path()).unwrap();
        out.extend(text.lines().filter_map(|it| trial(&serde_json::from_str(it).ok()?)));
    }
    out
}

#[test]
fn a_run_tries_each_candidate_once_and_is_replayed() {
    let folder = folder();
    let (code, out, err) = run(folder.path(), &["tune", "space.ron", "--seed", "7", "--rounds", "3"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("trials     10: 10 measured"), "{out}");
    assert!(out.contains("winner     trial"), "{out}");
    assert!(out.contains("the first against itself"), "{out}");
    let (code, out, err) = run(folder.path(), &["replay", "space.twlog"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("sources      10 of 10 identical"), "{out}");
    let (code, out, err) = run(folder.path(), &["replay", "space.twlog", "--verify", "--trial", "3"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("machine code 1 of 1 identical"), "{out}");
    assert!(out.contains("numbers      1 of 1 right"), "{out}");
}

#[test]
fn the_stream_depends_on_the_seed_alone() {
    let folder = folder();
    let stream = |seed: &str, workers: &str, strategy: &str| {
        let log = format!("{seed}-{workers}-{strategy}.twlog");
        let args = ["tune", "space.ron", "--trials", "6", "--finalists", "0", "--json"];
        let args =
            [&args[..], &["--seed", seed, "--workers", workers, "--strategy", strategy, "--log", &log]];
        let (code, out, err) = run(folder.path(), &args.concat());
        assert_eq!(code, Some(0), "{out}{err}");
        told(&out).into_iter().collect::<BTreeMap<_, _>>()
    };
    let one = stream("1", "1", "random");
    assert_eq!(one.len(), 6);
    assert_eq!(one, stream("1", "3", "random"));
    assert_ne!(one, stream("2", "1", "random"));
    // Its first generation is drawn before there are results.
    assert_eq!(stream("1", "1", "evolution"), stream("1", "2", "evolution"));
}

#[test]
fn a_killed_run_goes_on_without_losing_or_repeating_a_trial() {
    let folder = folder();
    let all = ["tune", "space.ron", "--seed", "3", "--finalists", "0", "--json", "--log"];
    let (code, out, err) = run(folder.path(), &[&all[..], &["whole"]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let whole: BTreeMap<_, _> = told(&out).into_iter().collect();
    let mut seen = BTreeMap::new();
    let mut args = [&all[..], &["killed"]].concat();
    for until in [0, 1, 3, usize::MAX] {
        let mut child =
            command(folder.path(), &args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for line in lines.map_while(Result::ok) {
            let entry: Value = serde_json::from_str(&line).unwrap();
            if let Some((n, id)) = trial(&entry) {
                assert_eq!(seen.insert(n, id), None, "trial {n} was told twice");
            }
            if seen.len() > until || (until == 0 && entry["k"] == "event") {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let log = logged(&folder.path().join("killed"));
        let numbers: BTreeMap<_, _> = log.iter().cloned().collect();
        assert_eq!(log.len(), numbers.len(), "a trial is in the log twice");
        for (n, id) in &seen {
            assert_eq!(numbers.get(n), Some(id), "trial {n} was lost");
        }
        // What was written but not told before the kill is not told again.
        seen = numbers;
        args = vec!["resume", "killed", "--json"];
    }
    assert_eq!(seen, whole);
}

#[test]
fn a_finished_run_can_be_made_longer() {
    let folder = folder();
    let first = ["tune", "space.ron", "--trials", "4", "--rounds", "3", "--finalists", "2"];
    assert_eq!(run(folder.path(), &first).0, Some(0));
    let (code, out, err) = run(folder.path(), &["resume", "space.twlog", "--trials", "7", "--json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    // In the order in which they ended.
    assert_eq!(told(&out).iter().map(|it| it.0).collect::<BTreeSet<_>>(), BTreeSet::from([4, 5, 6]));
    assert!(out.contains(r#""k":"finals""#), "{out}");
}

#[test]
fn what_cannot_be_done_is_refused_with_a_way_out() {
    let folder = folder();
    let refuse = |args: &[&str], code: i32, words: &str| {
        let (found, out, err) = run(folder.path(), args);
        assert_eq!((found, out.is_empty()), (Some(code), true), "{out}{err}");
        assert!(err.contains(words), "{err}");
    };
    refuse(&["tune", "nothing.ron"], 2, "nothing.ron: there is no such file");
    refuse(&["tune", "space.ron", "--param", "ii=5"], 2, "`ii` cannot be 5");
    refuse(&["tune", "space.ron", "--time", "soon"], 2, "a time is written 90s, 10m or 2h");
    refuse(&["tune", "space.ron", "--worker-cmd", "exit 3"], 2, "no worker that measures came up");
    refuse(&["resume", "nothing.twlog"], 2, "nothing.twlog");
    refuse(&["replay", "space.ron"], 2, "space.ron");
    fs::write(folder.path().join("taken"), "a file").unwrap();
    refuse(&["tune", "space.ron", "--log", "taken"], 2, "taken");
}

#[test]
fn a_knob_can_be_fixed() {
    let folder = folder();
    let args = ["tune", "space.ron", "--param", "ii=6", "--finalists", "0", "--json"];
    let (code, out, err) = run(folder.path(), &args);
    assert_eq!(code, Some(0), "{out}{err}");
    let entries = out.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let trials: Vec<_> = entries.filter(|it| it["k"] == "trial").collect();
    assert_eq!(trials.len(), 4);
    assert!(trials.iter().all(|it| it["decisions"]["ii"] == 6), "{out}");
    let (code, out, _) = run(folder.path(), &["replay", "space.twlog"]);
    assert_eq!((code, out.contains("4 of 4 identical")), (Some(0), true), "{out}");
}
