//! Where the time of a run went.

use std::fmt::Write;

use super::{
    failures::bar,
    view::View,
    words::{count, duration, percent, seconds},
};

pub(super) fn table(view: &View<'_>) -> String {
    let sane = |it: f64| if it.is_finite() && it > 0.0 && it < 1e15 { it / 1e3 } else { 0.0 };
    let parts = [
        (
            "generate",
            "scheduling, lowering, printing",
            view.trials.iter().map(|it| sane(it.t.generate)).collect(),
        ),
        (
            "compile",
            "the compiler, several at once if there are several workers",
            view.trials.iter().map(|it| sane(it.t.compile)).collect(),
        ),
        (
            "measure",
            "loading, verifying, timing",
            view.trials.iter().map(|it| sane(it.t.measure)).collect::<Vec<f64>>(),
        ),
    ];
    let total: f64 = parts.iter().flat_map(|it| &it.2).sum();
    let mut out = String::new();
    if let Some(wall) = view.wall() {
        let rate = view.trials.len() as f64 / wall.max(1.0) * 60.0;
        let _ = writeln!(
            out,
            "<p>From the first line of the log to the last {} passed: {rate:.0} trials a minute. The sums below are over all \
             trials and may be more than that, because workers work side by side.</p>",
            duration(wall)
        );
    }
    out += "<div class=\"scroll\"><table class=\"wordy\"><thead><tr><th></th><th class=\"n\">in all</th><th class=\"n\">share</th><th \
        class=\"n\">median of a trial</th><th class=\"bars\"></th><th></th></tr></thead><tbody>\n";
    for (name, meaning, times) in &parts {
        let sum: f64 = times.iter().sum();
        let there: Vec<f64> = times.iter().copied().filter(|it| *it > 0.0).collect();
        let part = if total > 0.0 { sum / total } else { 0.0 };
        let _ = writeln!(
            out,
            "<tr><td>{name}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"bars\">{}</td>\
             <td><small>{meaning}; {} trials got there</small></td></tr>",
            duration(sum),
            percent(part),
            tuner::Stats::of(&there).map_or("—".to_owned(), |it| seconds(it.median)),
            bar(part, "time-bar"),
            count(there.len() as u64),
        );
    }
    out + "</tbody></table></div>\n"
}
