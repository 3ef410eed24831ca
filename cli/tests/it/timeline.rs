//! The timelines of pipelines, as the user sees them.

#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::{fs, path::Path};

use crate::common::tilewright;

/// Shows a script's pipelines as on a machine without NVRTC, so that it is the same everywhere.
fn show(script: &Path, more: &[&str]) -> String {
    let name = script.file_name().unwrap().to_str().unwrap();
    let is_for = |arch: &str| fs::read_to_string(script).unwrap().contains(&format!("\"cuda:{arch}\""));
    let arch = ["sm_100a", "sm_120a"].into_iter().find(|it| is_for(it)).unwrap_or("sm_90a");
    let arguments = ["show", name, "--emit", "pipeline", "--arch", arch];
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

/// Where a text of a drawing stands: its left and right edge, its line, and the text.
fn texts(svg: &str) -> Vec<(f64, f64, f64, &str)> {
    let of = |it: &str| {
        let attribute = |name: &str| {
            let rest = it.split_once(&format!(" {name}=\""))?.1;
            rest.split('"').next()
        };
        let number = |name: &str| attribute(name).map(|it| it.parse::<f64>().unwrap());
        // Of the font that the drawing asks for, a character is so wide.
        let character = number("font-size").unwrap_or(13.0) * 0.602;
        let (x, y) = (number("x").unwrap(), number("y").unwrap());
        let is_middle = attribute("text-anchor") == Some("middle");
        (x, y, character, is_middle)
    };
    let all = svg.split("<text").skip(1).filter_map(|it| it.split_once("</text>"));
    let all = all.filter_map(|(it, _)| it.split_once('>'));
    all.map(|(attributes, text)| {
        let (x, y, character, is_middle) = of(attributes);
        let plain =
            text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "'").replace("&amp;", "&");
        let width = character * f64::from(u32::try_from(plain.chars().count()).unwrap());
        let left = if is_middle { x - width / 2.0 } else { x };
        (left, left + width, y, text)
    })
    .collect()
}

/// No text lies over another, or beyond the edge.
#[test]
fn the_texts_of_a_drawing_have_room() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let rungs = ["01_tma_wgmma", "02_ring", "04_warp_specialised", "07_store"];
    let rungs = rungs.map(|it| root.join(format!("../workloads/matmul/ladders/matmul-hopper/{it}.ron")));
    for script in rungs.into_iter().chain([root.join("tests/scripts/pipeline_nested_cuda.ron")]) {
        let file = folder.path().join("drawing.svg");
        show(&script, &["--svg", file.to_str().unwrap(), "--force"]);
        let svg = fs::read_to_string(&file).unwrap();
        let page = svg.split("width=\"").nth(1).and_then(|it| it.split('"').next()).unwrap();
        let (page, all): (f64, _) = (page.parse().unwrap(), texts(&svg));
        assert!(all.len() > 40, "{}", all.len());
        for (at, (left, right, y, text)) in all.iter().enumerate() {
            assert!(*left >= 0.0 && *right <= page, "{}: `{text}` leaves the page", script.display());
            let mut others = all[at + 1..].iter();
            let over = others.find(|it| (it.2 - y).abs() < 9.0 && it.0 < *right && *left < it.1);
            assert!(over.is_none(), "{}: `{text}` and {over:?} lie over each other", script.display());
        }
    }
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
