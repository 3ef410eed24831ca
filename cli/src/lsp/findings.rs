//! Diagnostics as editors show them.

use std::{ops::Range, path::Path, sync::Arc};

use gen_lsp_types::{
    self as lsp, Code, CodeDescription, DiagnosticRelatedInformation, DiagnosticSeverity, Location, Message,
    Uri,
};

use super::{
    text::{Encoding, Text},
    uri::uri_of,
};
use crate::diagnostic::{Diagnostic, Spot};

/// Something that is wrong, with where it is in the text that is shown.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) span: Range<usize>,
    pub(super) code: String,
    /// What is wrong, alone.
    pub(super) title: String,
    /// What to try instead.
    pub(super) help: Option<String>,
    /// The whole message.
    message: String,
    /// What stands there, where it is not the text itself that was looked at.
    line: Option<String>,
    /// Other places.
    related: Vec<Related>,
}

/// A place in a file that something has to do with.
#[derive(Clone, Debug)]
struct Related {
    path: String,
    text: Arc<str>,
    span: Range<usize>,
    label: String,
}

/// Where the pages about codes are.
const PAGES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/src/errors");

/// What is wrong in a text of that name. What has no place in it stands where `elsewhere` says.
pub(super) fn findings(
    wrong: &Diagnostic,
    own: &str,
    elsewhere: &dyn Fn(&Diagnostic) -> Range<usize>,
) -> Vec<Finding> {
    let mut out: Vec<Finding> = vec![];
    for it in wrong.each() {
        let span = it.place_in(own).unwrap_or_else(|| elsewhere(it));
        out.push(finding(it, own, &span));
        // A definition in the same text is marked, too.
        let defined = it.spots().find(|spot| spot.is_primary && spot.source == own && spot.span != span);
        if let Some(spot) = defined.filter(|_| it.spots().any(|it| it.is_call)) {
            out.push(finding(it, own, &spot.span));
        }
    }
    out
}

fn finding(it: &Diagnostic, own: &str, span: &Range<usize>) -> Finding {
    let mut message = it.message().to_owned();
    if let Some(help) = it.advice() {
        message = format!("{message}\nhelp: {help}");
    }
    let mut related = vec![];
    for spot in it.spots().filter(|it| it.source != own || it.span != *span) {
        let around = |it: &Range<usize>| spot.span.start <= it.start && it.end <= spot.span.end;
        // The step around a place that is shown is seen with it.
        let mut shown = it.spots().filter(|it| it.is_primary && it.source == spot.source).map(|it| it.span);
        let is_seen = (spot.source == own && around(span)) || shown.any(|it| around(&it));
        if is_seen && !spot.is_call && !spot.is_primary {
            continue;
        }
        if Path::new(spot.source).is_absolute() || spot.source == own {
            let (path, text) = (spot.source.to_owned(), spot.text.into());
            related.push(Related { path, text, span: spot.span.clone(), label: label(&spot) });
        } else {
            message = format!("{message}\n{}: {}", spot.source, line_of(&spot));
        }
    }
    let (code, title, help) =
        (it.code().to_string(), it.message().to_owned(), it.advice().map(str::to_owned));
    let shown = it.spots().find(|it| it.source == own && it.span == *span);
    let line = shown.and_then(|it| it.text.get(it.span.clone()).map(str::to_owned));
    Finding { span: span.clone(), code, title, help, message, line, related }
}

/// What is to be said of a place.
fn label(spot: &Spot<'_>) -> String {
    spot.label
        .unwrap_or(if spot.is_primary { "it is wrong here" } else { "it has to do with this" })
        .to_owned()
}

/// The line of a text that is no file.
fn line_of<'a>(spot: &Spot<'a>) -> &'a str {
    let start = spot.text[..spot.span.start].rfind('\n').map_or(0, |it| it + 1);
    spot.text[start..].lines().next().unwrap_or_default().trim()
}

impl Finding {
    /// Moves it into a text that it is about, where it was found in what that prints as.
    pub(super) fn move_to(&mut self, text: &str) {
        let Some(line) = self.line.as_deref().filter(|it| text.get(self.span.clone()) != Some(*it)) else {
            return;
        };
        if let Some(at) = text.find(line) {
            self.span = at..at + line.len();
        }
    }

    /// As the protocol has it.
    pub(super) fn shown(&self, text: &Text, encoding: Encoding) -> lsp::Diagnostic {
        let related = self.related.iter().map(|it| {
            let range = Text::new(&it.text, encoding).range(&it.span);
            let location = Location::new(uri_of(Path::new(&it.path)), range);
            DiagnosticRelatedInformation::new(location, it.label.clone())
        });
        let related: Vec<_> = related.collect();
        lsp::Diagnostic {
            range: text.range(&self.span),
            severity: Some(DiagnosticSeverity::Error),
            code: Some(Code::String(self.code.clone())),
            code_description: Some(CodeDescription::new(Uri(format!("{PAGES}/{}.md", self.code)))),
            source: Some("tilewright".to_owned()),
            message: Message::String(self.message.clone()),
            tags: None,
            related_information: (!related.is_empty()).then_some(related),
            data: None,
        }
    }
}
