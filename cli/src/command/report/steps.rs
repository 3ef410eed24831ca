//! The winner's schedule step by step: a bar for each prefix of it.

use std::fmt::Write;

use tuner::log::StepResult;

use super::{
    failures::bar,
    view::View,
    words::{count, gflops},
};
use crate::term::markup::{escaped, shortened};

pub(super) fn table(view: &View<'_>) -> String {
    let most = view.steps.iter().filter_map(|it| speed(view, it)).fold(0.0, f64::max);
    let mut out = format!(
        "<div class=\"scroll\"><table class=\"steps\"><thead><tr><th class=\"n\"></th><th>step</th><th class=\"n\">{}\
        </th><th class=\"n\">×</th><th class=\"bars wide-bars\"></th></tr></thead><tbody>\n",
        view.unit()
    );
    let mut before: Option<f64> = None;
    for it in &view.steps {
        let now = speed(view, it);
        let step =
            if it.step.is_empty() { "before the first step".to_owned() } else { shortened(&it.step, 400) };
        let _ = writeln!(
            out,
            "<tr{}><td class=\"n\">{}</td><td><code>{}</code></td>{}</tr>",
            if it.no_effect { " class=\"no-effect\"" } else { "" },
            count(it.steps as u64),
            escaped(&step),
            cells(it, now, before, most)
        );
        before = now.or(before);
    }
    out + "</tbody></table></div>\n"
}

fn speed(view: &View<'_>, it: &StepResult) -> Option<f64> {
    it.result.as_ref().map(|it| view.speed_of(it)).filter(|it| *it > 0.0 && *it < 1e13)
}

/// The speed after a step, how many times that before it, and a bar that is a part of the most.
fn cells(it: &StepResult, now: Option<f64>, before: Option<f64>, most: f64) -> String {
    let gain = before.zip(now).map(|(before, now)| now / before);
    match (&it.error, now) {
        (Some(error), _) => format!(
            "<td colspan=\"2\" class=\"n bad\"><code>{}</code></td><td class=\"bars\"><small>{}</small></td>",
            error.kind.as_str(),
            escaped(&shortened(error.message.lines().next().unwrap_or_default(), 160))
        ),
        (None, Some(now)) if it.no_effect => format!(
            "<td class=\"n\">{}</td><td class=\"n\"></td><td class=\"bars\"><small>no effect: the same source</small></td>",
            gflops(now)
        ),
        (None, Some(now)) => format!(
            "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"bars\">{}</td>",
            gflops(now),
            gain.map_or(String::new(), gain_words),
            bar(now / most, step_class(gain))
        ),
        (None, None) => {
            let why = if it.no_effect { "no effect: the same source" } else { "not measured" };
            format!("<td class=\"n\">—</td><td></td><td class=\"bars\"><small>{why}</small></td>")
        }
    }
}

fn gain_words(it: f64) -> String {
    match it {
        it if (0.995..1.005).contains(&it) => "=".to_owned(),
        it if it < 9.95 => format!("×{it:.2}"),
        it => format!("×{}", super::words::commas(&format!("{it:.0}"))),
    }
}

fn step_class(gain: Option<f64>) -> &'static str {
    match gain {
        Some(it) if it > 1.02 => "gain-bar",
        Some(it) if it < 0.98 => "loss-bar",
        Some(_) | None => "step-bar",
    }
}
