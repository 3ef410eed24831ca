//! The roofline rule against what was measured: how well it orders schedules.

use std::{collections::BTreeMap, fs, path::Path, sync::LazyLock};

use indexmap::IndexMap;
use schedule::{Decisions, Script, workload::Param};
use tilewright_tuner::{
    Record,
    build::generate,
    parse_log,
    search::roofline::{Gpu, predict},
};

use super::common::{complete, matmul};

/// What was measured and what the rule says, in seconds.
struct Point {
    file: String,
    size: String,
    name: String,
    measured: f64,
    predicted: f64,
}

static POINTS: LazyLock<Vec<Point>> = LazyLock::new(read);

/// Every product in f32 measured on the GPU with warm caches.
fn read() -> Vec<Point> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/results");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    let mut out = vec![];
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy();
        let log = parse_log(&fs::read(&file).unwrap()).unwrap();
        out.extend(log.records.iter().filter_map(|it| point(&name, it)));
    }
    out
}

fn point(file: &str, record: &Record) -> Option<Point> {
    // The rule is about arithmetic in f32; of tensor cores it knows their rate alone.
    let is_product = ["m", "n", "k"].iter().all(|it| record.script.params.contains_key(*it));
    if !is_product || record.script.params.get("dtype").is_none_or(|it| it != "f32") {
        return None;
    }
    let gpu = Gpu::of(&record.environment.machine)?;
    let params = serde_json::to_value(&record.script.params).unwrap();
    let params: IndexMap<String, Param> = serde_json::from_value(params).unwrap();
    let script = Script::parse(&record.script.text).unwrap();
    let steps = script.resolve(&complete(&params), &Decisions::new()).unwrap();
    let steps: Vec<_> = steps.into_iter().map(|it| it.value).collect();
    let generated = generate(&matmul(&params), &steps).unwrap();
    let predicted = predict(&generated.module, &IndexMap::new(), &gpu).unwrap().seconds;
    let size = ["m", "n", "k"].map(|it| record.script.params[it].to_string()).join("x");
    let (file, name) = (file.to_owned(), record.script.name.clone());
    Some(Point { file, size, name, measured: record.stats?.median, predicted })
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |it: &f64| {
        let below = values.iter().filter(|other| *other < it).count();
        let same = values.iter().filter(|other| other.total_cmp(it).is_eq()).count();
        below as f64 + (same as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// Spearman's coefficient.
fn correlation(points: &[&Point]) -> f64 {
    let (a, b): (Vec<f64>, Vec<f64>) = points.iter().map(|it| (it.measured, it.predicted)).unzip();
    let (a, b) = (ranks(&a), ranks(&b));
    let middle = (points.len() as f64 - 1.0) / 2.0;
    let product =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

/// Schedules of the same product, from one thread an element to the last rungs, on an H200.
#[test]
fn the_rule_orders_what_was_measured() {
    let points = &*POINTS;
    let mut groups: BTreeMap<(&str, &str), Vec<&Point>> = BTreeMap::new();
    for it in points {
        groups.entry((&it.file, &it.size)).or_default().push(it);
    }
    groups.retain(|_, it| it.len() >= 5);
    assert!(groups.len() >= 11, "{}", groups.len());
    let mut sum = 0.0;
    for ((file, size), group) in &groups {
        let chosen = group.iter().min_by(|a, b| a.predicted.total_cmp(&b.predicted)).unwrap();
        let best = group.iter().map(|it| it.measured).fold(f64::INFINITY, f64::min);
        let (rho, reached) = (correlation(group), best / chosen.measured);
        println!("{file} {size}: {rho:.3}, and {} is at {reached:.3} of the best", chosen.name);
        assert!(rho > 0.75 && reached > 0.85, "{file} {size}: {rho:.3}, {} at {reached:.3}", chosen.name);
        sum += rho;
    }
    let mean = sum / groups.len() as f64;
    let all = correlation(&points.iter().collect::<Vec<_>>());
    println!("{mean:.3} on average, {all:.3} over all sizes");
    assert!(mean > 0.85 && all > 0.97, "{mean:.3} {all:.3}");
}

/// Of the fast ones, where little but the pipes of a multiprocessor counts, the time itself is near.
#[test]
fn the_times_of_fast_schedules_are_near() {
    let points = &*POINTS;
    let mut ratios: Vec<f64> = vec![];
    for it in points {
        let best = points.iter().filter(|other| other.size == it.size).map(|it| it.measured);
        if it.measured < 2.0 * best.fold(f64::INFINITY, f64::min) {
            ratios.push(it.predicted / it.measured);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[(share * ratios.len() as f64) as usize];
    println!("{} of {}: {:.2} {:.2} {:.2}", ratios.len(), points.len(), at(0.1), at(0.5), at(0.9));
    assert!(at(0.1) > 0.7 && at(0.9) < 1.25, "{ratios:?}");
}
