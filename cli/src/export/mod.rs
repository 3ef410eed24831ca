//! A kernel as a folder that builds and runs without tilewright.
//!
//! A file for each thing in a bundle; texts that hardly change are templates beside them, with holes between `@`. The
//! launchers know nothing that is not in [`spec::Spec`], and compare with the unscheduled program ([`reference`]) under the
//! tolerance of the tuner. Names in emitted text are validated identifiers; nothing that a log stores is executed.

mod bundle;
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
pub(crate) mod table;
mod value;
pub(crate) mod verify;
pub(crate) mod write;

use std::path::Path;

use ir::Target;

use crate::{diagnostic::Diagnostic, plan::Plan};
pub(crate) use bundle::{Files, files};
use subject::Subject;
use table::Table;

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

/// Writes the kernels of several schedules of one workload as a Rust crate, whose calls take the first that fits their shapes, strides and
/// alignment and the device, those for all sizes last, and are refused before anything is launched where none does. Returns the names of
/// its files. The kernels are called by the words beside the schedules, behind the name of the crate.
///
/// ```
/// # fn main() -> Result<(), tilewright::Diagnostic> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let out = folder.path().join("products");
/// use tilewright::{Plan, Target, export_crate};
///
/// let plan = |params: &str| {
///     let text = format!(r#"schedule(workload: "matmul", params: {params}, steps: [])"#);
///     Plan::parse("mine.ron".as_ref(), &text, &[])
/// };
/// let small = plan(r#"{"m": 32, "n": 32, "k": 32}"#)?;
/// let any = plan(r#"{"m": "m", "n": "n", "k": "depth"}"#)?;
/// let files = export_crate(&[("small", &small), ("any", &any)], &Target::Cpu, Some("products"), &out)?;
/// assert!(files.iter().any(|it| it == "kernels/products_any/products_any_kernel.c"));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Schedules that compute different things, and what [`export`] refuses of each of them.
pub fn export_crate(
    plans: &[(&str, &Plan)],
    target: &Target,
    name: Option<&str>,
    out: &Path,
) -> Result<Vec<String>, Diagnostic> {
    let mut kernels = vec![];
    for (word, plan) in plans {
        let dims: Vec<_> = plan.dims.iter().map(|(name, it)| (name.clone(), *it)).collect();
        kernels.push(((*word).to_owned(), Subject::of_plan((*plan).clone(), target.clone(), name, &dims)?));
    }
    let Files { all, .. } = Table::of(name, kernels)?.files()?;
    write::bundle(out, &all, true)?;
    Ok(all.into_iter().map(|(name, _)| name).collect())
}
