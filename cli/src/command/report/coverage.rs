//! How much of the space the search has seen.

use std::fmt::Write;

use super::{
    failures::bar,
    knobs::knobs,
    view::View,
    words::{commas, count, percent},
};
use crate::term::markup::{escaped, shortened};

pub(super) fn table(view: &View<'_>) -> String {
    let mut out = String::new();
    if let Some(head) = view.head {
        let digits = head.script.size.bytes().all(|it| it.is_ascii_digit());
        let size = if digits { commas(&head.script.size) } else { head.script.size.clone() };
        let part = head.script.size.parse::<f64>().ok().filter(|it| *it >= 1.0);
        let part = part.map(|it| format!(", {} of it", percent(view.trials.len() as f64 / it)));
        let _ = writeln!(
            out,
            "<p>The space has {} points before constraints; {} were tried{}.</p>",
            escaped(&shortened(&size, 60)),
            count(view.trials.len() as u64),
            part.unwrap_or_default()
        );
    }
    let all = knobs(view);
    if all.is_empty() {
        return out + "<p>There are no knobs: the space is one point.</p>\n";
    }
    out += "<div class=\"scroll\"><table class=\"wordy\"><thead><tr><th>knob</th><th class=\"n\">choices</th><th class=\"n\">tried</th>\
        <th class=\"bars\"></th><th>not tried</th></tr></thead><tbody>\n";
    for it in &all {
        let part = it.tried.len() as f64 / it.choices.len().max(1) as f64;
        let _ = writeln!(
            out,
            "<tr><td><code>{}</code></td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"bars\">{}</td><td>{}</td></tr>",
            escaped(&shortened(it.name.as_str(), 60)),
            count(it.choices.len() as u64),
            count(it.tried.len() as u64),
            bar(part, "coverage-bar"),
            escaped(&shortened(&it.untried(), 200)),
        );
    }
    out + "</tbody></table></div>\n"
}
