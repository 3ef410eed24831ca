//! Where a command writes: data to standard output, progress to standard error if that is a terminal.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use serde::Serialize;
use tuner::log::{escape_controls, is_control};

use super::code::{self, Lang};
use crate::diagnostic::Diagnostic;

/// What commands write to.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct Shell<'a> {
    /// Data.
    pub(crate) out: &'a mut dyn Write,
    /// Whether data is wanted as JSON.
    pub(crate) json: bool,
    /// Whether data is written in colour. Never as JSON.
    pub(crate) colour: bool,
    progress: bool,
    shown: bool,
    /// When the last line of [`Shell::status`] was printed.
    told: Option<Instant>,
}

/// How often a run that is not watched says where it stands.
const EVERY: Duration = Duration::from_secs(10);

impl<'a> Shell<'a> {
    /// A shell whose progress line shows only on a terminal.
    pub(crate) fn new(out: &'a mut dyn Write, json: bool) -> Shell<'a> {
        let colour = !json && io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Shell { out, json, colour, progress: io::stderr().is_terminal(), shown: false, told: None }
    }

    /// Prints a value as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Diagnostic> {
        let text = serde_json::to_string(value).map_err(io::Error::from)?;
        writeln!(self.out, "{}", escape_controls(&text))?;
        Ok(())
    }

    /// Prints a program or a difference, in colour where that is wanted.
    pub(crate) fn code(&mut self, text: &str, lang: Lang) -> Result<(), Diagnostic> {
        let text = text.trim_end_matches('\n');
        if self.colour {
            writeln!(self.out, "{}", code::ansi(text, lang))?;
        } else {
            writeln!(self.out, "{text}")?;
        }
        Ok(())
    }

    /// Tells something about what is printed, beside it.
    pub(crate) fn note(&mut self, text: &str) {
        self.done();
        let _ = writeln!(io::stderr(), "note: {text}");
    }

    /// Replaces the progress line.
    pub(crate) fn progress(&mut self, text: &str) {
        if self.progress {
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
            let _ = io::stderr().flush();
            self.shown = true;
        }
    }

    /// Replaces the progress line; where that is not a terminal, prints a line every ten seconds.
    pub(crate) fn status(&mut self, text: &str) {
        let now = Instant::now();
        if self.progress {
            self.progress(text);
        } else if now.duration_since(*self.told.get_or_insert(now)) >= EVERY {
            let _ = writeln!(io::stderr(), "{text}");
            self.told = Some(now);
        }
    }

    /// Takes the progress line away.
    pub(crate) fn done(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }
}

/// A text with what would steer a terminal as an escape, such as `\u{1b}`.
pub(crate) fn visible(text: String) -> String {
    if !text.contains(is_control) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 8);
    for it in text.chars() {
        if is_control(it) { out.extend(it.escape_default()) } else { out.push(it) }
    }
    out
}
