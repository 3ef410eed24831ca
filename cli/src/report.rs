//! What went wrong, as the user sees it: the only place that renders errors.

use std::{io, ops::Range, path::Path};

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use codegen::{device::DeviceError, lower::LowerError};
use ir::{Func, Name};
use schedule::{ScheduleError, workload::WorkloadError};
use serde_json::{Value, json};
use tuner::log::LogError;

use crate::shell::visible;

/// An error on its way to the user.
#[derive(Debug)]
pub(crate) struct Report {
    /// Whose fault it is.
    pub(crate) fault: Fault,
    title: String,
    places: Vec<Place>,
    help: Option<String>,
    /// What went wrong besides.
    more: Vec<Report>,
}

/// What an error means for whoever called the command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The thing asked about failed: a script is refused, numbers are wrong. Exit code 1.
    Asked,
    /// The command could not do its work: usage, files, missing libraries and devices. Exit code 2.
    Usage,
    /// Nobody reads the output any more.
    Closed,
}

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

impl Report {
    fn new(fault: Fault, title: impl Into<String>) -> Report {
        Report { fault, title: title.into(), places: vec![], help: None, more: vec![] }
    }

    /// A wrong request: an unknown name, a flag that does not fit.
    pub(crate) fn usage(title: impl Into<String>) -> Report {
        Report::new(Fault::Usage, title)
    }

    /// The thing asked about failed.
    pub(crate) fn failed(title: impl Into<String>) -> Report {
        Report::new(Fault::Asked, title)
    }

    /// The message alone, to become part of another.
    pub(crate) fn into_title(self) -> String {
        self.title
    }

    /// With what to try instead, if there is something.
    pub(crate) fn help(self, help: impl Into<Option<String>>) -> Report {
        // Unlike titles, the renderer takes these as they are.
        let shown = |it: String| it.lines().map(|it| visible(it.to_owned())).collect::<Vec<_>>().join("\n");
        Report { help: help.into().map(shown), ..self }
    }

    /// With a place in a file.
    pub(crate) fn at(mut self, path: &Path, text: &str, span: Range<usize>) -> Report {
        let marks = vec![Mark { span, label: None, primary: true }];
        self.places.push(Place { name: path.display().to_string(), text: text.to_owned(), marks });
        self
    }

    /// With places in a text that is no file, each with what happens there.
    pub(crate) fn about(mut self, name: String, text: String, marks: Vec<(Range<usize>, String)>) -> Report {
        let mark = |(n, (span, label))| Mark { span, label: Some(label), primary: n == 0 };
        let marks = marks.into_iter().enumerate().map(mark).collect();
        self.places.push(Place { name, text, marks });
        self
    }

    /// Several as one.
    pub(crate) fn all(reports: impl IntoIterator<Item = Report>) -> Option<Report> {
        let mut reports = reports.into_iter();
        let mut first = reports.next()?;
        first.more.extend(reports);
        Some(first)
    }

    /// A file that cannot be read or written.
    pub(crate) fn io(path: &Path, err: &io::Error) -> Report {
        let reason = match err.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
            io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            _ => err.to_string(),
        };
        Report::usage(format!("{}: {reason}", path.display()))
    }

    /// A tuning log that cannot be read or written.
    pub(crate) fn log(err: &LogError) -> Report {
        let report = match err {
            LogError::Io { path, source } => Report::io(path, source),
            LogError::Different { .. } => Report::failed(err.to_string()),
            LogError::Write { .. }
            | LogError::Entry(_)
            | LogError::Locked(_)
            | LogError::Exists(_)
            | LogError::Name(_)
            | LogError::Newer { .. }
            | LogError::NoHead(_)
            | LogError::Packed(_)
            | LogError::Empty(_)
            | LogError::Foreign(_) => Report::usage(err.to_string()),
        };
        report.help(err.help())
    }

    /// A workload file that is refused.
    pub(crate) fn workload(path: &Path, text: &str, err: &WorkloadError) -> Report {
        let report = Report::failed(err.to_string()).help(err.help());
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
    ) -> Report {
        let message = err.to_string();
        let title = if message.starts_with(word) { message } else { format!("{word}: {message}") };
        let mut report = Report::failed(title).help(err.help());
        report.script(path, text, step, &err.names());
        report.program("the program before it", before, &err.names());
        report
    }

    /// A scheduled program that cannot be lowered.
    pub(crate) fn lower(func: &Func, err: &LowerError) -> Report {
        let mut report = Report::failed(err.to_string()).help(err.help());
        report.program("the scheduled program", func, &err.names());
        report
    }

    /// What a device or a compiler said.
    pub(crate) fn device(err: &DeviceError) -> Report {
        let fault = match err {
            DeviceError::Missing { .. } | DeviceError::Unsupported(_) => Fault::Usage,
            DeviceError::Compile { .. }
            | DeviceError::Call { .. }
            | DeviceError::Lost { .. }
            | DeviceError::Hang { .. } => Fault::Asked,
        };
        Report::new(fault, err.to_string()).help(err.help())
    }

    /// Points at the culprit within a step, or at the whole step.
    fn script(&mut self, path: &Path, text: &str, step: &Range<usize>, names: &[&Name]) {
        let quoted = |name: &&Name| {
            let word = format!("\"{name}\"");
            let at = step.start + text.get(step.clone())?.find(&word)? + 1;
            Some(at..at + name.as_str().len())
        };
        let culprit = names.iter().find_map(quoted);
        let whole =
            Mark { span: step.clone(), label: Some("in this step".to_owned()), primary: culprit.is_none() };
        let culprit = culprit.map(|span| Mark { span, label: None, primary: true });
        let marks = culprit.into_iter().chain([whole]).collect();
        self.places.push(Place { name: path.display().to_string(), text: text.to_owned(), marks });
    }

    /// Points at the line of the program that introduces the culprit.
    fn program(&mut self, name: &str, func: &Func, names: &[&Name]) {
        let listing = ir::text::print(func);
        let Some(span) = names.iter().find_map(|it| listing.heads.get(*it)) else { return };
        let marks = vec![Mark { span: span.clone(), label: None, primary: false }];
        self.places.push(Place { name: name.to_owned(), text: listing.text, marks });
    }

    /// As text for people, like rustc's.
    pub(crate) fn render(&self, colour: bool) -> String {
        let all = [self].into_iter().chain(&self.more).map(|it| it.render_one(colour));
        all.collect::<Vec<_>>().join("\n\n")
    }

    fn render_one(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut group = Group::with_title(Level::ERROR.primary_title(&self.title));
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

    /// As data, for `--json`.
    pub(crate) fn data(&self) -> Value {
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
            "error": self.title,
            "places": places.collect::<Vec<_>>(),
            "help": self.help,
        });
        if !self.more.is_empty() {
            data["more"] = self.more.iter().map(Report::data).collect();
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

impl From<io::Error> for Report {
    /// Of writing to standard output.
    fn from(err: io::Error) -> Report {
        let fault = if err.kind() == io::ErrorKind::BrokenPipe { Fault::Closed } else { Fault::Usage };
        Report::new(fault, format!("the output cannot be written: {err}"))
    }
}

impl From<LogError> for Report {
    fn from(err: LogError) -> Report {
        Report::log(&err)
    }
}

impl From<DeviceError> for Report {
    fn from(err: DeviceError) -> Report {
        Report::device(&err)
    }
}
