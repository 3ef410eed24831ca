//! The best trials of the search, with what was decided for each.

use std::fmt::Write;

use ir::Name;
use tuner::log::{Origin, Trial};

use super::{
    knobs::knobs,
    view::{Point, View},
    words::{count, gflops, percent, seconds},
};
use crate::term::markup::{escaped, shortened};

/// The most rows.
const MAX_ROWS: usize = 10;
/// Knobs beyond so many are told in words instead of columns.
const COLUMNS: usize = 14;

pub(super) fn table(view: &View<'_>) -> String {
    let ranked = view.ranked();
    let best = &ranked[..ranked.len().min(MAX_ROWS)];
    let names: Vec<Name> = knobs(view).into_iter().map(|it| it.name).collect();
    let has_columns = names.len() <= COLUMNS;
    let registers = best.iter().any(|it| !it.trial.res.is_empty());
    let mut out = format!(
        "<div class=\"scroll\"><table class=\"top\"><thead><tr><th class=\"n\"></th><th class=\"n\">trial</th><th \
        class=\"n\">{}</th><th class=\"n\">time</th><th class=\"n\">roofline</th>",
        view.unit()
    );
    if registers {
        out += "<th class=\"n\">registers</th>";
    }
    if has_columns {
        out.extend(
            names.iter().map(|it| {
                format!("<th class=\"n\"><code>{}</code></th>", escaped(&shortened(it.as_str(), 24)))
            }),
        );
    } else {
        out += "<th>decisions</th>";
    }
    out += "<th>from</th></tr></thead><tbody>\n";
    for (at, it) in best.iter().enumerate() {
        let _ = write!(
            out,
            "<tr{}><td class=\"n\">{}</td>",
            if at == 0 { " class=\"first\"" } else { "" },
            at + 1
        );
        out += &figures(view, it);
        if registers {
            let _ = write!(out, "<td class=\"n\">{}</td>", registers_of(it.trial));
        }
        out += &if has_columns { columns(it.trial, best[0].trial, &names) } else { listed(it.trial) };
        let _ = writeln!(out, "<td><small>{}</small></td></tr>", origin(&it.trial.origin));
    }
    out + "</tbody></table></div>\n"
}

fn figures(view: &View<'_>, it: &Point<'_>) -> String {
    let part = view.roof().map_or("—".to_owned(), |roof| percent(it.speed / roof.0));
    let time = it.trial.result.as_ref().map_or("—".to_owned(), |it| seconds(it.stats.median));
    let cells = [count(it.trial.n), gflops(it.speed), time, part];
    format!("<td class=\"n\">{}</td>", cells.join("</td><td class=\"n\">"))
}

fn registers_of(it: &Trial) -> String {
    let most = it.res.iter().map(|it| it.registers).max();
    let spills: u64 = it.res.iter().map(|it| u64::from(it.spill_store_bytes)).sum();
    let spills = if spills > 0 { format!(", {spills} B spilled") } else { String::new() };
    most.map_or("—".to_owned(), |it| format!("{it}{spills}"))
}

/// A cell a knob; where it is decided as by the best, it steps back.
fn columns(it: &Trial, best: &Trial, names: &[Name]) -> String {
    let cell = |name: &Name| {
        let Some(choice) = it.decisions.get(name) else { return "<td class=\"n same\">·</td>".to_owned() };
        let same = it.n != best.n && best.decisions.get(name) == Some(choice);
        let class = if same { "n same" } else { "n" };
        format!("<td class=\"{class}\">{}</td>", escaped(&shortened(&choice.to_string(), 40)))
    };
    names.iter().map(cell).collect()
}

fn listed(it: &Trial) -> String {
    let words: Vec<_> = it.decisions.iter().map(|(name, choice)| format!("{name}={choice}")).collect();
    format!("<td><code>{}</code></td>", escaped(&words.join(" ")))
}

pub(super) fn origin(it: &Origin) -> String {
    match it {
        Origin::Random => "random".to_owned(),
        Origin::Rule => "roofline rule".to_owned(),
        Origin::Default => "script's defaults".to_owned(),
        Origin::Mutation { of } => format!("mutation of {of}"),
        Origin::Crossover { of: [a, b] } => format!("crossover of {a} and {b}"),
    }
}
