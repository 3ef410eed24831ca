//! What charts are made of: scales with ticks, a frame with axes, and marks. Colours are classes of the page's style
//! sheet, so that a chart is drawn once for light, dark and paper.

use std::fmt::Write;

use super::words::{coordinate, gflops};
use crate::term::markup::escaped;

/// How values become places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ScaleKind {
    Linear,
    Log,
}

/// An axis: values from `low` to `high` on pixels from `start` to `end`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Scale {
    pub(super) kind: ScaleKind,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) start: f64,
    pub(super) end: f64,
}

impl Scale {
    pub(super) fn linear((low, high): (f64, f64), (start, end): (f64, f64)) -> Scale {
        let high = if high > low { high } else { low + 1.0 };
        Scale { kind: ScaleKind::Linear, low, high, start, end }
    }

    /// Of positive values.
    pub(super) fn log((low, high): (f64, f64), (start, end): (f64, f64)) -> Scale {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { 10.0 * low };
        Scale { kind: ScaleKind::Log, low, high, start, end }
    }

    /// The place of a value; values beyond the ends have places beyond them.
    pub(super) fn at(&self, value: f64) -> f64 {
        let part = match self.kind {
            ScaleKind::Linear => (value - self.low) / (self.high - self.low),
            ScaleKind::Log => (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln(),
        };
        self.start + part * (self.end - self.start)
    }

    /// The place of a value, or of the end that it is beyond.
    pub(super) fn clamped(&self, value: f64) -> f64 {
        self.at(value.clamp(self.low, self.high))
    }

    /// Values for ticks, about `most` of them.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        match self.kind {
            ScaleKind::Linear => linear_ticks(self.low, self.high, most),
            ScaleKind::Log => log_ticks(self.low, self.high),
        }
    }
}

/// The distance of round values of which about `most` fit into a range: 1, 2 or 5 times a power of ten.
pub(super) fn step(range: f64, most: usize) -> f64 {
    let rough = range / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|it| it * power >= rough * 0.999_999).unwrap_or(10.0);
    factor * power
}

fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let step = step(high - low, most);
    let first = (low / step).ceil();
    (0..=most * 2).map(|it| (first + it as f64) * step).take_while(|it| *it <= high + step * 1e-6).collect()
}

/// Powers of ten, with 2 and 5 between them where there are few.
fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = (high / low).log10();
    let factors: &[f64] = if decades < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    // Where there are many decades, only some of them are named.
    let every = (decades / 8.0).ceil().max(1.0);
    let mut out = vec![];
    let mut power = (low.log10() / every).floor() * every;
    while power <= high.log10() && out.len() < 100 {
        let inside = |it: &f64| *it >= low * 0.999_999 && *it <= high * 1.000_001;
        out.extend(factors.iter().map(|it| it * 10f64.powf(power)).filter(inside));
        power += every;
    }
    out
}

/// The word at a tick.
pub(super) fn tick_word(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        it if (0.001..1e9).contains(&it) => {
            let digits = if it >= 1.0 && (it.fract() < 1e-9 || it >= 1000.0) {
                0
            } else {
                // As many digits as the tick itself has.
                (0..6).find(|digits| is_whole(it * 10f64.powi(*digits))).unwrap_or(6).unsigned_abs() as usize
            };
            super::words::commas(&format!("{value:.digits$}"))
        }
        _ => gflops(value),
    }
}

fn is_whole(it: f64) -> bool {
    (it - it.round()).abs() < 1e-6 * it.abs().max(1.0)
}

/// Where a text stands relative to its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A chart under construction.
pub(super) struct Svg {
    out: String,
}

