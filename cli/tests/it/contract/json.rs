//! Every command with `--json`: each line is of its schema, and the last one says whether all is well.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use super::schema::Schemas;

const CPU: &str = r#"schedule(workload: "matmul", target: "cpu", params: {"m": 16, "n": 16, "k": 16}, knobs: {"u": [1, 2, 4]},
    steps: [split(loop: "i", into: {"io": None, "ii": "u"})])"#;
const GPU: &str = r#"schedule(
    workload: "matmul", target: "cuda", params: {"m": 64, "n": 64, "k": 64},
    steps: [
        split(loop: "k", into: {"ko": None, "ki": 16}),
        bind(loop: "i", axis: "blockIdx.x"),
        bind(loop: "j", axis: "threadIdx.x"),
    ],
)"#;
const SYMBOLIC: &str = r#"schedule(workload: "elementwise", target: "cpu", params: {"n": "n"}, steps: [])"#;
const TYPO: &str =
    r#"schedule(workload: "matmul", steps: [splt(loop: "i"), bind(loop: "i", axes: "blockIdx.x")])"#;
const RACE: &str = "module m
  in A: f32[64]
  out B: f32[64]

  kernel k<<<threadIdx.x: 64>>>(A, mut B)
    alloc S: f32[64] @shared
    S[threadIdx_x] = A[threadIdx_x]
    B[threadIdx_x] = S[63 - threadIdx_x]
";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("cpu.ron", CPU),
        ("gpu.ron", GPU),
        ("symbolic.ron", SYMBOLIC),
        ("typo.ron", TYPO),
        ("race.tw", RACE),
        ("lad/01_naive.ron", CPU),
        ("lad/02_again.ron", CPU),
        ("vlad/01_one.ron", GPU),
    ];
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// The lines on standard output, whether it went well, and what was on standard error.
fn lines(folder: &Path, line: &str) -> (Vec<Value>, bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.arg("--json").args(line.split(' ')).current_dir(folder).env("HOME", folder);
    let out = command.env("TILEWRIGHT_NVRTC_DIR", "no-such-folder").output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let errors = String::from_utf8_lossy(&out.stderr).into_owned();
    let read = |it: &str| serde_json::from_str(it).unwrap_or_else(|err| panic!("{line}: {err}: {it}"));
    (text.lines().map(read).collect(), out.status.success(), errors)
}

/// Runs command lines, in order, in one folder.
fn expect_valid(all: &[&str]) {
    let (schemas, folder) = (Schemas::load(), folder());
    for line in all {
        let (values, is_well, errors) = lines(folder.path(), line);
        let schema = format!("{}.json", line.split(' ').next().unwrap());
        for it in &values {
            let checked = schemas.check(&schema, it);
            assert!(checked.is_ok(), "{line}: {}\n{it}", checked.unwrap_err());
        }
        let Some(last) = values.last() else { panic!("{line} printed nothing: {errors}") };
        if !line.starts_with("log cat") {
            assert_eq!(last["ok"].as_bool(), Some(is_well), "{line}: {last} {errors}");
        }
    }
}

#[test]
fn what_needs_no_run_is_of_its_schema() {
    expect_valid(&[
        "check cpu.ron",
        "check gpu.ron --target cuda:sm_90a",
        "check typo.ron",
        "check nothing.ron",
        "check cpu.ron --param u=wide",
        "check cpu.ron --frob",
        "fmt --check",
        "fmt cpu.ron gpu.ron",
        "fmt nothing.ron",
        "show cpu.ron",
        "show cpu.ron --emit diff",
        "show cpu.ron --emit c",
        "show gpu.ron --emit cuda",
        "show gpu.ron --emit kernel",
        "show gpu.ron --emit ptx",
        "show gpu.ron --emit pipeline",
        "show cpu.ron --emit space",
        "explain",
        "explain split",
        "explain mma_tile",
        "explain std/mma",
        "explain ldmatrix_x2",
        "explain mma_m16n8k16_f16_f16",
        "explain TW1002",
        "explain --codes",
        "explain splt",
        "completions fish",
        "man",
        "man pages",
        "schema",
        "schema error",
        "schema chek",
        "run gpu.ron --target vgpu",
        "run race.tw --target vgpu",
        "show gpu.ron --emit deps",
        "show gpu.ron --html page.html",
        "tutorial vlad --target vgpu",
        "tutorial list",
        "learn init",
        "learn list",
        "learn hint cpu/03_tile",
        "learn check --all",
        "export cpu.ron --out bundle --source-only",
        "compare gpu.ron gpu.ron --target vgpu",
        "top nothing.twlog",
    ]);
}

#[test]
fn pipelines_are_of_their_schema() {
    let ladder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/matmul/ladders/matmul-cuda-f32");
    let rung = ladder.join("10_async_2.ron");
    let (values, is_well, errors) =
        lines(&std::env::temp_dir(), &format!("show {} --emit pipeline", rung.display()));
    assert!(is_well, "{errors}");
    assert_eq!(Schemas::load().check("show.json", &values[0]), Ok(()));
}

#[test]
fn what_is_measured_is_of_its_schema() {
    expect_valid(&[
        "doctor",
        "run cpu.ron --threads 1",
        "run symbolic.ron --dim n=3,17 --time --threads 1",
        "run symbolic.ron",
        "tutorial lad --threads 1",
        "tutorial lad --ablate --threads 1",
        "tune cpu.ron --trials 2 --workers 1 --rounds 2 --finalists 2 --per-step",
        "resume cpu.twlog --trials 3 --workers 1",
        "resume cpu.twlog --run nothing",
        "top cpu.twlog",
        "replay cpu.twlog",
        "replay cpu.twlog --run nothing",
        "report cpu.twlog --out page.html",
        "log verify cpu.twlog",
        "log cat cpu.twlog",
        "compare cpu.ron cpu.ron",
        "compare cpu.ron cpu.twlog --rounds 3 --measure --fail-on slower=1000%",
        "compare cpu.ron gpu.ron",
        "log export cpu.twlog --to csv --out t.csv",
        "log merge all.twlog cpu.twlog",
        "log pack all.twlog",
        "log verify nothing.twlog",
    ]);
}
