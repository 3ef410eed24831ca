//! A kernel as a folder that builds and runs without tilewright.
//!
//! A file for each thing in a bundle; texts that hardly change are templates beside them, with holes between `@`. The
//! launchers know nothing that is not in [`spec::Spec`], and compare with the unscheduled program ([`reference`]) under the
//! tolerance of the tuner. Names in emitted text are validated identifiers; nothing that a log stores is executed.

mod candle;
mod common;
mod cpu;
mod cuda;
mod expr;
mod manifest;
mod maps;
mod name;
mod numpy;
mod readme;
mod reference;
mod rust;
mod spec;
pub(crate) mod subject;
mod value;
pub(crate) mod verify;
pub(crate) mod write;

use std::path::Path;

use ir::Target;

use crate::{diagnostic::Diagnostic, plan::Plan};
use manifest::{Compiled, manifest};
use spec::Spec;
use subject::Subject;

/// The files of a bundle, and what is worth knowing of them.
pub(crate) struct Files {
    pub(crate) all: Vec<(String, Vec<u8>)>,
    compiled: Compiled,
    /// What it has not, and why.
    pub(crate) left_out: Vec<String>,
}

/// Writes the kernel of a schedule as a folder that builds and runs without tilewright, and returns the names of its files. A folder
/// that has something else than such a bundle is left alone. Functions, header and library are called `name`, or as the workload with
/// `tilewright_` before it. Machine code for a GPU needs NVRTC.
///
/// ```
/// # fn main() -> Result<(), tilewright::Diagnostic> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let out = folder.path().join("bundle");
/// use tilewright::{Plan, Target, export};
///
/// let plan = Plan::parse("mine.ron".as_ref(), r#"schedule(workload: "matmul", params: {"m": 32, "n": 32, "k": 32}, steps: [])"#, &[])?;
/// let files = export(&plan, &Target::Cpu, Some("matmul_32"), &out)?;
/// assert!(files.iter().any(|it| it == "matmul_32.h"));
/// # Ok(())
/// # }
/// ```
pub fn export(
    plan: &Plan,
    target: &Target,
    name: Option<&str>,
    out: &Path,
) -> Result<Vec<String>, Diagnostic> {
    let dims: Vec<_> = plan.dims.iter().map(|(name, it)| (name.clone(), *it)).collect();
    let subject = Subject::of_plan(plan.clone(), target.clone(), name, &dims)?;
    let Files { all, .. } = files(&subject, false)?;
    write::bundle(out, &all, true)?;
    Ok(all.into_iter().map(|(name, _)| name).collect())
}

/// All files of a bundle, in the order of their names.
pub(crate) fn files(subject: &Subject, source_only: bool) -> Result<Files, Diagnostic> {
    let unsound = |err: ir::InterpError| {
        Diagnostic::failed(&err, format!("there is no reference to compare with: {err}"))
    };
    ir::reference::Reference::check(&subject.plain, &subject.dims).map_err(unsound)?;
    let spec = Spec::of(subject).map_err(|err| Diagnostic::launch(&subject.plain, &err))?;
    let Files { mut all, compiled, left_out } = match &subject.target {
        Target::Cpu => {
            Files { all: texts(cpu::files(&spec)), compiled: Compiled::default(), left_out: vec![] }
        }
        Target::Cuda(arch) => cuda::files(&spec, arch, source_only)?,
    };
    all.push(("README.md".to_owned(), readme::readme(&spec, &left_out).into_bytes()));
    all.sort();
    let manifest = manifest(&spec, &compiled, &all);
    all.push((write::MANIFEST.to_owned(), manifest.into_bytes()));
    all.sort();
    Ok(Files { all, compiled, left_out })
}

fn texts(files: Vec<(impl Into<String>, String)>) -> Vec<(String, Vec<u8>)> {
    files.into_iter().map(|(name, text)| (name.into(), text.into_bytes())).collect()
}