impl Svg {
    /// A chart of a size, with what it shows in words for those who cannot see it.
    pub(super) fn new(width: f64, height: f64, label: &str) -> Svg {
        let (width, height) = (coordinate(width), coordinate(height));
        let out = format!(
            "<svg viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{}\">\n",
            escaped(label)
        );
        Svg { out }
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y) = (coordinate(x), coordinate(y));
        let _ = writeln!(
            self.out,
            "<text x=\"{x}\" y=\"{y}\"{anchor}{}>{}</text>",
            attribute(class),
            escaped(text)
        );
    }

    /// A text along a line that rises or falls; `angle` in degrees, clockwise.
    pub(super) fn turned(&mut self, (x, y): (f64, f64), angle: f64, anchor: Anchor, class: &str, text: &str) {
        let (x, y, angle) = (coordinate(x), coordinate(y), coordinate(angle));
        let _ = writeln!(self.out, "<g transform=\"translate({x} {y}) rotate({angle})\">");
        self.text((0.0, 0.0), anchor, class, text);
        self.out += "</g>\n";
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(coordinate);
        let _ = writeln!(self.out, "<path d=\"M{x1} {y1}L{x2} {y2}\"{}/>", attribute(class));
    }

    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(coordinate);
        let class = attribute(class);
        let _ =
            writeln!(self.out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{class}/>");
    }

    /// A line through places.
    pub(super) fn polyline(&mut self, places: &[(f64, f64)], class: &str) {
        if places.is_empty() {
            return;
        }
        let words: Vec<_> =
            places.iter().map(|(x, y)| format!("{} {}", coordinate(*x), coordinate(*y))).collect();
        let _ = writeln!(self.out, "<path d=\"M{}\"{}/>", words.join("L"), attribute(class));
    }

    /// Dots or other strokes of the same kind in one path, as an SVG path draws each: `h0` is a dot.
    pub(super) fn marks(&mut self, places: &[(f64, f64)], stroke: &str, class: &str) {
        if places.is_empty() {
            return;
        }
        let _ = write!(self.out, "<path{} d=\"", attribute(class));
        for (x, y) in places {
            let _ = write!(self.out, "M{} {}{stroke}", coordinate(*x), coordinate(*y));
        }
        self.out += "\"/>\n";
    }

    /// Rings for a few marks, paler dots where they are many: a ring is eight times as long to write.
    pub(super) fn hollow(&mut self, places: &[(f64, f64)], few: bool) {
        if few {
            self.marks(places, "m-2 0a2 2 0 1 0 4 0 2 2 0 1 0-4 0", "ring");
        } else {
            self.marks(places, "h0", "many-hollow");
        }
    }

    /// A circle that says what it is when pointed at.
    pub(super) fn circle(&mut self, (x, y): (f64, f64), radius: f64, class: &str, title: &str) {
        let [x, y, radius] = [x, y, radius].map(coordinate);
        let class = attribute(class);
        let _ = write!(self.out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{class}>");
        let _ = writeln!(self.out, "<title>{}</title></circle>", escaped(title));
    }

    pub(super) fn finish(self) -> String {
        self.out + "</svg>\n"
    }
}

fn attribute(class: &str) -> String {
    if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") }
}

/// Draws horizontal grid lines with their words on the left of the frame.
pub(super) fn left_axis(svg: &mut Svg, y: &Scale, (left, right): (f64, f64), most: usize) {
    for tick in y.ticks(most) {
        let at = y.at(tick);
        svg.line((left, at), (right, at), "grid");
        svg.text((left - 8.0, at + 4.5), Anchor::End, "tick", &tick_word(tick));
    }
}

/// Numbers of trials have no halves.
pub(super) fn whole_ticks(x: &Scale, most: usize) -> Vec<f64> {
    x.ticks(most).into_iter().filter(|it| it.fract() == 0.0).collect()
}

/// Draws the ticks below the frame with their words, and vertical grid lines if a top is given.
pub(super) fn bottom_axis(svg: &mut Svg, x: &Scale, bottom: f64, top: Option<f64>, ticks: &[f64]) {
    for &tick in ticks {
        let at = x.at(tick);
        if let Some(top) = top {
            svg.line((at, bottom), (at, top), "grid");
        }
        svg.line((at, bottom), (at, bottom + 5.0), "axis");
        svg.text((at, bottom + 19.0), Anchor::Middle, "tick", &tick_word(tick));
    }
}

/// Where words stand already, so that no others are put over them.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// Left, top, right, bottom.
    boxes: Vec<[f64; 4]>,
}

/// A position for a label: a point, and which end of the label is there.
pub(super) type LabelPosition = ((f64, f64), Anchor);

/// How large the words at marks are, and a little more, for they are bold, and wide in some fonts.
const WORD: f64 = 16.0;

impl Taken {
    /// Keeps words off a mark.
    pub(super) fn mark(&mut self, (x, y): (f64, f64), radius: f64) {
        self.boxes.push([x - radius, y - radius, x + radius, y + radius]);
    }

