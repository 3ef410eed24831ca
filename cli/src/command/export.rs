//! `tilewright export`.

use std::path::PathBuf;

use ir::{Name, Target};
use schedule::{script::ScriptTarget, workload::Param};
use schemars::JsonSchema;
use serde::Serialize;
use tuner::build::target_word;

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    escape::visible,
    export::subject::{Request, Subject},
    export::verify::VerifyReport,
    export::{Files, files, verify, write},
    plan::{parse_dim, parse_param, parse_target},
    term::report::Report,
    term::shell::Shell,
    usage_error::UsageError,
};

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

/// What is in a bundle.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Bundle<'a> {
    ok: True,
    /// The folder.
    out: String,
    /// cpu, or cuda with its architecture: cuda:sm_90a
    target: String,
    /// The files in it.
    files: Vec<&'a str>,
    /// What is not in it, and why.
    left_out: &'a [String],
    /// What its own program said, if it was asked.
    verified: Option<VerifiedBundle>,
}

/// What the bundle's own program said.
#[derive(Debug, Serialize, JsonSchema)]
struct VerifiedBundle {
    ok: True,
    /// The largest error in parts of the tolerance.
    max_error_in_tolerances: Option<f64>,
    /// The speed that it saw.
    gflops: Option<f64>,
    /// All that it printed.
    #[serde(skip)]
    words: String,
}

impl Report for Bundle<'_> {
    /// Only what the program said: the rest was told before it was started.
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        for line in self.verified.iter().flat_map(|it| it.words.lines()) {
            writeln!(shell.out, "{}", visible(line.to_owned()))?;
        }
        Ok(())
    }
}

impl Export {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let subject = Subject::of(&Request {
            what: &self.what,
            name: self.name.as_deref(),
            target: self.target.as_ref(),
            params: &self.params,
            dims: &self.dims,
            run: self.run.as_deref(),
        })?;
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
            let VerifyReport { error, gflops, words } = verdict?;
            Some(VerifiedBundle { ok: True, max_error_in_tolerances: error, gflops, words })
        } else {
            None
        };
        let out = self.out.display().to_string();
        shell.report(&Bundle { ok: True, out, target, files: names, left_out, verified })
    }
}
