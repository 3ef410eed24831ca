//! `export --verify`: builds a copy of a bundle with what the machine has, and runs the bundle's own program in a
//! process of its own. Nothing of tilewright takes part in the numbers.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use codegen::device::cc;
use ir::Target;

use super::{cpu, cuda, subject::Subject, write::scratch};
use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// What the bundle's own program said.
#[derive(Debug)]
pub(crate) struct VerifyReport {
    /// The largest error in parts of the tolerance.
    pub(crate) error: Option<f64>,
    /// The speed that it saw.
    pub(crate) gflops: Option<f64>,
    /// All that it printed.
    pub(crate) words: String,
}

/// The code with which the bundle's program says that there is nothing to run on, as test harnesses know it.
const NO_DEVICE: i32 = 77;

/// Builds and runs the bundle in a folder.
///
/// # Errors
/// [`UsageError::BundleWrong`] where it does not build or its numbers are wrong, [`UsageError::BundleNotRun`] where it was
/// built and there is no device to run it on.
pub(crate) fn bundle(folder: &Path, subject: &Subject) -> Result<VerifyReport, Diagnostic> {
    let copy = scratch()?;
    let failed = |err| Diagnostic::io(folder, &err);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        // The one folder is the crate for candle, which is not built.
        if entry.path().is_dir() {
            continue;
        }
        fs::copy(entry.path(), copy.path().join(entry.file_name())).map_err(failed)?;
    }
    build(copy.path(), subject)?;
    let run = Command::new(copy.path().join("verify"))
        .current_dir(copy.path())
        .stdin(Stdio::null())
        .output()
        .map_err(|err| {
            Diagnostic::failed(UsageError::BundleWrong, format!("its program does not start: {err}"))
        })?;
    judge(&run)
}

fn build(folder: &Path, subject: &Subject) -> Result<(), Diagnostic> {
    let compiler = cc::find()?;
    let (options, sources, libraries) = match subject.target {
        Target::Cpu => (cpu::OPTIONS, cpu::sources(&subject.name).to_vec(), &["-lm", "-pthread"]),
        Target::Cuda(_) => (cuda::OPTIONS, vec![cuda::launcher_source(&subject.name)], &["-lm", "-ldl"]),
    };
    let (program, arguments) = compiler.command.split_first().expect("a compiler that answered has a name");
    let out = Command::new(program)
        .args(arguments)
        .args(options.split_whitespace())
        .args(["-o", "verify", "main.c", "reference.c"])
        .args(sources)
        .args(libraries)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    match out {
        Ok(it) if it.status.success() => Ok(()),
        Ok(it) => {
            Err(Diagnostic::failed(UsageError::BundleWrong, format!("it does not build: {}", said(&it))))
        }
        Err(err) => {
            Err(Diagnostic::failed(UsageError::BundleWrong, format!("it does not build: {program}: {err}")))
        }
    }
}

fn judge(run: &Output) -> Result<VerifyReport, Diagnostic> {
    let words = said(run);
    let number = |line: &str, after: &str| line.split_once(after)?.1.split_whitespace().next()?.parse().ok();
    match run.status.code() {
        Some(0) => Ok(VerifyReport {
            error: words.lines().find_map(|it| number(it, "max error ")),
            gflops: words.lines().find_map(|it| number(it, " ms, ")),
            words,
        }),
        Some(NO_DEVICE) => Err(Diagnostic::usage(
            UsageError::BundleNotRun,
            format!("the bundle was built, and there is no GPU to run it on: {words}"),
        )
        .help("run `make check` in the bundle on a machine that has one".to_owned())),
        Some(_) => Err(Diagnostic::failed(UsageError::BundleWrong, format!("its own program says: {words}"))),
        None => Err(Diagnostic::failed(
            UsageError::BundleWrong,
            format!("its program was killed ({})", run.status),
        )),
    }
}

fn said(out: &Output) -> String {
    let text = [&out.stdout[..], &out.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    if text.is_empty() { out.status.to_string() } else { text }
}
