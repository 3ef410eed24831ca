//! Draws the timeline of software pipelines as SVG: one file, no scripts, no fonts of its own, on a panel of its own
//! colour so that it reads on any page.

use std::fmt::Write;

use codegen::timeline::{Held, Moment, Part, Sync, Timeline};

use super::{
    Drawn, barriers, bytes, footnotes,
    grid::{self, Row, RowKind, rows},
    legend, title,
};

/// Pixels: the height of a row, of a line of text, the width of a character of the text.
const ROW: usize = 26;
const LINE: usize = 18;
const CHAR: usize = 8;
const MARGIN: usize = 20;
/// The least width of a drawing, for its sentences.
const LEAST: usize = 720;

/// Fill and edge for iterations: those of one colour are the same iteration, or a whole turn apart.
const COLOURS: [(&str, &str); 6] = [
    ("#cfe3ff", "#3b78c4"),
    ("#ffe0b8", "#c47a1c"),
    ("#d2f0cf", "#3f9142"),
    ("#f5cfe3", "#b5487e"),
    ("#e2d7fa", "#7654b8"),
    ("#c9eef0", "#2b8a90"),
];

/// All of them, one under the other.
pub(super) fn draw(all: &[Drawn]) -> String {
    let mut body = String::new();
    let (mut y, mut width) = (MARGIN, LEAST);
    for it in all {
        let mut picture = Picture::new(&it.timeline, y);
        picture.draw(it);
        y = picture.y + MARGIN;
        width = width.max(picture.width);
        body += &picture.out;
    }
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{y}\" viewBox=\"0 0 {width} {y}\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"#1b1f24\">"
    );
    let _ = writeln!(
        out,
        "<rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#ffffff\" stroke=\"#c3c9d0\"/>",
        width - 1,
        y - 1
    );
    out + &body + "</svg>\n"
}

struct Picture<'a> {
    it: &'a Timeline,
    rows: Vec<Row>,
    /// The left edge of each step, and the right edge of the last.
    edges: Vec<usize>,
    width: usize,
    y: usize,
    out: String,
}

