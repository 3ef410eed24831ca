//! The timelines of pipelines, as the user sees them.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{fs, path::Path};

use crate::common::tilewright;

/// Shows a script's pipelines as on a machine without NVRTC, so that it is the same everywhere.
fn show(script: &Path, more: &[&str]) -> String {
    let name = script.file_name().unwrap().to_str().unwrap();
    let arguments = ["show", name, "--emit", "pipeline", "--arch", "sm_90a"];
    tilewright(script.parent().unwrap(), &[&arguments, more].concat())
}

#[test]
fn the_scripts_of_pipelines() {
    insta::glob!("../scripts", "pipeline_*.ron", |path| {
        insta::assert_snapshot!(show(path, &[]));
    });
}

#[test]
fn the_rungs_of_the_ladders() {
    insta::glob!("../../../workloads/matmul/ladders", "matmul-*/*.ron", |path| {
        if fs::read_to_string(path).unwrap().contains("software_pipeline_stage") {
            insta::assert_snapshot!(show(path, &[]));
        }
    });
}

#[test]
fn drawings_and_data() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nested.svg");
    show(&scripts.join("pipeline_nested_cuda.ron"), &["--svg", file.to_str().unwrap()]);
    insta::assert_snapshot!("svg", fs::read_to_string(&file).unwrap());
    insta::assert_snapshot!("json", show(&scripts.join("pipeline_three_stages_cuda.ron"), &["--json"]));
    insta::assert_snapshot!("none", show(&scripts.join("matmul_nt_cuda.ron"), &[]));
    insta::assert_snapshot!("suggested", show(&scripts.join("pipeline_double_buffer_cuda.ron"), &[]));
    // What stands there may be no drawing of ours: it stays unless that is forced.
    fs::write(&file, "mine").unwrap();
    let again = |more: &[&str]| {
        let svg = [&["--svg", file.to_str().unwrap()], more].concat();
        (show(&scripts.join("pipeline_nested_cuda.ron"), &svg), fs::read_to_string(&file).unwrap())
    };
    let (told, kept) = again(&[]);
    assert!(told.contains("error[TW5003]") && told.contains("there is such a file"), "{told}");
    assert_eq!(kept, "mine");
    assert!(again(&["--force"]).1.starts_with("<svg"));
    let nowhere = folder.path().join("no/such/folder.svg");
    let told = show(&scripts.join("pipeline_nested_cuda.ron"), &["--svg", nowhere.to_str().unwrap()]);
    assert!(told.contains("folder.svg: "), "{told}");
    let none = folder.path().join("none.svg");
    show(&scripts.join("matmul_nt_cuda.ron"), &["--svg", none.to_str().unwrap()]);
    assert!(!none.exists(), "there is nothing to draw");
}

/// The README's picture. `INSTA_UPDATE=always cargo test --test it timeline::` draws it again.
#[test]
fn the_picture_of_the_readme_is_what_is_drawn() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let drawn = folder.path().join("pipeline.svg");
    let rung = root.join("workloads/matmul/ladders/matmul-cuda-f32/12_async_4.ron");
    show(&rung, &["--svg", drawn.to_str().unwrap()]);
    let (drawn, picture) = (fs::read_to_string(drawn).unwrap(), root.join("docs/pipeline.svg"));
    if std::env::var_os("INSTA_UPDATE").is_some_and(|it| it == "always") {
        fs::write(&picture, &drawn).unwrap();
    }
    assert!(
        fs::read_to_string(picture).unwrap() == drawn,
        "docs/pipeline.svg is not what `show --svg` draws"
    );
}

/// Half of what a pipeline needs, and slots that are asked for in vain.
#[test]
fn what_is_missing_and_what_changes_nothing() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let text = fs::read_to_string(scripts.join("pipeline_two_stages_cuda.ron")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let half: Vec<_> = text.lines().filter(|it| !it.contains("software_pipeline_order")).collect();
    let file = folder.path().join("half.ron");
    fs::write(&file, half.join("\n")).unwrap();
    insta::assert_snapshot!("half", show(&file, &[]));
    let told = tilewright(folder.path(), &["check", "half.ron"]);
    assert!(told.contains("note: no effect: loop ko has stages and no order"), "{told}");

    let twice = "double_buffer_scope(block: \"A_shared\"),\n        software_pipeline_stage(";
    let file = folder.path().join("twice.ron");
    fs::write(&file, text.replace("software_pipeline_stage(", twice)).unwrap();
    let no_effect = "no effect: A_shared already has 2 slots";
    let told = show(&file, &[]);
    assert!(told.contains(no_effect), "{told}");
    for arguments in [&["check", "twice.ron"][..], &["show", "twice.ron", "--emit", "kernel"]] {
        let told = tilewright(folder.path(), arguments);
        assert!(told.contains(&format!("note: {no_effect}")), "{told}");
    }
    let told = tilewright(&scripts, &["check", "pipeline_double_buffer_cuda.ron"]);
    assert!(told.contains("note: no effect: B_shared has 1 slot"), "{told}");
}
