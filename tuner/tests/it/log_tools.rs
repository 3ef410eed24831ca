//! What is made of logs: checks, copies, compressed copies, rankings.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::log::sample;
use tilewright_tuner::log::{
    self, Damage, Entry, Happening, LogError, Merged, Origin, Packed, Ranked, Ranking, Trial, Writer,
};

const NOW: &str = "2026-11-22T08:00:00Z";

fn write(folder: &Path, run: &str, entries: &[Entry]) -> PathBuf {
    let mut writer = Writer::create(folder, &sample::head(run)).unwrap();
    for entry in entries {
        writer.append(entry).unwrap();
    }
    writer.path().to_owned()
}

fn complaints(log: &Path) -> Vec<String> {
    let mut out = vec![];
    let sum = log::verify(log, &mut |it: Damage| out.push(format!("{}: {}", it.line, it.reason))).unwrap();
    assert_eq!(sum.damaged, out.len() as u64);
    out
}

/// What is told of a run of which one trial was changed after the fact.
fn told_of(change: impl FnOnce(&mut Trial)) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut trial = sample::trial("a", 1, 10.0);
    change(&mut trial);
    write(folder.path(), "a", &[Entry::Trial(sample::trial("a", 0, 10.0)), Entry::Trial(trial)]);
    complaints(folder.path()).join("; ")
}

#[test]
fn a_log_as_written_has_no_faults() {
    let folder = tempfile::tempdir().unwrap();
    for run in ["a", "b"] {
        write(folder.path(), run, &sample::body(run));
    }
    let sum = log::verify(folder.path(), &mut |it| panic!("{it}")).unwrap();
    assert_eq!((sum.segments, sum.records, sum.trials, sum.unknown), (2, 20, 12, 0));
    assert_eq!(told_of(|_| {}), "");
}

#[test]
fn figures_that_contradict_each_other_are_told() {
    let result = |change: fn(&mut log::Measurement)| told_of(|it| change(it.result.as_mut().unwrap()));
    let faults = [
        result(|it| it.gflops *= 1.001),
        result(|it| it.stats.median *= 1.001),
        result(|it| it.stats.min *= 0.9),
        result(|it| it.seconds[0] = -1.0),
        result(|it| it.seconds.clear()),
        result(|it| it.before.outputs[0].wrong = 1),
        result(|it| it.after.outputs[0].wrong = 1),
        told_of(|it| it.result = None),
        told_of(|it| it.error = sample::failed("a", 1, "run", "trap", "").error),
        told_of(|it| it.n = 0),
        told_of(|it| it.run = "b".to_owned()),
        told_of(|it| it.src = "ABC".to_owned()),
        told_of(|it| it.origin = Origin::Mutation { of: 1 }),
        told_of(|it| it.decisions[0] = 64.into()),
        told_of(|it| {
            it.decisions.insert(ir::Name::new("bn"), 8.into());
        }),
    ];
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn structure_that_cannot_be_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let trial = |n| Entry::Trial(sample::trial("a", n, 10.0));
    let finished = Entry::Event(sample::event("a", Happening::Finished, ""));
    let (first, fourth) = (sample::trial("a", 0, 10.0), sample::trial("a", 3, 10.0));
    let finals = Entry::Finals(sample::finals("a", &first, &fourth));
    write(folder.path(), "a", &[trial(0), trial(2), finals, Entry::Run(sample::head("a")), finished]);
    assert_eq!(
        complaints(folder.path()),
        [
            "4: trial 3 is a finalist and not in the log",
            "5: the head of a run stands where none should be",
            "6: the run is finished, and there is no trial 1",
        ]
    );
    // Without the head, and with a torn end, which is no fault.
    let segment = folder.path().join("run-a.jsonl");
    let text = fs::read_to_string(&segment).unwrap();
    let lines: Vec<_> = text.lines().skip(1).take(2).collect();
    fs::write(&segment, lines.join("\n") + "\n{\"k\"").unwrap();
    assert_eq!(complaints(folder.path()), ["1: the segment does not begin with the head of its run"]);
    let sum = log::verify(folder.path(), &mut |_| {}).unwrap();
    assert_eq!(sum.torn[0].bytes, 4);
}

fn merge(into: &Path, log: &Path) -> Vec<Result<Merged, LogError>> {
    let mut out = vec![];
    log::merge(into, log, &mut |_, it| out.push(it)).unwrap();
    out
}

