//! The bundle for a GPU.

use ir::Arch;

use super::{Files, common, manifest::Compiled, spec::Spec, texts};
use crate::{build::compile_cuda, diagnostic::Diagnostic};

/// The options that the bundle's C is compiled with.
pub(super) const OPTIONS: &str = "-std=gnu11 -O2";

/// The C sources of the program that verifies.
pub(super) const SOURCES: [&str; 3] = ["main.c", "reference.c", "launcher.c"];

/// The files, but for the manifest and the page for readers.
pub(super) fn files(spec: &Spec<'_>, arch: &Arch, source_only: bool) -> Result<Files, Diagnostic> {
    let mut out = vec![
        ("kernel.cu", spec.subject.source.clone()),
        ("reference.h", common::reference_header(spec)),
        ("reference.c", common::reference_source(spec)),
    ];
    out.extend(common::schedule(spec));
    let all = texts(out);
    if source_only {
        return Ok(Files { all, compiled: Compiled::default(), left_out: vec![] });
    }
    let compiled = compile_cuda(&spec.subject.source, &spec.subject.plain, arch)?;
    let _ = compiled;
    Ok(Files { all, compiled: Compiled::default(), left_out: vec![] })
}
