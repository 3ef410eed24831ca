//! `tilewright compare` as a user runs it. What is timed here is small, and no verdict about time is expected.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{fs, path::Path};

use crate::common::tilewright;
use serde_json::Value;

fn script(workload: &str, target: &str, size: u32, steps: &str) -> String {
    let params = match workload {
        "matmul" => format!("{{\"m\": {size}, \"n\": 32, \"k\": 32}}"),
        _ => format!("{{\"m\": {size}, \"n\": 32}}"),
    };
    format!("schedule(workload: \"{workload}\", target: \"{target}\", params: {params}, steps: [{steps}])\n")
}

const ORDER: &str = "reorder(order: [\"i\", \"k\", \"j\"])";
const NOTE: &str = "annotate(loop: \"i\", key: \"note\", value: \"x\")";
const BIND: &str = "bind(loop: \"i\", axis: \"blockIdx.x\"), bind(loop: \"j\", axis: \"threadIdx.x\")";
const ACROSS: &str = "bind(loop: \"j\", axis: \"blockIdx.x\"), bind(loop: \"i\", axis: \"threadIdx.x\")";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
    write("a.ron", script("matmul", "cpu", 32, ""));
    write("b.ron", script("matmul", "cpu", 32, ORDER));
    write("note.ron", script("matmul", "cpu", 32, NOTE));
    write("large.ron", script("matmul", "cpu", 48, ""));
    write("sum.ron", script("row_sum", "cpu", 32, ""));
    write("gpu.ron", script("matmul", "cuda", 32, BIND));
    write("across.ron", script("matmul", "cuda", 32, ACROSS));
    write("wrong.ron", script("matmul", "cpu", 32, "parallel(loop: \"k\")"));
    folder
}

/// The objects of `--json`.
fn objects(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let told = tilewright(folder, &[&["--json"], arguments].concat());
    told.lines().filter(|it| it.starts_with('{')).map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn what_needs_no_measurement() {
    let folder = folder();
    let requests: &[&[&str]] = &[
        &["compare", "a.ron", "a.ron"],
        &["compare", "a.ron", "note.ron", "--fail-on", "not-faster"],
        &["compare", "a.ron", "note.ron", "a.ron", "--fail-on", "different"],
        &["compare", "a.ron", "large.ron"],
        &["compare", "a.ron", "sum.ron"],
        &["compare", "a.ron", "gpu.ron"],
        &["compare", "a.ron", "wrong.ron"],
        &["compare", "a.ron", "b.ron:3"],
        &["compare", "a.ron", "nothing.ron"],
        &["compare", "a.ron", "b.ron", "--recorded"],
        &["compare", "a.ron"],
        &["compare", "gpu.ron", "across.ron", "--target", "vgpu"],
        &["compare", "gpu.ron", "across.ron", "--target", "vgpu", "--fail-on", "different"],
        &["compare", "gpu.ron", "gpu.ron", "--target", "vgpu", "--fail-on", "different"],
        &["compare", "gpu.ron", "across.ron", "--target", "vgpu", "--fail-on", "slower"],
        &["--json", "compare", "gpu.ron", "across.ron", "--target", "vgpu"],
    ];
    let told = requests
        .iter()
        .map(|it| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder.path(), it)));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}

#[test]
fn scripts_are_timed_and_records_made_again() {
    let folder = folder();
    let path = folder.path();
    let measured =
        ["compare", "a.ron", "b.ron", "--rounds", "7", "--threads", "1", "--log", "log.jsonl", "--code"];
    let it = &objects(path, &measured)[0];
    assert_eq!((it["ok"].as_bool(), it["method"].as_str()), (Some(true), Some("paired")), "{it}");
    assert_eq!(it["entrants"].as_array().unwrap().len(), 2);
    for entrant in it["entrants"].as_array().unwrap() {
        assert_eq!(entrant["seconds"].as_array().unwrap().len(), 7);
        assert!(entrant["gflops"].as_f64().unwrap() > 0.0);
    }
    let pair = &it["pairs"][0];
    assert!(["same", "faster", "slower", "ambiguous"].contains(&pair["verdict"].as_str().unwrap()));
    assert!(pair["ratio"]["low"].as_f64().unwrap() <= pair["ratio"]["high"].as_f64().unwrap());
    assert!(
        it["noise_floor"]["median"].as_f64().is_some() && pair["code"].as_str().unwrap().contains("\n+ ")
    );

    // Of three rounds there is no interval, and without one no verdict: a test must not pass on that.
    let few = ["compare", "a.ron", "b.ron", "--rounds", "3", "--threads", "1", "--fail-on", "slower"];
    let told = &objects(path, &few);
    assert_eq!(
        (&told[0]["pairs"][0]["verdict"], &told[0]["pairs"][0]["ratio"]),
        (&"ambiguous".into(), &Value::Null)
    );
    assert_eq!((&told[0]["ok"], &told[1]["code"]), (&false.into(), &"TW5027".into()));
    assert!(tilewright(path, &few).ends_with("exit code 3"));

    // Both were logged. The last line is b.ron, whose source is that of the script, so nothing is timed.
    assert_eq!(fs::read_to_string(path.join("log.jsonl")).unwrap().lines().count(), 2);
    let again = &objects(path, &["compare", "b.ron", "log.jsonl"])[0];
    assert_eq!(
        (again["method"].as_str(), again["entrants"][1]["origin"].as_str()),
        (Some("source"), Some("record"))
    );
    let other = tilewright(path, &["compare", "log.jsonl:1", "log.jsonl:2", "--recorded"]);
    assert!(other.contains("unpaired") && other.ends_with("exit code 0"), "{other}");
    let none = tilewright(path, &["compare", "log.jsonl:1", "log.jsonl:3"]);
    assert!(
        none.contains("it has 2 records, and none of number 3") && none.ends_with("exit code 2"),
        "{none}"
    );
}

