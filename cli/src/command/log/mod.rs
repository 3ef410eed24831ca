//! `tilewright log`.

pub(crate) mod segments;
pub(crate) mod verify;

use std::{
    io::{self, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use clap::{Subcommand, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tuner::log::{self, ExportError, LogLine, Raw, Table, escape_controls};

use crate::{
    constant::True, diagnostic::Diagnostic, log_notes::Noted, new_file, term::report::Report,
    term::shell::Shell,
};

/// Check, print, merge, export and compress tuning logs
#[derive(Debug, clap::Args)]
pub(crate) struct Log {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check that a log is whole and that its figures follow from its samples
    Verify(OfLog),
    /// Copy the segments of logs into a folder; doing it again does nothing
    Merge(segments::Merge),
    /// Print the records of a log as they stand there
    Cat(Cat),
    /// Write a log for other tools
    Export(Export),
    /// Compress the segments of finished runs
    Pack(OfLog),
}

#[derive(Debug, clap::Args)]
struct OfLog {
    /// The log: a folder or a single segment
    log: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Cat {
    /// The log: a folder or a single segment
    log: PathBuf,
    /// Only records of this kind: run, trial, step, finals, event
    #[arg(long, value_parser = ["run", "trial", "step", "finals", "event"], hide_possible_values = true)]
    kind: Option<String>,
    /// Only what is about this trial
    #[arg(long)]
    n: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct Export {
    /// The log: a folder or a single segment
    log: PathBuf,
    /// The format
    #[arg(long)]
    to: Format,
    /// The file to write, instead of standard output
    #[arg(long)]
    out: Option<PathBuf>,
    /// Overwrite the file if there is one
    #[arg(long, requires = "out")]
    force: bool,
    /// Only this run
    #[arg(long)]
    run: Option<String>,
}

/// A format of another tool.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A cache of Kernel Tuner, for its simulation mode
    KernelTuner,
    /// T4 1.0.0, JSON
    T4,
    /// A line for each trial
    Csv,
}

impl Log {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        match &self.command {
            Command::Verify(it) => verify::verify(&it.log, shell),
            Command::Merge(it) => it.run(shell),
            Command::Cat(it) => it.run(shell),
            Command::Export(it) => it.run(shell),
            Command::Pack(it) => segments::pack(&it.log, shell),
        }
    }
}

/// Where `log export` wrote to.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "exported")]
pub(crate) struct Exported<'a> {
    ok: True,
    /// The file.
    out: &'a Path,
    /// The format: kernel-tuner, t4 or csv.
    format: String,
}

impl Report for Exported<'_> {
    fn print(&self, _: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(())
    }
}

/// The fields by which records are chosen.
#[derive(Deserialize)]
struct About {
    n: Option<u64>,
}

impl Cat {
    fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut noted = Noted::default();
        let (mut res, mut records) = (Ok(()), 0);
        log::scan(&self.log, &mut |line| {
            let LogLine::Record { raw, .. } = line else {
                noted.line(&line);
                return ControlFlow::Continue(());
            };
            records += 1;
            if self.wants(raw) {
                res = print(shell.out, raw);
            }
            if res.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        res?;
        match noted.tell(&self.log, shell) {
            Some(err) if records == 0 => Err(Diagnostic::log(&err)),
            Some(_) | None => Ok(()),
        }
    }

    fn wants(&self, raw: Raw<'_>) -> bool {
        let kind = self.kind.as_ref().is_none_or(|it| it == raw.kind());
        kind && self.n.is_none_or(|n| raw.fields::<About>().is_ok_and(|it| it.n == Some(n)))
    }
}

/// Prints a record with its bytes as they are, but for those that a terminal would obey. Our writer makes none.
fn print(out: &mut dyn Write, raw: Raw<'_>) -> io::Result<()> {
    let text = String::from_utf8_lossy(raw.bytes());
    writeln!(out, "{}", escape_controls(&text))
}

impl Export {
    fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let log = log::read(&self.log)?;
        if let Some(err) = log.unread(None) {
            return Err(Diagnostic::log(&err));
        }
        let text = self.text(&log).map_err(|err| match err {
            ExportError::Log(err) => Diagnostic::log(&err),
            ExportError::NoRun | ExportError::Several { .. } | ExportError::Unknown { .. } => {
                Diagnostic::usage(&err, format!("{}: {err}", self.log.display())).help(err.help())
            }
        })?;
        Noted::of(&log).tell(&self.log, shell);
        let Some(path) = &self.out else { return Ok(shell.out.write_all(text.as_bytes())?) };
        new_file::write(path, text.as_bytes(), self.force)?;
        let format = self.to.to_possible_value().expect("no format is hidden").get_name().to_owned();
        shell.report(&Exported { ok: True, out: path, format })
    }

    fn text(&self, log: &log::Log) -> Result<String, ExportError> {
        let run = self.run.as_deref();
        match self.to {
            Format::KernelTuner => Ok(shown(&log::kernel_tuner(&Table::of(log, run)?))),
            Format::T4 => Ok(shown(&log::t4(&Table::of(log, run)?))),
            Format::Csv => log::csv(log, run),
        }
    }
}

/// JSON on several lines, with what a terminal would obey as escapes.
fn shown(json: &str) -> String {
    json.lines().flat_map(|it| [escape_controls(it), "\n".into()]).collect()
}
