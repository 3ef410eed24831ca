//! The pages about codes: what a refusal means, a script that causes it, and one that does not.

use ir::Code;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    term::report::Report,
    term::{markdown::shown, shell::Shell},
};

/// Names and texts of all pages, in the order of their codes.
static PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a code, as Markdown.
fn page(code: Code) -> Option<&'static str> {
    let name = code.to_string();
    PAGES.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// Each code with the heading of its page.
pub(super) fn headings() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().map(|(name, text)| {
        let heading = text.lines().next().unwrap_or_default();
        (*name, heading.trim_start_matches("# ").trim_start_matches(name).trim_start_matches(": "))
    })
}

/// The page of a code.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "a code")]
pub(crate) struct Page {
    ok: True,
    /// The code: TW1002.
    code: String,
    /// Its page, as Markdown.
    text: &'static str,
}

impl Page {
    pub(super) fn of(code: Code) -> Option<Page> {
        Some(Page { ok: True, code: code.to_string(), text: page(code)? })
    }
}

impl Report for Page {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(write!(shell.out, "{}", shown(self.text))?)
    }
}
