//! The tutorial as a course, as the user sees it.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{fs, path::Path};

use crate::common::{run, tilewright};
use serde_json::Value;

/// A ladder of three rungs of a small product, in C.
fn ladder(folder: &Path) {
    let script = |about: &str, steps: &str| {
        format!(
            "schedule(about: \"{about}\", workload: \"matmul\", target: \"cpu\",\n    params: {{\"m\": 48, \"n\": 48, \"k\": 48}},\n    steps: [{steps}],\n)\n"
        )
    };
    let order = "reorder(order: [\"i\", \"k\", \"j\"])";
    let lanes =
        "decompose_reduction(block: \"C\", loop: \"k\"), vectorize(loop: \"j\"), vectorize(loop: \"j_init\")";
    fs::write(folder.join("01_naive.ron"), script("As it is.", "")).unwrap();
    fs::write(folder.join("02_loop_order.ron"), script("Along rows.", order)).unwrap();
    fs::write(folder.join("03_lanes.ron"), script("As lanes.", &format!("{order}, {lanes}"))).unwrap();
}

#[test]
fn the_ladders_that_ship_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let told =
        [&["tutorial", "list"][..], &["--json", "tutorial", "list"]].map(|it| tilewright(folder.path(), it));
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_ladder_is_climbed_without_a_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let requests: &[&[&str]] = &[
        &["tutorial", "matmul-cuda-f32", "--size", "32", "--until", "3", "--target", "vgpu"],
        &["tutorial", "matmul-cuda-f32", "--size", "32", "--step", "tile", "--code", "--target", "vgpu"],
        &["tutorial", "matmul-cuda-f32", "--step", "22", "--target", "vgpu"],
        &["tutorial", "matmul-cuda-f32", "--step", "tiles", "--target", "vgpu"],
        &["tutorial", "matmul-cuda-f32", "--ablate", "--target", "vgpu"],
    ];
    let told = requests
        .iter()
        .map(|it| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder.path(), it)));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}

#[test]
fn needs_are_known_where_the_compiler_is() {
    let folder = tempfile::tempdir().unwrap();
    let told = run(
        folder.path(),
        &["tutorial", "matmul-cuda-f32", "--size", "32", "--step", "shared", "--target", "vgpu:sm_90a"],
        &[],
    );
    if told.contains("registers unknown") {
        assert!(std::env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_none(), "{told}");
        eprintln!("skipped: there is no NVRTC");
        return;
    }
    for words in [
        "needs: 256 threads",
        " registers, no spills, 4,096 bytes of",
        "blocks per SM",
        "2 barriers in the source",
    ] {
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(words.trim()), "{words} in {told}");
    }
}

#[test]
fn one_rung_is_measured_beside_the_one_below() {
    let folder = tempfile::tempdir().unwrap();
    ladder(folder.path());
    let told =
        tilewright(folder.path(), &["tutorial", ".", "--step", "lanes", "--code", "--log", "log.jsonl"]);
    for words in [
        "── 3. lanes",
        "  As lanes.\n",
        "+ vectorize(loop: \"j\")",
        "the generated C changes",
        " -> ",
        "x the rung below",
    ] {
        assert!(told.contains(words), "{words} in {told}");
    }
    assert!(!told.contains("2. loop order") && told.ends_with("exit code 0"), "{told}");
    assert_eq!(fs::read_to_string(folder.path().join("log.jsonl")).unwrap().lines().count(), 2);
}

#[test]
fn rungs_of_several_sizes_are_climbed_at_each() {
    let folder = tempfile::tempdir().unwrap();
    ladder(folder.path());
    let last = folder.path().join("03_lanes.ron");
    let text = fs::read_to_string(&last).unwrap();
    fs::write(&last, text.replace("\"m\": 48, \"n\": 48, \"k\": 48", "\"m\": 16, \"n\": 16, \"k\": 96"))
        .unwrap();
    let told = tilewright(folder.path(), &["tutorial", ".", "--log", "log.jsonl"]);
    assert!(told.contains("48") && told.contains("16x16x96") && told.ends_with("exit code 0"), "{told}");
    let log = fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    assert!(log.lines().count() == 6 && !log.contains("\"failure\""), "{log}");
}

#[test]
fn each_step_is_left_out_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    ladder(folder.path());
    let told = tilewright(folder.path(), &["tutorial", ".", "--ablate"]);
    for words in ["rung lanes, at 48", "noise floor: the same program is ", "1     reorder", "with it went 4"]
    {
        assert!(told.contains(words), "{words} in {told}");
    }
    let told = tilewright(folder.path(), &["--json", "tutorial", ".", "--ablate", "--step", "lanes"]);
    let lines: Vec<Value> = told.lines().filter_map(|it| serde_json::from_str(it).ok()).collect();
    assert_eq!(lines.len(), 5, "{told}");
    for line in &lines[..4] {
        assert!(line["worth"]["median"].as_f64().unwrap() > 0.0, "{line}");
    }
    // Without the loop of its own there is nothing to make vectors of, and without k outside j nothing to sum up in lanes.
    assert_eq!(lines[1]["with"], serde_json::json!([4]));
    assert_eq!(lines[4]["ok"], true);

    let log = tilewright(folder.path(), &["tutorial", ".", "--ablate", "--log", "x.jsonl"]);
    assert!(log.contains("error[TW5012]") && log.ends_with("exit code 2"), "{log}");
}
