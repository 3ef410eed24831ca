//! What a drawing is made of: text, boxes, pills and lines, down a page.

use std::fmt::Write;

use crate::term::markup::escaped;

/// Pixels: the height of a line of text, the width of a character of it, and of a character of small text.
pub(super) const LINE: usize = 19;
pub(super) const CHAR: usize = 8;
pub(super) const SMALL: usize = 7;
pub(super) const MARGIN: usize = 24;

/// Ink for what matters, for what explains, and for small print.
pub(crate) const INK: &str = "#1b1f24";
pub(crate) const GREY: &str = "#57606a";
/// What a picture in a file of its own wears where pages are dark; within another page, that decides.
pub(crate) const DARK: &str = "<style>@media (prefers-color-scheme: dark) { svg:root { filter: invert(0.9) hue-rotate(180deg); } }</style>";
/// Barriers, and waits and commits.
pub(super) const RED: &str = "#b3202b";
pub(super) const AMBER: &str = "#7d5700";

/// Where and how a text stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Face {
    Plain,
    Bold,
    Title,
    Grey,
    Small,
    /// In the middle of its place.
    Middle,
    MiddleGrey,
}

/// A page that is written downwards.
pub(super) struct Pen {
    pub(super) out: String,
    pub(super) y: usize,
    pub(super) width: usize,
}

impl Pen {
    pub(super) fn text(&mut self, x: usize, y: usize, text: &str, face: Face) {
        let style = match face {
            Face::Plain => String::new(),
            Face::Bold => " font-weight=\"600\"".to_owned(),
            Face::Title => " font-weight=\"700\" font-size=\"15\"".to_owned(),
            Face::Grey => format!(" fill=\"{GREY}\""),
            Face::Small => format!(" font-size=\"11\" fill=\"{GREY}\""),
            Face::Middle => " text-anchor=\"middle\"".to_owned(),
            Face::MiddleGrey => format!(" text-anchor=\"middle\" fill=\"{GREY}\""),
        };
        let _ = writeln!(self.out, "<text x=\"{x}\" y=\"{y}\"{style}>{}</text>", escaped(text));
    }

    /// A box; with a broken edge if it is not solid.
    pub(super) fn cell(
        &mut self,
        (x, y): (usize, usize),
        (w, h): (usize, usize),
        (fill, edge): (&str, &str),
        solid: bool,
    ) {
        let dash = if solid { "" } else { " stroke-dasharray=\"4 3\" fill-opacity=\"0.3\"" };
        let _ = writeln!(
            self.out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"4\" fill=\"{fill}\" stroke=\"{edge}\"{dash}/>"
        );
    }

    /// A line across.
    pub(super) fn rule(&mut self, x: usize, end: usize, y: usize, colour: &str, width: usize) {
        let _ = writeln!(
            self.out,
            "<line x1=\"{x}\" y1=\"{y}\" x2=\"{end}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>"
        );
    }

    /// A word in a round frame, with its middle in a place.
    pub(super) fn pill(&mut self, x: usize, y: usize, word: &str, colour: &str) {
        let width = pill_width(word);
        let _ = writeln!(
            self.out,
            "<rect x=\"{}\" y=\"{}\" width=\"{width}\" height=\"16\" rx=\"8\" fill=\"#ffffff\" stroke=\"{colour}\"/>\n\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{colour}\">{}</text>",
            x - width / 2,
            y - 8,
            y + 4,
            escaped(word)
        );
    }

    /// A line of text, on as many lines as the page is wide; those after the first stand further in.
    pub(super) fn sentence(&mut self, text: &str, face: Face) {
        let char = if face == Face::Title { CHAR + 2 } else { CHAR };
        let most = (self.width - 2 * MARGIN) / char;
        let (mut line, mut indent) = (String::new(), 0);
        for word in text.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() + indent > most {
                self.line(&line, indent, face);
                line.clear();
                indent = 3;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        self.line(&line, indent, face);
    }

    fn line(&mut self, text: &str, indent: usize, face: Face) {
        self.text(MARGIN + indent * CHAR, self.y + LINE - 5, text, face);
        self.y += LINE;
    }
}

/// How wide the frame of a word is.
pub(super) fn pill_width(word: &str) -> usize {
    word.chars().count() * SMALL + 12
}
