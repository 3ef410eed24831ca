//! Every refused script of `schedule/tests/scripts`, as the user sees the refusal.

use std::{fs, path::Path};

#[test]
fn refusals_are_rendered() {
    // The scripts name programs by the names of files beside them.
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schedule/tests/funcs");
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(programs).unwrap() {
        let path = entry.unwrap().path();
        let to = folder.path().join(path.file_stem().unwrap()).with_extension("tw");
        fs::copy(&path, to).unwrap();
    }
    insta::glob!("../../../schedule/tests/scripts", "refuse_*.ron", |path| {
        let text = fs::read_to_string(path).unwrap();
        let file = path.file_name().unwrap().to_str().unwrap();
        // `workload: "matmul"` means the file `matmul.tw` here.
        let (before, after) = text.split_once("workload: \"").unwrap_or((&text, ""));
        let (name, rest) = after.split_once('"').unwrap_or(("", after));
        let text =
            if name.is_empty() { text.clone() } else { format!("{before}workload: \"{name}.tw\"{rest}") };
        fs::write(folder.path().join(file), text).unwrap();
        let printed = crate::common::tilewright(folder.path(), &["check", file]);
        assert!(printed.ends_with("exit code 1"), "{file}: {printed}");
        insta::assert_snapshot!(printed);
    });
}
