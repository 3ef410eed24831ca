//! What a search costs: how near its best is to the best there is, after how many trials.
//!
//! A *regret curve* is the score of the best so far after each trial: 1 where there is nothing left to regret. A log has one
//! of its own. Where it holds a whole space, what its trials found is a [`Table`] too, against which strategies are run from
//! many seeds: what one run had by luck, their quartiles do not have.

use std::sync::Arc;

use super::{Breeding, EVOLUTION, Evolution, Knobs, Random, Seeded, Strategy, rule::seeds, simulate::Table};
use crate::{Pruning, Space};

/// How far behind the best a result may be to be as good, in the columns of a report.
pub const MARGINS: [f64; 4] = [0.10, 0.05, 0.02, 0.01];

/// What part of a space has to be known to count as all of it.
const WHOLE: f64 = 0.9;

/// From how many seeds a strategy is simulated: with a hundred a quartile is off by four ranks or so.
const SEEDS: u64 = 100;

/// The most trials that are simulated: more take seconds, and what matters of a search comes before.
pub const MOST_TRIALS: usize = 200;

/// The numbers of trials at which curves are told: 1, 2, 5, 10, 20, 50 and so on, and the last.
pub fn milestones(trials: usize) -> Vec<usize> {
    let powers = (0..).map_while(|power| 10usize.checked_pow(power));
    let all = powers.flat_map(|it| [1, 2, 5].map(|factor| it.saturating_mul(factor)));
    let below = all.take_while(|it| *it < trials);
    below.chain((trials > 0).then_some(trials)).collect()
}

/// The score of the best so far after each trial, of the scores of trials.
pub fn curve(scores: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let rise = |best: &mut f64, it: f64| {
        *best = best.max(it);
        Some(*best)
    };
    scores.into_iter().scan(0.0, rise).collect()
}

/// How many trials a curve takes until it is no further behind than a margin; none if it never is.
pub fn trials_until(curve: &[f64], margin: f64) -> Option<usize> {
    // A score that was computed as a ratio is not refused for the last bit of it.
    curve.iter().position(|it| *it >= 1.0 - margin - 1e-12).map(|it| it + 1)
}

/// The middle half of what came of many seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quartiles<T> {
    /// A quarter of the seeds have this or less.
    pub low: T,
    /// Half of them have this or less.
    pub median: T,
    /// Three quarters have this or less.
    pub high: T,
}

impl<T: Copy> Quartiles<T> {
    /// Of values in order; each quartile is one of them. None if there are none.
    fn of(sorted: &[T]) -> Option<Quartiles<T>> {
        let at = |quarter: usize| sorted.get((sorted.len() * quarter).div_ceil(4).saturating_sub(1)).copied();
        Some(Quartiles { low: at(1)?, median: at(2)?, high: at(3)? })
    }
}

/// A strategy against a table, from many seeds.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulation {
    /// The strategy, as `--strategy` names it.
    pub strategy: &'static str,
    /// The curve of each seed.
    curves: Vec<Vec<f64>>,
}

impl Simulation {
    /// How many seeds there are.
    pub fn seeds(&self) -> usize {
        self.curves.len()
    }

    /// How many trials were simulated from each seed, at most.
    pub fn trials(&self) -> usize {
        self.curves.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The score of the best after so many trials. None beyond what was simulated.
    pub fn after(&self, trials: usize) -> Option<Quartiles<f64>> {
        if trials == 0 || trials > self.trials() {
            return None;
        }
        // A seed that ran out of points stays where it is.
        let at = |it: &Vec<f64>| it.get(trials - 1).or(it.last()).copied();
        let mut scores: Vec<f64> = self.curves.iter().filter_map(at).collect();
        scores.sort_by(f64::total_cmp);
        Quartiles::of(&scores)
    }

    /// How many trials until the best is no further behind than a margin. A quartile is none where so many trials were not
    /// enough.
    pub fn until(&self, margin: f64) -> Option<Quartiles<Option<usize>>> {
        let mut trials: Vec<_> = self.curves.iter().map(|it| trials_until(it, margin)).collect();
        trials.sort_by_key(|it| it.unwrap_or(usize::MAX));
        Quartiles::of(&trials)
    }
}

/// How many points a space admits, if the points tried and those refused before they were tried are nearly all of them.
pub fn whole(space: &Space, tried: usize, refused: u64) -> Option<u128> {
    let known = tried as f64 + refused as f64;
    // What is larger than this by its knobs alone is not counted.
    let pruning = Some(space.pruning()).filter(Pruning::is_exact)?;
    (tried > 0 && known >= WHOLE * pruning.admitted as f64).then_some(pruning.admitted)
}

/// Both strategies against what a log found, from the same seeds. Evolution starts from the defaults of the script, without
/// what a roofline would choose.
pub fn simulations(space: &Space, table: &Table) -> Vec<Simulation> {
    let points = Arc::new(Knobs::new(space));
    let random = |seed| -> Box<dyn Strategy> { Box::new(Random::new(&*points, seed)) };
    let evolution = |seed| -> Box<dyn Strategy> {
        let evolution = Evolution::new(points.clone(), seed, Breeding::default());
        Box::new(Seeded::new(seeds(space, &[]), evolution))
    };
    let trials = table.len().min(MOST_TRIALS);
    let curves = |strategy: &dyn Fn(u64) -> Box<dyn Strategy>| {
        (0..SEEDS).map(|seed| table.simulate(&mut *strategy(seed), trials, 1)).collect()
    };
    vec![
        Simulation { strategy: "random", curves: curves(&random) },
        Simulation { strategy: EVOLUTION, curves: curves(&evolution) },
    ]
}

#[cfg(test)]
mod tests {
    use super::{Quartiles, Simulation, curve, milestones, trials_until};

    #[test]
    fn milestones_end_with_the_last_trial() {
        assert!(milestones(0).is_empty());
        assert_eq!(milestones(1), [1]);
        assert_eq!(milestones(5), [1, 2, 5]);
        assert_eq!(milestones(120), [1, 2, 5, 10, 20, 50, 100, 120]);
    }

    #[test]
    fn a_curve_never_falls() {
        let it = curve([0.0, 0.5, 0.25, 0.95, 1.0]);
        assert_eq!(it, [0.0, 0.5, 0.5, 0.95, 1.0]);
        assert_eq!(
            [0.6, 0.5, 0.05, 0.0].map(|margin| trials_until(&it, margin)),
            [Some(2), Some(2), Some(4), Some(5)]
        );
        assert_eq!(trials_until(&it[..3], 0.1), None);
    }

    /// Of four seeds one never arrives and one ends early.
    #[test]
    fn quartiles_are_of_seeds() {
        let curves = vec![vec![0.2, 1.0], vec![0.1, 0.1, 0.4], vec![0.3, 0.3, 1.0], vec![1.0, 1.0, 1.0]];
        let it = Simulation { strategy: "random", curves };
        assert_eq!((it.seeds(), it.trials()), (4, 3));
        assert_eq!(it.after(1), Some(Quartiles { low: 0.1, median: 0.2, high: 0.3 }));
        assert_eq!(it.after(3), Some(Quartiles { low: 0.4, median: 1.0, high: 1.0 }));
        assert_eq!((it.after(0), it.after(4)), (None, None));
        assert_eq!(it.until(0.1), Some(Quartiles { low: Some(1), median: Some(2), high: Some(3) }));
        let none = Simulation { strategy: "random", curves: vec![vec![0.5]] };
        assert_eq!(none.until(0.1), Some(Quartiles { low: None, median: None, high: None }));
    }
}
