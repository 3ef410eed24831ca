//! The verdicts and the words of comparisons, on numbers that are fixed.

use codegen::device::Launch;
use schedule::Step;
use tuner::{
    bench::{Verdict, verdict},
    bootstrap::Interval,
};

use super::{
    data::Compared,
    entrant::Origin,
    fail_on::{Answer, FailOn, parse_part},
    report::{EntrantReport, Figures, Method, Pair, Report, steps_apart},
};

fn interval(low: f64, median: f64, high: f64) -> Interval {
    Interval { low, median, high, rounds: 31 }
}

#[test]
fn what_fails_is_asked_for_in_words() {
    for word in ["slower", "slower=2%", "slower=0.5%", "not-faster", "different"] {
        assert_eq!(FailOn::parse(word).map(|it| it.to_string()).as_deref(), Ok(word));
    }
    assert_eq!(FailOn::parse("slower=0.02"), Ok(FailOn::Slower(Some(0.02))));
    for word in
        ["", "faster", "slower=", "slower=-1%", "slower=200%", "slower=nan", "slower=2%%", "slower=1e999"]
    {
        assert!(FailOn::parse(word).is_err(), "{word}");
    }
    assert_eq!(parse_part("1%"), Ok(0.01));
}

#[test]
fn verdicts_that_are_not_wanted() {
    use Answer::{Unsure, Unwanted, Wanted};
    let quiet = Some(interval(0.999, 1.0, 1.001));
    let loud = Some(interval(0.8, 1.0, 1.25));
    // What is measured, and what that says to slower, slower=2%, not-faster, different.
    let cases = [
        (Some(interval(1.02, 1.03, 1.04)), quiet, [Wanted, Wanted, Wanted, Unwanted]),
        (Some(interval(0.999, 1.001, 1.003)), quiet, [Wanted, Wanted, Unwanted, Wanted]),
        (Some(interval(0.98, 0.985, 0.989)), quiet, [Unwanted, Unsure, Unwanted, Unwanted]),
        (Some(interval(0.982, 0.985, 0.989)), quiet, [Unwanted, Wanted, Unwanted, Unwanted]),
        (Some(interval(0.94, 0.95, 0.96)), quiet, [Unwanted, Unwanted, Unwanted, Unwanted]),
        // It is not told whether that is faster, and it is told that it is not slower.
        (Some(interval(0.995, 1.03, 1.06)), quiet, [Wanted, Wanted, Unwanted, Unsure]),
        (Some(interval(0.95, 1.0, 1.05)), quiet, [Unsure, Unsure, Unwanted, Unsure]),
        // A quarter slower, where the same program differs from itself by as much.
        (Some(interval(0.72, 0.8, 0.88)), loud, [Unsure, Unsure, Unwanted, Unsure]),
        (Some(interval(0.999, 1.001, 1.003)), loud, [Unsure, Unsure, Unwanted, Unsure]),
        (None, quiet, [Unsure, Unsure, Unwanted, Unsure]),
        (Some(interval(0.999, 1.001, 1.003)), None, [Unsure, Unsure, Unwanted, Unsure]),
    ];
    let all = [FailOn::Slower(None), FailOn::Slower(Some(0.02)), FailOn::NotFaster, FailOn::Different];
    for (ratio, noise, expected) in cases {
        let verdict = verdict(0.01, ratio, noise);
        let told = all.map(|it| it.answer(0.01, verdict, ratio, noise));
        assert_eq!(told, expected, "{ratio:?} is {verdict}");
    }
    // One program needs no times.
    let told = all.map(|it| it.answer(0.01, Verdict::Same, None, None));
    assert_eq!(told, [Wanted, Wanted, Unwanted, Wanted]);
}

fn steps(texts: &[&str]) -> Vec<Step> {
    texts.iter().map(|it| Step::from_ron(it).unwrap()).collect()
}

#[test]
fn steps_that_differ() {
    let (i, j, u) = ("parallel(loop: \"i\")", "parallel(loop: \"j\")", "unroll(loop: \"k\")");
    assert_eq!(steps_apart(&steps(&[i, u]), &steps(&[j, u])), (vec![i.to_owned()], vec![j.to_owned()]));
    // One that stands elsewhere is at both places.
    let (removed, added) = steps_apart(&steps(&[i, u]), &steps(&[u, i]));
    assert_eq!((removed.len(), added.len()), (1, 1));
    assert_eq!(removed, added);
    assert_eq!(steps_apart(&steps(&[i]), &steps(&[i])), (vec![], vec![]));
}

