//! Strategies over spaces of scripts that nobody could try whole.

use std::sync::Arc;

use indexmap::IndexMap;
use schedule::{Choice, Script, workload::Param};
use tilewright_tuner::{
    Space,
    log::Trial,
    search::{Breeding, Evaluation, Evolution, Knobs, Next, Points, Random, Strategy, simulate::Table},
};

const SCRIPT: &str = r#"schedule(
    workload: "matmul",
    target: "cuda",
    knobs: {
        "ti": perfect_tile(of: "m", parts: 4, innermost: 16),
        "tj": perfect_tile(of: "n", parts: 4, innermost: 16),
        "bk": [16, 8, 32, 64],
        "stages": [2, 1, 3, 4, 5, 6],
        "wide": boolean,
        "pad": [0, 4, 8],
    },
    constraints: ["ti[1] * tj[1] <= 1024", "ti[1] * tj[1] >= 32", "ti[2] * ti[3] * tj[2] * tj[3] <= 256"],
    steps: [
        split(loop: "i", into: {"io": None, "i1": "ti[1]", "i2": "ti[2]", "i3": "ti[3]"}),
        split(loop: "j", into: {"jo": None, "j1": "tj[1]", "j2": "tj[2]", "j3": "tj[3]"}),
        split(loop: "k", into: {"ko": None, "ki": "bk"}),
        choose(knob: "shared", one_of: [[], [
            cache_read(block: "C", buffer: "A", scope: "shared"),
            storage_align(buffer: "A_shared", axis: 0, factor: 32, offset: "pad"),
            split(loop: "ko", into: {"kr": None, "kp": "stages"}),
        ]]),
        choose(knob: "vector", one_of: [[], [split(loop: "j3", into: {"jr": None, "jv": "1 + wide"})]]),
    ],
)"#;

fn space() -> Space {
    let sizes = ["m", "n", "k"].map(|it| (it.to_owned(), Param::Int(2048)));
    let params: IndexMap<String, Param> = super::common::complete(&sizes.into_iter().collect());
    Space::of(&Script::parse(SCRIPT).unwrap(), &params).unwrap()
}

/// Invented seconds of a point: work per thread, balance, and shared memory with enough stages matter.
fn seconds(space: &Space, index: u128) -> Option<f64> {
    let decided = space.decisions(index);
    let tile = |name: &str| match &decided[name] {
        Choice::Tile(parts) => parts.iter().map(|it| (*it as f64).log2()).collect::<Vec<_>>(),
        Choice::Int(_) => panic!("it is a tile"),
    };
    let number = |name: &str| match decided.get(name) {
        Some(Choice::Int(it)) => Some(*it as f64),
        Some(Choice::Tile(_)) | None => None,
    };
    let (i, j) = (tile("ti"), tile("tj"));
    let registers = i[2] + i[3] + j[2] + j[3];
    if registers > 7.5 {
        return None;
    }
    let mut cost = 0.1 * (registers - 6.0).powi(2) + 0.08 * (i[1] + j[1] - 7.0).powi(2);
    cost += 0.05 * (i[2] + i[3] - j[2] - j[3]).powi(2) + 0.1 * (2.0 - j[3]).abs() + 0.03 * i[3];
    cost += match (number("shared"), number("stages"), number("bk")) {
        (Some(1.0), Some(stages), Some(bk)) => 0.15 * (stages + bk.log2() - 7.0).abs(),
        _ => 1.2,
    };
    cost += if number("vector") == Some(1.0) { 0.2 * number("wide").unwrap_or(0.0) - 0.1 } else { 0.0 };
    Some(1e-3 * cost.exp())
}

fn best(space: &Space, strategy: &mut dyn Strategy, trials: u64) -> f64 {
    let mut best = f64::INFINITY;
    for n in 0..trials {
        let Next::Try(it) = strategy.next() else { panic!("there is much to try and all is told") };
        assert_eq!(space.admits(it.index), Ok(()));
        let seconds = seconds(space, it.index);
        best = best.min(seconds.unwrap_or(f64::INFINITY));
        strategy.tell(Evaluation { index: it.index, n: Some(n), seconds });
    }
    best
}

#[test]
fn evolution_beats_random_search_in_a_large_space() {
    let space = space();
    assert!(space.size() > 10_000_000, "{}", space.size());
    let knobs: Arc<dyn Points> = Arc::new(Knobs::new(&space));
    let mean = |run: &dyn Fn(u64) -> f64| (0..10).map(run).sum::<f64>() / 10.0;
    for trials in [100, 200] {
        let random = mean(&|seed| best(&space, &mut Random::new(&*knobs, seed), trials));
        let evolved = mean(&|seed| {
            best(&space, &mut Evolution::new(Arc::clone(&knobs), seed, Breeding::default()), trials)
        });
        assert!(evolved < 0.9 * random, "{evolved} after {trials} where random search has {random}");
    }
}

#[test]
fn a_table_is_made_of_trials() {
    let space = space();
    let knobs = Knobs::new(&space);
    let check = r#"{"outputs": []}"#;
    let stats = r#"{"median": 2.0, "min": 1.0, "max": 3.0, "quartile_1": 1.5, "quartile_3": 2.5}"#;
    let trial = |n: usize, index: u128, rest: &str| {
        let decisions = serde_json::to_string(&space.decisions(index)).unwrap();
        let text = format!(
            r#"{{"run": "r", "n": {n}, "id": "", "decisions": {decisions}, "origin": {{"by": "random"}}, "src": "",
            "t": {{}}, "worker": "w", "time": ""{rest}}}"#
        );
        serde_json::from_str::<Trial>(&text).unwrap()
    };
    let result = |suspicious: bool| {
        format!(
            r#", "result": {{"calls": 1, "seconds": [2.0], "stats": {stats}, "gflops": 1.0,
            "suspicious": {suspicious}, "before": {check}, "after": {check}}}"#
        )
    };
    let error = r#", "error": {"stage": "run", "kind": "trap", "message": ""}"#;
    let indexes: Vec<u128> = knobs.stream(1).take(4).collect();
    let mut trials: Vec<Trial> = [result(false), result(true), error.to_owned(), result(false)]
        .iter()
        .zip(&indexes)
        .enumerate()
        .map(|(n, (rest, index))| trial(n, *index, rest))
        .collect();
    trials[3].decisions.insert("other".into(), 1.into());
    let table = Table::of(&space, &trials);
    let results: Vec<_> = indexes.iter().map(|it| table.result(*it)).collect();
    assert_eq!(results, [Some(Some(2.0)), Some(None), Some(None), None]);
}
