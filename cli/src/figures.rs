//! Words for what was measured, the same in every command. What they mean is in `docs/src/measurement.md`.

use tuner::{
    Bound, Comparison, Failure, Measured, Rate, Ratio, Stats, Verification, Work, bootstrap::Interval,
};

use crate::term::table::counted;

/// How many times as fast: `1.034x`, `40.13x`, `615.2x`.
pub(crate) fn times_words(it: f64) -> String {
    match it {
        it if it < 10.0 => format!("{it:.3}x"),
        it if it < 100.0 => format!("{it:.2}x"),
        it => format!("{it:.1}x"),
    }
}

/// Where an interval begins and ends: `1.021 to 1.047`.
pub(crate) fn range_words(it: Interval) -> String {
    let end = |it: f64| times_words(it).trim_end_matches('x').to_owned();
    format!("{} to {}", end(it.low), end(it.high))
}

/// `1.034x (1.021 to 1.047)`.
pub(crate) fn interval_words(it: Interval) -> String {
    format!("{} ({})", times_words(it.median), range_words(it))
}

/// `1.034x the rung below (1.021 to 1.047 in 15 rounds)`; with few rounds there is no interval.
pub(crate) fn ratio_words(it: &Ratio, than: &str) -> String {
    let rounds = counted(it.rounds, "round");
    let range = match it.interval() {
        Some(it) => format!("{} in {rounds}", range_words(it)),
        None => format!("{rounds}: too few for an interval"),
    };
    format!("{} {than} ({range})", times_words(it.median))
}

/// How far the quartiles are apart: `1.2 %`; `18.0 %, large`, which is a warning.
pub(crate) fn spread_words(it: &Stats) -> String {
    let doubt = if it.is_spread_large() { ", large" } else { "" };
    format!("{:.1} %{doubt}", 100.0 * it.spread())
}

/// What a large spread means, for those of some programs that have one; nothing if none has.
pub(crate) fn spread_warning<'a>(all: impl Iterator<Item = (&'a str, Stats)>) -> Option<String> {
    let loud = all.filter(|it| it.1.is_spread_large());
    let loud: Vec<String> = loud.map(|(name, it)| format!("{name} ({:.1} %)", 100.0 * it.spread())).collect();
    let what = if loud.len() == 1 { "this figure" } else { "these figures" };
    (!loud.is_empty()).then(|| {
        format!(
            "the times spread widely for {}: something else may have used the machine, so do not build on {what}",
            loud.join(", ")
        )
    })
}

/// `1360 of 1048576 elements compared, all looked at; largest error 0.03 of the tolerance`.
pub(crate) fn verified_words(verdict: &Verification) -> String {
    let elements: usize = verdict.outputs.iter().map(|it| it.elements).sum();
    let compared: usize = verdict.outputs.iter().map(|it| it.compared).sum();
    let all = if compared == elements { "" } else { ", all looked at" };
    let part = verdict.error_in_tolerances();
    let vague: usize = verdict.outputs.iter().map(|it| it.vague).sum();
    let lost = if vague == 0 {
        String::new()
    } else {
        format!("; of {vague} of them the types of the workload hold no digit")
    };
    format!("{compared} of {elements} elements compared{all}; largest error {part:.3} of the tolerance{lost}")
}

/// What is wrong with a program that has no result.
pub(crate) fn failure_words(measured: &Measured) -> Option<String> {
    let failure = measured.failure.as_ref()?;
    let is_wrong = matches!(failure, Failure::Wrong | Failure::IllConditioned | Failure::WrongAfterTiming);
    match measured.wrong_output().filter(|_| is_wrong) {
        Some((_, check)) => Some(format!("{failure}: {}", check.wrong_words())),
        None => Some(failure.to_string()),
    }
}

/// `62 % of the compute roofline`.
pub(crate) fn roofline_words(comparison: &Comparison, measured: &Measured) -> Option<String> {
    let (_, bound) = comparison.roofline.seconds()?;
    let part = comparison.roofline.part(measured.stats?.median)?;
    let bound = match bound {
        Bound::Compute => "compute",
        Bound::Memory => "memory",
    };
    let odd = if measured.suspicious { " — more than the machine can do: suspicious" } else { "" };
    Some(format!("{:.1} % of the {bound} roofline{odd}", 100.0 * part))
}

/// The speed of a program that has a result, without its unit: `2170`.
pub(crate) fn measured_words(rate: Rate, comparison: &Comparison, measured: &Measured) -> Option<String> {
    let seconds = measured.stats.filter(|_| measured.gflops.is_some())?.median;
    Some(speed_words(rate.speed(&comparison.work, seconds)))
}

/// The speed of a workload at a time, with its unit: `2170 GB/s`.
pub(crate) fn rate_words(work: &Work, seconds: f64) -> String {
    let rate = Rate::of(work);
    format!("{} {}", speed_words(rate.speed(work, seconds)), rate.unit())
}

/// Seconds with a fitting unit: `333.42 µs`.
pub(crate) fn time_words(seconds: f64) -> String {
    match seconds {
        it if it >= 1.0 => format!("{it:.3} s"),
        it if it >= 1e-3 => format!("{:.3} ms", it * 1e3),
        it if it >= 1e-6 => format!("{:.2} µs", it * 1e6),
        it => format!("{:.2} ns", it * 1e9),
    }
}

/// A speed in four digits or so; its unit is [`Rate::unit`].
pub(crate) fn speed_words(speed: f64) -> String {
    match speed {
        it if it >= 1000.0 => format!("{it:.0}"),
        it if it >= 100.0 => format!("{it:.1}"),
        it => format!("{it:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_in_words() {
        assert_eq!([0.9537, 1.0, 40.128, 615.24].map(times_words), ["0.954x", "1.000x", "40.13x", "615.2x"]);
        let few = Ratio { median: 40.128, min: 40.128, max: 40.128, low: None, high: None, rounds: 1 };
        assert_eq!(
            ratio_words(&few, "the rung below"),
            "40.13x the rung below (1 round: too few for an interval)"
        );
        let many = Ratio { median: 1.02, min: 0.5, max: 2.0, low: Some(1.01), high: Some(1.031), rounds: 15 };
        assert_eq!(ratio_words(&many, "as fast"), "1.020x as fast (1.010 to 1.031 in 15 rounds)");
        assert_eq!(many.interval().map(interval_words).as_deref(), Some("1.020x (1.010 to 1.031)"));
    }

    #[test]
    fn a_large_spread_is_told() {
        let spread =
            |it: f64| Stats { median: 1.0, min: 1.0, max: 2.0, quartile_1: 1.0, quartile_3: 1.0 + it };
        assert_eq!(spread_words(&spread(0.0124)), "1.2 %");
        assert_eq!(spread_words(&spread(0.18)), "18.0 %, large");
        let all = [("a", spread(0.02)), ("b", spread(0.3))];
        let words = spread_warning(all.into_iter()).unwrap();
        assert!(words.contains("for b (30.0 %):") && words.ends_with("this figure"), "{words}");
        assert_eq!(spread_warning(all[..1].iter().copied()), None);
    }
}
