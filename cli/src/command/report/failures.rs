//! What failed, what is doubtful, what was refused before it became a trial, and what happened to the run.

use std::fmt::Write;

use indexmap::IndexMap;
use tuner::log::{ErrorKind, Event, Happening};

use super::{
    view::View,
    words::{count, percent},
};
use crate::term::markup::{escaped, escaped_block, shortened};

/// The longest example that is printed of a kind of failure, in characters.
const EXAMPLE: usize = 700;

pub(super) fn failed(view: &View<'_>) -> String {
    let all = view.failed();
    if all.is_empty() {
        return "<p>No trial failed.</p>\n".to_owned();
    }
    let mut kinds: Vec<(Option<ErrorKind>, Vec<_>)> = vec![];
    for it in all.iter().copied() {
        let kind = it.1.map(|it| it.kind);
        match kinds.iter_mut().find(|them| them.0 == kind) {
            Some(them) => them.1.push(it),
            None => kinds.push((kind, vec![it])),
        }
    }
    // The most frequent first; of equals the one that came first.
    kinds.sort_by_key(|it| std::cmp::Reverse(it.1.len()));
    let most = kinds.first().map_or(1, |it| it.1.len());
    let mut out = format!(
        "<p>{} of {} trials failed ({}). A failure costs one trial and is recorded; its worker is replaced where needed.</p>\n",
        count(all.len() as u64),
        count(view.trials.len() as u64),
        percent(all.len() as f64 / view.trials.len().max(1) as f64)
    );
    out += "<div class=\"scroll\"><table class=\"wordy\"><thead><tr><th>kind</th><th class=\"n\">trials</th><th class=\"bars\"></th>\
        <th>what it means, and the first example</th></tr></thead><tbody>\n";
    for (kind, them) in &kinds {
        let word = kind.map_or("none", ErrorKind::as_str);
        let meaning = kind.map_or("neither a result nor an error is recorded", ErrorKind::words);
        let (trial, error) = them[0];
        let example = error.map_or(String::new(), |it| shortened(it.message.trim_end(), EXAMPLE));
        let stage = error.map_or(String::new(), |it| format!(", stage {}", stage(it.stage)));
        let _ = writeln!(
            out,
            "<tr><td><code>{word}</code></td><td class=\"n\">{}</td><td class=\"bars\">{}</td><td>{meaning}<br>\
             <small>trial {}{stage}:</small><pre class=\"example\">{}</pre></td></tr>",
            count(them.len() as u64),
            bar(them.len() as f64 / most as f64, "bad-bar"),
            trial.n,
            escaped_block(&example),
        );
    }
    out + "</tbody></table></div>\n"
}

fn stage(it: tuner::log::Stage) -> &'static str {
    use tuner::log::Stage;
    match it {
        Stage::Generate => "generate",
        Stage::Compile => "compile",
        Stage::Run => "run",
        Stage::Verify => "verify",
    }
}

/// A bar as long as a part of its cell.
pub(super) fn bar(part: f64, class: &str) -> String {
    format!("<i class=\"bar {class}\" style=\"width:{:.1}%\"></i>", 100.0 * part.clamp(0.0, 1.0))
}

pub(super) fn doubtful(view: &View<'_>) -> String {
    let all = view.doubtful();
    if all.is_empty() {
        return String::new();
    }
    let mut out =
        "<p>These trials came out with figures that are no results, and count nowhere above:</p>\n<ul>\n"
            .to_owned();
    for (trial, it, why) in all.iter().take(20) {
        let _ = writeln!(
            out,
            "<li>trial {}, {} {}: {why}</li>",
            trial.n,
            super::words::gflops(view.speed_of(it)),
            view.unit()
        );
    }
    if all.len() > 20 {
        let _ = writeln!(out, "<li>and {} more</li>", count(all.len() as u64 - 20));
    }
    out + "</ul>\n"
}

/// What was refused before any compiler or device saw it: the counts of the last event that has some.
pub(super) fn refused(view: &View<'_>) -> String {
    let Some(event) = view.events.iter().rev().find(|it| !it.rejected.is_empty()) else {
        return "<p>The log tells of no candidate that was refused before it became a trial.</p>\n"
            .to_owned();
    };
    let mut rows: Vec<_> = event.rejected.iter().collect();
    rows.sort_by_key(|it| std::cmp::Reverse(*it.1));
    let total: u64 = rows.iter().map(|it| *it.1).fold(0, u64::saturating_add);
    let most = rows.first().map_or(1, |it| *it.1).max(1);
    let mut out = format!(
        "<p>{} candidates were refused before a compiler or a device saw them; they cost no trial.</p>\n",
        count(total)
    );
    out += "<div class=\"scroll\"><table class=\"wordy\"><thead><tr><th>reason</th><th class=\"n\">candidates</th><th class=\"bars\">\
        </th><th></th></tr></thead><tbody>\n";
    for (reason, number) in rows {
        let kind = ErrorKind::ALL.into_iter().find(|it| it.as_str() == reason);
        let _ = writeln!(
            out,
            "<tr><td><code>{}</code></td><td class=\"n\">{}</td><td class=\"bars\">{}</td><td>{}</td></tr>",
            escaped(&shortened(reason, 80)),
            count(*number),
            bar(*number as f64 / most as f64, "refused-bar"),
            kind.map_or(reason_words(reason), ErrorKind::words),
        );
    }
    out + "</tbody></table></div>\n"
}

/// What the static filters count under, in words.
fn reason_words(reason: &str) -> &'static str {
    match reason {
        "threads" => "a block would have more threads than the machine allows",
        "shared_memory" => "a block would need more shared memory than there is",
        "private_arrays" => "a thread's own arrays would not fit its registers",
        "occupancy" => "not one block would fit a multiprocessor",
        "spills" => "threads would keep registers in memory",
        "performance_loss" => "the compiler warns of a loss of performance",
        _ => "",
    }
}

/// Everything else that happened, the same things counted.
pub(super) fn events(view: &View<'_>) -> String {
    let mut all: IndexMap<&'static str, Vec<&Event>> = IndexMap::new();
    for it in view.events {
        all.entry(happening(it.what)).or_default().push(it);
    }
    if all.is_empty() {
        return String::new();
    }
    let mut out = "<details><summary>What happened to the run</summary>\n<ul>\n".to_owned();
    for (what, them) in all {
        let last = them[them.len() - 1];
        let detail = shortened(last.detail.trim(), 300);
        let colon = if detail.is_empty() { "" } else { ": " };
        let times = if them.len() > 1 {
            format!(", {} times, the last", count(them.len() as u64))
        } else {
            String::new()
        };
        let (detail, time) = (escaped(&detail), escaped(&shortened(&last.time, 40)));
        let _ = writeln!(out, "<li>{what}{times} at {time}{colon}{detail}</li>");
    }
    out + "</ul>\n</details>\n"
}

fn happening(it: Happening) -> &'static str {
    match it {
        Happening::WorkerStarted => "a worker started",
        Happening::WorkerReplaced => "a worker was replaced",
        Happening::WorkerQuarantined => "a worker was given up",
        Happening::StrayAnswer => "a worker gave an answer that nobody waited for",
        Happening::Warning => "a worker warned",
        Happening::TailTruncated => "the torn end of the log was cut off",
        Happening::Throttled => "the machine lowered its clocks",
        Happening::Resumed => "the run was resumed",
        Happening::Stopped => "the run was stopped",
        Happening::Finished => "the run finished",
        Happening::Other => "something that this version has no word for",
    }
}