#[test]
fn the_record_of_a_point_of_a_space_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // The parts of the split are not in the order of their names.
    let text = "schedule(workload: \"row_sum\", target: \"cpu\", params: {\"m\": 32, \"n\": 32}, knobs: {\"part\": [8, 4]}, \
        steps: [split(loop: \"i\", into: {\"outer\": None, \"inner\": \"part\"}), parallel(loop: \"outer\")])";
    fs::write(path.join("space.ron"), text).unwrap();
    let ran = ["run", "space.ron", "--param", "part=4", "--log", "log.jsonl"];
    assert!(tilewright(path, &ran).ends_with("exit code 0"));
    assert!(tilewright(path, &ran).ends_with("exit code 0"));
    let told = tilewright(path, &["compare", "log.jsonl:1", "log.jsonl:2"]);
    assert!(told.contains("same program") && told.ends_with("exit code 0"), "{told}");
}

#[test]
fn a_log_that_is_not_what_was_measured() {
    let folder = folder();
    let path = folder.path();
    tilewright(path, &["compare", "a.ron", "b.ron", "--rounds", "1", "--log", "log.jsonl"]);
    let text = fs::read_to_string(path.join("log.jsonl")).unwrap();
    // The last record in other circumstances, or of another source.
    let lines: Vec<&str> = text.lines().collect();
    let changed = |from: &str, to: &str| {
        assert!(lines[1].contains(from), "{from}");
        fs::write(path.join("changed.jsonl"), format!("{}\n{}\n", lines[0], lines[1].replacen(from, to, 1)))
            .unwrap();
    };
    changed("\"regime\":\"cool\"", "\"regime\":\"sustained\"");
    let regime = tilewright(path, &["compare", "changed.jsonl:1", "changed.jsonl", "--recorded"]);
    assert!(
        regime.contains("regime: cool in the first and sustained in the second")
            && regime.ends_with("exit code 2"),
        "{regime}"
    );
    changed("\"source_sha256\":\"", "\"source_sha256\":\"0");
    let source = tilewright(path, &["compare", "changed.jsonl:1", "changed.jsonl"]);
    assert!(source.contains("its source is another") && source.ends_with("exit code 1"), "{source}");
    changed("\"v\":1", "\"v\":99");
    let newer = tilewright(path, &["compare", "changed.jsonl:1", "changed.jsonl"]);
    assert!(newer.contains("format version 99") && newer.ends_with("exit code 2"), "{newer}");
}

#[test]
fn trials_of_a_search_take_part() {
    let folder = folder();
    let path = folder.path();
    let knob = "schedule(workload: \"matmul\", target: \"cpu\", params: {\"m\": 32, \"n\": 32, \"k\": 32}, \
                knobs: {\"t\": [4, 8]}, steps: [split(loop: \"i\", into: {\"io\": None, \"ii\": \"t\"})])";
    fs::write(path.join("space.ron"), knob).unwrap();
    let tuned = tilewright(
        path,
        &["tune", "space.ron", "--trials", "2", "--log", "t.twlog", "--rounds", "1", "--workers", "1"],
    );
    assert!(tuned.ends_with("exit code 0"), "{tuned}");
    let it = &objects(path, &["compare", "t.twlog:0", "t.twlog:1", "--rounds", "1"])[0];
    assert_eq!((it["ok"].as_bool(), it["method"].as_str()), (Some(true), Some("paired")), "{it}");
    assert_eq!(it["entrants"][0]["origin"], "trial");
    let best = tilewright(path, &["compare", "t.twlog", "t.twlog", "--fail-on", "different"]);
    assert!(best.contains("same program") && best.ends_with("exit code 0"), "{best}");
    let recorded = tilewright(path, &["compare", "t.twlog:0", "t.twlog:1", "--recorded"]);
    assert!(recorded.ends_with("exit code 0"), "{recorded}");
    let none = tilewright(path, &["compare", "a.ron", "t.twlog:7"]);
    assert!(none.contains("it has no trial 7") && none.ends_with("exit code 2"), "{none}");
}
