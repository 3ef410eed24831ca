//! What was tuned, on what and how, and what won.

use std::fmt::Write;

use tuner::log::{Run, Trial};

use super::{
    top::origin,
    view::View,
    words::{bytes, commas, count, duration, gflops, large, percent, ratio, seconds},
};
use crate::{
    figures::verified_words,
    term::markup::{escaped, escaped_block, shortened},
};

/// The figures that matter most.
pub(super) fn tiles(view: &View<'_>) -> String {
    let mut out = "<div class=\"tiles\">\n".to_owned();
    let mut tile = |figure: &str, what: &str| {
        let _ = writeln!(out, "<div><b>{}</b><span>{}</span></div>", escaped(figure), escaped(what));
    };
    match view.best() {
        Some(it) => {
            let (unit, speed) = (view.unit(), view.speed_of(it));
            let whose = if view.champion().is_some() { "in the finals" } else { "in the search" };
            tile(&gflops(speed), &format!("{unit} {whose}"));
            tile(&seconds(it.stats.median), "a call");
            if let Some((roof, bound)) = view.roof() {
                tile(&percent(speed / roof), &format!("of the {} roofline", super::bound(bound)));
            }
        }
        None => tile("—", "no result"),
    }
    let versus = view.champion().and_then(|it| it.versus_baseline);
    if let (Some(it), Some((name, _))) = (versus, view.library()) {
        tile(&ratio(it.median), &format!("times as fast as {}", shortened(name, 30)));
    }
    let failed = view.failed().len();
    let failed = if failed > 0 { format!(", {} failed", count(failed as u64)) } else { String::new() };
    let trials = if view.trials.len() == 1 { "trial" } else { "trials" };
    tile(&count(view.trials.len() as u64), &format!("{trials}{failed}"));
    if let Some(it) = view.wall() {
        tile(&duration(it), "from start to end");
    }
    out + "</div>\n"
}

/// A list of what is known of the run.
pub(super) fn facts(view: &View<'_>) -> String {
    let Some(head) = view.head else {
        return "<p class=\"bad\">The head of this run is damaged: what it computes, its space and its machine are not known.</p>\n"
            .to_owned();
    };
    let mut out = "<div class=\"facts\">\n".to_owned();
    for group in [work(head), machine(head), search(view, head), measured(head)] {
        out += "<dl>\n";
        for (name, value) in group.into_iter().filter(|it| !it.1.is_empty()) {
            let _ = writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&value));
        }
        out += "</dl>\n";
    }
    out += "</div>\n";
    for (what, text) in [("The script", &head.script.text), ("The program", &head.workload.program)] {
        let _ =
            writeln!(out, "<details><summary>{what}</summary><pre>{}</pre></details>", escaped_block(text));
    }
    let args: Vec<_> = head.args.iter().map(|it| quoted(it)).collect();
    let _ = writeln!(
        out,
        "<details><summary>The command line</summary><pre>{}</pre></details>",
        escaped(&args.join(" "))
    );
    out
}

/// An argument as a shell would have it.
fn quoted(it: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "-_=./:,+@%".contains(it);
    if !it.is_empty() && it.chars().all(plain) {
        it.to_owned()
    } else {
        format!("'{}'", it.replace('\'', "'\\''"))
    }
}

