//! `tilewright fmt`.

mod files;

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use schedule::{Document, Script, ScriptError, format, script, unified};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::True, diagnostic::Diagnostic, new_file, plan::read, script_text::ScriptText, term::code::Lang,
    term::report::Report, term::shell::Shell, usage_error::UsageError,
};
use files::{Found, find};

/// Lay out scripts, workloads and libraries; comments and the lines that their author chose are kept
#[derive(Debug, clap::Args)]
pub(crate) struct Fmt {
    /// Files, folders with all RON files in them, or - for standard input
    #[arg(default_value = ".", value_name = "FILES")]
    paths: Vec<PathBuf>,
    /// Change nothing; say what would change, and exit with 1 if something would
    #[arg(long)]
    check: bool,
}

/// What became of the files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Formatted {
    ok: True,
    /// Each file.
    files: Vec<FormattedFile>,
    /// What standard input becomes, if it was that.
    text: Option<String>,
    #[serde(skip)]
    is_check: bool,
}

/// What became of a file.
#[derive(Debug, Serialize, JsonSchema)]
struct FormattedFile {
    /// Its path.
    path: String,
    /// What was done.
    state: State,
    /// With `--check` what would change, as `diff -u` tells it.
    diff: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It was laid out so already.
    Unchanged,
    /// It is now.
    Formatted,
    /// It would change, and was not changed.
    WouldChange,
    /// It was found in a folder, and is no script, workload or library.
    Skipped,
    /// It cannot be read as RON, and was not changed.
    Refused,
}

impl Report for Formatted {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if let Some(text) = &self.text {
            return Ok(shell.out.write_all(text.as_bytes())?);
        }
        for it in &self.files {
            if let Some(diff) = &it.diff {
                shell.code(diff, Lang::Diff)?;
            } else if it.state == State::Formatted {
                writeln!(shell.out, "formatted {}", it.path)?;
            }
        }
        let skipped: Vec<_> = self.of(State::Skipped).map(|it| it.path.as_str()).collect();
        if !skipped.is_empty() {
            let names = skipped.join(", ");
            shell.note(&format!("no script, workload or library, and left alone: {names}"));
        }
        if !self.is_check {
            let all = [State::Formatted, State::Unchanged, State::Refused].map(|it| self.of(it).count());
            let [done, same, refused] = all;
            let refused = if refused == 0 { String::new() } else { format!(", {refused} refused") };
            writeln!(shell.out, "{}, {same} left as they were{refused}", files_words(done, "formatted"))?;
        }
        Ok(())
    }
}

impl Formatted {
    fn of(&self, state: State) -> impl Iterator<Item = &FormattedFile> {
        self.files.iter().filter(move |it| it.state == state)
    }
}

/// `2 files formatted`.
fn files_words(count: usize, what: &str) -> String {
    if count == 1 { format!("1 file {what}") } else { format!("{count} files {what}") }
}

/// A text as it is laid out.
///
/// # Errors
///
/// What is no RON, as `check` refuses it, and what is none of the texts that are laid out.
pub(crate) fn formatted(path: &Path, text: &str) -> Result<String, Diagnostic> {
    let plain = || ScriptText::plain(&path.display().to_string(), text);
    let is_program = path.extension().is_some_and(|it| it == "tw");
    let other = is_program
        .then(|| "a program in the text form is laid out by `tilewright show --emit ir`".to_owned());
    let refused = |err: ScriptError| {
        let help = other.or(err.help.clone());
        Diagnostic::script(&plain(), err).help(help)
    };
    let out = format::format(text).map_err(refused)?;
    match (Document::of(text), Script::parse(text)) {
        (None, Err(err)) => Err(Diagnostic::script(&plain(), err)),
        (Some(_), _) | (None, Ok(_)) => Ok(out),
    }
}

impl Fmt {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let is_input = |it: &PathBuf| it.as_os_str() == "-";
        let (found, wrong) = if !self.paths.iter().any(is_input) {
            self.files()?
        } else if self.paths.len() == 1 {
            (self.input()?, vec![])
        } else {
            let title = "standard input is laid out alone, without other files";
            return Err(Diagnostic::usage(UsageError::Options, title));
        };
        shell.report(&found)?;
        let count = found.of(State::WouldChange).count();
        let verb = if count == 1 { "is not" } else { "are not" };
        let unformatted = (count > 0).then(|| {
            let title = files_words(count, &format!("{verb} laid out as `tilewright fmt` does"));
            Diagnostic::failed(UsageError::Unformatted, title)
                .help("`tilewright fmt` without --check does it".to_owned())
        });
        Diagnostic::all(wrong.into_iter().chain(unformatted)).map_or(Ok(()), Err)
    }

    /// All files, and what is wrong with some.
    fn files(&self) -> Result<(Formatted, Vec<Diagnostic>), Diagnostic> {
        let (mut files, mut wrong) = (vec![], vec![]);
        for found in find(&self.paths)? {
            let path = found.path.display().to_string();
            let (state, diff) = self.file(&found).unwrap_or_else(|err| {
                wrong.push(err);
                (State::Refused, None)
            });
            files.push(FormattedFile { path, state, diff });
        }
        Ok((Formatted { ok: True, files, text: None, is_check: self.check }, wrong))
    }

    /// What becomes of a file, with what would change.
    fn file(&self, found: &Found) -> Result<(State, Option<String>), Diagnostic> {
        let text = read(&found.path)?;
        if !found.is_named && Document::of(&text).is_none() {
            return Ok((State::Skipped, None));
        }
        let out = formatted(&found.path, &text)?;
        if out == text {
            Ok((State::Unchanged, None))
        } else if self.check {
            Ok((State::WouldChange, Some(unified(&found.path.display().to_string(), &text, &out))))
        } else {
            new_file::rewrite(&found.path, out.as_bytes())?;
            Ok((State::Formatted, None))
        }
    }

    /// Standard input.
    fn input(&self) -> Result<Formatted, Diagnostic> {
        let path = Path::new("stdin");
        let mut text = String::new();
        // One byte more than a text may have shows that it is longer.
        let most = script::MAX_LENGTH as u64 + 1;
        io::stdin().take(most).read_to_string(&mut text).map_err(|err| Diagnostic::io(path, &err))?;
        let out = formatted(path, &text)?;
        let is_same = out == text;
        let diff = (self.check && !is_same).then(|| unified("stdin", &text, &out));
        let state = match (is_same, self.check) {
            (true, _) => State::Unchanged,
            (false, true) => State::WouldChange,
            (false, false) => State::Formatted,
        };
        let files = vec![FormattedFile { path: "stdin".to_owned(), state, diff }];
        Ok(Formatted { ok: True, files, text: (!self.check).then_some(out), is_check: self.check })
    }
}