fn entrant_report(name: &str, gflops: Option<f64>) -> EntrantReport {
    let launch = Launch {
        kernel: "matmul".to_owned(),
        grid: [4, 4, 1],
        block: [16, 16, 1],
        shared_bytes: 8192,
        programmatic: false,
        maps: vec![],
        buffers: vec![0, 1, 2],
        dims: vec![],
    };
    EntrantReport {
        name: name.to_owned(),
        origin: Origin::Script,
        source_sha256: "ab".repeat(32),
        steps: vec!["unroll(loop: \"k\")".to_owned()],
        launches: vec![launch],
        resources: vec![],
        figures: gflops.and_then(|it| Figures::fixed(&[1e-3 / it, 1.01e-3 / it, 1.02e-3 / it], it)),
        failure: gflops.is_none().then(|| "wrong_result: its numbers are wrong".to_owned()),
    }
}

fn pair(name: &str, ratio: Option<Interval>, noise: Option<Interval>) -> Pair {
    Pair {
        name: name.to_owned(),
        against: "a.ron".to_owned(),
        ratio,
        verdict: verdict(0.01, ratio, noise),
        same_source: false,
        removed: vec!["parallel(loop: \"i\")".to_owned()],
        added: vec!["parallel(loop: \"j\")".to_owned(), "unroll(loop: \"k\")".to_owned()],
        program: (3, 2),
        code: Some("- old\n+ new\n".to_owned()),
    }
}

fn report(method: Method) -> Report {
    let noise = Some(interval(0.999, 1.0, 1.002));
    let pairs = vec![
        pair("faster.ron", Some(interval(1.9, 2.0, 2.1)), noise),
        pair("slower.ron", Some(interval(0.95, 0.96, 0.97)), noise),
        pair("same.ron", Some(interval(0.998, 1.001, 1.004)), noise),
        pair("unsure.ron", Some(interval(0.97, 1.01, 1.05)), noise),
        pair("broken.ron", None, noise),
    ];
    let entrants = [("a.ron", Some(100.0)), ("faster.ron", Some(200.0)), ("broken.ron", None)];
    let entrants = entrants.map(|(name, it)| entrant_report(name, it)).into();
    let mut report = Report::fixed(method, entrants, pairs);
    report.noise_floor = noise;
    report
}

#[test]
fn a_doubt_is_told() {
    let mut it = report(Method::Paired);
    it.noise_floor = Some(interval(0.9, 1.0, 1.04));
    it.pairs.truncate(2);
    it.pairs.iter_mut().for_each(|pair| pair.verdict = verdict(0.01, pair.ratio, it.noise_floor));
    it.entrants[0].figures = Figures::fixed(&[1e-3, 1.0e-3, 1.3e-3, 1.4e-3], 1.0);
    let print = |it: &Report| {
        let mut out = vec![];
        it.print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let loud = print(&it);
    it.rounds = 3;
    it.pairs.drain(..1);
    it.pairs[0].ratio = None;
    insta::assert_snapshot!([loud, print(&it)].join("\n"));
}

#[test]
fn a_comparison_is_told() {
    let print = |report: &Report| {
        let mut out = vec![];
        report.print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let all = [Method::Paired, Method::Recorded].map(|it| print(&report(it)));
    let mut same = report(Method::Source);
    same.entrants.truncate(2);
    same.pairs.truncate(1);
    same.pairs[0].verdict = Verdict::Same;
    same.pairs[0].same_source = true;
    same.pairs[0].code = None;
    same.pairs[0].removed.clear();
    same.pairs[0].added.clear();
    let paired = report(Method::Paired);
    let data = serde_json::to_value(Compared::of(&paired, false, Some(FailOn::Different))).unwrap();
    let data = serde_json::to_string_pretty(&data).unwrap();
    insta::assert_snapshot!([all[0].as_str(), &all[1], &print(&same), &data].join("\n\n"));
    let unwanted = |report: &Report, word: &str| report.unwanted(FailOn::parse(word).ok());
    let slower = "slower.ron against a.ron: SLOWER, and `--fail-on slower` was given";
    assert_eq!(unwanted(&report(Method::Paired), "slower"), Some((slower.to_owned(), false)));
    // It is slower, and perhaps by as much.
    let open =
        "slower.ron against a.ron: SLOWER; `--fail-on slower=5%` was given, and the rounds leave that open";
    assert_eq!(unwanted(&report(Method::Paired), "slower=5%"), Some((open.to_owned(), true)));
    assert_eq!(report(Method::Paired).unwanted(None), None);
}

#[test]
fn names_do_not_steer_a_terminal() {
    let mut it = report(Method::Paired);
    it.pairs[0].name = "evil\u{1b}[2J".to_owned();
    it.entrants[1].name = "evil\u{1b}[2J".to_owned();
    let mut out = vec![];
    it.print(&mut out).unwrap();
    assert!(!out.contains(&0x1b));
}
