//! Every name that can be mistyped is answered with the one that was probably meant.

use std::fs;

use crate::common::tilewright;

const SCRIPT: &str = r#"schedule(
    workload: "matmul", target: "cuda",
    params: {"m": 64, "n": 64, "k": 64, "dtype": "f32"},
    knobs: {"depth": [8, 16]},
    steps: [
        split(loop: "k", into: {"ko": None, "ki": "depth"}),
        bind(loop: "i", axis: "blockIdx.x"),
        cache_read(block: "C", buffer: "A", scope: "shared"),
    ],
)
"#;

/// A word of the script in place of another, and what is suggested.
const IN_SCRIPTS: &[(&str, &str, &str)] = &[
    ("workload:", "worklaod:", "workload"),
    ("\"matmul\"", "\"matmull\"", "matmul"),
    ("\"cuda\"", "\"cudda\"", "cuda"),
    ("\"dtype\"", "\"dtyp\"", "dtype"),
    ("\"f32\"", "\"f23\"", "f32"),
    ("[8, 16]", "powers_of_tow(from: 8, to: 16)", "powers_of_two"),
    ("\"ki\": \"depth\"", "\"ki\": \"max8(depth, 8)\"", "max"),
    ("\"ki\": \"depth\"", "\"ki\": \"detph\"", "depth"),
    ("split(", "spilt(", "split"),
    ("into:", "inot:", "into"),
    ("loop: \"i\"", "loop: \"I\"", "i"),
    ("blockIdx.x", "blokIdx.x", "blockIdx.x"),
    ("block: \"C\"", "block: \"c\"", "C"),
    ("buffer: \"A\"", "buffer: \"a\"", "A"),
    ("\"shared\"", "\"shred\"", "shared"),
    (
        "cache_read(block: \"C\", buffer: \"A\", scope: \"shared\")",
        "tensorize(loop: \"i\", intrin: \"ldmatrx_x2\")",
        "ldmatrix_x2",
    ),
];

/// Command lines, and what is suggested.
const IN_ARGUMENTS: &[(&str, &str)] = &[
    ("chek a.ron", "check"),
    ("check a.ron --parm m=1", "--param"),
    ("check a.ron --param detph=8", "depth"),
    ("check a.ron --param dtyp=f16", "dtype"),
    ("check a.ron --target cudda", "cuda"),
    ("run a.ron --target vpgu", "vgpu"),
    ("show a.ron --emit kernl", "kernel"),
    ("run a.ron --regime col", "cool"),
    ("tune a.ron --strategy randm", "random"),
    ("tutorial matmul-cp", "matmul-cpu"),
    ("explain splt", "split"),
    ("explain mma_tle", "mma_tile"),
    ("explain std/mna", "std/mma"),
    ("explain ldmatrx_x2", "ldmatrix_x2"),
    ("schema chek", "check"),
    ("log cat x.twlog --kind trail", "trial"),
    ("completions bsh", "bash"),
];

#[test]
fn mistyped_names_in_scripts_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.ron");
    for (from, to, meant) in IN_SCRIPTS {
        assert!(SCRIPT.contains(from), "{from}");
        fs::write(&path, SCRIPT.replacen(from, to, 1)).unwrap();
        let told = tilewright(folder.path(), &["check", "a.ron"]);
        assert!(told.contains(&format!("did you mean `{meant}`?")), "{to}: {told}");
    }
}

#[test]
fn mistyped_names_in_arguments_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ron"), SCRIPT).unwrap();
    for (line, meant) in IN_ARGUMENTS {
        let told = tilewright(folder.path(), &line.split(' ').collect::<Vec<_>>());
        let ours = told.contains("did you mean") && told.contains(&format!("`{meant}`?"));
        let theirs = told.contains("tip: ") && told.contains(&format!("'{meant}'"));
        assert!(ours || theirs, "{line}: {told}");
    }
}
