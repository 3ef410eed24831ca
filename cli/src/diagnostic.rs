//! What went wrong, as the user sees it: the only place that renders errors.

use std::{fmt, io, ops::Range, path::Path};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use codegen::{device::DeviceError, lower::LowerError};
use ir::{Code, Coded, Func, Name, VerifyError};
use schedule::{ScheduleError, ScriptError, workload::WorkloadError};
use serde_json::{Value, json};
use tuner::log::LogError;

use crate::{culprit::culprit, term::shell::visible, trouble::Trouble};

/// A refusal as the user sees it: a code, a message, places to point at, and what to try instead.
///
/// It is printed as `rustc` prints its errors, with the places; [`Diagnostic::data`] has the same as JSON.
#[derive(Debug)]
pub struct Diagnostic {
    /// Whose fault it is.
    pub(crate) fault: Fault,
    code: Code,
    title: String,
    places: Vec<Place>,
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
    /// Nobody reads the output any more.
    Closed,
}

/// How many errors are told at once.
const MOST: usize = 10;

/// A text with places in it to point at.
#[derive(Debug)]
struct Place {
    /// Its path, or what it is.
    name: String,
    text: String,
    marks: Vec<Mark>,
}

#[derive(Debug)]
struct Mark {
    span: Range<usize>,
    label: Option<String>,
    primary: bool,
}

impl Diagnostic {
    fn new(fault: Fault, of: impl Coded, title: impl Into<String>) -> Diagnostic {
        Diagnostic {
            fault,
            code: of.code(),
            title: shortened(title.into()),
            places: vec![],
            help: None,
            more: vec![],
        }
    }

