//! All files of a bundle.

use ir::Target;

use super::{
    cpu, cuda,
    manifest::{Compiled, manifest},
    readme,
    spec::Spec,
    subject::Subject,
    write,
};
use crate::diagnostic::Diagnostic;

/// The files of a bundle, and what is worth knowing of them.
pub(crate) struct Files {
    /// Names and contents.
    pub(crate) all: Vec<(String, Vec<u8>)>,
    /// What a compiler made of it.
    pub(super) compiled: Compiled,
    /// What it has not, and why.
    pub(crate) left_out: Vec<String>,
}

/// All files of a bundle, in the order of their names.
pub(crate) fn files(subject: &Subject, source_only: bool) -> Result<Files, Diagnostic> {
    chosen(subject, source_only, &|_| true)
}

/// The same without what makes a folder a package of its own: for a folder that is a part of a crate.
pub(super) fn part(subject: &Subject) -> Result<Files, Diagnostic> {
    let of_package = |it: &str| {
        it.starts_with("candle/") || ["Cargo.toml", "README.md", "example.rs", "main.rs"].contains(&it)
    };
    chosen(subject, false, &|name| !of_package(name))
}

fn chosen(
    subject: &Subject,
    source_only: bool,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Result<Files, Diagnostic> {
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
    all.retain(|it| is_wanted(&it.0));
    all.sort();
    let manifest = manifest(&spec, &compiled, &all);
    all.push((write::MANIFEST.to_owned(), manifest.into_bytes()));
    all.sort();
    Ok(Files { all, compiled, left_out })
}

pub(super) fn texts(files: Vec<(impl Into<String>, String)>) -> Vec<(String, Vec<u8>)> {
    files.into_iter().map(|(name, text)| (name.into(), text.into_bytes())).collect()
}
