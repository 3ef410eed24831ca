//! Colour, quiet and verbose, usage errors, completions and manual pages.

use std::{fs, path::Path, process::Command};

use crate::common::{run, tilewright};

const SCRIPT: &str =
    "schedule(workload: \"matmul\", target: \"cpu\", params: {\"m\": 8, \"n\": 8, \"k\": 8}, steps: [])";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.ron"), SCRIPT).unwrap();
    folder
}

#[test]
fn colour_is_for_who_wants_it() {
    let folder = folder();
    let is_coloured = |arguments: &[&str], environment: &[(&str, &str)]| {
        run(folder.path(), arguments, environment).contains("\u{1b}[")
    };
    // Neither standard output nor standard error is a terminal here.
    for arguments in [["check", "a.ron"], ["check", "b.ron"], ["--help", "check"], ["chek", "a.ron"]] {
        assert!(!is_coloured(&arguments, &[]), "{arguments:?}");
        let [a, b] = arguments;
        assert!(is_coloured(&["--color", "always", a, b], &[("NO_COLOR", "1")]), "{arguments:?}");
        assert!(is_coloured(&[a, b], &[("FORCE_COLOR", "1")]), "{arguments:?}");
        assert!(!is_coloured(&[a, b], &[("FORCE_COLOR", "1"), ("NO_COLOR", "1")]), "{arguments:?}");
        assert!(!is_coloured(&["--color=never", a, b], &[("FORCE_COLOR", "1")]), "{arguments:?}");
    }
    // Data as JSON has none, whatever is asked for.
    assert!(!is_coloured(&["--json", "--color", "always", "check", "a.ron"], &[]));
}

#[test]
fn verbose_says_more_and_quiet_less() {
    let folder = folder();
    let told = tilewright(folder.path(), &["check", "a.ron", "-v"]);
    for words in ["detail: tilewright ", "detail: reading the script: ", "detail: lowering: "] {
        assert!(told.contains(words), "{told}");
    }
    let note = ["show", "a.ron", "--emit", "c", "-q"];
    assert!(!tilewright(folder.path(), &note).contains("--- stderr"));
    let told = tilewright(folder.path(), &["check", "b.ron", "--quiet"]);
    assert!(told.contains("error[TW5001]") && told.ends_with("exit code 2"), "{told}");
}

#[test]
fn wrong_arguments_are_refused_in_words_and_as_data() {
    let folder = folder();
    let requests: &[&[&str]] = &[
        &["chek", "a.ron"],
        &["check"],
        &["check", "a.ron", "--parm", "m=1"],
        &["show", "a.ron", "--emit", "cud"],
        &["check", "a.ron", "--color", "sometimes"],
        &["--json", "chek", "a.ron"],
        &["check", "--json", "a.ron", "-q", "-v"],
    ];
    let told = requests
        .iter()
        .map(|it| format!("$ tilewright {}\n{}\n", it.join(" "), tilewright(folder.path(), it)));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"));
}

/// The subcommands that `--help` lists.
fn subcommands(folder: &Path) -> Vec<String> {
    let help = tilewright(folder, &["--help"]);
    let commands = help.split("Options:").next().unwrap().lines().filter(|it| it.starts_with("  "));
    let names = commands.filter_map(|it| it[2..].split(' ').next()).filter(|it| !it.is_empty());
    names.map(str::to_owned).collect()
}

#[test]
fn completions_know_every_subcommand() {
    let folder = folder();
    let names = subcommands(folder.path());
    assert!(names.len() >= 15, "{names:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let told = tilewright(folder.path(), &["completions", shell]);
        assert!(told.ends_with("exit code 0"));
        for name in &names {
            assert!(told.contains(name.as_str()), "{shell} does not know `{name}`");
        }
    }
    let script = folder.path().join("completions.bash");
    let out = Command::new(env!("CARGO_BIN_EXE_tilewright")).args(["completions", "bash"]).output().unwrap();
    fs::write(&script, out.stdout).unwrap();
    match Command::new("bash").arg("-n").arg(&script).status() {
        Ok(status) => assert!(status.success()),
        Err(_) => eprintln!("skipped: there is no bash"),
    }
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let folder = folder();
    let told = tilewright(folder.path(), &["man", "pages"]);
    assert!(told.contains("pages were written to pages"), "{told}");
    for name in subcommands(folder.path()) {
        let path = folder.path().join(format!("pages/tilewright-{name}.1"));
        let page = fs::read_to_string(&path).unwrap_or_else(|err| panic!("{}: {err}", path.display()));
        for section in [".TH ", ".SH NAME", ".SH SYNOPSIS", ".SH EXAMPLES", "GLOBAL OPTIONS"] {
            assert!(page.contains(section), "{name}: {section}");
        }
        assert!(!page.contains('\u{1b}'), "{name}");
    }
    assert!(
        fs::read_to_string(folder.path().join("pages/tilewright.1")).unwrap().contains(".SH SUBCOMMANDS")
    );
}
