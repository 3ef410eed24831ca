//! How sure a median is: percentile bootstrap, the same for the same seed.

use serde::{Deserialize, Serialize};

use crate::data::{below, stream};

/// How many resamples an interval is from.
const RESAMPLES: usize = 1000;

/// The fewest values that have an interval. Of `n` values all lie on one side of the true median with a probability of
/// `2 / 2^n`, so that with five not even the range from the least to the most holds it in 95 % of all cases.
pub const LEAST_VALUES: usize = 6;

/// A ratio with its 95 % bootstrap confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// The median over the rounds.
    pub median: f64,
    /// Its 2.5 % quantile over resamples.
    pub low: f64,
    /// Its 97.5 % quantile.
    pub high: f64,
    /// How many rounds it is from.
    pub rounds: usize,
}

/// The median of at least one number; the mean of the middle two of an even number of them.
pub fn median(values: &[f64]) -> Option<f64> {
    median_in_place(&mut values.to_vec())
}

/// The median with its 95 % confidence interval: the 2.5 % and 97.5 % quantiles of the medians of 1000 resamples with
/// replacement, drawn from the seed. Nothing for fewer than [`LEAST_VALUES`].
pub fn interval(values: &[f64], seed: u64) -> Option<Interval> {
    let median = median(values).filter(|_| values.len() >= LEAST_VALUES)?;
    let mut rng = stream(seed, u64::MAX - 1);
    let mut resample = vec![0.0; values.len()];
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        resample.fill_with(|| values[below(&mut rng, values.len())]);
        medians.extend(median_in_place(&mut resample));
    }
    medians.sort_unstable_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    let (low, high) = (medians[tail], medians[RESAMPLES - 1 - tail]);
    Some(Interval { median, low, high, rounds: values.len() })
}

/// The same for ratios, which are averaged as logarithms, so that the interval of `b / a` is that of `a / b` turned
/// around.
pub fn ratio_interval(ratios: &[f64], seed: u64) -> Option<Interval> {
    let logs: Vec<f64> = ratios.iter().map(|it| it.ln()).collect();
    let Interval { median, low, high, rounds } = interval(&logs, seed)?;
    Some(Interval { median: median.exp(), low: low.exp(), high: high.exp(), rounds })
}

/// How many times as fast `ours` is as `theirs`, of times that were not taken in pairs: the ratio of the medians, with
/// the quantiles of those of resamples of each. `rounds` is the number of the fewer; nothing where that is under
/// [`LEAST_VALUES`].
///
/// Between two runs that are minutes apart clocks and neighbours change by more than such an interval says.
pub fn unpaired_ratio(ours: &[f64], theirs: &[f64], seed: u64) -> Option<Interval> {
    let rounds = ours.len().min(theirs.len());
    let ratio = (rounds >= LEAST_VALUES).then_some(median(theirs)? / median(ours)?)?;
    let mut rng = stream(seed, u64::MAX - 2);
    let mut resampled = |of: &[f64]| {
        let mut values: Vec<f64> = (0..of.len()).map(|_| of[below(&mut rng, of.len())]).collect();
        median_in_place(&mut values)
    };
    let mut ratios = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        ratios.push(resampled(theirs)? / resampled(ours)?);
    }
    ratios.sort_unstable_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    let (low, high) = (ratios[tail], ratios[RESAMPLES - 1 - tail]);
    Some(Interval { median: ratio, low, high, rounds })
}

fn median_in_place(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let odd = values.len() % 2 == 1;
    let (low, middle, _) = values.select_nth_unstable_by(values.len() / 2, f64::total_cmp);
    let before = low.iter().copied().max_by(f64::total_cmp).filter(|_| !odd);
    Some(before.map_or(*middle, |it| f64::midpoint(it, *middle)))
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::*;

    /// Uniform numbers from 0 to 1.
    fn uniform(seed: u64, len: usize) -> Vec<f64> {
        let mut rng = stream(seed, 1);
        (0..len).map(|_| rng.next_u64() as f64 / u64::MAX as f64).collect()
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn the_interval_holds_the_true_median_about_as_often_as_it_says() {
        let hits = (0..200).filter(|seed| {
            let found = interval(&uniform(*seed, 31), *seed).unwrap();
            assert!(found.low <= found.median && found.median <= found.high && found.rounds == 31);
            found.low <= 0.5 && 0.5 <= found.high
        });
        let hits = hits.count();
        assert!((180..=199).contains(&hits), "{hits} of 200");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval_and_equal_numbers_give_no_width() {
        let values = uniform(3, 20);
        assert_eq!(interval(&values, 1), interval(&values, 1));
        let same = interval(&[2.0; 12], 1).unwrap();
        assert_eq!((same.median, same.low, same.high), (2.0, 2.0, 2.0));
    }

    #[test]
    fn few_values_have_no_interval() {
        for few in 0..LEAST_VALUES {
            assert_eq!(interval(&vec![2.0; few], 1), None, "{few}");
            assert_eq!(ratio_interval(&vec![2.0; few], 1), None, "{few}");
        }
        assert!(interval(&[2.0; LEAST_VALUES], 1).is_some());
    }

    #[test]
    fn times_that_are_no_pairs() {
        let scaled =
            |by: f64, seed| uniform(seed, 31).iter().map(|it| by * (0.9 + 0.2 * it)).collect::<Vec<_>>();
        let found = unpaired_ratio(&scaled(1.0, 4), &scaled(2.0, 5), 1).unwrap();
        // The median of 31 of these varies by 1.7 %, the ratio of two by 2.5 %: four of those.
        assert!(1.8 < found.low && found.low <= found.median && found.median <= found.high, "{found:?}");
        assert!(found.high < 2.2 && found.rounds == 31, "{found:?}");
        assert_eq!(unpaired_ratio(&[], &[1.0], 1), None);
        assert_eq!(unpaired_ratio(&[1.0; 5], &[3.0; 31], 1), None);
    }

    #[test]
    fn a_ratio_turned_around_has_the_interval_turned_around() {
        let ratios: Vec<f64> = uniform(5, 31).iter().map(|it| 0.9 + 0.2 * it).collect();
        let turned: Vec<f64> = ratios.iter().map(|it| 1.0 / it).collect();
        let (ours, theirs) = (ratio_interval(&ratios, 7).unwrap(), ratio_interval(&turned, 7).unwrap());
        assert!((ours.median * theirs.median - 1.0).abs() < 1e-12);
        assert!((ours.low * theirs.high - 1.0).abs() < 1e-12);
    }
}
