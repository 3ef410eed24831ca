//! The regret curves of a search: how good the best so far is, after how many trials.

use std::fmt::Write;

use super::{
    cost::{SearchCost, WITHIN},
    figure::Figure,
    plot::{Anchor, Scale, Svg, bottom_axis, left_axis},
    words::{gflops, plural},
};
use crate::term::markup::escaped;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = HEIGHT - 52.0;

/// The chart, where there is more than one trial, and both tables.
pub(super) fn draw(cost: &SearchCost) -> String {
    let tables = table(cost, "trials", &cost.rows_after(true)) + &table(cost, WITHIN, &cost.rows_until(true));
    let chart = if cost.after.len() > 1 { chart(cost).html() } else { String::new() };
    format!(
        "<p>{}</p>\n<div class=\"charts\">\n{chart}<div>\n{tables}</div>\n</div>\n",
        escaped(&cost.words())
    )
}

fn table(cost: &SearchCost, first: &'static str, rows: &[Vec<String>]) -> String {
    let mut out = "<div class=\"scroll\"><table><thead><tr>".to_owned();
    for it in cost.heads(first) {
        let _ = write!(out, "<th class=\"n\">{}</th>", escaped(it));
    }
    out += "</tr></thead><tbody>\n";
    for row in rows {
        out += "<tr>";
        for it in row {
            let _ = write!(out, "<td class=\"n\">{}</td>", escaped(it));
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}

fn chart(cost: &SearchCost) -> Figure {
    let last = cost.after.last().map_or(1, |it| it.trials);
    let label = format!(
        "The best so far in percent of {} {}, over {}",
        gflops(cost.best_speed),
        cost.unit,
        plural(last, "trial")
    );
    let mut svg = Svg::new(WIDTH, HEIGHT, &label);
    let x = Scale::log((1.0, last as f64), (LEFT, RIGHT));
    let y = Scale::linear((0.0, 100.0), (BOTTOM, TOP));
    left_axis(&mut svg, &y, (LEFT, RIGHT), 5);
    bottom_axis(&mut svg, &x, BOTTOM, None, &x.ticks(8));
    svg.line((LEFT, BOTTOM), (RIGHT, BOTTOM), "axis");
    svg.text((LEFT - 8.0, 18.0), Anchor::Start, "name", "% of the best");
    svg.text((f64::midpoint(LEFT, RIGHT), HEIGHT - 8.0), Anchor::Middle, "name", "trials");
    let at = |trials: usize, part: f64| (x.at(trials as f64), y.at(100.0 * part));
    let mut legend = vec![("key own", "this run".to_owned())];
    for it in &cost.strategies {
        let (key, line, thin) = match it.strategy {
            "random" => ("key random", "random", "random quartile"),
            _ => ("key evolution", "evolution", "evolution quartile"),
        };
        for (class, of) in [(line, 0), (thin, 1), (thin, 2)] {
            let part = |it: &super::cost::ExpectedAfter| [it.median, it.low, it.high][of];
            svg.polyline(&it.after.iter().map(|it| at(it.trials, part(it))).collect::<Vec<_>>(), class);
        }
        legend.push((key, format!("{}: median and quartiles", it.strategy)));
    }
    svg.polyline(&cost.after.iter().map(|it| at(it.trials, it.part)).collect::<Vec<_>>(), "best-line");
    Figure::new("Regret", svg.finish()).legend(legend)
}
