//! Running the tool as a user does, and what it printed.

use std::{path::Path, process::Command};

/// What `tilewright` prints in a folder, with its exit code; NVRTC is not to be found.
pub(crate) fn tilewright(folder: &Path, arguments: &[&str]) -> String {
    run(folder, arguments, &[("TILEWRIGHT_NVRTC_DIR", "no-such-folder")])
}

/// The same in an environment of one's own.
pub(crate) fn run(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(arguments).current_dir(folder).env_remove("COLUMNS").envs(environment.iter().copied());
    let out = command.output().expect("the tool was built with this test");
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let code = out.status.code().map_or("killed".to_owned(), |it| it.to_string());
    let part = |name: &str, text: &str| {
        if text.is_empty() { String::new() } else { format!("--- {name}\n{}\n", text.trim_end()) }
    };
    format!("{}{}--- exit code {code}", part("stdout", &stdout), part("stderr", &stderr))
}
