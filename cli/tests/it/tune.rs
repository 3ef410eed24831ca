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
fn the_first_trial_for_a_workload_is_what_auto_makes() {
    let folder = tempfile::tempdir().unwrap();
    let args = "tune elementwise --target cpu --param n=1000 --param parts=32 --trials 3 --finalists 0";
    let (code, out, err) = run(folder.path(), &args.split(' ').collect::<Vec<_>>());
    assert!(code == Some(0) && out.contains("trials     1: 1 measured"), "a knob is fixed: {out}{err}");
    let args = "tune elementwise --target cpu --param n=1000 --trials 3 --finalists 0 --log all";
    let (code, out, err) = run(folder.path(), &args.split(' ').collect::<Vec<_>>());
    assert!(code == Some(0) && out.contains("trials     3: 3 measured"), "{out}{err}");
    let made = ["auto", "elementwise", "--target", "cpu", "--param", "n=1000", "--out", "auto.ron"];
    assert_eq!(run(folder.path(), &made).0, Some(0));
    let (code, out, err) = run(folder.path(), &["compare", "auto.ron", "all:0"]);
    assert!(code == Some(0) && out.contains("same program"), "{out}{err}");
    let (code, out, err) = run(folder.path(), &["replay", "all"]);
    assert!(code == Some(0) && out.contains("sources      3 of 3 identical"), "{out}{err}");
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

/// A worker that does all but the finals: it says in a pipe that they have begun, and then does something else the first time.
fn without_finals(folder: &Path, instead: &str) -> String {
    let pipe = folder.join("finals");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let script = format!(
        "while read -r line; do
    case $line in *'\"mode\":\"finals\"'*) if mkdir begun; then echo now > finals; {instead}; fi;; esac
    printf '%s\\n' \"$line\"
done | '{}' worker --device cpu
",
        env!("CARGO_BIN_EXE_tilewright")
    );
    fs::write(folder.join("worker.sh"), script).unwrap();
    "sh worker.sh".to_owned()
}

/// What the lines of the one segment of a log are, each with what happened where it is an event.
fn kinds(log: &Path) -> Vec<String> {
    let segment = fs::read_dir(log).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(segment).unwrap();
    let entries = text.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    entries.map(|it| it["what"].as_str().or(it["k"].as_str()).unwrap().to_owned()).collect()
}

/// Starts a run whose finals begin and do not end, does something then, and lets it end.
fn in_the_finals(folder: &Path, instead: &str, then: impl FnOnce(u32)) -> (Option<i32>, String, String) {
    let worker = without_finals(folder, instead);
    let args =
        ["tune", "space.ron", "--trials", "4", "--finalists", "2", "--rounds", "3", "--worker-cmd", &worker];
    let child = command(folder, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Opening the pipe waits for its other end.
    assert_eq!(fs::read_to_string(folder.join("finals")).unwrap(), "now\n");
    then(child.id());
    let out = child.wait_with_output().unwrap();
    let text = |it: &[u8]| String::from_utf8(it.to_vec()).unwrap();
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn finals_that_were_interrupted_are_held_by_resume() {
    let folder = folder();
    let interrupt = |id: u32| {
        assert!(Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap().success());
    };
    let (code, out, err) = in_the_finals(folder.path(), "sleep 1000", interrupt);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        !out.contains("winner") && out.contains("in the search so far; the finals were not held"),
        "{out}"
    );
    assert!(
        err.contains("stopped by the user in the finals; go on with: tilewright resume space.twlog"),
        "{err}"
    );
    let log = folder.path().join("space.twlog");
    assert_eq!(kinds(&log).last().unwrap(), "stopped");
    let (code, out, err) = run(folder.path(), &["resume", "space.twlog", "--json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(told(&out), [], "no trial is repeated");
    assert!(out.contains(r#""k":"finals""#) && out.contains(r#""winner":{"#), "{out}");
    assert_eq!(kinds(&log)[kinds(&log).len() - 2..], ["finals", "finished"]);
}

#[test]
fn finals_that_fail_are_an_error_and_no_end() {
    let folder = folder();
    let (code, out, err) = in_the_finals(folder.path(), "kill -9 0", |_| {});
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(!out.contains("winner") && out.contains("the finals were not held"), "{out}");
    assert!(err.contains("error[TW5028]: the finals failed: worker_died"), "{err}");
    assert_eq!(kinds(&folder.path().join("space.twlog")).last().unwrap(), "stopped");
    let (code, out, err) = run(folder.path(), &["resume", "space.twlog"]);
    assert_eq!((code, out.contains("winner     trial")), (Some(0), true), "{out}{err}");
}

#[test]
fn a_log_that_is_taken_away_is_an_error() {
    for what in ["the folder", "the lines"] {
        let folder = folder();
        let log = folder.path().join("space.twlog");
        let (code, out, err) = in_the_finals(folder.path(), "sleep 1000", |_| {
            let segment = fs::read_dir(&log).unwrap().next().unwrap().unwrap().path();
            match what {
                "the folder" => fs::remove_dir_all(&log).unwrap(),
                _ => fs::File::create(segment).unwrap().set_len(0).unwrap(),
            }
        });
        assert_eq!((code, out.is_empty()), (Some(2), true), "{what}: {out}{err}");
        assert!(err.contains("error[TW4013]: space.twlog/run-"), "{what}: {err}");
        assert!(err.contains("while it was written"), "{what}: {err}");
    }
}

#[test]
fn steps_that_are_missing_are_measured_by_resume() {
    let folder = folder();
    let (code, out, err) =
        run(folder.path(), &["tune", "space.ron", "--trials", "1", "--finalists", "0", "--per-step"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let log = folder.path().join("space.twlog");
    let segment = fs::read_dir(&log).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&segment).unwrap();
    let all = kinds(&log).iter().filter(|it| *it == "step").count();
    assert!(all > 3);
    // As of a run that was interrupted after two of them.
    let second = text.match_indices("{\"k\":\"step\"").nth(2).unwrap().0;
    fs::write(&segment, &text[..second]).unwrap();
    let (code, out, err) = run(folder.path(), &["resume", "space.twlog"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(kinds(&log).iter().filter(|it| *it == "step").count(), all);
    assert!(out.contains("(none: the workload as it is)"), "{out}");
}

#[test]
fn a_run_without_a_result_says_what_to_do() {
    let folder = folder();
    fs::write(folder.path().join("none.ron"), SPACE.replace("ii * ji < 192", "ii * ji < 2")).unwrap();
    let help = |args: &[&str]| {
        let (code, out, err) =
            run(folder.path(), &[&["tune", "--finalists", "0", "--log", "log"], args].concat());
        assert_eq!(code, Some(1), "{out}{err}");
        assert!(err.contains("error[TW5019]"), "{err}");
        err.lines().find(|it| it.starts_with("help: ")).unwrap_or_default().to_owned()
    };
    insta::assert_snapshot!(
        [
            help(&["space.ron", "--trials", "0"]),
            help(&["none.ron"]),
            help(&["space.ron", "--time", "0.000000001s"]),
        ]
        .join("\n")
    );
}
