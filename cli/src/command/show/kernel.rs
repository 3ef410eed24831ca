//! `tilewright show` of a lowered kernel in the text form.

use std::{io::Read, path::Path};

use super::form::{Emit, Form};
use crate::{
    constant::True, diagnostic::Diagnostic, plan::read, source::place, term::shell::Shell,
    usage_error::UsageError,
};

/// Whether a file is a lowered program by its first word; one that cannot be read is none.
pub(super) fn is_module(path: &Path) -> Result<bool, Diagnostic> {
    if path.extension().is_none_or(|it| it != "tw") {
        return Ok(false);
    }
    let mut start = vec![];
    let opened = tuner::regular::open(path).and_then(|it| it.take(1 << 16).read_to_end(&mut start));
    opened.map_err(|err| Diagnostic::io(path, &err))?;
    let start = String::from_utf8_lossy(&start);
    let mut lines = start.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with("//"));
    Ok(lines.next().is_some_and(|it| it.split(' ').next() == Some("module")))
}

/// Prints it as `--emit kernel` would.
pub(super) fn show(path: &Path, emit: Emit, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let text = read(path)?;
    let module = ir::text::parse_module(&text).map_err(|err| {
        let span = place(&text, err.line, err.column);
        Diagnostic::failed(&err.kind, err.kind.to_string()).at(path, &text, span)
    })?;
    match emit {
        Emit::Ir | Emit::Kernel => {}
        Emit::Steps
        | Emit::Tvmscript
        | Emit::Trace
        | Emit::Diff
        | Emit::Cuda
        | Emit::C
        | Emit::Pipeline
        | Emit::Deps
        | Emit::Ptx
        | Emit::Sass
        | Emit::Resources
        | Emit::Space => {
            let title = "a lowered kernel has no form but its own: only lowering proves what printers and compilers rely on";
            let help = "`tilewright run` runs it on the virtual GPU: `--target vgpu`";
            return Err(Diagnostic::usage(UsageError::Options, title).help(help.to_owned()));
        }
    }
    let text = module.to_string();
    let form = Form { ok: True, emit: Emit::Kernel, text: &text, target: None, notes: None, tool: None };
    shell.report(&form)
}
