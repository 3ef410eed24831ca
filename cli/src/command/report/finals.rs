//! The finals: a table, and each finalist's speed against the winner's with its confidence interval.

use std::fmt::Write;

use tuner::{
    bench::{MARGIN, Verdict, tied, verdict},
    bootstrap::Interval,
    log::{Finalist, Finals},
};

use super::{
    figure::Figure,
    plot::{Anchor, Scale, Svg, bottom_axis},
    view::View,
    words::{gflops, percent, plural, seconds},
};
use crate::{
    figures::{interval_words, spread_warning},
    term::markup::{escaped, shortened},
};

const WIDTH: f64 = 760.0;
const ROW: f64 = 28.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = WIDTH - 24.0;
const TOP: f64 = 30.0;

/// The table, with the library's row where it belongs by its speed.
pub(super) fn table(view: &View<'_>, finals: &Finals) -> String {
    let mut rows: Vec<(f64, String)> = vec![];
    for (at, it) in finals.finalists.iter().enumerate() {
        let speed = it.result.as_ref().map_or(0.0, |it| view.speed_of(it));
        rows.push((speed, row(view, it, at == 0)));
    }
    if let (Some(it), Some((_, speed))) = (&finals.baseline, view.library()) {
        let place = rows.iter().position(|row| row.0 < speed).unwrap_or(rows.len());
        let median = tuner::Stats::of(&it.seconds);
        let mut text = format!(
            "<tr class=\"library-row\"><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
            escaped(&it.name),
            gflops(speed),
            median.map_or("—".to_owned(), |it| seconds(it.median)),
            median.map_or("—".to_owned(), |it| percent(it.spread())),
        );
        text += "<td class=\"n\"></td><td class=\"n\"></td></tr>\n";
        rows.insert(place, (speed, text));
    }
    let mut out = format!(
        "<div class=\"scroll\"><table><thead><tr><th></th><th class=\"n\">{}</th><th class=\"n\">time of a \
        call</th><th class=\"n\">spread</th><th class=\"n\">against the winner</th><th class=\"n\">against the \
        library</th></tr></thead><tbody>\n",
        view.unit()
    );
    out.extend(rows.into_iter().map(|it| it.1));
    out + "</tbody></table></div>\n"
}

fn row(view: &View<'_>, it: &Finalist, is_first: bool) -> String {
    let name = escaped(&shortened(&View::finalist_words(it), 60));
    let Some(result) = it.result.as_ref().filter(|_| it.error.is_none()) else {
        let why = it.error.as_ref().map_or("no result".to_owned(), ToString::to_string);
        return format!("<tr><td>{name}</td><td colspan=\"5\" class=\"bad\">{}</td></tr>\n", escaped(&why));
    };
    let class = if is_first { " class=\"first\"" } else { "" };
    let mut out = format!("<tr{class}><td>{name}</td>");
    let cells = [
        gflops(view.speed_of(result)),
        seconds(result.stats.median),
        percent(result.stats.spread()),
        if is_first { "winner".to_owned() } else { interval(it.versus_winner.as_ref()) },
        interval(it.versus_baseline.as_ref()),
    ];
    for cell in cells {
        let _ = write!(out, "<td class=\"n\">{}</td>", escaped(&cell));
    }
    out + "</tr>\n"
}

/// `1.034x (1.021 to 1.047)`.
fn interval(it: Option<&Interval>) -> String {
    it.map_or("—".to_owned(), |it| interval_words(*it))
}

/// Who may as well have won, and whose figures are to be doubted.
fn doubts(finals: &Finals) -> Vec<String> {
    let tied = tied(finals).into_iter().map(|at| View::finalist_words(&finals.finalists[at]));
    let tied: Vec<String> = tied.collect();
    let tied = (!tied.is_empty()).then(|| {
        format!(
            "The winner is tied with {}; fewer registers, then less shared memory, decide.",
            tied.join(", ")
        )
    });
    let names: Vec<String> = finals.finalists.iter().map(View::finalist_words).collect();
    let stats = names.iter().zip(&finals.finalists);
    let stats = stats.filter_map(|(name, it)| Some((name.as_str(), it.result.as_ref()?.stats)));
    let spread = spread_warning(stats).map(|it| format!("Warning: {it}."));
    tied.into_iter().chain(spread).collect()
}

