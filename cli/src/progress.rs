//! How far compiling and measuring are, told beside what is printed.

use codegen::device::{cc, nvrtc};
use ir::Target;
use tuner::{Bench, Candidate, Comparison, Progress, Settings};

use crate::{build::Built, term::shell::Shell};

/// Tells with `--verbose` what compiles for a target.
pub(crate) fn tell_compiler(target: &Target, shell: &mut Shell<'_>) {
    shell.detail(|| match target {
        Target::Cpu => match cc::find() {
            Ok(it) => format!("C compiler: `{}`, {}", it.command.join(" "), it.version),
            Err(err) => err.to_string(),
        },
        Target::Cuda(arch) => match nvrtc::find() {
            Ok(it) => {
                format!("NVRTC {}.{} at {}, for {arch}", it.version.0, it.version.1, it.path.display())
            }
            Err(err) => err.to_string(),
        },
    });
}

/// Times programs against each other, with a progress line.
pub(crate) fn compare(
    bench: &mut Bench<'_>,
    rungs: &[(&str, &Built)],
    settings: &Settings,
    what: &str,
    shell: &mut Shell<'_>,
) -> Comparison {
    let candidates: Vec<_> = rungs
        .iter()
        .map(|(label, built)| Candidate { label: (*label).to_owned(), program: &built.program })
        .collect();
    bench.compare(&candidates, settings, &mut |it| show_progress(what, &it, shell))
}

/// How far a measurement is, in the progress line.
pub(crate) fn show_progress(what: &str, progress: &Progress<'_>, shell: &mut Shell<'_>) {
    match progress {
        Progress::Verifying(label) => shell.progress(&format!("{what}: verifying {label}")),
        Progress::Round { number, of } => shell.progress(&format!("{what}: round {number} of {of}")),
    }
}
