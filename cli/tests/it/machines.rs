//! Workers on other machines: through Slurm, whose `srun` is a script here, and through a Ray cluster that cannot be reached.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::run;

const SPACE: &str = r#"schedule(
    workload: "matmul", target: "cpu",
    params: {"m": 32, "n": 32, "k": 32},
    knobs: {"ii": [2, 4, 8], "ji": [8, 16]},
    steps: [
        split(loop: "i", into: {"io": None, "ii": "ii"}),
        split(loop: "j", into: {"jo": None, "ji": "ji"}),
        reorder(order: ["io", "jo", "k", "ii", "ji"]),
        vectorize(loop: "ji"),
    ],
)"#;

/// Writes down what it is asked for, knows the options of the manual alone, and has no room for the first step with a GPU.
const SRUN: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/calls"
gpus=
while :; do
    case $1 in
        -n1 | --exact | --gres=none) shift ;;
        --gres=gpu:1) gpus=1; shift ;;
        -*) echo "srun: unrecognized option '$1'" >&2; exit 1 ;;
        *) break ;;
    esac
done
if [ -n "$gpus" ] && mkdir "$here/refused" 2>/dev/null; then
    echo "srun: error: Unable to create step for job 17: Requested nodes are busy" >&2
    exit 1
fi
SLURM_PROCID=0 exec "$@"
"#;

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("space.ron"), SPACE).unwrap();
    folder
}

/// The lines of a log with one segment.
fn lines(log: &Path) -> Vec<Value> {
    let segments: Vec<PathBuf> = fs::read_dir(log).unwrap().map(|it| it.unwrap().path()).collect();
    let [segment] = segments.as_slice() else { panic!("{segments:?}") };
    fs::read_to_string(segment).unwrap().lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn trials(lines: &[Value]) -> BTreeSet<(u64, String)> {
    let trials = lines.iter().filter(|it| it["k"] == "trial");
    trials.map(|it| (it["n"].as_u64().unwrap(), it["id"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn steps_of_slurm_compile_and_measure() {
    let folder = folder();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    executable(&bin.join("srun"), SRUN);
    let path = format!("{}:{}", bin.display(), env::var("PATH").unwrap());
    let tilewright = env!("CARGO_BIN_EXE_tilewright");
    let measure = format!("srun -n1 --exact --gres=gpu:1 {tilewright} worker --device cpu");
    let compile = format!("srun -n1 --exact --gres=none {tilewright} worker --compile-only");
    let search = "tune space.ron --trials 6 --rounds 3 --threads 1 --no-baseline --workers 2";
    let search: Vec<&str> = search.split(' ').collect();
    let through = ["--measurers", "2", "--worker-cmd", &measure, "--compile-cmd", &compile, "--log", "slurm"];
    let said = run(folder.path(), &[&search[..], &through].concat(), &[("PATH", &path)]);
    assert!(said.contains("exit code 0") && said.contains("trials     6: 6 measured"), "{said}");
    let calls = fs::read_to_string(bin.join("calls")).unwrap();
    let count = |word: &str| calls.lines().filter(|it| it.contains(word)).count();
    assert!(count("--compile-only") == 2 && (2..=3).contains(&count("--device cpu")), "{calls}");
    let there = lines(&folder.path().join("slurm"));
    let events: Vec<&Value> = there.iter().filter(|it| it["k"] == "event").collect();
    let refused = |it: &&&Value| it["detail"].as_str().unwrap().contains("Requested nodes are busy");
    assert_eq!(events.iter().filter(refused).count(), 1, "{events:?}");
    // Whoever measured said on what, and the finals were held by one of them.
    assert!(events.iter().any(|it| it["device"]["machine"]["arch"] == "cpu"), "{events:?}");
    assert!(there.iter().any(|it| it["k"] == "finals" && it["device"] == "cpu"));
    let said = run(folder.path(), &[&search[..], &["--log", "here", "--finalists", "0"]].concat(), &[]);
    assert!(said.contains("exit code 0"), "{said}");
    assert_eq!(trials(&there), trials(&lines(&folder.path().join("here"))));
}

/// What is printed where Python says something about its packages.
fn on_ray(python: &str, more: &[&str]) -> String {
    let folder = folder();
    let program = folder.path().join("python");
    executable(&program, &format!("#!/bin/sh\n{python}\n"));
    let arguments = [&["tune", "space.ron", "--on", "ray://auto"], more].concat();
    let said = run(folder.path(), &arguments, &[("TILEWRIGHT_PYTHON", program.to_str().unwrap())]);
    said.replace(folder.path().to_str().unwrap(), "FOLDER")
}

#[test]
fn a_python_without_ray() {
    insta::assert_snapshot!(on_ray("echo tilewright ray", &[]), @"
    --- stderr
    error[TW5063]: `FOLDER/python` lacks `tilewright` and `ray`, through which a cluster is reached
    help: pip install 'tilewright[ray]' for the `python3` of this shell, or for that of TILEWRIGHT_PYTHON

    For more about this error, try `tilewright explain TW5063`.
    --- exit code 2
    ");
    let broken = on_ray("echo 'Fatal Python error: no codec' >&2; exit 1", &[]);
    assert!(
        broken.contains("cannot be asked for Ray (exit status: 1): Fatal Python error: no codec"),
        "{broken}"
    );
}

#[test]
fn a_cluster_without_what_is_needed() {
    // It passes the question of the packages, and then is what speaks for the cluster.
    let hello = r#"{"k":"hello","proto":1,"tool":"ray","capacity":1,"problem":"the cluster has no GPU of the kind `B200`"}"#;
    let script =
        format!("case \"$*\" in *\"role measure\"*) echo '{hello}' ;; *tilewright.ray*) sleep 1000 ;; esac");
    insta::assert_snapshot!(on_ray(&script, &["--gpu", "B200", "--measurers", "2"]), @"
    --- stderr
    error[TW4112]: no worker that measures came up: worker `ray-m` cannot measure: the cluster has no GPU of the kind `B200`
    help: `ray status` tells what the cluster has, and what of it is free

    For more about this error, try `tilewright explain TW4112`.
    --- exit code 2
    ");
}

#[test]
fn flags_that_do_not_go_together() {
    for (more, words) in [
        (
            "--measurers 2",
            "[TW5012]: a number of processes that measure goes with a cluster, or with a command that",
        ),
        ("--gpu H100", "required arguments were not provided:\n  --on <ADDRESS>"),
        (
            "--on ray://auto --device 1",
            "[TW5024]: the argument '--on <ADDRESS>' cannot be used with '--device <NUMBER>'",
        ),
        (
            "--on ray://auto --worker-cmd a --worker-cmd b",
            "[TW5012]: the processes of a cluster that measure have one",
        ),
    ] {
        let words_of_command: Vec<&str> = "tune space.ron".split(' ').chain(more.split(' ')).collect();
        let said = run(folder().path(), &words_of_command, &[]);
        assert!(said.contains(words) && said.contains("exit code 2"), "{said}");
    }
}