    /// Keeps words off a word that is turned around its middle: off squares along it.
    pub(super) fn turned(&mut self, (x, y): (f64, f64), angle: f64, text: &str) {
        let (sin, cos) = angle.to_radians().sin_cos();
        let width = width_of(text, WORD);
        let steps = (width / WORD).ceil();
        let mut at = -width / 2.0;
        while at <= width / 2.0 {
            // The words stand on the line, so their middle is a little above it.
            self.mark((x + at * cos + 5.0 * sin, y + at * sin - 5.0 * cos), WORD / 2.0);
            at += width / steps.max(1.0);
        }
    }

    /// The first of some positions where a word meets no other and stays between left and right, top and bottom; the first of all
    /// where there is none.
    pub(super) fn place(
        &mut self,
        text: &str,
        frame: [f64; 4],
        positions: impl IntoIterator<Item = LabelPosition>,
    ) -> Option<LabelPosition> {
        let mut positions = positions.into_iter().peekable();
        let first = positions.peek().copied();
        let is_free = |it: &LabelPosition| {
            let [left, top, right, bottom] = word_box(*it, text);
            let inside = left >= frame[0] && top >= frame[1] && right <= frame[2] && bottom <= frame[3];
            inside
                && !self.boxes.iter().any(|it| left < it[2] && it[0] < right && top < it[3] && it[1] < bottom)
        };
        let position = positions.find(is_free).or(first)?;
        self.boxes.push(word_box(position, text));
        Some(position)
    }
}

/// The room that a word takes.
fn word_box(((x, y), anchor): LabelPosition, text: &str) -> [f64; 4] {
    let width = width_of(text, WORD);
    let left = match anchor {
        Anchor::Start => x,
        Anchor::Middle => x - width / 2.0,
        Anchor::End => x - width,
    };
    [left, y - 12.0, left + width, y + 4.0]
}

/// How wide a text of the charts is, about.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

#[cfg(test)]
mod tests {
    use super::{Scale, Svg, tick_word};

    fn words(scale: &Scale, most: usize) -> String {
        scale.ticks(most).iter().map(|it| tick_word(*it)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ticks_are_round() {
        let linear = |low, high, most| words(&Scale::linear((low, high), (0.0, 1.0)), most);
        assert_eq!(linear(0.0, 52_341.0, 6), "0 10,000 20,000 30,000 40,000 50,000");
        assert_eq!(linear(0.0, 1.0, 5), "0 0.2 0.4 0.6 0.8 1");
        assert_eq!(linear(0.985, 1.013, 6), "0.985 0.99 0.995 1 1.005 1.01");
        assert_eq!(linear(3.0, 3.0, 4), "3 3.5 4");
        let log = |low, high| words(&Scale::log((low, high), (0.0, 1.0)), 0);
        assert_eq!(log(0.5, 40.0), "0.5 1 2 5 10 20");
        assert_eq!(log(0.02, 70_000.0), "0.1 1 10 100 1,000 10,000");
        assert_eq!(log(1e-30, 1e30).split(' ').count(), 7);
        // Numbers from a log that are not to be believed do no harm either.
        for (low, high) in [(0.0, 1e300), (1e-300, 1e-299), (0.0, 0.0), (1e14, 1e14)] {
            assert!(Scale::linear((low, high), (0.0, 1.0)).ticks(6).len() < 14);
            assert!(Scale::log((low, high), (0.0, 1.0)).ticks(6).len() < 110);
        }
    }

    #[test]
    fn marks_are_small_and_texts_are_harmless() {
        let mut svg = Svg::new(10.0, 5.5, "<b>");
        svg.marks(&[(1.0, 2.04), (3.26, -0.01)], "h0", "dot");
        svg.circle((1.0, 2.0), 3.0, "best", "trial \"7\"");
        let expected = "<svg viewBox=\"0 0 10 5.5\" width=\"10\" height=\"5.5\" role=\"img\" aria-label=\"&lt;b&gt;\">\n\
            <path class=\"dot\" d=\"M1 2h0M3.3 0h0\"/>\n\
            <circle cx=\"1\" cy=\"2\" r=\"3\" class=\"best\"><title>trial &quot;7&quot;</title></circle>\n</svg>\n";
        assert_eq!(svg.finish(), expected);
    }
}
