//! A strip plot for each knob: its choices side by side, each trial a dot at its speed, the medians marked.

use super::{
    figure::Figure,
    knobs::{Column, Strip, knobs, strips},
    plot::{Anchor, Scale, Svg, left_axis, width_of},
    view::{Point, View},
    words::{count, gflops, plural},
};

const HEIGHT: f64 = 250.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 14.0;
/// Below the frame: the choice, how many results, how many failed.
const FOOT: f64 = 58.0;
/// A narrow chart, and one across two places of the page.
const NARROW: f64 = 420.0;
const WIDE: f64 = 860.0;

/// One chart for each knob, or for each factor of a knob whose choices are too many.
pub(super) fn draw(view: &View<'_>) -> Vec<Figure> {
    let highest = view.points().iter().map(|it| it.speed).fold(0.0, f64::max);
    if highest <= 0.0 {
        return vec![];
    }
    let all = knobs(view);
    all.iter().flat_map(|it| strips(view, it)).map(|it| chart(&it, view.unit(), highest)).collect()
}

fn chart(strip: &Strip<'_>, unit: &str, highest: f64) -> Figure {
    let longest = strip.columns.iter().map(|it| width_of(&it.word, 13.0)).fold(0.0, f64::max);
    let room = |width: f64| (width - LEFT - 8.0) / strip.columns.len().max(1) as f64;
    let is_wide = strip.columns.len() > 10 || (longest + 8.0 > room(NARROW) && longest * 0.8 < room(WIDE));
    let width = if is_wide { WIDE } else { NARROW };
    let step = room(width);
    // Words that do not fit side by side hang down.
    let hang = if longest + 6.0 > step { (longest.min(110.0) * 0.72).max(14.0) } else { 0.0 };
    let bottom = HEIGHT - FOOT - (hang - 24.0).max(0.0);
    let label = format!("{unit} by the choice for {}", strip.name);
    let mut svg = Svg::new(width, HEIGHT + (hang * 0.3), &label);
    let y = Scale::linear((0.0, highest * 1.05), (bottom, TOP));
    left_axis(&mut svg, &y, (LEFT, width - 8.0), 4);
    svg.line((LEFT, bottom), (width - 8.0, bottom), "axis");
    for (at, column) in strip.columns.iter().enumerate() {
        let middle = LEFT + (at as f64 + 0.5) * step;
        dots(&mut svg, column, (middle, step), &y);
        words(&mut svg, column, (middle, bottom), (step, hang));
    }
    let class = if is_wide { "strip wide" } else { "strip" };
    Figure::new(strip.name.clone(), svg.finish()).class(class).caption(caption(strip))
}

fn dots(svg: &mut Svg, column: &Column<'_>, (middle, step): (f64, f64), y: &Scale) {
    let spread = (step * 0.36).min(26.0);
    let is_few = column.points.len() <= 400;
    // Of dots in one place one is drawn.
    let grain = if is_few { 2.0 } else { 1.0 };
    for screened in [true, false] {
        let mut places: Vec<_> = column
            .points
            .iter()
            .filter(|it| it.screened == screened)
            .map(|it| (middle + spread * jitter(it), y.at(it.speed)))
            .map(|(x, y)| ((x * grain).round() / grain, (y * grain).round() / grain))
            .collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        places.dedup();
        if screened {
            svg.hollow(&places, is_few);
        } else {
            svg.marks(&places, "h0", "many");
        }
    }
    if let Some(median) = median(&column.points) {
        let (at, half) = (y.at(median), (step * 0.42).min(34.0));
        svg.line((middle - half, at), (middle + half, at), "median");
    }
}

/// Sideways from -1 to 1, by the number of the trial: multiples of the golden ratio fill a strip evenly.
fn jitter(it: &Point<'_>) -> f64 {
    let part = (it.trial.n % 1_000_003) as f64 * 0.618_033_988_749_895;
    2.0 * part.fract() - 1.0
}

fn median(points: &[Point<'_>]) -> Option<f64> {
    let values: Vec<_> = points.iter().map(|it| it.speed).collect();
    tuner::Stats::of(&values).map(|it| it.median)
}

fn words(svg: &mut Svg, column: &Column<'_>, (middle, bottom): (f64, f64), (step, hang): (f64, f64)) {
    let class = if column.is_default { "tick default" } else { "tick" };
    if hang > 0.0 {
        let word = crate::term::markup::shortened(&column.word, 16);
        svg.turned((middle + 4.0, bottom + 14.0), -48.0, Anchor::End, class, &word);
        return;
    }
    svg.text((middle, bottom + 18.0), Anchor::Middle, class, &column.word);
    let fits = |word: &str| width_of(word, 11.0) + 2.0 < step;
    let results = count(column.points.len() as u64);
    if fits(&results) {
        svg.text((middle, bottom + 34.0), Anchor::Middle, "small", &results);
    }
    let failed = format!("✕{}", count(column.failed as u64));
    if column.failed > 0 && fits(&failed) {
        svg.text((middle, bottom + 49.0), Anchor::Middle, "small bad", &failed);
    }
}

fn caption(strip: &Strip<'_>) -> String {
    let medians = strip.columns.iter().filter_map(|it| Some((median(&it.points)?, it)));
    let best = medians.max_by(|a, b| a.0.total_cmp(&b.0));
    let tried = strip.columns.iter().filter(|it| !it.points.is_empty()).count();
    let highest = match best {
        Some((median, column)) if tried > 1 => {
            format!("Highest median: {} at {}.", gflops(median), column.word)
        }
        Some(_) | None => String::new(),
    };
    let groups = if strip.is_grouped { " Columns are groups of neighbouring choices." } else { "" };
    let inactive = match strip.inactive {
        0 => String::new(),
        some => format!(" {} without it: their schedules do not use it.", plural(some, "trial")),
    };
    format!("{highest}{groups}{inactive}").trim_start().to_owned()
}

/// What all of them have in common.
pub(super) const CAPTION: &str = "Each dot is a trial at its speed, hollow (pale, where there are many) if it was left early; sideways it is moved only to be \
    seen. The bar is the median of a choice. Under a choice stands how many trials have a result, and after ✕ how many failed; the \
    underlined choice is the script's default. A knob that matters has medians that differ, or choices that few good trials have.";
