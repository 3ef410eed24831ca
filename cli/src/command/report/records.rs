//! Records of `run` and `tutorial` as one picture: a row of bars for each program, a bar for each size.

use std::{
    fmt::Write,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use indexmap::{IndexMap, IndexSet};
use tuner::{Rate, Record};

use super::plot::step;
use crate::{
    diagnostic::Diagnostic,
    figures::speed_words,
    records,
    term::{
        bars::Bar,
        markup::{escaped, shortened},
    },
    timeline::{COLOURS, DARK, GREY, INK},
};

/// Pixels: the width of the picture, where bars begin and end, and the height of a bar.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 210.0;
const RIGHT: f64 = 790.0;
const BAR: f64 = 13.0;
/// Between the rows, and above the first.
const GAP: f64 = 12.0;
const TOP: f64 = 74.0;

/// So many bytes of a file are looked at to tell what it is: a record has a few tens of thousands.
const LONGEST_RECORD: u64 = 1 << 24;

/// The records of a file, if it is one that `--log` of `run` and `tutorial` wrote.
pub(super) fn records(path: &Path) -> Result<Option<Vec<Record>>, Diagnostic> {
    if !begins_with_record(path) {
        return Ok(None);
    }
    records::read(path).map(Some)
}

/// Whether the first line of a file is a record. Lines of tuning logs have no source in them.
fn begins_with_record(path: &Path) -> bool {
    let Ok(file) = tuner::regular::open(path) else { return false };
    let mut line = String::new();
    let read = BufReader::new(file.take(LONGEST_RECORD)).read_line(&mut line);
    let fields = serde_json::from_str::<IndexMap<String, serde_json::Value>>(&line);
    read.is_ok() && fields.is_ok_and(|it| it.contains_key("source_sha256"))
}

/// What is drawn of each program: its values, by sizes.
struct Bars<'a> {
    /// By the name of the program; the last record of a size counts.
    rows: IndexMap<&'a str, IndexMap<String, f64>>,
    sizes: IndexSet<String>,
    /// The library that is 100, if all were timed beside one.
    library: Option<&'a str>,
    /// What the values are without one.
    rate: Rate,
}

impl<'a> Bars<'a> {
    fn of(records: &'a [Record]) -> Bars<'a> {
        // What is wrong or failed has no GFLOPS.
        let all: Vec<_> =
            records.iter().filter_map(|it| it.gflops.and(it.stats).map(|stats| (it, stats.median))).collect();
        let rate = Rate::of_all(all.iter().map(|it| it.0.work()));
        let is_beside = all.iter().all(|it| it.0.versus_baseline.is_some());
        let library = all.first().filter(|_| is_beside);
        let library = library.map(|it| it.0.baselines.keys().next().map_or("the library", |it| &**it));
        let mut out = Bars { rows: IndexMap::new(), sizes: IndexSet::new(), library, rate };
        for (record, seconds) in all {
            let versus = record.versus_baseline.filter(|_| library.is_some());
            let size = size(record);
            out.sizes.insert(size.clone());
            let row = out.rows.entry(stem(&record.script.name)).or_default();
            let value = versus.map_or_else(|| rate.speed(&record.work(), seconds), |it| it.median * 100.0);
            row.insert(size, value);
        }
        out
    }

    /// What the values are.
    fn what(&self) -> String {
        self.library.map_or(self.rate.unit().to_owned(), |it| format!("% of {it}, round by round"))
    }

    fn most(&self) -> f64 {
        let values = self.rows.values().flat_map(|it| it.values());
        values.copied().fold(if self.library.is_some() { 100.0 } else { 1.0 }, f64::max)
    }
}

/// The numbers among its parameters: `4096³` if all three are the same.
fn size(record: &Record) -> String {
    let numbers = record.script.params.values().filter(|it| it.is_number());
    let numbers: Vec<_> = numbers.map(ToString::to_string).collect();
    match &numbers[..] {
        [a, b, c] if a == b && b == c => format!("{a}³"),
        all => all.join(" × "),
    }
}

fn stem(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.strip_suffix(".ron").unwrap_or(name)
}

/// The picture, on a panel of its own colour, so that it reads on any page.
pub(super) fn picture(records: &[Record]) -> String {
    let bars = Bars::of(records);
    let most = bars.most();
    let at = |value: f64| LEFT + (RIGHT - LEFT) * value / most;
    let row = bars.sizes.len() as f64 * BAR + GAP;
    let height = TOP + bars.rows.len() as f64 * row + 34.0;
    let mut out = head(&bars, records, height);
    let bottom = height - 34.0;
    let apart = step(most, 6);
    for tick in (0..=20).map(|it| f64::from(it) * apart).take_while(|it| *it <= most * 1.000_001) {
        let x = at(tick);
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"#e3e6ea\"/>\n\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{GREY}\">{tick}</text>",
            bottom + 17.0
        );
    }
    for (n, (name, values)) in bars.rows.iter().enumerate() {
        let y = TOP + n as f64 * row + GAP / 2.0;
        let middle = y + (row - GAP) / 2.0 + 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 10.0,
            escaped(&shortened(name, 26))
        );
        for (size, value) in values {
            let n = bars.sizes.get_index_of(size).unwrap_or(0);
            let (y, end) = (y + n as f64 * BAR, at(*value));
            let _ = writeln!(
                out,
                "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"10\" fill=\"{GREY}\">{}</text>",
                end - LEFT,
                BAR - 2.0,
                COLOURS[n % COLOURS.len()].1,
                end + 4.0,
                y + 9.5,
                if bars.library.is_some() { format!("{value:.1}") } else { format!("{value:.0}") }
            );
        }
    }
    if bars.library.is_some() {
        let x = at(100.0);
        let _ = writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{INK}\"/>"
        );
    }
    out + "</svg>\n"
}

/// The same for a terminal: a title, and a row for each program at the last of the sizes.
pub(super) fn plot(records: &[Record]) -> (String, Vec<Bar>) {
    let bars = Bars::of(records);
    let Some(size) = bars.sizes.last() else { return (String::new(), vec![]) };
    let row = |(name, values): (&&str, &IndexMap<String, f64>)| {
        let value = *values.get(size)?;
        let words = if bars.library.is_some() { format!("{value:.1}") } else { speed_words(value) };
        Some(((*name).to_owned(), words, value))
    };
    (format!("{} at {size}", bars.what()), bars.rows.iter().filter_map(row).collect())
}

/// The panel, its title, and which colour is which size.
fn head(bars: &Bars<'_>, records: &[Record], height: f64) -> String {
    let what = bars.what();
    let machine = records
        .first()
        .map_or(String::new(), |it| format!("{}, {}", it.environment.machine.name, it.environment.caches));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"{INK}\">\n\
         {DARK}\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"#ffffff\" stroke=\"#c3c9d0\"/>\n\
         <text x=\"20\" y=\"28\" font-size=\"15\" font-weight=\"700\">{}</text>\n\
         <text x=\"20\" y=\"46\" fill=\"{GREY}\">{}</text>\n",
        WIDTH - 1.0,
        height - 1.0,
        escaped(&what),
        escaped(&shortened(&machine, 110)),
    );
    let mut x = LEFT;
    for (n, size) in bars.sizes.iter().enumerate() {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"55\" width=\"10\" height=\"10\" fill=\"{}\"/>\n\
             <text x=\"{:.1}\" y=\"64\">{}</text>",
            COLOURS[n % COLOURS.len()].1,
            x + 15.0,
            escaped(size)
        );
        x += 40.0 + 7.0 * size.chars().count() as f64;
    }
    out
}
