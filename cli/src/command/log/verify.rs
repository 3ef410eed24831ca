//! `tilewright log verify`.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use tuner::log;

use crate::{
    constant::False,
    diagnostic::Diagnostic,
    escape::visible,
    term::{report::Report, shell::Shell},
    usage_error::UsageError,
};

/// A damaged line, or a segment that is not read.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "a damaged line")]
pub(crate) struct DamagedLine {
    ok: False,
    /// The file.
    segment: PathBuf,
    /// The line, from 1; null where a whole segment is not read.
    line: Option<u64>,
    /// What is wrong with it.
    error: String,
    #[serde(skip)]
    words: String,
}

impl Report for DamagedLine {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(writeln!(shell.out, "{}", visible(self.words.clone()))?)
    }
}

/// What `log verify` found in all.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "verified")]
pub(crate) struct Verified<'a> {
    /// Whether every line is whole, and every segment was read.
    ok: bool,
    /// How many segments there are.
    segments: u64,
    /// How many records they have.
    records: u64,
    /// How many of these are trials.
    trials: u64,
    /// How many are of a kind that this version does not know.
    unknown: u64,
    /// How many lines are damaged.
    damaged: u64,
    /// Segments that are not read.
    unread: u64,
    /// Last lines that do not end, as of runs that were killed.
    torn: Vec<TornEnd>,
    #[serde(skip)]
    log: &'a Path,
}

/// A last line that does not end.
#[derive(Debug, Serialize, JsonSchema)]
struct TornEnd {
    /// The file.
    segment: PathBuf,
    /// How many bytes are no record.
    bytes: u64,
    #[serde(skip)]
    words: String,
}

impl Report for Verified<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let (records, trials) = (counted(self.records, "record"), counted(self.trials, "trial"));
        let unknown = match self.unknown {
            0 => String::new(),
            n => format!(", {n} of a kind that this version does not know"),
        };
        let segments = counted(self.segments, "segment");
        writeln!(shell.out, "{}: {segments}, {records}, {trials}{unknown}", self.log.display())?;
        for it in &self.torn {
            shell.note(&visible(format!("{}; the next resume cuts them off", it.words)));
        }
        Ok(())
    }
}

pub(super) fn verify(path: &Path, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let mut res = Ok(());
    let sum = log::verify(path, &mut |it| {
        let (segment, line) = (it.segment.clone(), Some(it.line).filter(|it| *it > 0));
        let error = it.reason.to_string();
        let result = shell.report(&DamagedLine { ok: False, segment, line, error, words: it.to_string() });
        if res.is_ok() {
            res = result;
        }
    })?;
    res?;
    let torn = sum.torn.iter().map(|it| TornEnd {
        segment: it.segment.clone(),
        bytes: it.bytes,
        words: it.to_string(),
    });
    shell.report(&Verified {
        ok: sum.damaged + sum.unread == 0,
        segments: sum.segments,
        records: sum.records,
        trials: sum.trials,
        unknown: sum.unknown,
        damaged: sum.damaged,
        unread: sum.unread,
        torn: torn.collect(),
        log: path,
    })?;
    let damaged = (sum.damaged > 0).then(|| format!("{} damaged", counted(sum.damaged, "line")));
    let unread = (sum.unread > 0).then(|| format!("{} not read", counted(sum.unread, "segment")));
    let faults: Vec<_> = [damaged, unread].into_iter().flatten().collect();
    if faults.is_empty() {
        return Ok(());
    }
    Err(Diagnostic::failed(UsageError::Damage, format!("{}: {}", path.display(), faults.join(", "))))
}

fn counted(n: u64, word: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {word}{plural}")
}