impl<'a> Picture<'a> {
    fn new(it: &'a Timeline, y: usize) -> Picture<'a> {
        let rows = rows(it);
        let label = rows.iter().map(|it| it.label.chars().count()).max().unwrap_or(0);
        let mut edges = vec![MARGIN + label * CHAR + 2 * CHAR];
        for (at, column) in it.columns.iter().enumerate() {
            let cells = rows.iter().map(|it| it.cells[at].chars().count());
            let widest = cells.max().unwrap_or(0).max(column.step.to_string().len());
            edges.push(edges[at] + (widest * CHAR + 3 * CHAR).max(7 * CHAR));
        }
        let width = edges[edges.len() - 1] + MARGIN;
        Picture { it, rows, edges, width: width.max(LEAST), y, out: String::new() }
    }

    fn draw(&mut self, drawn: &Drawn) {
        for (at, line) in title(self.it).iter().enumerate() {
            self.line(line, if at == 0 { "font-weight=\"bold\"" } else { "fill=\"#57606a\"" });
        }
        self.y += LINE / 2;
        self.parts();
        let rows = std::mem::take(&mut self.rows);
        let mut slots = false;
        for row in &rows {
            if row.kind.is_memory() && !slots {
                self.y += LINE / 2;
                slots = true;
            }
            self.row(row);
        }
        self.y += LINE;
        for line in legend(self.it) {
            self.line(&line, "fill=\"#57606a\"");
        }
        self.y += LINE / 2;
        for ring in &self.it.rings {
            let (slots, each) = (ring.slots, bytes(ring.bytes));
            self.line(&format!("{}: {slots} × {each} of {} memory", ring.buffer, ring.scope), "");
            if let Some(note) = &ring.note {
                self.line(note, "");
            }
        }
        for it in self.it.statements.iter().filter(|it| !it.reason.is_empty()) {
            self.line(&format!("{}: {}. {}", it.name, it.mechanism, it.reason), "");
        }
        for line in barriers(self.it) {
            self.line(&line, "");
        }
        for line in drawn.consequences.iter().flat_map(footnotes) {
            self.line(&line, "");
        }
    }

    /// The bands of prologue, steady state and epilogue behind the rows, and the heads of the steps.
    fn parts(&mut self) {
        let count = self.rows.len();
        let slots = self.rows.iter().any(|it| it.kind.is_memory());
        let height = (count + 1) * ROW + LINE + if slots { LINE / 2 } else { 0 };
        for part in [Part::Prologue, Part::Steady, Part::Epilogue] {
            let steps: Vec<_> =
                (0..self.it.columns.len()).filter(|at| self.it.columns[*at].part == part).collect();
            let (Some(first), Some(last)) = (steps.first(), steps.last()) else { continue };
            let (left, right) = (self.edges[*first], self.edges[last + 1]);
            let fill = if part == Part::Steady { "#eef1f4" } else { "#f8f9fa" };
            let (y, width) = (self.y, right - left - 4);
            let _ = writeln!(
                self.out,
                "<rect x=\"{}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"{fill}\" \
                 stroke=\"#d8dee4\"/>",
                left + 2
            );
            let word = if width < 9 * CHAR { &part.to_string()[..4] } else { &part.to_string() };
            self.text(
                usize::midpoint(left, right),
                y + LINE - 4,
                word,
                "text-anchor=\"middle\" fill=\"#57606a\"",
            );
        }
        self.y += LINE;
        self.text(MARGIN, self.y + ROW / 2 + 5, "step", "fill=\"#57606a\"");
        for (at, column) in self.it.columns.iter().enumerate() {
            let x = self.middle(at);
            self.text(
                x,
                self.y + ROW / 2 + 5,
                &column.step.to_string(),
                "text-anchor=\"middle\" fill=\"#57606a\"",
            );
        }
        self.y += ROW;
    }

    fn row(&mut self, row: &Row) {
        self.text(MARGIN, self.y + ROW / 2 + 5, &row.label, "");
        for at in 0..self.it.columns.len() {
            let column = &self.it.columns[at];
            match row.kind {
                RowKind::Syncs(rank) => self.syncs(at, &column.syncs[rank]),
                RowKind::Statement(rank) => {
                    if let Some(iteration) = column.runs[rank] {
                        self.cell(at, 0, 1, iteration, true);
                    }
                }
                RowKind::Slot(ring, slot) => {
                    let held: &[Held] = &column.slots[ring][slot];
                    for (n, it) in held.iter().enumerate() {
                        self.cell(at, n, held.len(), it.iteration, it.landed);
                    }
                }
                RowKind::Groups => {
                    let (x, y) = (self.middle(at), self.y + ROW / 2 + 5);
                    self.text(x, y, &row.cells[at], "text-anchor=\"middle\"");
                }
            }
        }
        self.y += ROW;
    }

    /// A box for an iteration, the `n`th of `count` in its place; with a broken edge while it is not surely there.
    fn cell(&mut self, at: usize, n: usize, count: usize, iteration: Moment, landed: bool) {
        let colour = usize::try_from(iteration.offset.rem_euclid(6)).unwrap_or(0);
        let (fill, edge) = COLOURS[colour];
        let whole = self.edges[at + 1] - self.edges[at] - 12;
        let width = whole / count;
        let x = self.edges[at] + 6 + n * width;
        let dash = if landed { "" } else { " stroke-dasharray=\"4 3\" fill-opacity=\"0.35\"" };
        let (y, height) = (self.y + 2, ROW - 4);
        let _ = writeln!(
            self.out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" fill=\"{fill}\" \
             stroke=\"{edge}\"{dash}/>"
        );
        self.text(x + width / 2, self.y + ROW / 2 + 5, &iteration.to_string(), "text-anchor=\"middle\"");
    }

    /// Barriers as lines across the step, waits and commits as words.
    fn syncs(&mut self, at: usize, syncs: &[Sync]) {
        if syncs.is_empty() {
            return;
        }
        let (left, right, y) = (self.edges[at] + 6, self.edges[at + 1] - 6, self.y + ROW / 2);
        let has_barrier = syncs.iter().any(|it| matches!(it, Sync::Barrier { .. }));
        if has_barrier {
            let _ = writeln!(
                self.out,
                "<line x1=\"{left}\" y1=\"{y}\" x2=\"{right}\" y2=\"{y}\" stroke=\"#cf222e\" stroke-width=\"2\"/>"
            );
        }
        let word = grid::syncs(syncs);
        let width = word.chars().count() * CHAR + CHAR;
        let (x, colour) = (self.middle(at), if has_barrier { "#cf222e" } else { "#8a6100" });
        let _ = writeln!(
            self.out,
            "<rect x=\"{}\" y=\"{}\" width=\"{width}\" height=\"18\" rx=\"9\" fill=\"#ffffff\" stroke=\"{colour}\"/>",
            x - width / 2,
            y - 9
        );
        self.text(x, y + 4, &word, &format!("text-anchor=\"middle\" font-size=\"12\" fill=\"{colour}\""));
    }

    fn middle(&self, at: usize) -> usize {
        usize::midpoint(self.edges[at], self.edges[at + 1])
    }

    /// A sentence, on as many lines as the drawing is wide.
    fn line(&mut self, text: &str, style: &str) {
        let most = (self.width - 2 * MARGIN) / CHAR;
        let mut line = String::new();
        let mut indent = 0;
        for word in text.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() + indent > most {
                self.text(MARGIN + indent * CHAR, self.y + LINE - 4, &line, style);
                self.y += LINE;
                line.clear();
                indent = 2;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        self.text(MARGIN + indent * CHAR, self.y + LINE - 4, &line, style);
        self.y += LINE;
    }

    fn text(&mut self, x: usize, y: usize, text: &str, style: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let space = if style.is_empty() { "" } else { " " };
        let _ = writeln!(self.out, "<text x=\"{x}\" y=\"{y}\"{space}{style}>{text}</text>");
    }
}
