//! The page of runs that are made up: what it says, that nothing of a log gets out as markup, and that odd runs have one too.

mod fixture;
mod odd;

use super::{page::page, progress, roofline, view::View};
use fixture::{Dice, Fixture};

fn view(it: &Fixture) -> View<'_> {
    View {
        name: &it.head.run,
        head: Some(&it.head),
        rate: tuner::Rate::of(&it.head.workload.work()),
        trials: it.trials.iter().collect(),
        steps: it.steps.iter().collect(),
        finals: it.finals.as_ref(),
        events: &it.events,
        cost: std::cell::OnceCell::new(),
    }
}

/// What a page says: its texts without tags and style, a line for each block, and a word for each drawing.
fn said(page: &str) -> String {
    let (mut out, mut rest) = (String::new(), page);
    while let Some(start) = rest.find('<') {
        out += &rest[..start];
        let tag = &rest[start..=start + rest[start..].find('>').unwrap()];
        rest = &rest[start + tag.len()..];
        let name = tag.trim_start_matches(['<', '/']).split([' ', '>']).next().unwrap();
        match name {
            "style" if !tag.starts_with("</") => rest = &rest[rest.find("</style>").unwrap()..],
            "svg" if !tag.starts_with("</") => {
                let label = tag.split("aria-label=\"").nth(1).unwrap().split('"').next().unwrap();
                out.extend(["[drawing: ", label, "]\n"]);
                rest = &rest[rest.find("</svg>").unwrap()..];
            }
            "td" | "th" | "dd" | "li" | "b" if tag.starts_with("</") => out += "  ",
            "dt" if tag.starts_with("</") => out += ": ",
            "tr" | "div" | "ul" | "summary" | "br" | "figcaption" => out.push('\n'),
            _ => {}
        }
    }
    let text = out + rest;
    let lines: Vec<_> = text.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    lines.join("\n")
}

#[test]
fn a_page_says() {
    insta::assert_snapshot!(said(&page(&[view(&fixture::gpu(120))], &[])));
}

#[test]
fn several_runs_have_a_contents_list() {
    let (mut gpu, cpu) = (fixture::gpu(3), fixture::cpu());
    gpu.trials.truncate(1);
    let damage = ["run-x.jsonl, line 7: the line does not end with a checksum".to_owned()];
    let text = page(&[view(&gpu), view(&cpu)], &damage);
    assert!(
        text.contains("<a href=\"#run-1\">20261121T200000Z-00c0ffee</a>") && text.contains("id=\"run-1\"")
    );
    assert!(text.contains(&damage[0]));
    let said = said(&text);
    let end = said.find("workload: ").unwrap();
    insta::assert_snapshot!(&said[..end]);
}

/// Three results, one of them screened, and a failure.
fn small() -> Fixture {
    let mut it = fixture::gpu(5);
    let speeds = [Some(10_000.0), Some(40_000.0), None, Some(15_000.0)];
    it.trials.truncate(4);
    for (trial, speed) in it.trials.iter_mut().zip(speeds) {
        let example = fixture::trial(&it.head, 900, 0.0, &mut Dice(1));
        trial.decisions = example.decisions.into_iter().take(1).collect();
        trial.result = speed.map(|it_speed| {
            fixture::measured(
                &it.head,
                it_speed,
                0.0,
                &mut Dice(1),
                it_speed < 20_000.0 && it_speed > 10_000.0,
            )
        });
    }
    let error = tuner::log::TrialError {
        stage: tuner::log::Stage::Run,
        kind: tuner::log::ErrorKind::Hang,
        message: "it hung".to_owned(),
        sticky: true,
    };
    it.trials.iter_mut().for_each(|it| it.error = it.result.is_none().then(|| error.clone()));
    it.finals.as_mut().unwrap().finalists.truncate(0);
    it
}

#[test]
fn small_charts_are_exact() {
    let it = small();
    insta::assert_snapshot!("best_so_far", progress::draw(&view(&it)).unwrap().html());
    insta::assert_snapshot!("roofline", roofline::draw(&view(&it)).unwrap().html());
}

/// The words at the marks of a roofline: class, left, top, right and bottom, about.
fn words_of(svg: &str) -> Vec<(&str, [f64; 4])> {
    let attribute = |tag: &'_ str, name: &str| -> Option<f64> {
        tag.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
    };
    let words = svg.split("<text").skip(1).filter_map(|it| {
        let (tag, text) = it.split_once('>')?;
        let class = tag.split("class=\"").nth(1)?.split('"').next()?;
        let width = 8.0 * text.split('<').next()?.chars().count() as f64;
        let (x, y) = (attribute(tag, "x")?, attribute(tag, "y")?);
        let left = if tag.contains("\"end\"") { x - width } else { x };
        // Of the word along the memory roof the place is that of its group.
        (class.starts_with("halo") && (x, y) != (0.0, 0.0))
            .then_some((class, [left, y - 11.0, left + width, y + 3.0]))
    });
    words.collect()
}

#[test]
fn words_of_the_roofline_stand_on_no_other() {
    for part in [0.3, 0.9, 0.97, 1.0, 1.01, 1.05, 1.2] {
        for peak in [0.02, 0.3, 1.0] {
            let mut it = fixture::gpu(40);
            let best = it.finals.as_ref().unwrap().finalists[0].result.as_ref().unwrap().gflops;
            it.finals.as_mut().unwrap().baseline.as_mut().unwrap().gflops = best * part;
            it.head.machine.peak_gb_per_s = it.head.machine.peak_gb_per_s.map(|it| it * peak);
            let svg = roofline::draw(&view(&it)).unwrap().html();
            let words = words_of(&svg);
            assert_eq!(words.len(), 3, "{svg}");
            for (n, (one, a)) in words.iter().enumerate() {
                for (other, b) in &words[n + 1..] {
                    let apart = a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
                    assert!(apart, "{one} and {other} at {part}, {peak}: {a:?} {b:?}");
                }
            }
        }
    }
}

#[test]
fn the_same_log_gives_the_same_page() {
    let of = || page(&[view(&fixture::gpu(60))], &[]);
    assert_eq!(of(), of());
}
