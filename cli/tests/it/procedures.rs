//! What is told about procedures: refusals inside them with the calls around, their manuals, and what to try instead.

use std::{fs, path::Path};

use crate::common::tilewright;

/// A split that is refused, in a procedure that is called by another.
const NESTED: &str = r#"schedule(
    define: {
        "inner": procedure(
            params: ["loop", "size"],
            steps: [
                split(loop: "{loop}", into: {"{loop}o": None, "{loop}i": "{size}"}),
                unroll(loop: "{loop}x"),
            ],
        ),
        "outer": procedure(
            params: ["loop"],
            steps: [reorder(order: ["i", "j"]), inner(loop: "{loop}", size: 8)],
        ),
    },
    workload: "matmul",
    steps: [
        outer(loop: "k"),
    ],
)
"#;

fn told(folder: &Path, requests: &[&[&str]]) -> String {
    let one = |it: &&[&str]| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder, it));
    requests.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_refusal_inside_procedures_shows_the_calls_around_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("nested.ron", NESTED);
    write("placeholder.ron", &NESTED.replace("{loop}x", "{lop}x"));
    write("word.ron", &NESTED.replace("unroll(", "unrol("));
    insta::assert_snapshot!(told(
        folder.path(),
        &[
            &["check", "nested.ron"],
            &["--json", "check", "nested.ron"],
            &["check", "placeholder.ron"],
            &["--json", "check", "placeholder.ron"],
            &["check", "word.ron"],
        ]
    ));
}

#[test]
fn libraries_in_files_are_found_beside_the_script() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("lib")).unwrap();
    write("lib/a.ron", r#"library(use: ["./b.ron"], define: {"a": procedure(steps: [b(), b()])})"#);
    write("lib/b.ron", r#"library(use: ["./a.ron"], define: {"b": procedure(steps: [unroll(loop: "x")])})"#);
    write("loop.ron", r#"library(use: ["../lib/../loop.ron", "./lib/../loop.ron"], define: {})"#);
    write("uses.ron", r#"schedule(use: ["./lib/a.ron"], workload: "matmul", steps: [a()])"#);
    write("loops.ron", r#"schedule(use: ["./loop.ron"], workload: "matmul", steps: [])"#);
    write("itself.ron", r#"schedule(use: ["./itself.ron"], workload: "matmul", steps: [])"#);
    write("far.ron", r#"schedule(use: ["./far/away.ron"], workload: "matmul", steps: [])"#);
    write("typo.ron", r#"schedule(use: ["std/mna"], workload: "matmul", steps: [])"#);
    write("nothing.ron", r#"schedule(use: ["mma"], workload: "matmul", steps: [])"#);
    write("forgotten.ron", r#"schedule(workload: "matmul", steps: [mma_tile(), for_eech()])"#);
    write("forgotten_too.ron", r#"schedule(use: ["std/copy"], workload: "matmul", steps: [mma_tile()])"#);
    write("typed.ron", r#"schedule(use: ["std/mma"], workload: "matmul", steps: [mma_tille()])"#);
    let files = ["uses", "loops", "itself", "far", "typo", "nothing", "forgotten", "forgotten_too", "typed"];
    let files = files.map(|it| format!("{it}.ron"));
    let requests: Vec<_> = files.iter().map(|it| ["check", it]).collect();
    let requests: Vec<&[&str]> = requests.iter().map(<[_; 2]>::as_slice).collect();
    insta::assert_snapshot!(told(folder.path(), &requests));
}

#[test]
fn procedures_and_libraries_have_manuals() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(told(
        folder.path(),
        &[
            &["explain", "cooperative_fetch"],
            &["--json", "explain", "cooperative_fetch"],
            &["explain", "std/copy"],
            &["--json", "explain", "std/copy"],
            &["explain", "coperative_fetch"],
            &["explain", "std/cpy"],
            &["explain", "for_eech"],
            &["explain", "wen"],
        ]
    ));
    for form in ["choose", "for_each", "when", "mma_tile", "std/mma"] {
        let told = tilewright(folder.path(), &["explain", form]);
        assert!(told.contains(form) && told.ends_with("exit code 0"), "{told}");
    }
    let all = tilewright(folder.path(), &["explain"]);
    for name in ["for_each", "when", "mma_tile", "cooperative_fetch"] {
        assert!(all.contains(&format!("\n{name} ")), "{name} is not in the list");
    }
}
