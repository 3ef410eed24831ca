//! Running the tool as a user does, and what it printed.

use std::{path::Path, process::Command};

use codegen::lower::VECTOR_BYTES;

/// The bytes of vectors on a CPU, so that what is printed is the same on every machine.
pub(crate) const WIDTH: usize = 64;

/// A script that ships, or uses no other libraries than those that do, with plain steps in place of calls.
pub(crate) fn expanded(text: &str) -> String {
    tilewright::expand("script.ron".as_ref(), text).expect("its calls are right")
}

/// What `tilewright` prints in a folder, with its exit code; NVRTC is not to be found.
pub(crate) fn tilewright(folder: &Path, arguments: &[&str]) -> String {
    run(folder, arguments, &[("TILEWRIGHT_NVRTC_DIR", "no-such-folder")])
}

/// The same in an environment of one's own.
pub(crate) fn run(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(arguments).current_dir(folder).env_remove("COLUMNS");
    command.env(VECTOR_BYTES, WIDTH.to_string()).envs(environment.iter().copied());
    let out = command.output().expect("the tool was built with this test");
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    let code = out.status.code().map_or("killed".to_owned(), |it| it.to_string());
    let part = |name: &str, text: &str| {
        if text.is_empty() { String::new() } else { format!("--- {name}\n{}\n", text.trim_end()) }
    };
    format!("{}{}--- exit code {code}", part("stdout", &stdout), part("stderr", &stderr))
}
