//! Runs that are odd, broken or hostile.

use std::collections::BTreeSet;

use codegen::device::Resources;
use ir::Name;
use schedule::Choice;
use tuner::log::{ErrorKind, Stage, TrialError};

use super::{
    fixture::{self, Fixture},
    page, said, view,
};
use crate::command::report::view::View;

/// Tags and attributes of our own pages. Nothing else may be on one, whatever the log says.
const TAGS: &str = "!DOCTYPE html head meta title style body main section nav h1 h2 h3 p ul li dl dt dd div span b i a br small code pre table \
    thead tbody tr th td details summary figure figcaption svg g path rect circle text footer";
const ATTRIBUTES: &str = "lang charset name content http-equiv id class href style colspan viewBox width height role aria-label d x y cx cy r \
    transform text-anchor html";

/// That a page is made of our tags and attributes only, with no number that is none, and nothing invisible.
fn check(page: &str) {
    let (tags, attributes): (BTreeSet<_>, BTreeSet<_>) =
        (TAGS.split_whitespace().collect(), ATTRIBUTES.split_whitespace().collect());
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("tags end");
        let tag = &rest[start + 1..end];
        let mut outside = String::new();
        for (at, part) in tag.split('"').enumerate() {
            outside += if at % 2 == 0 { part } else { " " };
        }
        let mut words = outside.split_whitespace();
        let name = words.next().unwrap().trim_start_matches('/').trim_end_matches('/');
        assert!(tags.contains(name), "<{tag}>");
        for word in words.filter(|it| *it != "/") {
            let name = word.trim_end_matches('/').trim_end_matches('=');
            assert!(attributes.contains(name), "{name} in <{tag}>");
        }
        rest = &rest[end + 1..];
        if name == "style" && !tag.starts_with('/') {
            rest = &rest[rest.find("</style>").unwrap()..];
        }
    }
    let text = said(page);
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    let drawn = page.split("</style>").nth(1).unwrap();
    assert!(!drawn.contains("NaN") && !drawn.contains("inf "));
    assert!(page.chars().all(|it| it == '\n' || !(it.is_control() || matches!(it, '\u{202a}'..='\u{202e}'))));
    assert!(!drawn.contains("://") || !drawn.contains("href=\"h"));
}

fn page_of(it: &Fixture) -> String {
    let text = page(&[view(it)], &[]);
    check(&text);
    text
}

const HOSTILE: &str = "</pre></svg><script>alert(1)</script><img src=x onerror='alert(2)'>\" onload=\"x\u{1b}[2J\u{202e}\0\r\n&amp;";

#[test]
fn nothing_of_a_log_becomes_markup() {
    let mut it = fixture::gpu(30);
    let evil = || HOSTILE.to_owned();
    let head = &mut it.head;
    (head.run, head.tool, head.time, head.host, head.target) = (evil(), evil(), evil(), evil(), evil());
    (head.script.name, head.script.text, head.script.size) = (evil(), evil(), evil());
    (head.workload.name, head.workload.program, head.strategy.name) = (evil(), evil(), evil());
    (head.measure.proto, head.measure.caches, head.measure.data) = (evil(), evil(), evil());
    (head.machine.name, head.machine.arch) = (evil(), evil());
    head.args.push(evil());
    head.machine.versions.push((evil(), evil()));
    head.script.params.insert(evil(), evil().into());
    head.workload.dims.insert(Name::new(HOSTILE), 3);
    head.strategy.params.insert(evil(), evil().into());
    head.script.knobs.insert(Name::new(HOSTILE), vec![Choice::Int(1), Choice::Tile(vec![])]);
    for trial in &mut it.trials {
        trial.decisions.insert(Name::new(HOSTILE), Choice::Int(1));
        (trial.id, trial.src, trial.bin, trial.time) = (evil(), evil(), Some(evil()), evil());
        trial.launches[0].kernel = evil();
        trial.res = vec![Resources { kernel: evil(), ..Resources::default() }];
        if let Some(error) = &mut trial.error {
            error.message = evil();
        }
    }
    let finals = it.finals.as_mut().unwrap();
    finals.baseline.as_mut().unwrap().name = evil();
    it.steps.iter_mut().for_each(|it| it.step = evil());
    for event in &mut it.events {
        (event.detail, event.time) = (evil(), evil());
        event.rejected.insert(evil(), u64::MAX);
    }
    page_of(&it);
    it.finals = None;
    it.trials.retain(|it| it.error.is_some());
    page_of(&it);
    check(&page(&[view(&it), view(&it)], &[evil()]));
}

