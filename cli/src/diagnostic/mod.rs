//! What went wrong, as the user sees it: the only place that renders errors.

mod of;
#[cfg(feature = "cli")]
mod spots;
#[cfg(test)]
mod unreached;

use std::{fmt, ops::Range, path::Path};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use ir::{Code, Coded, Name};
use serde::Serialize;
use serde_json::Value;

use crate::{constant::False, escape::visible};
#[cfg(feature = "cli")]
pub(crate) use spots::Spot;

/// A refusal as the user sees it: a code, a message, places to point at, and what to try instead.
///
/// It is printed as `rustc` prints its errors, with the places; [`Diagnostic::data`] has the same as JSON.
#[derive(Debug)]
pub struct Diagnostic {
    /// Whose fault it is.
    pub(crate) fault: Fault,
    code: Code,
    title: String,
    texts: Vec<MarkedText>,
    help: Option<String>,
    /// What went wrong besides.
    more: Vec<Diagnostic>,
}

/// What an error means for whoever called the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The thing asked about failed: a script is refused, numbers are wrong. Exit code 1.
    Asked,
    /// The command could not do its work: usage, files, missing libraries and devices. Exit code 2.
    Usage,
    /// What was asked cannot be told from what was measured. Exit code 3.
    Unsure,
    /// Nobody reads the output any more.
    Closed,
}

/// How many columns an error has where no terminal is narrower.
pub(crate) const WIDTH: usize = 140;

/// How many errors are rendered at once.
const MAX_ERRORS: usize = 10;

/// A text with marked places.
#[derive(Debug)]
struct MarkedText {
    /// Its path, or what it is.
    name: String,
    text: String,
    marks: Vec<Mark>,
    /// What in it is to blame, where it is a program.
    names: Vec<Name>,
}

#[derive(Debug)]
struct Mark {
    span: Range<usize>,
    label: Option<String>,
    primary: bool,
    /// Whether it is a call of what something is wrong in.
    is_call: bool,
}

impl Diagnostic {
    fn new(fault: Fault, of: impl Coded, title: impl Into<String>) -> Diagnostic {
        Diagnostic {
            fault,
            code: of.code(),
            title: shortened(title.into()),
            texts: vec![],
            help: None,
            more: vec![],
        }
    }

    /// A wrong request: an unknown name, a flag that does not fit.
    pub fn usage(of: impl Coded, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Fault::Usage, of, title)
    }

    /// The thing asked about failed.
    pub(crate) fn failed(of: impl Coded, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Fault::Asked, of, title)
    }

    /// What was asked cannot be told.
    pub(crate) fn unsure(of: impl Coded, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Fault::Unsure, of, title)
    }

    /// The message alone, to become part of another.
    pub(crate) fn into_title(self) -> String {
        self.title
    }

    /// With what to try instead, if there is something.
    #[must_use]
    pub fn help(self, help: impl Into<Option<String>>) -> Diagnostic {
        // Unlike titles, the renderer takes these as they are.
        let shown = |it: String| {
            shortened(it).lines().map(|it| visible(it.to_owned())).collect::<Vec<_>>().join("\n")
        };
        Diagnostic { help: help.into().map(shown), ..self }
    }

    /// With a place in a file.
    pub(crate) fn at(mut self, path: &Path, text: &str, span: Range<usize>) -> Diagnostic {
        let marks = vec![Mark { span, label: None, primary: true, is_call: false }];
        self.texts.push(MarkedText {
            name: path.display().to_string(),
            text: text.to_owned(),
            marks,
            names: vec![],
        });
        self
    }

    /// Without places in a text that the user has not written and cannot see.
    pub(crate) fn without(mut self, path: &Path) -> Diagnostic {
        let name = path.display().to_string();
        self.texts.retain(|it| it.name != name);
        self.more = self.more.into_iter().map(|it| it.without(path)).collect();
        self
    }

    /// With places in a text that is no file, each with what happens there.
    pub(crate) fn about(
        mut self,
        name: String,
        text: String,
        marks: Vec<(Range<usize>, String)>,
    ) -> Diagnostic {
        let mark = |(n, (span, label))| Mark { span, label: Some(label), primary: n == 0, is_call: false };
        let marks = marks.into_iter().enumerate().map(mark).collect();
        self.texts.push(MarkedText { name, text, marks, names: vec![] });
        self
    }

    /// Several as one.
    pub fn all(reports: impl IntoIterator<Item = Diagnostic>) -> Option<Diagnostic> {
        let mut reports = reports.into_iter();
        let mut first = reports.next()?;
        first.more.extend(reports);
        Some(first)
    }

    /// Two as one, in the order of their places.
    pub(crate) fn and(mut self, mut other: Diagnostic) -> Diagnostic {
        let (ours, theirs) = (std::mem::take(&mut self.more), std::mem::take(&mut other.more));
        let mut all: Vec<_> = [self, other].into_iter().chain(ours).chain(theirs).collect();
        let start = |it: &Diagnostic| it.texts.first().and_then(|it| Some(it.marks.first()?.span.start));
        all.sort_by_key(start);
        let first = all.remove(0);
        Diagnostic { more: all, ..first }
    }

    /// As text for people, like rustc's. Sources are cut to so many columns, at most [`WIDTH`].
    pub(crate) fn render(&self, colour: bool, columns: usize) -> String {
        let all =
            [self].into_iter().chain(&self.more).take(MAX_ERRORS).map(|it| it.render_one(colour, columns));
        let rest = (1 + self.more.len()).saturating_sub(MAX_ERRORS);
        let rest = (rest > 0).then(|| format!("and {rest} more"));
        all.chain(rest).collect::<Vec<_>>().join("\n\n")
    }

    /// Where there is more about it.
    pub(crate) fn more_words(&self) -> String {
        let mut codes: Vec<Code> = [self].into_iter().chain(&self.more).map(|it| it.code).collect();
        codes.sort();
        codes.dedup();
        match codes.as_slice() {
            [code] => format!("For more about this error, try `tilewright explain {code}`."),
            codes => {
                let words: Vec<_> = codes.iter().map(ToString::to_string).collect();
                format!("For more about an error, try `tilewright explain` with {}.", words.join(", "))
            }
        }
    }

    fn render_one(&self, colour: bool, columns: usize) -> String {
        let code = self.code.to_string();
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let renderer = renderer.term_width(columns.min(WIDTH));
        let mut group = Group::with_title(Level::ERROR.primary_title(&self.title).id(&code));
        for marked in &self.texts {
            let marks = marked.marks.iter().map(|it| it.annotation(&marked.text));
            group = group.element(Snippet::source(&marked.text).path(&marked.name).annotations(marks));
        }
        let help = self.help.as_ref().map(|it| Group::with_title(Level::HELP.secondary_title(it)));
        if self.texts.is_empty() {
            // Groups in one report hang together by a line in the margin; without a place there is no margin.
            let parts = [group].into_iter().chain(help).map(|it| renderer.render(&[it]));
            return parts.collect::<Vec<_>>().join("\n");
        }
        let groups: Vec<Group<'_>> = [group].into_iter().chain(help).collect();
        renderer.render(&groups)
    }

    /// The stable number, which `tilewright explain` knows.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.title
    }

    /// As data, for `--json`.
    pub fn data(&self) -> Value {
        serde_json::to_value(self.report()).expect("it is plain data")
    }

    /// The same in its type.
    pub(crate) fn report(&self) -> ErrorReport {
        ErrorReport {
            ok: False,
            code: self.code.to_string(),
            error: self.title.clone(),
            places: self.texts.iter().map(MarkedText::place).collect(),
            help: self.help.clone(),
            more: self.more.iter().map(Diagnostic::report).collect(),
        }
    }
}

