//! Doing what a page says, in a folder of its own.

use std::{
    env, fs,
    path::Path,
    process::{Command as Process, Stdio},
};

use super::{
    page::{Block, Command, Needs, blocks},
    pattern::{has_wildcards, matches},
};

/// Plays a page; tells which commands printed something else, or writes down what they printed if that is wanted.
pub(crate) fn play(path: &Path, repository: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).unwrap();
    let (folder, temporary) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::os::unix::fs::symlink(repository.join("workloads"), folder.path().join("workloads")).unwrap();
    let mut printed = vec![];
    for block in blocks(&text) {
        match block {
            Block::File { name, text } => {
                let to = folder.path().join(name);
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::write(to, text).unwrap();
            }
            Block::Console { commands, needs } => {
                if needs == Needs::Nothing || needs == Needs::Nvrtc && has_nvrtc() {
                    let run = |it: Command| (run(&it.line, folder.path(), temporary.path(), needs), it);
                    printed.extend(commands.into_iter().map(run));
                }
            }
        }
    }
    printed.retain(|(output, it)| !matches(&it.expected, output));
    if printed.is_empty() {
        return Ok(());
    }
    if env::var_os("INSTA_UPDATE").is_some_and(|it| it == "always") {
        let mut text = text;
        for (output, it) in printed.iter().rev().filter(|it| !has_wildcards(&it.1.expected)) {
            text.replace_range(it.place.clone(), output);
        }
        fs::write(path, text).unwrap();
        // What stands for anything is for a person to say.
        printed.retain(|it| has_wildcards(&it.1.expected));
        if printed.is_empty() {
            return Ok(());
        }
    }
    let told = printed.iter().map(|(output, it)| {
        format!("{}: $ {}\n--- expected\n{}--- printed\n{output}", path.display(), it.line, it.expected)
    });
    Err(told.collect::<Vec<_>>().join("\n"))
}

fn has_nvrtc() -> bool {
    env::var_os("TILEWRIGHT_NVRTC_DIR").is_some()
}

/// What a command prints: standard output, standard error, and the exit code if that is not 0.
fn run(line: &str, folder: &Path, temporary: &Path, needs: Needs) -> String {
    let words = words(line);
    let (program, arguments) = words.split_first().unwrap_or_else(|| panic!("`$` without a command"));
    let program = match program.as_str() {
        "tilewright" => env!("CARGO_BIN_EXE_tilewright"),
        it @ ("cat" | "cc" | "make" | "ls" | "mkdir" | "sed") => it,
        it if it.starts_with("./") => it,
        it => panic!("pages run `tilewright`, a few tools, and what they built, not `{it}`"),
    };
    let mut command = Process::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    // Devices are locked by files among the temporary ones: two pages may measure at once, their times do not matter.
    command.env("TMPDIR", temporary);
    command.env(codegen::lower::VECTOR_BYTES, crate::common::WIDTH.to_string());
    command.env("HOME", folder).env_remove("XDG_STATE_HOME").env_remove("COLUMNS").env_remove("VIRTUAL_ENV");
    if needs == Needs::Nothing {
        command.env("TILEWRIGHT_NVRTC_DIR", "no-such-folder");
    }
    let out = command.output().unwrap_or_else(|err| panic!("{line}: {err}"));
    let mut text = String::new();
    for part in [&out.stdout, &out.stderr] {
        text += &String::from_utf8_lossy(part);
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    let text = text.replace(&folder.display().to_string(), "[..]");
    match out.status.code() {
        Some(0) => text,
        Some(code) => format!("{text}exit code {code}\n"),
        None => format!("{text}killed\n"),
    }
}

/// Words as a shell has them, with quotes and without anything else.
fn words(line: &str) -> Vec<String> {
    let (mut out, mut word, mut quote) = (vec![], None::<String>, None);
    for it in line.chars() {
        match (quote, it) {
            (Some(open), it) if it == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(it);
                word.get_or_insert_default();
            }
            (None, ' ') => out.extend(word.take()),
            (_, it) => word.get_or_insert_default().push(it),
        }
    }
    out.extend(word);
    out
}