/// What the finals say in sentences.
pub(super) fn words(view: &View<'_>, finals: &Finals) -> Vec<String> {
    let mut out = vec![format!(
        "{} in the regime {}, in one process and in an order drawn anew in each round; {} dropped because the clocks of the \
         machine were too far apart.",
        plural(finals.rounds, "round"),
        finals.regime.as_str(),
        if finals.dropped == 0 { "none".to_owned() } else { finals.dropped.to_string() },
    )];
    if let Some(it) = &finals.noise_floor {
        out.push(format!(
            "Noise floor: the same program against itself came to {}. A smaller difference cannot be told.",
            interval(Some(it))
        ));
    }
    let versus = view.champion().and_then(|it| it.versus_baseline);
    match (&finals.baseline, versus) {
        (Some(library), Some(it)) => out.push(format!(
            "The winner against {} is {}: {}.",
            library.name,
            interval(Some(&it)),
            verdict_words(verdict(MARGIN, Some(it), finals.noise_floor))
        )),
        (None, _) => {
            let why = finals.no_baseline.as_ref().map_or(".".to_owned(), |it| format!(": {it}"));
            out.push(format!("No library of the vendor took part{why}"));
        }
        (Some(_), None) => {}
    }
    out.extend(doubts(finals));
    if let Some(it) = &finals.baseline {
        let own =
            it.heuristic_seconds.map(|it| format!("; its own first choice took {} a call", seconds(it)));
        let tried = plural(it.tried, "algorithm");
        out.push(format!("The library's figure is the best of {tried} tried{}.", own.unwrap_or_default()));
    }
    out
}

fn verdict_words(it: Verdict) -> &'static str {
    match it {
        Verdict::Same => "the same, within 1 %",
        Verdict::Faster => "faster, beyond the noise",
        Verdict::Slower => "slower, beyond the noise",
        Verdict::Ambiguous => "the rounds cannot tell whether that is a difference",
    }
}

/// Every finalist's ratio to the winner.
pub(super) fn chart(view: &View<'_>, finals: &Finals) -> Option<Figure> {
    let sane = |it: &Interval| it.low > 0.0 && it.low <= it.median && it.median <= it.high && it.high < 1e6;
    let mut rows: Vec<(String, Interval, &str)> = vec![];
    for it in &finals.finalists {
        if let Some(ratio) = it.versus_winner.filter(sane) {
            rows.push((View::finalist_words(it), ratio, "interval"));
        }
    }
    // The library against the winner is the winner against the library turned over.
    let versus = view.champion().and_then(|it| it.versus_baseline).filter(sane);
    if let (Some(library), Some(it)) = (&finals.baseline, versus) {
        let turned =
            Interval { median: 1.0 / it.median, low: 1.0 / it.high, high: 1.0 / it.low, rounds: it.rounds };
        let place = rows.iter().position(|row| row.1.median < turned.median).unwrap_or(rows.len());
        rows.insert(place, (library.name.clone(), turned, "interval library"));
    }
    if rows.is_empty() {
        return None;
    }
    let floor = finals.noise_floor.filter(sane);
    let all = rows.iter().map(|it| it.1).chain(floor);
    let (low, high) = all.fold((0.995, 1.005), |(low, high), it| (it.low.min(low), it.high.max(high)));
    let margin = (high - low) * 0.06;
    let bottom = TOP + ROW * rows.len() as f64;
    let x = Scale::linear((low - margin, high + margin), (LEFT, RIGHT));
    let mut svg = Svg::new(WIDTH, bottom + 48.0, "How many times as fast as the winner each finalist is");
    if let Some(it) = floor {
        let (left, right) = (x.clamped(it.low.min(1.0)), x.clamped(it.high.max(1.0)));
        svg.rect((left, TOP), ((right - left).max(1.5), bottom - TOP), "noise");
        svg.text((f64::midpoint(left, right), TOP - 8.0), Anchor::Middle, "small", "noise floor");
    }
    bottom_axis(&mut svg, &x, bottom, Some(TOP), &x.ticks(8));
    svg.line((x.at(1.0), TOP), (x.at(1.0), bottom), "one");
    svg.line((LEFT, bottom), (RIGHT, bottom), "axis");
    let name = "times as fast as the winner (more is faster)";
    svg.text((f64::midpoint(LEFT, RIGHT), bottom + 40.0), Anchor::Middle, "name", name);
    for (at, (name, it, class)) in rows.iter().enumerate() {
        let middle = TOP + (at as f64 + 0.5) * ROW;
        svg.text((LEFT - 12.0, middle + 4.5), Anchor::End, "tick", &shortened(name, 24));
        svg.line((x.at(it.low), middle), (x.at(it.high), middle), class);
        svg.circle((x.at(it.median), middle), 4.5, class, &format!("{name}: {}", interval(Some(it))));
    }
    let caption = "A dot is the median over the rounds, the line its 95 % bootstrap confidence interval. The band is the same \
        program measured against itself.";
    Some(Figure::new("Against the winner", svg.finish()).caption(caption.to_owned()))
}