/// What does not do what it was asked for, the last line of any command with `--json` that fails. Exit code 1: the thing asked about
/// failed; 2: usage, files, or what the machine lacks; 3: it cannot be told.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub(crate) struct ErrorReport {
    ok: False,
    /// Stable; `tilewright explain CODE` shows its page.
    #[cfg_attr(feature = "cli", schemars(regex(pattern = "^TW[0-9]{4}$")))]
    code: String,
    /// The message.
    error: String,
    /// Where it is, the first place first.
    places: Vec<Place>,
    /// What to do.
    help: Option<String>,
    /// What else is wrong and has nothing to do with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<ErrorReport>,
}

/// A place in a text.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub(crate) struct Place {
    /// A file, or what else the text is.
    source: String,
    /// Where it begins and ends in the text, in bytes.
    bytes: Option<[usize; 2]>,
    /// The line, from 1.
    line: Option<usize>,
    /// The column in characters, from 1.
    column: Option<usize>,
}

impl MarkedText {
    fn place(&self) -> Place {
        let mark = self.marks.iter().find(|it| it.primary).or(self.marks.first());
        let span = mark.map(|it| clamp(&it.span, &self.text));
        let at = span.as_ref().map(|it| line_and_column(&self.text, it.start));
        Place {
            source: self.name.clone(),
            bytes: span.map(|it| [it.start, it.end]),
            line: at.map(|it| it.0),
            column: at.map(|it| it.1),
        }
    }
}

impl Mark {
    fn annotation<'a>(&'a self, text: &str) -> Annotation<'a> {
        let kind = if self.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        kind.span(clamp(&self.span, text)).label(self.label.as_deref())
    }
}

/// The most characters of a message: a name in it may be as long as the script.
const MAX_MESSAGE_CHARS: usize = 2000;

/// A message, or its beginning.
fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((at, _)) => format!("{}… ({} characters more)", &text[..at], text[at..].chars().count()),
        None => text,
    }
}

/// A place that a text has, whatever was asked for.
fn clamp(span: &Range<usize>, text: &str) -> Range<usize> {
    let floor = |at: usize| text.floor_char_boundary(at.min(text.len()));
    floor(span.start)..floor(span.end.max(span.start))
}

fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false, WIDTH))
    }
}

impl std::error::Error for Diagnostic {}
