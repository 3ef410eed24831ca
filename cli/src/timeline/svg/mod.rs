//! Draws the timelines of software pipelines as SVG: one file, no scripts, no fonts of its own, on a panel of its own
//! colour so that it reads on any page.

mod costs;
mod legend;
mod pen;

use codegen::timeline::{Moment, Part, Statement, Sync, Timeline};

use super::{
    Story, barriers, bytes, flow,
    grid::{self, Row, RowKind, rows},
    title, traffic,
};
use pen::{AMBER, CHAR, Face, LINE, MARGIN, Pen, RED, SMALL, pill_width};
pub(crate) use pen::{DARK, GREY, INK};

/// The least width of a drawing, for its sentences.
const MIN_WIDTH: usize = 800;
/// The least width of a step.
const STEP: usize = 52;
/// The heights of the rows.
const SYNC: usize = 24;
const STATEMENT: usize = 38;
const SLOT: usize = 26;

/// Fill and edge for iterations: those of one colour are the same iteration, or a whole turn apart.
pub(crate) const COLOURS: [(&str, &str); 6] = [
    ("#cfe3ff", "#3b78c4"),
    ("#ffe0b8", "#c47a1c"),
    ("#d2f0cf", "#3f9142"),
    ("#f5cfe3", "#b5487e"),
    ("#e2d7fa", "#7654b8"),
    ("#c9eef0", "#2b8a90"),
];

/// All of them, one under the other, as a part of a page.
pub(super) fn draw(story: &Story) -> String {
    drawing(story, "")
}

/// All of them, one under the other, as a file of its own.
pub(super) fn file(story: &Story) -> String {
    drawing(story, &format!("{DARK}\n"))
}

/// All of them, with a style of their own. A page may forbid one, as that of the studio does.
fn drawing(story: &Story, style: &str) -> String {
    let width = story.pipelines.iter().map(|it| Picture::new(it).width()).max().unwrap_or(0).max(MIN_WIDTH);
    let mut pen = Pen { out: String::new(), y: MARGIN - 8, width };
    for (pipelines, consequences) in story.by_kernel() {
        for it in pipelines {
            Picture::new(it).draw(&mut pen);
            pen.y += MARGIN;
        }
        if let Some(it) = consequences {
            costs::draw(&mut pen, it);
            pen.y += MARGIN;
        }
    }
    let (body, height) = (pen.out, pen.y);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\" fill=\"{INK}\">\n\
         {style}<rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#ffffff\" stroke=\"#c3c9d0\"/>\n\
         {body}</svg>\n",
        width - 1,
        height - 1
    )
}

/// A timeline laid out.
struct Picture<'a> {
    it: &'a Timeline,
    rows: Vec<Row>,
    /// The left edge of each step, and the right edge of the last.
    edges: Vec<usize>,
}

