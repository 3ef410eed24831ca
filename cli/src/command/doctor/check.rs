//! What a check found.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    escape::visible,
    term::wrap::{width, wrapped},
};

/// A line of `doctor`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub(crate) struct Check {
    /// What was looked at; stable, for programs that read it.
    pub(super) name: String,
    pub(super) state: State,
    /// What was found, in words.
    pub(super) found: String,
    /// What to do about it, if it is not fine.
    pub(super) fix: Option<String>,
}

/// How good it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// There is nothing to see here.
    Skip,
    Ok,
    /// Something does not work, or figures are not what they could be.
    Warn,
    /// Nothing can be measured.
    Fail,
}

impl State {
    const fn word(self) -> &'static str {
        match self {
            State::Skip => "skip",
            State::Ok => "OK",
            State::Warn => "WARN",
            State::Fail => "FAIL",
        }
    }
}

impl Check {
    pub(super) fn ok(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check::new(name, State::Ok, found, None)
    }

    pub(super) fn skip(name: impl Into<String>, found: impl Into<String>) -> Check {
        Check::new(name, State::Skip, found, None)
    }

    pub(super) fn warn(name: impl Into<String>, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check::new(name, State::Warn, found, Some(fix.into()))
    }

    pub(super) fn fail(name: impl Into<String>, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check::new(name, State::Fail, found, Some(fix.into()))
    }

    fn new(name: impl Into<String>, state: State, found: impl Into<String>, fix: Option<String>) -> Check {
        // Files and programs of the machine say what they like.
        let line = |text: String| visible(text.trim().replace('\n', " "));
        Check { name: name.into(), state, found: line(found.into()), fix: fix.map(line) }
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        // In a narrow window half of it would stay empty.
        let indent = " ".repeat(if width() < 60 { 6 } else { 21 });
        wrapped(&self.found, &format!("{:<4}  {:<14} ", self.state.word(), self.name), &indent, out)?;
        match &self.fix {
            // It is there to be copied, so it stays one line.
            Some(fix) => writeln!(out, "{indent}fix: {fix}"),
            None => Ok(()),
        }
    }
}