#[test]
fn an_empty_log_and_an_empty_run() {
    let text = page(&[], &[]);
    check(&text);
    assert!(text.contains("There are no runs in this log."));
    let mut it = fixture::gpu(1);
    (it.trials, it.steps, it.finals, it.events) = (vec![], vec![], None, vec![]);
    assert!(page_of(&it).contains("No trial was recorded."));
}

#[test]
fn a_run_without_a_head() {
    let it = fixture::gpu(40);
    let text = page(&[View { head: None, ..view(&it) }], &[]);
    check(&text);
    assert!(text.contains("The head of this run is damaged") && text.contains("Best so far"));
}

#[test]
fn only_failures() {
    let mut it = fixture::gpu(12);
    (it.finals, it.steps) = (None, vec![]);
    for trial in &mut it.trials {
        trial.result = None;
        let message = "x".repeat(100_000);
        trial.error =
            Some(TrialError { stage: Stage::Compile, kind: ErrorKind::Compile, message, sticky: false });
    }
    let text = page_of(&it);
    assert!(text.contains("There is no winner") && text.contains("12 of 12 trials failed"));
    assert!(text.len() < 100_000);
}

#[test]
fn one_trial_and_no_knobs() {
    let mut it = fixture::cpu();
    it.trials.retain(|it| it.result.is_some());
    it.trials.truncate(1);
    it.trials[0].decisions.clear();
    it.head.script.knobs.clear();
    it.head.script.size = "1".to_owned();
    let text = page_of(&it);
    assert!(text.contains("There are no knobs") && text.contains("nothing is left to decide"));
}

#[test]
fn an_incumbent_that_wins() {
    let mut it = fixture::gpu(30);
    let first = &mut it.finals.as_mut().unwrap().finalists[0];
    (first.n, first.name) = (None, Some("rung 19 <b>".to_owned()));
    assert!(page_of(&it).contains("<b>rung 19 &lt;b&gt;</b> won"));
}

#[test]
fn results_that_are_none() {
    let mut it = fixture::gpu(40);
    let mut timed = it.trials.iter_mut().filter_map(|it| it.result.as_mut());
    timed.next().unwrap().suspicious = true;
    for seconds in [1e-300, 0.0, -5.0, f64::MAX, 1e-12] {
        timed.next().unwrap().stats.median = seconds;
    }
    timed.next().unwrap().after.outputs[0].wrong = 3;
    drop(timed);
    it.finals.as_mut().unwrap().noise_floor.as_mut().unwrap().high = 1e300;
    let text = page_of(&it);
    assert!(
        text.contains("faster than the machine can be") && text.contains("its numbers are wrong, though")
    );
    for bad in [0.0, -1.0, 1e-300, 1e300] {
        (it.head.workload.flops, it.head.workload.bytes) = (bad, 1.0 / bad);
        (it.head.machine.peak_gb_per_s, it.head.roofline.compute) = (Some(bad), Some(bad));
        check(&page(&[view(&it)], &[]).replace("inf", ""));
    }
}

#[test]
fn many_trials_make_no_heavy_page() {
    let it = fixture::gpu(6_000);
    let text = page_of(&it);
    assert!(text.len() < 2_000_000, "{}", text.len());
}

#[test]
fn knobs_with_very_many_choices() {
    let mut it = fixture::gpu(50);
    it.head.script.knobs.insert(Name::new("many"), (0..60_000).map(Choice::Int).collect());
    let long = (0..20).map(|it| Choice::Tile(vec![it, 1_000_000 + it, 7])).collect();
    it.head.script.knobs.insert(Name::new("long"), long);
    for (at, trial) in (0i64..).zip(&mut it.trials) {
        trial.decisions.insert(Name::new("many"), Choice::Int(at * 1_000));
        trial.decisions.insert(Name::new("long"), Choice::Tile(vec![at % 20, 1_000_000 + at % 20, 7]));
    }
    let text = page_of(&it);
    assert!(text.contains("0–2499") && text.contains("groups of neighbouring choices"));
}