impl<'a> Picture<'a> {
    fn new(it: &'a Timeline) -> Picture<'a> {
        let rows = rows(it);
        let statements = it
            .statements
            .iter()
            .map(|it| (it.name.as_str().len() * CHAR).max(details(it).chars().count() * SMALL));
        let rings = it
            .rings
            .iter()
            .map(|it| it.buffer.as_str().len() * CHAR + (ring_words(it).chars().count() + 2) * SMALL);
        let plain = rows.iter().filter(|it| !matches!(it.kind, RowKind::Slot(..)));
        let plain = plain.map(|it| it.label.chars().count() * CHAR);
        let label =
            statements.chain(rings).chain(plain).max().unwrap_or(0).max("groups in flight".len() * CHAR);
        let left = MARGIN + label + 2 * CHAR;
        let widths = widths(it, &rows);
        let edges = widths.into_iter().scan(left, |x, width| {
            *x += width;
            Some(*x)
        });
        Picture { it, edges: [left].into_iter().chain(edges).collect(), rows }
    }

    fn width(&self) -> usize {
        self.edges[self.edges.len() - 1] + MARGIN
    }

    /// The first and the last step of a part.
    fn steps(&self, part: Part) -> Option<(usize, usize)> {
        let mut steps = (0..self.it.columns.len()).filter(|at| self.it.columns[*at].part == part);
        let first = steps.next()?;
        Some((first, steps.next_back().unwrap_or(first)))
    }

    fn draw(&self, pen: &mut Pen) {
        for (at, line) in title(self.it).iter().enumerate() {
            pen.sentence(line, if at == 0 { Face::Title } else { Face::Grey });
        }
        pen.y += LINE / 2;
        self.parts(pen);
        let mut was_memory = false;
        for row in &self.rows {
            if row.kind.is_memory() && !was_memory {
                pen.rule(MARGIN, self.edges[self.edges.len() - 1], pen.y + 5, "#c3c9d0", 1);
                pen.y += 10;
                was_memory = true;
            }
            self.row(pen, row);
        }
        pen.y += LINE;
        legend::draw(pen, self.it);
        let notes = self.it.rings.iter().filter_map(|it| it.note.clone());
        let reasons = self.it.statements.iter().filter(|it| !it.reason.is_empty());
        let reasons = reasons.map(|it| format!("{}: {}. {}", it.name, it.mechanism, it.reason));
        for line in notes.chain(reasons).chain(flow::sentences(self.it)).chain(barriers(self.it)) {
            pen.y += 3;
            pen.sentence(&line, Face::Plain);
        }
    }

    fn height(row: &Row) -> usize {
        match row.kind {
            RowKind::Lane(_) | RowKind::Syncs(_) | RowKind::Ends(_) => SYNC,
            RowKind::Statement(_) => STATEMENT,
            RowKind::Slot(..) | RowKind::Groups(_) => SLOT,
        }
    }

    /// The bands of prologue, steady state and epilogue behind the rows, and the heads of the steps.
    fn parts(&self, pen: &mut Pen) {
        let gap = if self.rows.iter().any(|it| it.kind.is_memory()) { 10 } else { 0 };
        let height = self.rows.iter().map(Self::height).sum::<usize>() + 2 * LINE + 8 + gap;
        for part in [Part::Prologue, Part::Steady, Part::Epilogue] {
            let Some((first, last)) = self.steps(part) else { continue };
            let (left, right) = (self.edges[first], self.edges[last + 1]);
            let fill = if part == Part::Steady { "#eaeef2" } else { "#f6f8fa" };
            pen.cell((left + 2, pen.y), (right - left - 4, height), (fill, "#d0d7de"), true);
            pen.text(usize::midpoint(left, right), pen.y + LINE - 4, &part.to_string(), Face::MiddleGrey);
        }
        pen.y += LINE;
        pen.text(MARGIN, pen.y + LINE - 4, "step", Face::Grey);
        for (at, column) in self.it.columns.iter().enumerate() {
            pen.text(self.middle(at), pen.y + LINE - 4, &column.step.to_string(), Face::MiddleGrey);
        }
        pen.y += LINE + 4;
    }

    fn row(&self, pen: &mut Pen, row: &Row) {
        let height = Self::height(row);
        let middle = pen.y + height / 2;
        match row.kind {
            RowKind::Syncs(_) | RowKind::Ends(_) => {}
            RowKind::Lane(_) => {
                let right = self.edges[self.edges.len() - 1];
                pen.rule(MARGIN, right, pen.y + SYNC - 3, "#c3c9d0", 1);
                pen.text(MARGIN, pen.y + SYNC - 8, &row.label, Face::Grey);
            }
            RowKind::Statement(rank) => {
                let statement = &self.it.statements[rank];
                pen.text(MARGIN, pen.y + 16, statement.name.as_str(), Face::Bold);
                pen.text(MARGIN, pen.y + 31, &details(statement), Face::Small);
            }
            RowKind::Slot(ring, slot) => self.slot_label(pen, ring, slot),
            RowKind::Groups(_) => pen.text(MARGIN, middle + 5, &row.label, Face::Plain),
        }
        for (at, column) in self.it.columns.iter().enumerate() {
            match row.kind {
                RowKind::Lane(_) => {}
                RowKind::Syncs(rank) => self.syncs(pen, at, &column.syncs[rank]),
                RowKind::Ends(lane) => self.syncs(pen, at, &column.ends[lane]),
                RowKind::Statement(rank) => {
                    if let Some(iteration) = column.runs[rank] {
                        self.cell(pen, (at, height), (0, 1), iteration, true);
                    }
                }
                RowKind::Slot(ring, slot) => {
                    let held = &column.slots[ring][slot];
                    for (n, it) in held.iter().enumerate() {
                        self.cell(pen, (at, height), (n, held.len()), it.iteration, it.landed);
                    }
                }
                RowKind::Groups(group) => {
                    let face = if column.in_flight[group] == 0 { Face::MiddleGrey } else { Face::Middle };
                    pen.text(self.middle(at), middle + 5, &row.cells[at], face);
                }
            }
        }
        pen.y += height;
    }

    /// The buffer at its first slot, with what it takes; the number at each.
    fn slot_label(&self, pen: &mut Pen, ring: usize, slot: usize) {
        let (ring, y) = (&self.it.rings[ring], pen.y + SLOT / 2 + 5);
        let name = ring.buffer.as_str();
        let number = if ring.slots > 1 { format!("[{slot}]") } else { String::new() };
        if slot == 0 {
            pen.text(MARGIN, y, name, Face::Bold);
            let x = MARGIN + (name.len() + number.len() + 1) * CHAR;
            pen.text(x, y, &ring_words(ring), Face::Small);
        }
        pen.text(MARGIN + name.len() * CHAR, y, &number, Face::Plain);
    }

    /// A box for an iteration, the `n`th of `count` in its place; with a broken edge while it is not surely there.
    fn cell(
        &self,
        pen: &mut Pen,
        (at, height): (usize, usize),
        (n, count): (usize, usize),
        iteration: Moment,
        landed: bool,
    ) {
        let width = (self.edges[at + 1] - self.edges[at] - 12) / count;
        let x = self.edges[at] + 6 + n * width;
        let tall = height.min(SLOT) - 4;
        let y = pen.y + (height - tall) / 2;
        pen.cell((x, y), (width, tall), colour(iteration), landed);
        pen.text(x + width / 2, y + tall / 2 + 5, &iteration.to_string(), Face::Middle);
    }

    /// Barriers as lines across the step, waits and commits as words.
    fn syncs(&self, pen: &mut Pen, at: usize, syncs: &[Sync]) {
        if syncs.is_empty() {
            return;
        }
        let y = pen.y + SYNC / 2;
        let has_barrier = syncs.iter().any(|it| matches!(it, Sync::Barrier { .. }));
        if has_barrier {
            pen.rule(self.edges[at] + 6, self.edges[at + 1] - 6, y, RED, 2);
        }
        pen.pill(self.middle(at), y, &grid::syncs(syncs), if has_barrier { RED } else { AMBER });
    }

    fn middle(&self, at: usize) -> usize {
        usize::midpoint(self.edges[at], self.edges[at + 1])
    }
}

/// The widths of the steps: the same in one part, and so that its name has room.
fn widths(it: &Timeline, rows: &[Row]) -> Vec<usize> {
    let cell = |row: &Row, at: usize| match row.kind {
        RowKind::Lane(_) => 0,
        RowKind::Syncs(_) | RowKind::Ends(_) if row.cells[at].is_empty() => 0,
        RowKind::Syncs(_) | RowKind::Ends(_) => pill_width(&row.cells[at]) + 28,
        RowKind::Slot(ring, slot) => {
            let words = it.columns[at].slots[ring][slot].iter().map(|it| it.iteration.to_string().len());
            let count = it.columns[at].slots[ring][slot].len();
            count * (words.max().unwrap_or(0) + 1) * CHAR + 12
        }
        RowKind::Statement(_) | RowKind::Groups(_) => row.cells[at].chars().count() * CHAR + 28,
    };
    let width = |at: usize| {
        let widest = rows.iter().map(|row| cell(row, at)).max().unwrap_or(0);
        widest.max((it.columns[at].step.to_string().len() + 2) * CHAR).max(STEP)
    };
    let part = |part: Part| {
        let steps: Vec<_> = (0..it.columns.len()).filter(|at| it.columns[*at].part == part).collect();
        let widest = steps.iter().map(|at| width(*at)).max().unwrap_or(0);
        widest.max((part.to_string().len() + 2) * CHAR / steps.len().max(1))
    };
    it.columns.iter().map(|it| part(it.part)).collect()
}

fn colour(iteration: Moment) -> (&'static str, &'static str) {
    COLOURS[usize::try_from(iteration.offset.rem_euclid(6)).expect("below 6")]
}

/// `stage 0 · cp_async · 4 KiB global → 4 KiB shared`.
fn details(it: &Statement) -> String {
    let stage = format!("stage {}", it.stage);
    let how = (it.mechanism != "plain").then(|| it.mechanism.to_owned());
    let moved = match (it.reads.is_empty(), it.writes.is_empty()) {
        (true, true) => None,
        (false, true) => Some(format!("reads {}", traffic(&it.reads))),
        (true, false) => Some(format!("writes {}", traffic(&it.writes))),
        (false, false) => Some(format!("{} → {}", traffic(&it.reads), traffic(&it.writes))),
    };
    [Some(stage), how, moved].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// `3 × 4 KiB shared`.
fn ring_words(it: &codegen::timeline::Ring) -> String {
    format!("{} × {} {}", it.slots, bytes(it.bytes), it.scope)
}