    /// A wrong request: an unknown name, a flag that does not fit.
    pub(crate) fn usage(of: impl Coded, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Fault::Usage, of, title)
    }

    /// The thing asked about failed.
    pub(crate) fn failed(of: impl Coded, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Fault::Asked, of, title)
    }

    /// The message alone, to become part of another.
    pub(crate) fn into_title(self) -> String {
        self.title
    }

    /// With what to try instead, if there is something.
    pub(crate) fn help(self, help: impl Into<Option<String>>) -> Diagnostic {
        // Unlike titles, the renderer takes these as they are.
        let shown = |it: String| {
            shortened(it).lines().map(|it| visible(it.to_owned())).collect::<Vec<_>>().join("\n")
        };
        Diagnostic { help: help.into().map(shown), ..self }
    }

    /// With a place in a file.
    pub(crate) fn at(mut self, path: &Path, text: &str, span: Range<usize>) -> Diagnostic {
        let marks = vec![Mark { span, label: None, primary: true }];
        self.places.push(Place { name: path.display().to_string(), text: text.to_owned(), marks });
        self
    }

    /// With places in a text that is no file, each with what happens there.
    pub(crate) fn about(
        mut self,
        name: String,
        text: String,
        marks: Vec<(Range<usize>, String)>,
    ) -> Diagnostic {
        let mark = |(n, (span, label))| Mark { span, label: Some(label), primary: n == 0 };
        let marks = marks.into_iter().enumerate().map(mark).collect();
        self.places.push(Place { name, text, marks });
        self
    }

    /// Several as one.
    pub(crate) fn all(reports: impl IntoIterator<Item = Diagnostic>) -> Option<Diagnostic> {
        let mut reports = reports.into_iter();
        let mut first = reports.next()?;
        first.more.extend(reports);
        Some(first)
    }

    /// Arguments that cannot be read, in the words of their reader, which begin with `error: ` and may go on with tips.
    pub(crate) fn arguments(words: &str) -> Diagnostic {
        let mut parts = words.trim_start_matches("error: ").split("\n\n").map(str::trim);
        let lines = |it: &str| it.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let title = parts.next().map(lines).unwrap_or_default();
        let tips = parts.flat_map(str::lines).map(|it| it.trim().trim_start_matches("tip: "));
        let tips: Vec<_> = tips.filter(|it| !it.starts_with("For more information")).collect();
        let help = (!tips.is_empty()).then(|| tips.join("\n"));
        Diagnostic::usage(Trouble::Arguments, title).help(help)
    }

    /// Two as one, in the order of their places.
    pub(crate) fn and(mut self, mut other: Diagnostic) -> Diagnostic {
        let (ours, theirs) = (std::mem::take(&mut self.more), std::mem::take(&mut other.more));
        let mut all: Vec<_> = [self, other].into_iter().chain(ours).chain(theirs).collect();
        let start = |it: &Diagnostic| it.places.first().and_then(|it| Some(it.marks.first()?.span.start));
        all.sort_by_key(start);
        let first = all.remove(0);
        Diagnostic { more: all, ..first }
    }

    /// What is wrong in the text of a script.
    pub(crate) fn script(path: &Path, text: &str, err: ScriptError) -> Diagnostic {
        let more = err.more.into_iter().map(|it| Diagnostic::script(path, text, it)).collect();
        let report = Diagnostic::failed(err.problem, err.message).help(err.help);
        Diagnostic { more, ..report.at(path, text, err.span) }
    }

    /// A file that cannot be read or written.
    pub(crate) fn io(path: &Path, err: &io::Error) -> Diagnostic {
        let reason = match err.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
            io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            _ => err.to_string(),
        };
        Diagnostic::usage(Trouble::File, format!("{}: {reason}", path.display()))
    }

    /// A tuning log that cannot be read or written.
    pub(crate) fn log(err: &LogError) -> Diagnostic {
        let report = match err {
            LogError::Io { path, source } => Diagnostic::io(path, source),
            LogError::Different { .. } => Diagnostic::failed(err, err.to_string()),
            LogError::Write { .. }
            | LogError::Entry(_)
            | LogError::Locked(_)
            | LogError::Exists(_)
            | LogError::Name(_)
            | LogError::Newer { .. }
            | LogError::NoHead(_)
            | LogError::Packed(_)
            | LogError::Empty(_)
            | LogError::Foreign(_) => Diagnostic::usage(err, err.to_string()),
        };
        report.help(err.help())
    }

    /// A workload file that is refused.
    pub(crate) fn workload(path: &Path, text: &str, err: &WorkloadError) -> Diagnostic {
        let report = Diagnostic::failed(err, err.to_string()).help(err.help());
        match &err.span {
            Some(span) => report.at(path, text, span.clone()),
            None => report,
        }
    }

    /// A step that was refused: the step in the script and the line of the program that it is about.
    pub(crate) fn refused(
        path: &Path,
        text: &str,
        step: &Range<usize>,
        word: &str,
        before: &Func,
        err: &ScheduleError,
    ) -> Diagnostic {
        let message = err.to_string();
        let title = if message.starts_with(word) { message } else { format!("{word}: {message}") };
        let mut report = Diagnostic::failed(err, title).help(err.help());
        report.step(path, text, step, culprit(text, step, err));
        report.program("the program before it", before, &err.names(), err.buffer());
        report
    }

    /// A program that breaks rules: each with the line that introduces what breaks it.
    pub(crate) fn unsound(name: &str, func: &Func, errors: &[VerifyError]) -> Option<Diagnostic> {
        Diagnostic::all(errors.iter().map(|err| {
            let help = crate::culprit::meant(func, err).or_else(|| err.kind.help());
            let mut report = Diagnostic::failed(&err.kind, err.to_string()).help(help);
            report.program(name, func, &[&err.at], Some(&err.at).filter(|_| err.is_of_buffer()));
            report
        }))
    }

    /// A scheduled program that cannot be lowered.
    pub(crate) fn lower(func: &Func, err: &LowerError) -> Diagnostic {
        let mut report = Diagnostic::failed(err, err.to_string()).help(err.help());
        report.program("the scheduled program", func, &err.names(), err.buffer());
        report
    }

    /// What a device or a compiler said.
    pub(crate) fn device(err: &DeviceError) -> Diagnostic {
        let fault = match err {
            DeviceError::Missing { .. } | DeviceError::Unsupported(_) => Fault::Usage,
            DeviceError::Compile { .. }
            | DeviceError::Call { .. }
            | DeviceError::Lost { .. }
            | DeviceError::Hang { .. } => Fault::Asked,
        };
        Diagnostic::new(fault, err, err.to_string()).help(err.help())
    }

    /// Points at the culprit within a step, or at the whole step.
    fn step(&mut self, path: &Path, text: &str, step: &Range<usize>, culprit: Option<Range<usize>>) {
        let whole =
            Mark { span: step.clone(), label: Some("in this step".to_owned()), primary: culprit.is_none() };
        let culprit = culprit.map(|span| Mark { span, label: None, primary: true });
        let marks = culprit.into_iter().chain([whole]).collect();
        self.places.push(Place { name: path.display().to_string(), text: text.to_owned(), marks });
    }

    /// Points at the line of the program that introduces the culprit.
    fn program(&mut self, name: &str, func: &Func, names: &[&Name], buffer: Option<&Name>) {
        let listing = ir::text::print(func);
        let declared = buffer.and_then(|it| listing.buffers.get(it));
        let head = || names.iter().find_map(|it| listing.heads.get(*it));
        let Some(span) = declared.or_else(head) else { return };
        let marks = vec![Mark { span: span.clone(), label: None, primary: false }];
        self.places.push(Place { name: name.to_owned(), text: listing.text, marks });
    }

    /// As text for people, like rustc's.
    pub(crate) fn render(&self, colour: bool) -> String {
        let all = [self].into_iter().chain(&self.more).take(MOST).map(|it| it.render_one(colour));
        let rest = (1 + self.more.len()).saturating_sub(MOST);
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

    fn render_one(&self, colour: bool) -> String {
        let code = self.code.to_string();
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut group = Group::with_title(Level::ERROR.primary_title(&self.title).id(&code));
        for place in &self.places {
            let marks = place.marks.iter().map(|it| it.annotation(&place.text));
            group = group.element(Snippet::source(&place.text).path(&place.name).annotations(marks));
        }
        let help = self.help.as_ref().map(|it| Group::with_title(Level::HELP.secondary_title(it)));
        if self.places.is_empty() {
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
        let places = self.places.iter().map(|place| {
            let mark = place.marks.iter().find(|it| it.primary).or(place.marks.first());
            let span = mark.map(|it| clamp(&it.span, &place.text));
            let at = span.as_ref().map(|it| line_and_column(&place.text, it.start));
            json!({
                "source": place.name,
                "bytes": span.map(|it| [it.start, it.end]),
                "line": at.map(|it| it.0),
                "column": at.map(|it| it.1),
            })
        });
        let mut data = json!({
            "ok": false,
            "code": self.code.to_string(),
            "error": self.title,
            "places": places.collect::<Vec<_>>(),
            "help": self.help,
        });
        if !self.more.is_empty() {
            data["more"] = self.more.iter().map(Diagnostic::data).collect();
        }
        data
    }
}

impl Mark {
    fn annotation<'a>(&'a self, text: &str) -> Annotation<'a> {
        let kind = if self.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        kind.span(clamp(&self.span, text)).label(self.label.as_deref())
    }
}

/// The most characters of a message: a name in it may be as long as the script.
const LONGEST: usize = 2000;

/// A message, or its beginning.
fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
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
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostic {}

impl From<io::Error> for Diagnostic {
    /// Of writing to standard output.
    fn from(err: io::Error) -> Diagnostic {
        let fault = if err.kind() == io::ErrorKind::BrokenPipe { Fault::Closed } else { Fault::Usage };
        Diagnostic::new(fault, Trouble::Output, format!("the output cannot be written: {err}"))
    }
}

impl From<LogError> for Diagnostic {
    fn from(err: LogError) -> Diagnostic {
        Diagnostic::log(&err)
    }
}

impl From<DeviceError> for Diagnostic {
    fn from(err: DeviceError) -> Diagnostic {
        Diagnostic::device(&err)
    }
}