type Facts = Vec<(&'static str, String)>;

fn work(head: &Run) -> Facts {
    let params: Vec<_> =
        head.script.params.iter().map(|(name, it)| format!("{name} = {}", plain(it))).collect();
    let dims: Vec<_> = head.workload.dims.iter().map(|(name, it)| format!("{name} = {it}")).collect();
    let (flops, moved) = (head.workload.flops, head.workload.bytes);
    vec![
        ("workload", head.workload.name.clone()),
        ("sizes", [params, dims].concat().join(", ")),
        ("work", format!("{} operations on {}", large(flops), bytes(moved))),
        ("target", head.target.clone()),
    ]
}

fn plain(it: &serde_json::Value) -> String {
    it.as_str().map_or_else(|| it.to_string(), ToOwned::to_owned)
}

fn machine(head: &Run) -> Facts {
    let it = &head.machine;
    let units = if it.arch == "cpu" { "cores" } else { "multiprocessors" };
    let compute = it.peak_f32_gflops.map(|it| format!("{} GFLOPS of f32", gflops(it)));
    let memory = it.peak_gb_per_s.map(|it| format!("{} GB/s", gflops(it)));
    let cache = (it.cache_bytes > 0).then(|| format!("{} of last-level cache", bytes(it.cache_bytes as f64)));
    let peaks: Vec<_> = [compute, memory, cache].into_iter().flatten().collect();
    let versions: Vec<_> = it.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    vec![
        ("machine", format!("{} ({}, {} {units})", it.name, it.arch, it.units)),
        ("its peaks", peaks.join(", ")),
        ("versions", [vec![format!("tilewright {}", head.tool)], versions].concat().join(", ")),
        ("host", head.host.clone()),
    ]
}

fn search(view: &View<'_>, head: &Run) -> Facts {
    let numbers: Vec<_> =
        head.strategy.params.iter().map(|(name, it)| format!("{name} {}", plain(it))).collect();
    let numbers = if numbers.is_empty() { String::new() } else { format!(" ({})", numbers.join(", ")) };
    let digits = head.script.size.bytes().all(|it| it.is_ascii_digit());
    let size = if digits { commas(&head.script.size) } else { head.script.size.clone() };
    let limit = head.plan.seconds.map_or(String::new(), |it| format!(" or {}", duration(it)));
    vec![
        (
            "space",
            format!("{}: {} knobs, {} points", head.script.name, view_knobs(head), shortened(&size, 60)),
        ),
        ("strategy", format!("{}{numbers}", head.strategy.name)),
        ("seed", head.seed.to_string()),
        (
            "plan",
            format!(
                "{} trials{limit}; {} were made",
                count(head.plan.trials),
                count(view.trials.len() as u64)
            ),
        ),
        ("began", head.time.clone()),
    ]
}

fn view_knobs(head: &Run) -> String {
    count(head.script.knobs.len() as u64)
}

fn measured(head: &Run) -> Facts {
    let it = &head.measure;
    let threads = match it.threads {
        0 => String::new(),
        some => format!(", {some} CPU threads"),
    };
    vec![
        (
            "measured by",
            format!("protocol {}, finals in the regime {}{threads}", it.proto, it.regime.as_str()),
        ),
        ("caches", it.caches.clone()),
        ("inputs", it.data.clone()),
    ]
}

/// What was decided for the winner, and what became of it.
pub(super) fn winner(view: &View<'_>) -> String {
    let Some(trial) = view.winner() else {
        return match view.champion() {
            Some(it) => {
                let name = escaped(&View::finalist_words(it));
                format!("<p><b>{name}</b> won: no trial of this run is faster than the incumbent.</p>\n")
            }
            None => "<p>There is no winner: no trial has a result.</p>\n".to_owned(),
        };
    };
    let won = if view.champion().is_some() {
        "won the finals"
    } else {
        "is the best of the search; there were no finals"
    };
    let mut out = format!("<p><b>Trial {}</b> ({}) {won}.</p>\n", trial.n, origin(&trial.origin));
    out += "<div class=\"decisions\">\n";
    for (name, choice) in &trial.decisions {
        let default = view.head.and_then(|it| it.script.knobs.get(name)?.first());
        let class = if default == Some(choice) { " class=\"is-default\"" } else { "" };
        let (name, choice) =
            (escaped(&shortened(name.as_str(), 60)), escaped(&shortened(&choice.to_string(), 60)));
        let _ = writeln!(out, "<span{class}><code>{name}</code><b>{choice}</b></span>");
    }
    if trial.decisions.is_empty() {
        out += "<span>nothing is left to decide</span>";
    }
    out += "</div>\n";
    if let Some(it) = view.best() {
        let words = [("Before", &it.before), ("after", &it.after)]
            .map(|(when, it)| format!("{when} it was timed: {}", verified_words(it)));
        let _ = writeln!(
            out,
            "<p><small>Its numbers against an f64 reference. {}.</small></p>",
            escaped(&words.join("; "))
        );
    }
    out + &kernels(trial)
}

/// How the winner's kernels are launched, what they need, and what they are known by.
fn kernels(trial: &Trial) -> String {
    let mut out = "<ul class=\"kernels\">\n".to_owned();
    for it in &trial.launches {
        let is_gpu = it.block != [1, 1, 1] || it.grid != [1, 1, 1];
        let box_of = |it: [u32; 3]| it.map(|it| it.to_string()).join(" × ");
        let shape = is_gpu.then(|| format!(": grid {}, block {}", box_of(it.grid), box_of(it.block)));
        let dynamic = (it.shared_bytes > 0)
            .then(|| format!(", {} of dynamic shared memory", bytes(f64::from(it.shared_bytes))));
        let needs = trial.res.iter().find(|res| res.kernel == it.kernel).map(|res| {
            let fixed = (res.static_shared_bytes > 0)
                .then(|| format!(", {} of static shared memory", bytes(f64::from(res.static_shared_bytes))));
            let spills =
                (res.spill_store_bytes > 0).then(|| format!(", {} bytes spilled", res.spill_store_bytes));
            format!(
                ", {} registers{}{}",
                res.registers,
                spills.unwrap_or_default(),
                fixed.unwrap_or_default()
            )
        });
        let words = [shape, needs, dynamic].into_iter().flatten().collect::<String>();
        let _ = writeln!(
            out,
            "<li>kernel <code>{}</code>{}</li>",
            escaped(&shortened(&it.kernel, 80)),
            escaped(&words)
        );
    }
    let bin =
        trial.bin.as_ref().map_or(String::new(), |it| format!(", machine code <code>{}</code>", hash(it)));
    let _ = writeln!(
        out,
        "<li>candidate <code>{}</code>, source <code>{}</code>{bin}</li>",
        hash(&trial.id),
        hash(&trial.src)
    );
    out + "</ul>\n"
}

/// The first digits of a hash, as people tell them apart.
fn hash(it: &str) -> String {
    escaped(&shortened(it, 13))
}
