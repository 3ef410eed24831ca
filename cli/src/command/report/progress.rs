//! The chart of the search: every trial where it came, and the best so far.

use std::collections::HashMap;

use tuner::log::Trial;

use super::{
    figure::Figure,
    plot::{Anchor, Scale, Svg, bottom_axis, left_axis, whole_ticks},
    view::{Point, View},
    words::{gflops, percent, plural},
};
use crate::term::bars::Bar;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = WIDTH - 62.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 52.0;
/// The band below zero in which failures stand.
const FLOOR: f64 = 16.0;

/// Lines nearer than this have their words on either side of them.
const NEAR: f64 = 26.0;

/// The most dots that have a title to show when pointed at; more would make the page heavy.
const MAX_TITLED_DOTS: usize = 1_500;

pub(super) fn draw(view: &View<'_>) -> Option<Figure> {
    let points = view.points();
    let last = view.trials.last()?.n;
    let library = view.library();
    let highest = points.iter().map(|it| it.speed).chain(library.map(|it| it.1)).fold(0.0, f64::max);
    let label = format!("{} of {} and the best so far", view.unit(), plural(points.len(), "trial"));
    let mut svg = Svg::new(WIDTH, HEIGHT, &label);
    let x = Scale::linear((0.0, (last as f64).max(1.0)), (LEFT + 6.0, RIGHT - 6.0));
    let y = Scale::linear((0.0, highest * 1.06), (BOTTOM - FLOOR, TOP));
    axes(&mut svg, view, &x, &y, !points.is_empty());
    dots(&mut svg, view, &points, &x, &y);
    let failed: Vec<_> = view.failed().iter().map(|it| (x.at(it.0.n as f64), BOTTOM - 11.0)).collect();
    svg.marks(&failed, "v8", "failed");
    let doubtful: Vec<_> = view.doubtful().iter().map(|it| (x.at(it.0.n as f64) - 4.0, TOP - 2.0)).collect();
    svg.marks(&doubtful, "l8 8m0 -8l-8 8", "doubtful");
    if let Some((name, it)) = library {
        library_line(&mut svg, name, it, view.ranked().first().map(|it| it.speed), &y);
    }
    best_so_far(&mut svg, view, &x, &y, library.map(|it| it.1));
    Some(
        Figure::new("Best so far", svg.finish())
            .caption(caption(view, &points))
            .legend(legend(view, &points)),
    )
}

/// The same for a terminal: the best after 1, 2, 5, 10, … trials and after all, and the library.
pub(super) fn plot(view: &View<'_>) -> (String, Vec<Bar>) {
    let points = view.points();
    let last = view.trials.len();
    let after = (0..).flat_map(|it| [1, 2, 5].map(|first| first * 10usize.saturating_pow(it)));
    let counts = after.take_while(|it| *it < last).chain([last]);
    let place: HashMap<u64, usize> = view.trials.iter().enumerate().map(|(at, it)| (it.n, at)).collect();
    let row = |count: usize| {
        let tried = points.iter().filter(|it| place.get(&it.trial.n).is_some_and(|at| *at < count));
        let best = tried.map(|it| it.speed).fold(0.0, f64::max);
        (best > 0.0).then(|| (plural(count, "trial"), gflops(best), best))
    };
    let mut rows: Vec<Bar> = counts.filter_map(row).collect();
    rows.extend(view.library().map(|(name, it)| (name.to_owned(), gflops(it), it)));
    (format!("{}: {} of the best so far", view.name, view.unit()), rows)
}

fn axes(svg: &mut Svg, view: &View<'_>, x: &Scale, y: &Scale, has_points: bool) {
    if has_points {
        left_axis(svg, y, (LEFT, RIGHT), 6);
        svg.text((LEFT - 8.0, 18.0), Anchor::End, "name", view.unit());
    }
    bottom_axis(svg, x, BOTTOM, None, &whole_ticks(x, 8));
    svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    svg.text((f64::midpoint(LEFT, RIGHT), HEIGHT - 8.0), Anchor::Middle, "name", "trial");
    let Some((roof, _)) = view.roof().filter(|_| has_points) else { return };
    let parts = Scale::linear((0.0, 100.0 * y.high / roof), (y.start, y.end));
    for tick in parts.ticks(6) {
        let at = parts.at(tick);
        svg.line((RIGHT, at), (RIGHT + 5.0, at), "axis");
        svg.text((RIGHT + 9.0, at + 4.5), Anchor::Start, "tick", &super::plot::tick_word(tick));
    }
    svg.line((RIGHT, TOP), (RIGHT, BOTTOM), "axis");
    svg.text((WIDTH, 18.0), Anchor::End, "name", "% of the roofline");
}

