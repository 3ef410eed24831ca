//! One program at many values of a symbolic dimension.

use std::{fs, path::Path};

use crate::common::tilewright;

const GPU: &str = r#"schedule(
    workload: "matmul", target: "cuda",
    params: {"m": "m", "n": 24, "k": 8, "dtype": "f16", "out": "f16"},
    steps: [
        compute_at(block: "C_acc", loop: "j_C"),
        split(loop: "i_C", into: {"by": None, "ty": 8}),
        split(loop: "j_C", into: {"bx": None, "tx": 16}),
        reorder(order: ["by", "bx", "ty", "tx"]),
        bind(loop: "by", axis: "blockIdx.y"),
        bind(loop: "bx", axis: "blockIdx.x"),
        bind(loop: "ty", axis: "threadIdx.y"),
        bind(loop: "tx", axis: "threadIdx.x"),
    ],
)
"#;

const CPU: &str = r#"schedule(
    workload: "matmul", target: "cpu",
    params: {"m": "m", "n": "n", "k": 8, "dtype": "i8"},
    steps: [split(loop: "i", into: {"io": None, "ii": 4})],
)
"#;

fn told(folder: &Path, arguments: &[&str]) -> String {
    format!("$ tilewright {}\n{}\n", arguments.join(" "), tilewright(folder, arguments))
}

#[test]
fn sizes_on_the_virtual_gpu() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("gpu.ron"), GPU).unwrap();
    let requests: &[&[&str]] = &[
        &["run", "gpu.ron", "--target", "vgpu", "--dim", "m=1..9,33"],
        &["run", "gpu.ron", "--target", "vgpu", "--dim", "m=3..1"],
        &["run", "gpu.ron", "--target", "vgpu", "--dim", "m=1,2", "--dim", "n=1,2"],
        &["run", "gpu.ron", "--target", "vgpu", "--dim", "m=1,2", "--log", "log.jsonl"],
    ];
    let all: Vec<_> = requests.iter().map(|it| told(folder.path(), it)).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn sizes_on_a_cpu() {
    if codegen::device::cc::find().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("cpu.ron"), CPU).unwrap();
    let requests: &[&[&str]] = &[
        &["run", "cpu.ron", "--dim", "m=1..9", "--dim", "n=1,7"],
        &["run", "cpu.ron", "--dim", "m=1,5", "--dim", "n=7", "--log", "log.jsonl"],
    ];
    let all = requests.iter().map(|it| told(folder.path(), it)).collect::<Vec<_>>().join("\n");
    // The machine is another one everywhere.
    let machine = |it: &str| it.starts_with("machine ");
    let all: Vec<_> = all.lines().filter(|it| !machine(it)).collect();
    insta::assert_snapshot!(all.join("\n"));

    let json = ["run", "cpu.ron", "--dim", "m=1,5", "--dim", "n=3", "--time", "--json"];
    let text = tilewright(folder.path(), &json);
    let lines: Vec<_> = text.lines().filter(|it| it.starts_with('{')).collect();
    assert!(text.ends_with("--- exit code 0") && lines.len() == 2, "{text}");
    assert!(lines[0].contains(r#""dims":{"m":1,"n":3}"#) && lines[0].contains(r#""gflops":"#), "{text}");
}