fn words(merged: &[Result<Merged, LogError>]) -> String {
    let word = |it: &Result<Merged, LogError>| match it {
        Ok(it) => format!("{it:?}"),
        Err(LogError::Different { .. }) => "Different".to_owned(),
        Err(LogError::Locked(_)) => "Locked".to_owned(),
        Err(err) => panic!("{err}"),
    };
    merged.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn merging_twice_is_merging_once() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two, out) = (folder.path().join("1"), folder.path().join("2"), folder.path().join("out"));
    write(&one, "a", &sample::body("a"));
    let b = write(&one, "b", &sample::body("b")[..3]);
    write(&two, "c", &sample::body("c"));
    let b_before = fs::read(&b).unwrap();
    assert_eq!(words(&merge(&out, &one)), "Added Added");
    assert_eq!(words(&merge(&out, &two)), "Added");
    assert_eq!(words(&merge(&out, &one)), "Same Same");
    assert_eq!(words(&merge(&out, &out)), "Same Same Same");

    // A run that went on, behind a torn line.
    fs::write(&b, [&*b_before, b"{\"k\":\"trial"].concat()).unwrap();
    assert_eq!(words(&merge(&out, &b)), "Same");
    let (mut writer, _) = Writer::reopen(&b, NOW).unwrap();
    sample::body("b")[3..].iter().for_each(|it| writer.append(it).unwrap());
    drop(writer);
    let held = fs::OpenOptions::new().append(true).open(out.join("run-b.jsonl")).unwrap();
    held.lock().unwrap();
    assert_eq!(words(&merge(&out, &b)), "Locked");
    drop(held);
    assert_eq!(words(&merge(&out, &b)), "Extended");
    assert_eq!(fs::read(&b).unwrap(), fs::read(out.join("run-b.jsonl")).unwrap());
    // An earlier state changes nothing.
    fs::write(&b, &b_before).unwrap();
    assert_eq!(words(&merge(&out, &b)), "Same");

    // Another run of the same name is left where it is.
    let other = write(&folder.path().join("3"), "c", &[Entry::Trial(sample::trial("c", 0, 1.0))]);
    let c = fs::read(out.join("run-c.jsonl")).unwrap();
    assert_eq!(words(&merge(&out, &other)), "Different");
    assert_eq!(fs::read(out.join("run-c.jsonl")).unwrap(), c);
    let log = log::read(&out).unwrap();
    assert_eq!(log.runs.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(log.damage.is_empty() && log.torn.is_empty());
    assert_eq!(fs::read_dir(&out).unwrap().count(), 3);
}

#[test]
fn merging_takes_names_from_heads_and_keeps_what_is_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let segment = write(folder.path(), "a", &sample::body("a"));
    let mut bytes = fs::read(&segment).unwrap();
    bytes.extend(b"rubbish\n");
    let moved = folder.path().join("saved.jsonl");
    fs::write(&moved, &bytes).unwrap();
    let out = folder.path().join("out");
    assert_eq!(words(&merge(&out, &moved)), "Added");
    assert_eq!(fs::read(out.join("run-a.jsonl")).unwrap(), bytes);
}

#[test]
fn finished_runs_are_compressed_and_read_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let a = write(folder.path(), "a", &sample::body("a"));
    write(folder.path(), "b", &sample::body("b")[..3]);
    let mut c = Writer::create(folder.path(), &sample::head("c")).unwrap();
    c.append(&Entry::Event(sample::event("c", Happening::Finished, ""))).unwrap();
    let merged = folder.path().join("merged");
    let before = log::read(folder.path()).unwrap();
    merge(&merged, &a);
    let mut done = vec![];
    log::pack(folder.path(), &mut |_, it| done.push(it)).unwrap();
    assert!(matches!(done[0], Ok(Packed::Done { from, to }) if to < from / 2));
    assert!(matches!(done[1], Ok(Packed::Unfinished)));
    assert!(matches!(done[2], Err(LogError::Locked(_))));
    let packed = folder.path().join("run-a.jsonl.gz");
    assert!(packed.exists() && !a.exists());
    assert!(matches!(Writer::reopen(&packed, NOW), Err(LogError::Packed(_))));

    let after = log::read(folder.path()).unwrap();
    assert_eq!(after.runs["a"].trials, before.runs["a"].trials);
    assert_eq!(after.runs.len(), 3);
    // Compressed or not is no difference for merging.
    assert_eq!(words(&merge(&merged, &packed)), "Same");
    assert_eq!(fs::read_dir(&merged).unwrap().count(), 1);

    // What is cut off or flipped in compressed bytes costs what comes after, and no more.
    let bytes = fs::read(&packed).unwrap();
    for end in [11, bytes.len() / 2, bytes.len() - 9, bytes.len() - 1] {
        fs::write(&packed, &bytes[..end]).unwrap();
        let log = log::read(&packed).unwrap();
        assert!(!log.damage.is_empty(), "cut at {end}");
    }
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    fs::write(&packed, &flipped).unwrap();
    let log = log::read(&packed).unwrap();
    assert!(!log.damage.is_empty());
}

