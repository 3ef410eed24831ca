//! Where a command writes: data to standard output; progress, notes and details to standard error.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use clap::ColorChoice;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::log::escape_controls;

use super::{
    code::{self, Lang},
    globals::Globals,
    report::Report,
    width,
    wrap::{error_width, folded, wrapped},
};
use crate::{diagnostic::Diagnostic, escape::visible, guard};

/// What commands write to.
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct Shell<'a> {
    /// Data.
    pub(crate) out: &'a mut dyn Write,
    /// Whether data is wanted as JSON.
    pub(crate) json: bool,
    /// Whether data is written in colour. Never as JSON.
    pub(crate) colour: bool,
    quiet: bool,
    verbose: bool,
    progress: bool,
    /// How many columns the progress line has that is shown.
    shown: Option<usize>,
    /// When the last line of [`Shell::status`] was printed.
    told: Option<Instant>,
    /// What is being done, and since when, for [`Shell::phase`].
    phase: Option<(String, Instant)>,
    /// Who hears what is said beside the data, if that is no terminal.
    ear: Option<&'a mut dyn FnMut(Aside<'_>)>,
}

/// What is said beside the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Aside<'a> {
    /// What is worth knowing about it.
    Note(&'a str),
    /// How far it is.
    Progress(&'a str),
}

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code, reason = "commands take of them what they need")]
pub(crate) enum Style {
    /// All is well, or was added.
    Good,
    /// Something is wrong, or was taken away.
    Bad,
    /// A doubt.
    Doubtful,
    /// A heading.
    Strong,
    /// Of less interest.
    Faint,
}

/// How often a run that is not watched says where it stands.
const STATUS_INTERVAL: Duration = Duration::from_secs(10);

impl<'a> Shell<'a> {
    /// A shell whose progress line shows only on a terminal.
    pub(crate) fn new(out: &'a mut dyn Write, globals: &Globals) -> Shell<'a> {
        let Globals { json, quiet, verbose, color: _ } = *globals;
        Shell {
            out,
            json,
            colour: !json && globals.colour(io::stdout().is_terminal()),
            quiet,
            verbose,
            progress: !quiet && io::stderr().is_terminal(),
            shown: None,
            told: None,
            phase: None,
            ear: None,
        }
    }

    /// A shell whose notes and progress somebody hears who is no terminal. Data is text without colour.
    pub(crate) fn heard(out: &'a mut dyn Write, ear: &'a mut dyn FnMut(Aside<'_>)) -> Shell<'a> {
        let quiet = Globals { quiet: true, color: ColorChoice::Never, ..Globals::default() };
        Shell { ear: Some(ear), ..Shell::new(out, &quiet) }
    }

    /// A text for standard output in a style, or as it is where there is no colour.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        let code = match style {
            Style::Good => 32,
            Style::Bad => 31,
            Style::Doubtful => 33,
            Style::Strong => 1,
            Style::Faint => 2,
        };
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Prints what was found, as text or as a line of JSON.
    pub(crate) fn report(&mut self, report: &impl Report) -> Result<(), Diagnostic> {
        if self.json { self.json(report) } else { report.print(self) }
    }

    /// Prints a part of what was found as a line of JSON, where that is wanted; as text it is told with the rest.
    pub(crate) fn line(&mut self, line: &(impl Serialize + JsonSchema)) -> Result<(), Diagnostic> {
        if self.json { self.json(line) } else { Ok(()) }
    }

    /// Prints a value as one line of JSON, with the names of its fields in the order of the alphabet.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Diagnostic> {
        let text = serde_json::to_value(value).map_err(io::Error::from)?.to_string();
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

    /// Prints a sentence in lines that fit.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Diagnostic> {
        Ok(wrapped(text, "", "  ", self.out)?)
    }

    /// Tells something about what is printed, beside it; nothing with `--quiet`.
    pub(crate) fn note(&mut self, text: &str) {
        self.done();
        if let Some(ear) = &mut self.ear {
            ear(Aside::Note(text));
        }
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{}", folded(&format!("note: {text}"), error_width()));
        }
    }

    /// Tells with `--verbose` what is worth knowing when something is strange: versions, paths, times.
    pub(crate) fn detail(&mut self, text: impl FnOnce() -> String) {
        if self.verbose {
            self.done();
            let _ = writeln!(io::stderr(), "detail: {}", visible(text()));
        }
    }

    /// Begins a part of the work; with `--verbose` it is told how long the part before took.
    pub(crate) fn phase(&mut self, what: &str) {
        self.end_phase();
        if self.verbose {
            self.phase = Some((what.to_owned(), Instant::now()));
        }
    }

    fn end_phase(&mut self) {
        if let Some((what, since)) = self.phase.take() {
            self.detail(|| format!("{what}: {:.1} ms", since.elapsed().as_secs_f64() * 1e3));
        }
    }

    /// How many columns a progress line may take; none where there is no terminal to show one.
    pub(crate) fn columns(&self) -> Option<usize> {
        // The last column stays free: behind it some terminals begin a new line.
        self.progress.then(|| width::columns().saturating_sub(1))
    }

    /// Replaces the progress line. What is wider than the terminal is cut off.
    pub(crate) fn progress(&mut self, text: &str) {
        if guard::doing(text) {
            let _ = self.out.flush();
        }
        if let Some(ear) = &mut self.ear {
            ear(Aside::Progress(text));
        }
        if let Some(columns) = self.columns() {
            self.done();
            let text = width::cut(&visible(text.to_owned()), columns);
            // The cursor stays at the beginning: where a terminal that becomes narrower breaks the line in two, all of it
            // is behind the cursor.
            let _ = write!(io::stderr(), "{text}\r");
            let _ = io::stderr().flush();
            self.shown = Some(width::width(&text));
        }
    }

    /// Replaces the progress line; where that is not a terminal, prints a line every ten seconds.
    pub(crate) fn status(&mut self, text: &str) {
        let now = Instant::now();
        if self.progress {
            self.progress(text);
        } else if !self.quiet && now.duration_since(*self.told.get_or_insert(now)) >= STATUS_INTERVAL {
            let _ = writeln!(io::stderr(), "{text}");
            self.told = Some(now);
        }
    }

    /// Takes the progress line away.
    pub(crate) fn done(&mut self) {
        let Some(shown) = self.shown.take() else { return };
        // Clearing the rest of the screen is for a line that was broken: some terminals keep what they clear from the top.
        let rest = if shown > width::columns() { 'J' } else { 'K' };
        let _ = write!(io::stderr(), "\r\x1b[{rest}");
    }

    /// The end of a command.
    pub(crate) fn end(&mut self) {
        self.done();
        self.end_phase();
    }
}
