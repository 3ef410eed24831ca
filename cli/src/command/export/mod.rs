//! `tilewright export`: a kernel as a folder that builds and runs without tilewright.
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
mod name;
mod numpy;
mod readme;
mod reference;
mod rust;
mod spec;
mod subject;
mod value;
mod verify;
mod write;

use std::path::{Path, PathBuf};

use ir::{Name, Target};
use schedule::{script::ScriptTarget, workload::Param};
use serde_json::json;
use tuner::build::target_word;

use crate::{
    diagnostic::Diagnostic,
    plan::{Plan, parse_dim, parse_param, parse_target},
    term::shell::Shell,
    usage_error::UsageError,
};
use manifest::{Compiled, manifest};
use spec::Spec;
use subject::Subject;

/// Write a kernel as a folder that builds and runs without tilewright
///
/// For a processor it has C with a C interface and a module for NumPy; for a GPU CUDA C++, PTX and machine code, with launchers in C and in
/// Rust. Both have a program that compares with plain loops.
///
/// Exit code: 0 if the bundle was written (and with `--verify` is right), 1 if it is wrong, 2 if it could not be
/// written, or was built and could not be run for want of a GPU.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// A schedule script; or a tuning log, whose best trial is exported, or with `LOG:N` trial N
    #[arg(value_name = "SCRIPT|LOG[:TRIAL]")]
    what: PathBuf,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What functions, header and library are called: `tilewright_` and the workload's name otherwise
    #[arg(long)]
    name: Option<String>,
    /// What to compile for: cpu, cuda, cuda:sm_90a; else the script's or the log's
    #[arg(long, value_parser = parse_target)]
    target: Option<ScriptTarget>,
    /// A parameter of the workload or a knob, instead of the script's: m=512
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse_param)]
    params: Vec<(String, Param)>,
    /// The size that the bundle's own program takes for a symbolic dimension (250 otherwise): m=512
    #[arg(long = "dim", value_name = "NAME=VALUE", value_parser = parse_dim)]
    dims: Vec<(Name, i64)>,
    /// With a log of several runs: this one
    #[arg(long)]
    run: Option<String>,
    /// For a GPU: write no PTX and no machine code, which needs no NVRTC
    #[arg(long)]
    source_only: bool,
    /// Build a copy of the bundle and run its own program
    #[arg(long, conflicts_with = "source_only")]
    verify: bool,
    /// Overwrite a bundle that is there already
    #[arg(long)]
    force: bool,
}

/// The files of a bundle, and what is worth knowing of them.
struct Files {
    all: Vec<(String, Vec<u8>)>,
    compiled: Compiled,
    /// What it has not, and why.
    left_out: Vec<String>,
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
fn files(subject: &Subject, source_only: bool) -> Result<Files, Diagnostic> {
    let unsound = |err: ir::InterpError| {
        Diagnostic::failed(&err, format!("there is no reference to compare with: {err}"))
    };
    ir::reference::Reference::check(&subject.plain, &subject.dims).map_err(unsound)?;
    let spec = Spec::of(subject);
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

impl Export {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let subject = Subject::of(self)?;
        if self.source_only && subject.target == Target::Cpu {
            let title = "`--source-only` leaves out machine code, and a bundle for a processor has none";
            return Err(Diagnostic::usage(UsageError::Options, title));
        }
        let Files { all, left_out, .. } = files(&subject, self.source_only)?;
        write::bundle(&self.out, &all, self.force)?;
        self.tell(&subject, &all, &left_out, shell)
    }

    fn tell(
        &self,
        subject: &Subject,
        files: &[(String, Vec<u8>)],
        left_out: &[String],
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        let names: Vec<_> = files.iter().map(|it| it.0.as_str()).collect();
        let target = target_word(&subject.target);
        for it in left_out {
            shell.note(it);
        }
        if !shell.json {
            let out = self.out.display();
            writeln!(shell.out, "{out}: {} files for {target}, from {}", names.len(), subject.origin)?;
        }
        let verified = if self.verify {
            shell.progress("building and running the bundle");
            let verdict = verify::bundle(&self.out, subject);
            shell.done();
            Some(verdict?)
        } else {
            None
        };
        if shell.json {
            return shell.json(&json!({
                "ok": true,
                "out": self.out.display().to_string(),
                "target": target,
                "files": names,
                "left_out": left_out,
                "verified": verified.as_ref().map(verify::VerifyReport::data),
            }));
        }
        if let Some(it) = verified {
            for line in it.words.lines() {
                writeln!(shell.out, "{}", crate::term::visible::visible(line.to_owned()))?;
            }
        }
        Ok(())
    }
}

fn texts(files: Vec<(impl Into<String>, String)>) -> Vec<(String, Vec<u8>)> {
    files.into_iter().map(|(name, text)| (name.into(), text.into_bytes())).collect()
}
