//! How often verdicts are wrong: on simulated rounds, of which the truth is known.

use rand::Rng as _;

use super::{MARGIN, Verdict, is_not_slower, verdict};
use crate::{
    bootstrap::{Interval, ratio_interval},
    data::stream,
};

/// A machine, by what disturbs the times of one call.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// How far the drift goes that all programs of a round share.
    drift: f64,
    /// How far a sample is from it, at most, on either side.
    sample: f64,
    /// How many samples of a hundred something else disturbs, which makes them up to twice as long.
    busy: usize,
}

const QUIET: Noise = Noise { drift: 0.1, sample: 0.005, busy: 2 };
const USUAL: Noise = Noise { drift: 0.2, sample: 0.05, busy: 10 };
const WILD: Noise = Noise { drift: 0.3, sample: 0.6, busy: 30 };

/// How many comparisons are simulated of each kind.
const WORLDS: u64 = 150;

/// What a comparison over some rounds finds if the second is really `truth` times as fast as the first: the ratio, and
/// the first against itself.
fn compared(seed: u64, noise: Noise, truth: f64, rounds: usize) -> (Option<Interval>, Option<Interval>) {
    let mut rng = stream(seed, 77);
    let mut uniform = || rng.next_u64() as f64 / u64::MAX as f64;
    let (mut ratios, mut twins) = (vec![], vec![]);
    for _ in 0..rounds {
        let drift = 1.0 + noise.drift * uniform();
        let [first, twin, second] = [1.0, 1.0, 1.0 / truth].map(|own| {
            let late = if 100.0 * uniform() < noise.busy as f64 { 1.0 + uniform() } else { 1.0 };
            own * drift * late * (1.0 + noise.sample * (2.0 * uniform() - 1.0))
        });
        ratios.push(first / second);
        twins.push(twin / first);
    }
    (ratio_interval(&ratios, 0), ratio_interval(&twins, 0))
}

/// In how many of a hundred comparisons something holds.
fn rate(
    noise: Noise,
    truth: f64,
    rounds: usize,
    holds: impl Fn(Option<Interval>, Option<Interval>) -> bool,
) -> f64 {
    let hits = (0..WORLDS).filter(|seed| {
        let (ratio, floor) = compared(*seed, noise, truth, rounds);
        holds(ratio, floor)
    });
    100.0 * hits.count() as f64 / WORLDS as f64
}

fn is(wanted: Verdict) -> impl Fn(Option<Interval>, Option<Interval>) -> bool {
    move |ratio, floor| verdict(MARGIN, ratio, floor) == wanted
}

#[test]
fn programs_that_differ_are_not_called_the_same() {
    for noise in [QUIET, USUAL, WILD] {
        for truth in [0.75, 0.8, 0.95, 1.05, 1.25] {
            let same = rate(noise, truth, 31, is(Verdict::Same));
            assert!(same < 0.1, "{noise:?}, {truth}: SAME in {same} %");
        }
        // Just beyond the margin the interval is wrong as often as it may be, on one of its sides.
        let same = rate(noise, 1.0 + 1.1 * MARGIN, 31, is(Verdict::Same));
        assert!(same <= 5.0, "{noise:?}: SAME in {same} %");
    }
}

#[test]
fn a_program_differs_from_itself_as_seldom_as_the_interval_says() {
    for noise in [QUIET, USUAL, WILD] {
        for rounds in [15, 31] {
            let [faster, slower] =
                [Verdict::Faster, Verdict::Slower].map(|it| rate(noise, 1.0, rounds, is(it)));
            assert!(
                faster + slower <= 5.0,
                "{noise:?}, {rounds}: FASTER in {faster} %, SLOWER in {slower} %"
            );
        }
    }
}

#[test]
fn nothing_is_said_to_be_faster_that_is_slower() {
    for noise in [QUIET, USUAL, WILD] {
        for truth in [0.75, 0.95, 0.99] {
            let faster = rate(noise, truth, 31, is(Verdict::Faster));
            assert!(faster <= 2.5, "{noise:?}, {truth}: FASTER in {faster} %");
        }
        let passed = rate(noise, 0.95, 31, |ratio, floor| is_not_slower(0.02, ratio, floor));
        assert!(passed <= 2.5, "{noise:?}: not slower in {passed} %");
    }
}

/// Verdicts that are never wrong because there are none would be easy.
#[test]
fn on_a_quiet_machine_there_are_verdicts() {
    assert!(rate(QUIET, 1.0, 31, is(Verdict::Same)) > 90.0);
    assert!(rate(QUIET, 1.25, 31, is(Verdict::Faster)) > 99.0);
    assert!(rate(QUIET, 0.97, 31, is(Verdict::Slower)) > 95.0);
    assert!(rate(USUAL, 0.75, 31, is(Verdict::Slower)) > 95.0);
    assert!(rate(USUAL, 1.0, 31, is(Verdict::Ambiguous)) > 50.0);
}

#[test]
fn too_few_rounds_show_nothing() {
    for rounds in 0..6 {
        assert!(rate(QUIET, 2.0, rounds, is(Verdict::Ambiguous)) > 99.9, "{rounds}");
    }
}
