//! `tilewright man`.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use clap_mangen::Man as Page;
use schemars::JsonSchema;
use serde::Serialize;

use super::help::examples;
use crate::{constant::True, diagnostic::Diagnostic, term::report::Report, term::shell::Shell};

/// Print the manual page, or write one for each command into a folder
#[derive(Debug, clap::Args)]
pub(crate) struct Man {
    /// The folder to write into, such as ~/.local/share/man/man1
    folder: Option<PathBuf>,
}

/// The page of the command itself.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OnePage {
    ok: True,
    /// The name of its file.
    name: &'static str,
    /// The page, for troff.
    text: String,
}

impl Report for OnePage {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(write!(shell.out, "{}", self.text)?)
    }
}

/// Which pages were written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WrittenPages<'a> {
    ok: True,
    /// The folder that they are in.
    folder: &'a Path,
    /// The names of their files.
    pages: Vec<String>,
}

impl Report for WrittenPages<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(writeln!(shell.out, "{} pages were written to {}", self.pages.len(), self.folder.display())?)
    }
}

impl Man {
    pub(crate) fn run(&self, mut command: clap::Command, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        command.build();
        let Some(folder) = &self.folder else {
            return shell.report(&OnePage { ok: True, name: "tilewright.1", text: page(&command)? });
        };
        fs::create_dir_all(folder).map_err(|err| Diagnostic::io(folder, &err))?;
        let mut names = vec![];
        for (name, command) in pages(command) {
            let path = folder.join(&name);
            fs::write(&path, page(&command)?).map_err(|err| Diagnostic::io(&path, &err))?;
            names.push(name);
        }
        shell.report(&WrittenPages { ok: True, folder, pages: names })
    }
}

/// The command and those below it that are not hidden, each with the name of its page.
fn pages(command: clap::Command) -> Vec<(String, clap::Command)> {
    let mut out = vec![];
    let mut todo = vec![("tilewright".to_owned(), command)];
    while let Some((name, command)) = todo.pop() {
        let below = command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
        todo.extend(below.map(|it| (format!("{name}-{}", it.get_name()), it.clone())));
        out.push((format!("{name}.1"), command));
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    out
}

/// A page: what `--help` has, and the examples as they are typed.
fn page(command: &clap::Command) -> Result<String, Diagnostic> {
    let mut text = Vec::new();
    let man = Page::new(command.clone());
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_opts().next().is_some() || command.get_positionals().next().is_some() {
        man.render_options_section(&mut text)?;
    }
    if command.get_subcommands().any(|it| !it.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    let examples = examples(command.get_name());
    if !examples.is_empty() {
        writeln!(text, ".SH EXAMPLES")?;
    }
    for (line, what) in examples {
        writeln!(text, ".TP\n\\fBtilewright {}\\fR\n{}", literal(line), literal(what))?;
    }
    if command.get_version().is_some() {
        man.render_version_section(&mut text)?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A text that troff prints as it is.
fn literal(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
