use std::sync::Arc;

use tilewright_tuner::search::{
    Breeding, Evolution, Points, Random,
    simulate::{Table, mean},
};

use super::synthetic;

const SEEDS: u64 = 100;

#[test]
fn tables_are_of_realistic_shape() {
    for it in synthetic::all(1) {
        let (len, failures) = (it.table.len(), it.table.failures());
        assert!((2300..2800).contains(&len), "{}: {len} points", it.name);
        assert!((0.2..0.3).contains(&(failures as f64 / len as f64)), "{}: {failures} failures", it.name);
    }
}

/// Two of four, by hand: of the scores 1, 0.5, 0.25 and 0 the best of two is 1 in 3 of 6 pairs, 0.5 in 2 and 0.25 in 1.
#[test]
fn the_expectation_of_random_search_is_exact() {
    let table: Table = [(0, Some(1.0)), (1, None), (2, Some(4.0)), (3, Some(2.0))].into_iter().collect();
    let expected = table.expected_random(9);
    let means: Vec<f64> = expected.iter().map(|it| it.mean).collect();
    assert_eq!(means.len(), 4);
    for (found, right) in means.iter().zip([1.75 / 4.0, 4.25 / 6.0, 3.5 / 4.0, 1.0]) {
        assert!((found - right).abs() < 1e-12, "{means:?}");
    }
    assert!((expected[1].deviation - (3.5625f64 / 6.0 - (4.25f64 / 6.0).powi(2)).sqrt()).abs() < 1e-12);
    assert!(expected[3].deviation.abs() < 1e-12);
    assert_eq!(Table::default().expected_random(3), []);
    let failed: Table = [(0, None), (1, Some(f64::NAN)), (2, Some(0.0))].into_iter().collect();
    assert_eq!((failed.failures(), failed.expected_random(2)[1].mean), (3, 0.0));
}

#[test]
fn simulated_random_search_is_what_is_expected_of_it() {
    for it in synthetic::all(2) {
        let run = |seed| it.table.simulate(&mut Random::new(&*it.points, seed), 200, 4);
        let curves: Vec<_> = (0..SEEDS).map(run).collect();
        let (found, expected) = (mean(&curves), it.table.expected_random(200));
        assert_eq!((found.len(), expected.len()), (200, 200));
        for trials in [1, 2, 5, 10, 20, 50, 100, 200] {
            let (found, expected) = (found[trials - 1], expected[trials - 1]);
            let error = expected.deviation / (SEEDS as f64).sqrt();
            let off = (found - expected.mean).abs() / error;
            assert!(off < 3.0, "{} after {trials}: {found} instead of {expected:?}", it.name);
        }
    }
}

#[test]
fn a_strategy_that_ends_has_a_shorter_curve() {
    let it = &synthetic::all(1)[0];
    let curve = it.table.simulate(&mut Random::new(&*it.points, 1), usize::MAX, 7);
    assert_eq!(curve.len(), it.table.len());
    assert_eq!(curve.last(), Some(&1.0));
    assert!(curve.is_sorted());
    let absent: Table = it.table.indexes().take(100).map(|index| (index, it.seconds(index))).collect();
    let curve = absent.simulate(&mut Random::new(&*it.points, 1), usize::MAX, 7);
    assert_eq!(curve.len(), 100, "points without a result cost no trial");
}

/// The hyper-parameters were found on other tables of these families.
#[test]
fn evolution_beats_random_search() {
    for it in [7, 8].into_iter().flat_map(synthetic::all) {
        let run = |seed| {
            let points = Arc::clone(&it.points) as Arc<dyn Points>;
            it.table.simulate(&mut Evolution::new(points, seed, Breeding::default()), 200, 16)
        };
        let found = mean(&(0..SEEDS).map(run).collect::<Vec<_>>());
        let expected = it.table.expected_random(200);
        for trials in [100, 200] {
            let (found, random) = (found[trials - 1], expected[trials - 1].mean);
            let gained = (found - random) / (1.0 - random);
            assert!(gained > 0.2, "{} after {trials}: {found} where random search has {random}", it.name);
        }
    }
}
