//! `tilewright export`.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

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
    export::{Files, files, table::Table, verify, write},
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
/// Several kernels become one Rust crate: a call takes the first that fits its shapes, strides, alignment and device, those for all sizes last, and
/// is refused before anything is launched where none does.
///
/// Exit code: 0 if the bundle was written (and with `--verify` is right), 1 if it is wrong, 2 if it could not be
/// written, or was built and could not be run for want of a GPU.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Export {
    /// A schedule script; or a tuning log, whose best trial is exported, or with `LOG:N` trial N. Several become a crate
    #[arg(value_name = "SCRIPT|LOG[:TRIAL]", required = true)]
    what: Vec<PathBuf>,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write a Rust crate that checks what it is called with, as for several kernels
    #[arg(long = "crate", conflicts_with = "source_only")]
    is_crate: bool,
    /// What functions, header and library are called, or the crate: `tilewright_` and the workload's name otherwise
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
    /// The kernels of a crate, in the order in which a call tries them; none of a single kernel.
    kernels: Vec<&'a str>,
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
        let mut subjects = vec![];
        for what in &self.what {
            let subject = Subject::of(&Request {
                what,
                name: self.name.as_deref(),
                target: self.target.as_ref(),
                params: &self.params,
                dims: &self.dims,
                run: self.run.as_deref(),
            })?;
            self.expect_machine_code(&subject)?;
            subjects.push(subject);
        }
        if subjects.len() == 1 && !self.is_crate {
            let Files { all, left_out, .. } = files(&subjects[0], self.source_only)?;
            write::bundle(&self.out, &all, self.force)?;
            return self.tell(&subjects, &all, &left_out, shell);
        }
        let words = self.what.iter().map(|it| word(it));
        let table = Table::of(self.name.as_deref(), words.zip(subjects).collect())?;
        let Files { all, left_out, .. } = table.files()?;
        write::bundle(&self.out, &all, self.force)?;
        self.tell(&table.kernels, &all, &left_out, shell)
    }

    /// Refuses to leave out what is not there, or what a crate is made of.
    fn expect_machine_code(&self, subject: &Subject) -> Result<(), Diagnostic> {
        let wrong = |title| Err(Diagnostic::usage(UsageError::Options, title));
        match (self.source_only, &subject.target) {
            (true, Target::Cpu) => {
                wrong("`--source-only` leaves out machine code, and a bundle for a processor has none")
            }
            (true, Target::Cuda(_)) if self.what.len() > 1 => {
                wrong("`--source-only` leaves out machine code, which is what a crate for a GPU loads")
            }
            (true | false, Target::Cpu | Target::Cuda(_)) => Ok(()),
        }
    }

    /// Whether it is written as a crate.
    fn makes_crate(&self) -> bool {
        self.is_crate || self.what.len() > 1
    }

    fn tell(
        &self,
        subjects: &[Subject],
        files: &[(String, Vec<u8>)],
        left_out: &[String],
        shell: &mut Shell<'_>,
    ) -> Result<(), Diagnostic> {
        let names: Vec<_> = files.iter().map(|it| it.0.as_str()).collect();
        let kernels: Vec<_> = subjects.iter().map(|it| it.name.as_str()).collect();
        let target = target_word(&subjects[0].target);
        for it in left_out {
            shell.note(it);
        }
        if !shell.json {
            let (out, count) = (self.out.display(), names.len());
            let from = if self.makes_crate() {
                format!("a crate of {}", kernels.join(", "))
            } else {
                format!("from {}", subjects[0].origin)
            };
            writeln!(shell.out, "{out}: {count} files for {target}, {from}")?;
        }
        let verified = if self.verify { Some(self.verified(subjects, shell)?) } else { None };
        let out = self.out.display().to_string();
        let kernels = if self.makes_crate() { kernels } else { vec![] };
        shell.report(&Bundle { ok: True, out, target, files: names, kernels, left_out, verified })
    }

    /// Builds each kernel and runs its own program.
    fn verified(&self, subjects: &[Subject], shell: &mut Shell<'_>) -> Result<VerifiedBundle, Diagnostic> {
        let mut all =
            VerifiedBundle { ok: True, max_error_in_tolerances: None, gflops: None, words: String::new() };
        for subject in subjects {
            let folder =
                if self.makes_crate() { self.out.join(Table::folder(subject)) } else { self.out.clone() };
            shell.progress("building and running the bundle");
            let verdict = verify::bundle(&folder, subject);
            shell.done();
            let VerifyReport { error, gflops, words } = verdict?;
            if self.makes_crate() {
                let _ = writeln!(all.words, "{}:\n{}", subject.name, words.trim_end());
            } else {
                all.words = words;
            }
            all.max_error_in_tolerances =
                error.into_iter().chain(all.max_error_in_tolerances).reduce(f64::max);
            all.gflops = gflops.filter(|_| !self.makes_crate());
        }
        Ok(all)
    }
}

/// What tells a kernel from others: the name of its file, and the number of a trial.
fn word(what: &Path) -> String {
    let name =
        what.file_name().map(|it| it.to_string_lossy().into_owned()).expect("it was read, and has a name");
    let (file, trial) = name.rsplit_once(':').map_or((name.as_str(), ""), |(file, trial)| (file, trial));
    let stem = file.split('.').next().expect("a text has a first part");
    if trial.is_empty() { stem.to_owned() } else { format!("{stem}_{trial}") }
}
