//! The CUDA ladders are compiled by NVRTC, with no GPU needed.

use std::{env, path::Path};

use crate::common::run;

/// Whether NVRTC is there; says so if not, and fails if it must be.
pub(crate) fn has_nvrtc(folder: &Path) -> bool {
    let found = run(folder, &["doctor"], &[]).contains("\nOK    nvrtc");
    let needed = env::var_os("TILEWRIGHT_REQUIRE_NVRTC").is_some_and(|it| it == "1");
    assert!(found || !needed, "TILEWRIGHT_REQUIRE_NVRTC is set, and NVRTC was not found");
    if !found {
        eprintln!("skipped: NVRTC was not found");
    }
    found
}

/// Whether a ladder's scripts say so.
fn is_for_gpus(ladder: &workloads::Ladder) -> bool {
    ladder.rungs.iter().all(|it| it.text.contains("target: \"cuda"))
}

#[test]
fn every_rung_compiles() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads");
    if !has_nvrtc(&folder) {
        return;
    }
    let mut rungs = 0;
    for ladder in workloads::ladders().iter().filter(|it| is_for_gpus(it)) {
        for (at, rung) in ladder.rungs.iter().enumerate() {
            let path = format!("{}/ladders/{}/{}.ron", ladder.workload, ladder.name, rung.name);
            // Without the tool every rung is compiled for both, in the test that looks for spills.
            let arch = match rung.text {
                text if text.contains("cuda:sm_120") => "sm_120a",
                text if text.contains("cuda:sm_100") => "sm_100a",
                text if text.contains("cuda:sm_90") => "sm_90a",
                _ => ["sm_80", "sm_90a"][at % 2],
            };
            let told = run(&folder, &["show", &path, "--emit", "resources", "--arch", arch], &[]);
            assert!(told.contains("registers") && told.ends_with("exit code 0"), "{path} {arch}: {told}");
            rungs += 1;
        }
    }
    assert!(rungs > 0);
}

#[test]
fn ptx_is_printed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workloads/matmul/ladders/matmul-cuda-f32");
    if !has_nvrtc(&folder) {
        return;
    }
    let told = run(&folder, &["show", "01_bind.ron", "--emit", "ptx", "--arch", "sm_80"], &[]);
    assert!(told.contains(".target sm_80") && told.ends_with("exit code 0"), "{told}");
}
