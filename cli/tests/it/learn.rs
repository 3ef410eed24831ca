//! The exercises as a learner meets them.

use std::fs;

use crate::common::tilewright;

/// What commands print in one folder.
fn told(folder: &std::path::Path, requests: &[&[&str]]) -> String {
    let one = |it: &&[&str]| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder, it));
    requests.iter().map(one).collect::<Vec<_>>().join("\n")
}

const ORDER: &str = "reorder(order: [\"k\", \"j\"]),";

#[test]
fn from_init_to_the_second_exercise() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = told(
        folder.path(),
        &[
            &["learn"],
            &["learn", "list"],
            &["learn", "init"],
            &["learn", "init"],
            &["learn"],
            &["learn", "list"],
            &["learn", "check"],
            &["learn", "hint"],
            &["learn", "hint"],
            &["learn", "hint"],
            &["learn", "hint"],
            &["learn", "diff"],
            &["learn", "solution", "loop_order"],
            &["learn", "check", "order"],
            &["learn", "check", "03"],
            &["learn", "check", "--all"],
        ],
    );
    let path = folder.path().join("tilewright-exercises/cpu/01_loop_order.ron");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("// ???", &format!("{ORDER} // ???"))).unwrap();
    all += &told(
        folder.path(),
        &[
            &["learn", "check"],
            &["learn", "diff", "loop_order"],
            &["learn", "solution"],
            &["learn", "check", "cpu/01"],
            &["learn", "reset", "loop_order"],
            &["learn", "reset", "loop_order"],
            &["--json", "learn", "check"],
            &["--json", "learn", "hint", "cuda/14_swizzle"],
        ],
    );
    assert!(path.with_extension("old").is_file());
    insta::assert_snapshot!(all);
}

#[test]
fn what_is_remembered_is_found_out_again() {
    let folder = tempfile::tempdir().unwrap();
    tilewright(folder.path(), &["learn", "init", "mine"]);
    let (dir, mine) = (folder.path().join("mine"), folder.path().join("mine/cpu/01_loop_order.ron"));
    let text = fs::read_to_string(&mine).unwrap();
    fs::write(&mine, text.replace("// ???", &format!("{ORDER} // ???"))).unwrap();
    let list = || {
        let told = tilewright(&dir, &["--json", "learn", "list"]);
        told.lines().find(|it| it.contains("\"next\"")).unwrap().to_owned()
    };
    let first = list();
    assert!(first.contains("\"solved\":1"), "{first}");
    for damaged in ["", "{", "{\"format_version\":1}", "{\"format_version\":1,\"exercises\":3}"] {
        fs::write(dir.join(".tilewright-learn.json"), damaged).unwrap();
        assert_eq!(list(), first, "{damaged}");
    }
    fs::write(dir.join(".tilewright-learn.json"), "{\"format_version\":2,\"trees\":[]}").unwrap();
    insta::assert_snapshot!(tilewright(folder.path(), &["learn", "list", "--dir", "mine"]));

    fs::remove_file(dir.join(".tilewright-learn.json")).unwrap();
    assert!(tilewright(&dir, &["learn", "list"]).contains("error[TW5032]"));
}

#[test]
fn a_file_that_is_gone_can_be_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    tilewright(folder.path(), &["learn", "init"]);
    fs::remove_file(folder.path().join("tilewright-exercises/cpu/01_loop_order.ron")).unwrap();
    let requests: &[&[&str]] =
        &[&["learn", "check"], &["learn", "reset", "cpu/01"], &["learn", "diff", "cpu/01"]];
    insta::assert_snapshot!(told(folder.path(), requests));
}

#[test]
fn one_solution_is_checked_without_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let requests: &[&[&str]] = &[
        &["learn", "check", "coalesce", "--solutions"],
        &["--json", "learn", "check", "coalesce", "--solutions"],
        &["learn", "check", "--solutions"],
    ];
    insta::assert_snapshot!(told(folder.path(), requests));
}
