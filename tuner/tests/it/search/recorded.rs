//! Strategies against a space that was recorded exhaustively on a GPU: f32 matmul at 1024 on one H200.

use std::{path::Path, sync::Arc};

use tilewright_tuner::{
    Space,
    log::{RunLog, read},
    search::{
        Breeding, Evolution, Knobs, Random, Strategy, regret,
        simulate::{Table, mean},
    },
};

const SEEDS: u64 = 100;
const TRIALS: usize = 200;

fn recorded() -> (Space, Table) {
    let log = "../bench/results/2026-11-21-h200-table-1024.twlog";
    let log = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(log)).unwrap();
    assert!(log.damage.is_empty());
    let run: &RunLog = log.runs.values().next().unwrap();
    let space = run.head().unwrap().space().unwrap();
    let table = Table::of(&space, run.trials.values());
    (space, table)
}

/// The mean over all seeds of the score after each trial.
fn curve(table: &Table, strategy: &dyn Fn(u64) -> Box<dyn Strategy>) -> Vec<f64> {
    let one = |seed| table.simulate(&mut *strategy(seed), TRIALS, 16);
    mean(&(0..SEEDS).map(one).collect::<Vec<_>>())
}

#[test]
fn evolution_beats_random_search_on_what_a_gpu_did() {
    let (space, table) = recorded();
    assert_eq!((table.len(), space.pruning().admitted), (2752, 2752));
    let knobs = Arc::new(Knobs::new(&space));
    let random = curve(&table, &|seed| Box::new(Random::new(&*knobs, seed)));
    let evolution = curve(&table, &|seed| Box::new(Evolution::new(knobs.clone(), seed, Breeding::default())));
    let expected = table.expected_random(TRIALS);
    for trials in [100, 200] {
        let (random, evolution, exact) = (random[trials - 1], evolution[trials - 1], expected[trials - 1]);
        println!("{trials} trials: random {random:.4}, exactly {:.4}, evolution {evolution:.4}", exact.mean);
        let error = exact.deviation / (SEEDS as f64).sqrt();
        assert!((random - exact.mean).abs() < 4.0 * error, "{random} is not {} ± {error}", exact.mean);
        assert!(evolution > exact.mean + 4.0 * error, "{evolution} after {trials} trials");
    }
}

/// What `report` tells of a log that holds a whole space.
#[test]
fn a_whole_space_tells_what_searches_cost() {
    let (space, table) = recorded();
    assert_eq!(regret::whole(&space, table.len(), 0), Some(2752));
    assert_eq!(regret::whole(&space, 2000, 0), None);
    assert_eq!(regret::whole(&space, 2000, 700), Some(2752));
    let all = regret::simulations(&space, &table);
    let [random, evolution] = &all[..] else { panic!("two strategies") };
    assert_eq!((random.strategy, evolution.strategy, random.seeds()), ("random", "evolution", 100));
    // The exact distribution of random search says the same: its mean lies within the quartiles.
    let exact = table.expected_random(200);
    for trials in [20, 100, 200] {
        let (it, mean) = (random.after(trials).unwrap(), exact[trials - 1].mean);
        assert!(it.low < mean && mean < it.high, "{it:?} after {trials} trials, and {mean}");
    }
    assert!(evolution.after(100).unwrap().median > random.after(100).unwrap().median);
    let trials = |it: &regret::Simulation| it.until(0.01).unwrap().median.unwrap_or(usize::MAX);
    assert!(trials(evolution) < trials(random));
}
