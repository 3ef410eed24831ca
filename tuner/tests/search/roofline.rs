//! The roofline rule against what was measured: how well it orders schedules.

use std::{collections::BTreeMap, fs, path::Path};

use codegen::device::MachineInfo;
use indexmap::IndexMap;
use schedule::{Script, Step, workload::Param};
use tilewright_tuner::{Record, build::generate, parse_log, search::roofline::{Gpu, predict}};

use crate::common::matmul;

/// What was measured and what the rule says, in seconds.
struct Point {
    file: String,
    size: String,
    name: String,
    measured: f64,
    predicted: f64,
}

fn read() -> Vec<Point> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/results");
    let mut out = vec![];
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort();
    for file in files.into_iter().filter(|it| it.extension().is_some_and(|it| it == "jsonl")) {
        for record in parse_log(&fs::read(&file).unwrap()).unwrap().records {
            let name = file.file_stem().unwrap().to_string_lossy().into_owned();
            out.extend(point(name, &record));
        }
    }
    out
}

fn point(file: String, record: &Record) -> Option<Point> {
    let params: IndexMap<String, Param> =
        serde_json::from_value(serde_json::to_value(&record.script.params).unwrap()).unwrap();
    let script = Script::parse(&record.script.text).unwrap();
    let steps: Vec<Step> = script.resolve(&script.defaults());
    let size = ["m", "n", "k"].map(|it| record.script.params[it].to_string()).join("x");
    let generated = match generate(&matmul(&params), &steps) { Ok(it) => it, Err(err) => { println!("ERR {} {err}", record.script.name); return None } };
    let info: &MachineInfo = &record.environment.machine;
    let start = std::time::Instant::now();
    let Some(estimate) = predict(&generated.module, &IndexMap::new(), &Gpu::of(info)?) else { println!("NONE {}", record.script.name); return None };
    let took = start.elapsed().as_secs_f64();
    let k = &estimate.kernels[0];
    let measured = record.stats?.median;
    if std::env::var("SHOW").is_ok() {
    println!("{size} {} measured {measured:.3e} predicted {:.3e} ratio {:.2} busy {:.2e} latency {:.2e} memory {:.2e} regs {} resident {} (real {}) {:.1} ms", record.script.name, estimate.seconds, estimate.seconds/measured, k.busy, k.latency, k.memory, k.registers, k.resident, record.resources.as_ref().map(|it| it[0]["registers"].to_string()).unwrap_or_default(), took*1e3);
    }
    Some(Point { file, size, name: record.script.name.clone(), measured, predicted: estimate.seconds })
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |it: &f64| {
        let below = values.iter().filter(|other| *other < it).count();
        let equal = values.iter().filter(|other| *other == it).count();
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// Spearman's coefficient.
fn correlation(points: &[&Point]) -> f64 {
    let (a, b): (Vec<f64>, Vec<f64>) = points.iter().map(|it| (it.measured, it.predicted)).unzip();
    let (a, b) = (ranks(&a), ranks(&b));
    let middle = (points.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    product(&a, &b) / (product(&a, &a) * product(&b, &b)).sqrt()
}

#[test]
fn the_rule_orders_what_was_measured() {
    let points = read();
    let mut groups: BTreeMap<(&str, &str), Vec<&Point>> = BTreeMap::new();
    for it in &points {
        groups.entry((&it.file, &it.size)).or_default().push(it);
    }
    for ((file, size), group) in &groups {
        if group.len() < 5 { continue; }
        let chosen = group.iter().min_by(|a, b| a.predicted.total_cmp(&b.predicted)).unwrap();
        let best = group.iter().map(|it| it.measured).fold(f64::INFINITY, f64::min);
        println!("{file} {size} {} rho {:.3} chosen {} at {:.3} of best", group.len(), correlation(group), chosen.name, best / chosen.measured);
    }
    println!("all {:.3}", correlation(&points.iter().collect::<Vec<_>>()));
}
