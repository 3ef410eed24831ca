//! `tilewright log`.

use std::{
    io::{self, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use clap::{Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::json;
use tuner::log::{self, ExportError, LogError, LogLine, Merged, Packed, Raw, Table, escape_controls};

use crate::{
    command::top::Noted,
    diagnostic::Diagnostic,
    new_file,
    term::{shell::Shell, visible::visible},
    usage_error::UsageError,
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
    Merge(Merge),
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
struct Merge {
    /// The folder to copy into
    out: PathBuf,
    /// Logs: folders or single segments
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
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
            Command::Verify(it) => verify(&it.log, shell),
            Command::Merge(it) => it.run(shell),
            Command::Cat(it) => it.run(shell),
            Command::Export(it) => it.run(shell),
            Command::Pack(it) => pack(&it.log, shell),
        }
    }
}

fn verify(path: &Path, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let mut res = Ok(());
    let sum = log::verify(path, &mut |it| {
        let result = if shell.json {
            let line = Some(it.line).filter(|it| *it > 0);
            shell.json(
                &json!({"ok": false, "segment": it.segment, "line": line, "error": it.reason.to_string()}),
            )
        } else {
            writeln!(shell.out, "{}", visible(it.to_string())).map_err(Diagnostic::from)
        };
        if res.is_ok() {
            res = result;
        }
    })?;
    res?;
    if shell.json {
        let torn = sum.torn.iter().map(|it| json!({"segment": it.segment, "bytes": it.bytes}));
        shell.json(&json!({
            "ok": sum.damaged + sum.unread == 0, "segments": sum.segments, "records": sum.records,
            "trials": sum.trials, "unknown": sum.unknown, "damaged": sum.damaged, "unread": sum.unread,
            "torn": torn.collect::<Vec<_>>(),
        }))?;
    } else {
        let (records, trials) = (counted(sum.records, "record"), counted(sum.trials, "trial"));
        let unknown = match sum.unknown {
            0 => String::new(),
            n => format!(", {n} of a kind that this version does not know"),
        };
        let segments = counted(sum.segments, "segment");
        writeln!(shell.out, "{}: {segments}, {records}, {trials}{unknown}", path.display())?;
        for it in &sum.torn {
            shell.note(&visible(format!("{it}; the next resume cuts them off")));
        }
    }
    let damaged = (sum.damaged > 0).then(|| format!("{} damaged", counted(sum.damaged, "line")));
    let unread = (sum.unread > 0).then(|| format!("{} not read", counted(sum.unread, "segment")));
    let faults: Vec<_> = [damaged, unread].into_iter().flatten().collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(Diagnostic::failed(UsageError::Damage, format!("{}: {}", path.display(), faults.join(", "))))
}

impl Merge {
    fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut found: Vec<(PathBuf, Result<Merged, LogError>)> = vec![];
        let mut failed = vec![];
        for log in &self.logs {
            let merged =
                log::merge(&self.out, log, &mut |segment, merged| found.push((segment.to_owned(), merged)));
            failed.extend(merged.err().map(|err| Diagnostic::log(&err)));
        }
        for (segment, merged) in found {
            match merged {
                Ok(merged) => {
                    let word = match merged {
                        Merged::Added => "added",
                        Merged::Extended => "extended",
                        Merged::Same => "there already",
                    };
                    print_segment(shell, &segment, word, json!({"merged": word}))?;
                }
                Err(err) => failed.push(Diagnostic::log(&err)),
            }
        }
        Diagnostic::all(failed).map_or(Ok(()), Err)
    }
}

fn pack(path: &Path, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let mut found = vec![];
    log::pack(path, &mut |segment, packed| found.push((segment.to_owned(), packed)))?;
    let mut failed = vec![];
    for (segment, packed) in found {
        match packed {
            Ok(Packed::Done { from, to }) => {
                let words = format!("{from} bytes became {to}");
                print_segment(shell, &segment, &words, json!({"packed": true, "from": from, "to": to}))?;
            }
            Ok(Packed::Already) => print_segment(shell, &segment, "is compressed", json!({"packed": true}))?,
            Ok(Packed::Unfinished) => {
                print_segment(
                    shell,
                    &segment,
                    "left as it is: the run is not finished",
                    json!({"packed": false}),
                )?;
            }
            Err(LogError::Locked(_)) => {
                print_segment(shell, &segment, "left as it is: the run goes on", json!({"packed": false}))?;
            }
            Err(err) => failed.push(Diagnostic::log(&err)),
        }
    }
    Diagnostic::all(failed).map_or(Ok(()), Err)
}

/// Prints what became of a segment.
fn print_segment(
    shell: &mut Shell<'_>,
    segment: &Path,
    words: &str,
    mut data: serde_json::Value,
) -> Result<(), Diagnostic> {
    if shell.json {
        data["ok"] = true.into();
        data["segment"] = json!(segment);
        return shell.json(&data);
    }
    writeln!(shell.out, "{}: {words}", visible(segment.display().to_string()))?;
    Ok(())
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
        if shell.json {
            let format = self.to.to_possible_value().map(|it| it.get_name().to_owned());
            return shell.json(&json!({"ok": true, "out": path, "format": format}));
        }
        Ok(())
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

fn counted(n: u64, word: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {word}{plural}")
}
