//! The page, part by part.

use std::fmt::Write;

use super::{
    coverage, failures,
    figure::Figure,
    finals, head, progress, regret, roofline, steps, strips, times, top,
    view::View,
    words::{count, gflops, plural, ratio},
};
use crate::term::{
    markup::{escaped, shortened},
    page::Sort,
};

/// What a report is among our pages.
pub(super) const REPORT: Sort =
    Sort { command: "report", what: "report", style: include_str!("style.css"), script: "" };

/// The page of some runs. `damage` is what could not be read of their log, in words.
pub(super) fn page(runs: &[View<'_>], damage: &[String]) -> String {
    let title = match runs {
        [one] => format!("{}: tuning report", name_of(one)),
        _ => format!("{}: tuning report", plural(runs.len(), "run")),
    };
    let mut out = String::new();
    if runs.len() != 1 {
        let _ = writeln!(out, "<h1>{}</h1>", escaped(&title));
        out += &contents(runs);
    }
    out += &damage_words(damage);
    for (at, view) in runs.iter().enumerate() {
        out += &section(view, at, runs.len() == 1);
    }
    out +=
        "<footer>Written by tilewright from a tuning log alone. The same log gives the same page.</footer>\n";
    REPORT.page(&title, &out)
}

fn name_of(view: &View<'_>) -> String {
    let what = view.head.map_or(view.name, |it| &it.workload.name);
    shortened(what, 60)
}

/// A line for each run.
fn contents(runs: &[View<'_>]) -> String {
    if runs.is_empty() {
        return "<p>There are no runs in this log.</p>\n".to_owned();
    }
    let mut out = "<nav><div class=\"scroll\"><table><thead><tr><th>run</th><th>workload</th><th>sizes</th><th>machine</th><th \
        class=\"n\">trials</th><th class=\"n\">best</th><th class=\"n\">against the library</th></tr></thead><tbody>\n"
        .to_owned();
    for (at, view) in runs.iter().enumerate() {
        let head = |of: &dyn Fn(&tuner::log::Run) -> String| view.head.map_or("—".to_owned(), of);
        let sizes = |it: &tuner::log::Run| {
            let numbers = it.script.params.values().filter(|it| it.is_number()).map(ToString::to_string);
            numbers.chain(it.workload.dims.values().map(ToString::to_string)).collect::<Vec<_>>().join(" × ")
        };
        let versus = view.champion().and_then(|it| it.versus_baseline);
        let _ = writeln!(
            out,
            "<tr><td><a href=\"#run-{at}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td></tr>",
            escaped(&shortened(view.name, 60)),
            escaped(&shortened(&head(&|it| it.workload.name.clone()), 60)),
            escaped(&shortened(&head(&sizes), 60)),
            escaped(&shortened(&head(&|it| it.machine.name.clone()), 60)),
            count(view.trials.len() as u64),
            view.best().map_or("—".to_owned(), |it| best(view, it)),
            versus.map_or("—".to_owned(), |it| ratio(it.median)),
        );
    }
    out + "</tbody></table></div></nav>\n"
}

/// `41,234 GFLOPS`: runs of one page may be told in different units.
fn best(view: &View<'_>, it: &tuner::log::Measurement) -> String {
    format!("{} {}", gflops(view.speed_of(it)), view.unit())
}

fn damage_words(damage: &[String]) -> String {
    if damage.is_empty() {
        return String::new();
    }
    let mut out = "<div class=\"trouble\"><p>Parts of this log are not what was written, and are missing here:</p>\n<ul>\n".to_owned();
    for it in damage.iter().take(20) {
        let _ = writeln!(out, "<li>{}</li>", escaped(&shortened(it, 400)));
    }
    if damage.len() > 20 {
        let _ = writeln!(out, "<li>and {} more</li>", count(damage.len() as u64 - 20));
    }
    out + "</ul></div>\n"
}

fn section(view: &View<'_>, at: usize, is_only: bool) -> String {
    let tag = if is_only { "h1" } else { "h2" };
    let run = escaped(&shortened(view.name, 80));
    let mut out = format!(
        "<section id=\"run-{at}\">\n<{tag}>{} <small>run {run}</small></{tag}>\n",
        escaped(&name_of(view))
    );
    out += &head::tiles(view);
    out += &head::facts(view);
    if view.trials.is_empty() && view.finals.is_none() {
        out += "<p>No trial was recorded.</p>\n";
        part(&mut out, "What was refused", &failures::refused(view));
        out += &failures::events(view);
        return out + "</section>\n";
    }
    part(&mut out, "The winner", &head::winner(view));
    let charts: String =
        [progress::draw(view), roofline::draw(view)].iter().flatten().map(Figure::html).collect();
    part(&mut out, "The search", &format!("<div class=\"charts\">\n{charts}</div>\n"));
    if let Some(it) = view.cost() {
        part(&mut out, "The cost of the search", &regret::draw(it));
    }
    if let Some(it) = view.finals {
        let words: Vec<_> = finals::words(view, it).iter().map(|it| escaped(it)).collect();
        let words = words.join("</p>\n<p>");
        let chart = finals::chart(view, it).map_or(String::new(), |it| it.html());
        let table = finals::table(view, it);
        let body = format!("{table}<div class=\"charts\">\n{chart}<div><p>{words}</p></div>\n</div>\n");
        part(&mut out, "The finals", &body);
    }
    if !view.steps.is_empty() {
        part(&mut out, "The winner step by step", &format!("<p>{STEPS}</p>\n{}", steps::table(view)));
    }
    if !view.points().is_empty() {
        part(&mut out, "The best of the search", &format!("<p>{TOP}</p>\n{}", top::table(view)));
    }
    let charts: String = strips::draw(view).iter().map(Figure::html).collect();
    if !charts.is_empty() {
        let body = format!("<p>{}</p>\n<div class=\"strips\">\n{charts}</div>\n", strips::CAPTION);
        part(&mut out, "Knob by knob", &body);
    }
    part(&mut out, "Coverage", &coverage::table(view));
    part(&mut out, "What failed", &(failures::failed(view) + &failures::doubtful(view)));
    part(&mut out, "What was refused", &failures::refused(view));
    part(&mut out, "Where the time went", &(times::table(view) + &failures::events(view)));
    out + "</section>\n"
}

const STEPS: &str = "Each row is the winner's schedule up to that step, measured by itself, in the same way as a trial. The number after × is \
    how many times as fast it is as the last row that was measured: of medians, not of pairs.";
const TOP: &str = "By the search's own short measurements, so neighbours may change places in the finals. Pale decisions are those of \
    the first row.";

fn part(out: &mut String, title: &str, body: &str) {
    let _ = write!(out, "<h3 class=\"part\">{title}</h3>\n{body}");
}
