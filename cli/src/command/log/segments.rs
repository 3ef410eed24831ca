//! `tilewright log merge` and `tilewright log pack`: what becomes of segments.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use tuner::log::{self, LogError, Merged, Packed};

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    escape::visible,
    term::{report::Report, shell::Shell},
};

#[derive(Debug, clap::Args)]
pub(super) struct Merge {
    /// The folder to copy into
    out: PathBuf,
    /// Logs: folders or single segments
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
}

impl Merge {
    pub(super) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
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
                    let merged = match merged {
                        Merged::Added => MergedWord::Added,
                        Merged::Extended => MergedWord::Extended,
                        Merged::Same => MergedWord::Same,
                    };
                    shell.report(&MergedSegment { ok: True, segment, merged })?;
                }
                Err(err) => failed.push(Diagnostic::log(&err)),
            }
        }
        Diagnostic::all(failed).map_or(Ok(()), Err)
    }
}

pub(super) fn pack(path: &Path, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let mut found = vec![];
    log::pack(path, &mut |segment, packed| found.push((segment.to_owned(), packed)))?;
    let mut failed = vec![];
    for (segment, packed) in found {
        match packed {
            Ok(Packed::Done { from, to }) => {
                let words = format!("{from} bytes became {to}");
                shell.report(&PackedSegment {
                    from: Some(from),
                    to: Some(to),
                    ..packed_as(segment, true, words)
                })?;
            }
            Ok(Packed::Already) => shell.report(&packed_as(segment, true, "is compressed".to_owned()))?,
            Ok(Packed::Unfinished) => {
                let words = "left as it is: the run is not finished".to_owned();
                shell.report(&packed_as(segment, false, words))?;
            }
            Err(LogError::Locked(_)) => {
                let words = "left as it is: the run goes on".to_owned();
                shell.report(&packed_as(segment, false, words))?;
            }
            Err(err) => failed.push(Diagnostic::log(&err)),
        }
    }
    Diagnostic::all(failed).map_or(Ok(()), Err)
}

/// What `log merge` did with a segment.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "merged")]
pub(crate) struct MergedSegment {
    ok: True,
    /// The file.
    segment: PathBuf,
    /// What became of it.
    merged: MergedWord,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum MergedWord {
    Added,
    Extended,
    #[serde(rename = "there already")]
    Same,
}

impl Report for MergedSegment {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let word = match self.merged {
            MergedWord::Added => "added",
            MergedWord::Extended => "extended",
            MergedWord::Same => "there already",
        };
        print_segment(&self.segment, word, shell)
    }
}

/// What `log pack` did with a segment.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "packed")]
pub(crate) struct PackedSegment {
    ok: True,
    /// The file.
    segment: PathBuf,
    /// Whether it is compressed now.
    packed: bool,
    /// How many bytes it had, if it was compressed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
    /// How many it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u64>,
    #[serde(skip)]
    words: String,
}

fn packed_as(segment: PathBuf, packed: bool, words: String) -> PackedSegment {
    PackedSegment { ok: True, segment, packed, from: None, to: None, words }
}

impl Report for PackedSegment {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        print_segment(&self.segment, &self.words, shell)
    }
}

/// Prints what became of a segment.
fn print_segment(segment: &Path, words: &str, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    Ok(writeln!(shell.out, "{}: {words}", visible(segment.display().to_string()))?)
}
