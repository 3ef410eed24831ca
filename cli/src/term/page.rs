//! HTML pages: files that need nothing else, run nothing and ask nobody.
//!
//! Every page of ours begins alike, up to what wrote it. A file that begins otherwise is not overwritten. The policy in the
//! head forbids whatever would get past the escaping of [`super::markup`].

use std::{
    io::{self, Read},
    path::Path,
};

use super::markup::escaped;
use crate::{
    diagnostic::Diagnostic,
    new_file::{replace, taken},
};

/// What all pages look like.
const STYLE: &str = include_str!("page.css");

/// A sort of page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sort {
    /// The command that writes it.
    pub(crate) command: &'static str,
    /// What it is, for messages: `report`.
    pub(crate) what: &'static str,
    /// What it looks like besides.
    pub(crate) style: &'static str,
}

impl Sort {
    /// What every page of this sort begins with.
    fn mark(self) -> String {
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"generator\" \
             content=\"tilewright {}\">\n",
            self.command
        )
    }

    /// A page with a title around the content of its `<main>`.
    pub(crate) fn page(self, title: &str, main: &str) -> String {
        let (mark, title) = (self.mark(), escaped(title));
        format!(
            "{mark}<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}{}</style>\n</head>\n\
             <body>\n<main>\n{main}</main>\n</body>\n</html>\n",
            self.style
        )
    }

    /// Refuses to write where another file is, unless that is forced.
    pub(crate) fn expect_ours(self, out: &Path, force: bool) -> Result<(), Diagnostic> {
        if force || self.is_ours(out).map_err(|err| Diagnostic::io(out, &err))? {
            return Ok(());
        }
        Err(taken(out, &format!("there is such a file, and it is no {} of tilewright", self.what)))
    }

    /// Writes a page as a whole or not at all: a reader sees the old one or the new one.
    pub(crate) fn write(self, out: &Path, page: &str, force: bool) -> Result<(), Diagnostic> {
        self.expect_ours(out, force)?;
        replace(out, page.as_bytes())
    }

    /// Whether a file may be replaced: there is none, or it is one of these pages.
    fn is_ours(self, path: &Path) -> io::Result<bool> {
        let file = match tuner::regular::open(path) {
            Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(true),
            other => other?,
        };
        let (mark, mut start) = (self.mark(), vec![]);
        file.take(mark.len() as u64).read_to_end(&mut start)?;
        Ok(start == mark.as_bytes())
    }
}
