//! Elements of every type.

use std::fs;

use ir::DType;

use super::{call, cc};
use crate::common::tilewright;

/// Copies a vector of each type.
fn workload() -> String {
    let all = DType::ALL.map(|it| {
        let tensor =
            |name: &str, role: &str| format!("\"{name}_{it}\": {role}(dtype: \"{it}\", shape: [\"n\"])");
        let tensors = format!("{}, {}", tensor("x", "input"), tensor("y", "output"));
        (tensors, format!("\"y_{it}[i] = x_{it}[i]\""))
    });
    let (tensors, stages): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    format!(
        "workload(name: \"copies\", about: \"Every type.\", params: {{\"n\": size(default: 300)}}, axes: {{\"i\": \"n\"}}, \
         tensors: {{{}}}, stages: [{}])",
        tensors.join(", "),
        stages.join(", ")
    )
}

/// The steps that give each element a block of threads.
fn bound() -> String {
    let loops = DType::ALL.iter().enumerate();
    let loops = loops.map(|(n, it)| if n == 0 { "i".to_owned() } else { format!("i_y_{it}") });
    loops.map(|it| format!("bind(loop: \"{it}\", axis: \"blockIdx.x\"), ")).collect::<Vec<_>>().concat()
}

#[test]
fn bundles_have_every_type() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("copies.ron"), workload()).unwrap();
    for target in ["cpu", "cuda:sm_80"] {
        let bundle = target.split(':').next().unwrap();
        let steps = if bundle == "cuda" { bound() } else { String::new() };
        let script = format!("schedule(workload: \"./copies.ron\", target: \"{target}\", steps: [{steps}])");
        let file = format!("{bundle}.ron");
        fs::write(folder.join(&file), script).unwrap();
        let more: &[&str] = if bundle == "cuda" { &["--source-only"] } else { &[] };
        let told = tilewright(folder, &[&["export", &file, "--out", bundle, "--name", "it"], more].concat());
        assert!(told.ends_with("exit code 0"), "{told}");
    }
    let bundle = folder.join("cpu");
    cc(
        &bundle,
        "-fsanitize=address,undefined -fno-sanitize-recover=all -o verify main.c reference.c it.c it_kernel.c",
    );
    let out = call(&bundle, "verify", &[]);
    assert!(out.status.success(), "{out:?}");
    let bundle = folder.join("cuda");
    cc(&bundle, "-o verify main.c reference.c it.c");
    // Without NVRTC there is no bundle in Rust for a GPU: its sizes come from this.
    let sizes = include_str!("../../../src/export/templates/sizes.rs.txt");
    for it in DType::ALL {
        assert!(sizes.contains(&format!("\n    {it:?},\n")), "{it:?}");
    }
}