fn rank(keep: usize, logs: &[&Path]) -> Vec<Ranked> {
    let mut ranking = Ranking::new(keep);
    for log in logs {
        ranking.add(log, &mut |_| {}).unwrap();
    }
    ranking.finish()
}

#[test]
fn the_best_are_ranked_once_each() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a", &sample::body("a"));
    let b = write(folder.path(), "b", &sample::body("b")[..2]);
    let groups = rank(3, &[folder.path(), &b]);
    let [group] = &*groups else { panic!("{groups:?}") };
    assert_eq!((group.trials, group.failed, group.suspicious), (8, 2, 1));
    let best: Vec<_> = group.best.iter().map(|it| (&*it.run, it.n, it.finals.map(|it| it.place))).collect();
    assert_eq!(best, [("a", 2, Some(1)), ("a", 0, Some(2)), ("b", 0, None)]);
    let first = &group.best[0];
    assert_eq!((first.registers, first.shared_bytes, first.threads), (Some(42), 6144, 256));

    // Another machine is another list; wrong numbers have no rank, whatever the entry says.
    let mut head = sample::head("c");
    head.machine.name = "other".to_owned();
    let mut writer = Writer::create(folder.path(), &head).unwrap();
    let mut wrong = sample::trial("c", 0, 1.0);
    wrong.result.as_mut().unwrap().after.outputs[0].wrong = 1;
    writer.append(&Entry::Trial(wrong)).unwrap();
    writer.append(&Entry::Trial(sample::trial("c", 1, 9.0))).unwrap();
    let groups = rank(10, &[folder.path()]);
    let best: Vec<_> = groups.iter().map(|it| it.best.iter().map(|it| it.n).collect::<Vec<_>>()).collect();
    assert_eq!(best, [vec![2, 0, 0, 1, 1], vec![1]]);
}

/// A script in which `lanes` decides something only where `wide` is 1.
const SCRIPT: &str = r#"schedule(
    workload: "elementwise",
    params: {"n": 64},
    knobs: {"ii": [8, 16, 32], "lanes": [2, 4], "wide": boolean},
    constraints: ["ii != 32 || lanes == 2"],
    steps: [
        split(loop: "i", into: {"io": None, "ii": "ii"}),
        choose(knob: "wide", one_of: [[], [split(loop: "ii", into: {"it": None, "iv": "lanes"}), vectorize(loop: "iv")]]),
    ],
)"#;

#[test]
fn decisions_are_those_of_a_point() {
    let folder = tempfile::tempdir().unwrap();
    let mut head = sample::head("a");
    head.script.text = SCRIPT.to_owned();
    head.script.params = serde_json::from_str(r#"{"n": 64}"#).unwrap();
    head.script.knobs =
        serde_json::from_str(r#"{"ii": [8, 16, 32], "lanes": [2, 4], "wide": [0, 1]}"#).unwrap();
    let mut writer = Writer::create(folder.path(), &head).unwrap();
    let all = [
        r#"{"ii": 8, "wide": 0}"#,
        r#"{"ii": 16, "lanes": 4, "wide": 1}"#,
        r#"{"wide": 1, "lanes": 2, "ii": 32}"#,
        r#"{"ii": 8}"#,
        r#"{"ii": 8, "wide": 1}"#,
        r#"{"ii": 8, "lanes": 2, "wide": 0}"#,
        r#"{"ii": 64, "wide": 0}"#,
        r#"{"ii": 8, "wide": 0, "depth": 1}"#,
        r#"{"ii": 32, "lanes": 4, "wide": 1}"#,
        "{}",
    ];
    for (n, decisions) in (0..).zip(all) {
        let mut trial = sample::trial("a", n, 10.0);
        trial.decisions = serde_json::from_str(decisions).unwrap();
        writer.append(&Entry::Trial(trial)).unwrap();
    }
    let told: Vec<_> = complaints(folder.path())
        .into_iter()
        .map(|it| {
            let (line, words) = it.split_once(": ").unwrap();
            format!("{}\n    {words}", all[line.parse::<usize>().unwrap() - 2])
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}
