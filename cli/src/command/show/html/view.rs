//! A program in one of its forms, line by line, each line with the parts of the scheduled program that it comes from.
//!
//! What belongs together says so in attributes, which the script of the page reads: `data-n` has the names of parts, `data-o` the
//! statement that a line was printed from. A step's section has the parts that it touched.

use std::{collections::BTreeSet, fmt::Write};

use ir::text::{LineSource, Part};

use crate::term::{
    code::{Lang, html_line},
    markup::escaped,
};

/// A form of a program.
pub(crate) struct View {
    /// What the identities of its lines begin with.
    key: char,
    pub(super) lines: Vec<ViewLine>,
}

/// A line of it.
pub(super) struct ViewLine {
    html: String,
    pub(super) parts: BTreeSet<Part>,
    pub(super) line_source: Option<LineSource>,
    /// What stands before it: a number, a count.
    pub(super) gutter: String,
}

impl View {
    /// A text, and what each of its lines comes from.
    pub(super) fn new(
        key: char,
        text: &str,
        lang: Lang,
        from: impl Iterator<Item = (BTreeSet<Part>, Option<LineSource>)>,
    ) -> View {
        let line = |(text, (parts, line_source)): (&str, (_, _))| ViewLine {
            html: html_line(text, lang),
            parts,
            line_source,
            gutter: String::new(),
        };
        View { key, lines: text.lines().zip(from).map(line).collect() }
    }

    /// The numbers of the lines that come from some parts.
    pub(super) fn marked(&self, parts: &BTreeSet<Part>) -> Vec<usize> {
        let is_marked = |it: &ViewLine| !it.parts.is_disjoint(parts);
        (1..).zip(&self.lines).filter(|it| is_marked(it.1)).map(|it| it.0).collect()
    }

    /// The lines as they stand on the page.
    pub(crate) fn html(&self) -> String {
        let mut out = "<pre class=\"code lines\">".to_owned();
        for (n, it) in (1..).zip(&self.lines) {
            let (names, line_source) = (names(&it.parts), line_source(it.line_source));
            let _ = write!(
                out,
                "<span class=\"l\" id=\"{}{n}\"{names}{line_source}>{}{}</span>",
                self.key, it.gutter, it.html
            );
        }
        out + "</pre>\n"
    }
}

/// The attribute with the names of parts. Where there are none there is none.
pub(super) fn names(parts: &BTreeSet<Part>) -> String {
    if parts.is_empty() { String::new() } else { format!(" data-n=\"{}\"", escaped_whole(&words(parts))) }
}

/// The words of that attribute.
pub(crate) fn words(parts: &BTreeSet<Part>) -> String {
    let word = |it: &Part| match it {
        Part::Buffer(name) => format!("buffer.{name}"),
        Part::Loop(name) => format!("loop.{name}"),
        Part::Block(name) => format!("block.{name}"),
    };
    parts.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The attribute with the statement of a line.
pub(super) fn line_source(line_source: Option<LineSource>) -> String {
    line_source.map_or_else(String::new, |it| match it {
        LineSource::Launch(kernel) => format!(" data-o=\"launch.{kernel}\""),
        LineSource::Axis(kernel, axis) => format!(" data-o=\"axis.{kernel}.{}\"", axis.as_str()),
        LineSource::Op(n) => format!(" data-o=\"{n}\""),
    })
}

/// The button that keeps a step marked. The script shows it: without it, the button would do nothing.
pub(super) fn pin(step: usize) -> String {
    format!(
        "<button type=\"button\" class=\"pin\" data-step=\"{step}\" aria-pressed=\"false\" title=\"Mark the lines of step {step}\" \
         aria-label=\"Mark the lines of step {step}\" hidden>◉</button>"
    )
}

/// Names, however many: what has a limit is text that somebody else wrote.
fn escaped_whole(text: &str) -> String {
    text.split(' ').map(escaped).collect::<Vec<_>>().join(" ")
}