fn dots(svg: &mut Svg, view: &View<'_>, points: &[Point<'_>], x: &Scale, y: &Scale) {
    let at = |it: &Point<'_>| (x.at(it.trial.n as f64), y.at(it.speed));
    if points.len() <= MAX_TITLED_DOTS {
        for it in points {
            let class = if it.screened { "hollow" } else { "dot" };
            svg.circle(at(it), 3.0, class, &dot_title(view, it.trial, it.speed));
        }
        return;
    }
    // Of dots in one place one is enough.
    for screened in [true, false] {
        let mut places: Vec<_> = points.iter().filter(|it| it.screened == screened).map(at).collect();
        for place in &mut places {
            *place = (place.0.round(), place.1.round());
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
        places.dedup();
        if screened {
            svg.hollow(&places, false);
        } else {
            svg.marks(&places, "h0", "many");
        }
    }
}

/// The title of a dot: `trial 37: 41,234 GFLOPS; bm 128, bn 64`.
pub(super) fn dot_title(view: &View<'_>, trial: &Trial, speed: f64) -> String {
    let decisions: Vec<_> = trial.decisions.iter().map(|(name, choice)| format!("{name} {choice}")).collect();
    let words = format!("trial {}: {} {}; {}", trial.n, gflops(speed), view.unit(), decisions.join(", "));
    crate::term::markup::shortened(&words, 300)
}

/// The word stands on its line at the left, or under it where the best is just above.
fn library_line(svg: &mut Svg, name: &str, it: f64, best: Option<f64>, y: &Scale) {
    let at = y.at(it);
    svg.line((LEFT, at), (RIGHT, at), "library");
    let name = crate::term::markup::shortened(name, 40);
    let is_under = best.is_some_and(|best| best > it && at - y.at(best) < NEAR);
    let place = (LEFT + 8.0, if is_under { at + 17.0 } else { at - 7.0 });
    svg.text(place, Anchor::Start, "halo library-word", &format!("{name}: {}", gflops(it)));
}

fn best_so_far(svg: &mut Svg, view: &View<'_>, x: &Scale, y: &Scale, library: Option<f64>) {
    let points = view.points();
    let mut best: Option<&Point<'_>> = None;
    let (mut places, mut records) = (vec![], vec![]);
    for it in &points {
        if best.is_some_and(|best| best.speed >= it.speed) {
            continue;
        }
        let at = (x.at(it.trial.n as f64), y.at(it.speed));
        if let Some(best) = best {
            places.push((at.0, y.at(best.speed)));
        }
        places.push(at);
        records.push((at, it));
        best = Some(it);
    }
    let Some(best) = best else { return };
    let height = y.at(best.speed);
    places.push((RIGHT, height));
    svg.polyline(&places, "best-line");
    for (at, it) in records {
        svg.circle(at, 4.0, "best", &dot_title(view, it.trial, it.speed));
    }
    let word = format!("best: {} (trial {})", gflops(best.speed), best.trial.n);
    let is_under = library.is_some_and(|it| it >= best.speed && height - y.at(it) < NEAR);
    let at = if is_under { height + 19.0 } else { height - 9.0 };
    svg.text((RIGHT - 8.0, at), Anchor::End, "halo best-word", &word);
}

fn caption(view: &View<'_>, points: &[Point<'_>]) -> String {
    let Some(best) = view.ranked().first().map(|it| it.speed).filter(|_| !points.is_empty()) else {
        return "No trial has a result.".to_owned();
    };
    let dots = "Each dot is a trial, in the order in which they were proposed, at the speed that the search saw: a short \
        measurement.";
    let finals =
        if view.finals.is_some() { " The finals measure the best again, against each other." } else { "" };
    let roof = view.roof().map_or(String::new(), |(roof, bound)| {
        format!(
            " The roofline is {} {}, the {} limit of this machine for this work; the best of the search reaches {} of it.",
            gflops(roof),
            view.unit(),
            super::bound(bound),
            percent(best / roof)
        )
    });
    format!("{dots}{finals}{roof}")
}

fn legend(view: &View<'_>, points: &[Point<'_>]) -> Vec<(&'static str, String)> {
    let screened = points.iter().filter(|it| it.screened).count();
    let mut out = vec![];
    let mut add = |number: usize, sign, word: &str| {
        if number > 0 {
            out.push((sign, format!("{} {word}", super::words::count(number as u64))));
        }
    };
    add(points.len() - screened, "key dot", "measured");
    add(screened, "key hollow", "left after three samples, clearly slower than the best");
    add(view.failed().len(), "key failed", "failed");
    add(view.doubtful().len(), "key doubtful", "doubtful: no results, whatever they say");
    out
}
