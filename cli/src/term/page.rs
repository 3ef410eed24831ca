//! HTML pages: files that need nothing else, run nothing but a script of their own and ask nobody.
//!
//! Every page of ours begins alike, up to what wrote it. A file that begins otherwise is not overwritten. The policy in the
//! head forbids whatever would get past the escaping of [`super::markup`].

use std::{
    io::{self, Read},
    path::Path,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

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
    /// What it does; empty if nothing.
    pub(crate) script: &'static str,
}

/// Hexadecimal digits in base 64, as content policies spell hashes.
fn base64(hex: &str) -> String {
    let byte =
        |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("a hash is pairs of hexadecimal digits");
    STANDARD.encode((0..hex.len()).step_by(2).map(byte).collect::<Vec<_>>())
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
        let (policy, script) = self.script();
        format!(
            "{mark}<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{STYLE}{}</style>\n</head>\n\
             <body>\n<main>\n{main}</main>\n{script}</body>\n</html>\n",
            self.style
        )
    }

    /// What the policy says of the script, and the script: the browser runs that one, known by its hash, and no other.
    fn script(self) -> (String, String) {
        if self.script.is_empty() {
            return (String::new(), String::new());
        }
        let text = format!("\n{}", self.script);
        let policy = format!("; script-src 'sha256-{}'", base64(&tuner::sha256(&text)));
        (policy, format!("<script>{text}</script>\n"))
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

#[cfg(test)]
mod tests {
    use super::{Sort, base64};

    #[test]
    fn the_policy_names_the_script() {
        let page = |script| Sort { command: "show", what: "trace", style: "", script }.page("a", "");
        assert!(!page("").contains("script"));
        let page = page("1\n");
        assert!(page.contains("<script>\n1\n</script>\n</body>"), "{page}");
        assert!(
            page.contains(&format!("; script-src 'sha256-{}'\">", base64(&tuner::sha256("\n1\n")))),
            "{page}"
        );
    }

    /// The hash of nothing as everyone knows it.
    #[test]
    fn hexadecimal_digits_become_base_64() {
        assert_eq!(base64(&tuner::sha256("")), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!([base64("00"), base64("ff"), base64("")], ["AA==", "/w==", ""]);
    }
}
