//! What a comparison found, as data.

use codegen::device::{DeviceError, MachineInfo};
use ir::{Name, Role};
use serde::{Deserialize, Serialize};

use crate::{
    Case, Failure, OutputCheck, Regime, Verification, Work,
    bootstrap::{Interval, ratio_interval},
    ceiling::least_seconds,
    json_number,
};

/// All candidates of a comparison, timed in the same rounds.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One for each candidate, in the order given.
    pub candidates: Vec<Measured>,
    /// The vendor library's product, if the workload is one and the library is there; of a product with elementwise stages
    /// after it the library's product and one kernel for each stage.
    pub baseline: Option<Measured>,
    /// Other ways to compute the workload with the library: all elementwise stages in one kernel.
    pub other_baselines: Vec<Measured>,
    /// Why there is no baseline although the workload is or begins with a matrix product.
    pub no_baseline: Option<DeviceError>,
    /// The regime they were timed in.
    pub regime: Regime,
    /// How much each of them has to do.
    pub work: Work,
    /// The least time that the machine allows.
    pub roofline: Roofline,
}

/// What one program did.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The candidate's label.
    pub label: String,
    /// What stopped it. Nothing below counts as a result where there is a failure.
    pub failure: Option<Failure>,
    /// The verdict on one run over poisoned outputs, before timing.
    pub before: Option<Verification>,
    /// The verdict on a back-to-back run over poisoned outputs, after timing.
    pub after: Option<Verification>,
    /// How many calls one sample timed.
    pub calls: u32,
    /// Seconds per call, one entry a round in which it ran.
    pub seconds: Vec<f64>,
    /// The rounds of these samples.
    pub rounds: Vec<usize>,
    /// Seconds per call in summary.
    pub stats: Option<Stats>,
    /// Operations per second at the median, in GFLOPS. Only where the numbers were right before and after.
    pub gflops: Option<f64>,
    /// How many times as fast as the baseline, round by round.
    pub versus_baseline: Option<Ratio>,
    /// Whether it is faster than the machine can be (1.02 times the roofline): a fault of the measurement.
    pub suspicious: bool,
}

/// Times in summary, in seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[expect(missing_docs, reason = "the names are those of statistics")]
pub struct Stats {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub quartile_1: f64,
    pub quartile_3: f64,
}

/// How many times as fast one program is as another: the median of what it is in each round in which both ran.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ratio {
    /// The median over the rounds.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub median: f64,
    /// The least of a round.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub min: f64,
    /// The most of a round.
    #[serde(with = "json_number")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::NumberOrWord"))]
    pub max: f64,
    /// Where the 95 % interval of the median begins; nothing with fewer rounds than
    /// [`LEAST_VALUES`](crate::bootstrap::LEAST_VALUES), and in records of older versions.
    #[serde(default)]
    pub low: Option<f64>,
    /// Where it ends.
    #[serde(default)]
    pub high: Option<f64>,
    /// How many rounds there were.
    pub rounds: usize,
}

/// The least time a machine needs for a workload, by each of its limits; `None` where it cannot be told.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Roofline {
    /// Seconds for the arithmetic: matrix products on matrix units where there are any for their types, the rest in f32 and
    /// f64 on the plain lanes (for f64 it is generous).
    pub compute: Option<f64>,
    /// Seconds to move what no cache can hold: inputs after a flush, else all data beyond the last-level cache.
    pub memory: Option<f64>,
}

/// Which limit of the machine is the nearer one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bound {
    /// Arithmetic.
    Compute,
    /// Memory.
    Memory,
}

impl Stats {
    /// Of at least one time.
    pub fn of(times: &[f64]) -> Option<Stats> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let at = |part: f64| quantile(&sorted, part);
        Some(Stats { median: at(0.5), min, max, quartile_1: at(0.25), quartile_3: at(0.75) })
    }

    /// The distance of the quartiles in parts of the median.
    pub fn spread(&self) -> f64 {
        (self.quartile_3 - self.quartile_1) / self.median
    }

    /// Whether the spread is so large (a tenth and more) that something else may have had the machine at times.
    pub fn is_spread_large(&self) -> bool {
        self.spread() >= 0.1
    }
}

/// By linear interpolation between the two neighbours.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    #[expect(clippy::cast_possible_truncation, reason = "a place in a list")]
    #[expect(clippy::cast_sign_loss, reason = "a place in a list")]
    let low = place as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64)
}

impl Ratio {
    /// How many times as fast `ours` is as `theirs`, over the rounds in which both were timed.
    pub fn of(ours: &Measured, theirs: &Measured) -> Option<Ratio> {
        let pairs = ours.rounds.iter().zip(&ours.seconds).filter_map(|(round, ours)| {
            let at = theirs.rounds.iter().position(|it| it == round)?;
            Some(theirs.seconds[at] / ours)
        });
        let ratios: Vec<f64> = pairs.collect();
        let Stats { median, min, max, .. } = Stats::of(&ratios)?;
        let interval = ratio_interval(&ratios, 0);
        let (low, high) = interval.map(|it| (it.low, it.high)).unzip();
        let median = interval.map_or(median, |it| it.median);
        Some(Ratio { median, min, max, low, high, rounds: ratios.len() })
    }

    /// The median with its interval, if it has one.
    pub fn interval(&self) -> Option<Interval> {
        let (low, high) = self.low.zip(self.high)?;
        Some(Interval { median: self.median, low, high, rounds: self.rounds })
    }
}

impl Roofline {
    /// Of a workload on a machine of which `threads` CPU threads are used (0 for all).
    pub fn of(case: &Case, info: &MachineInfo, regime: Regime, threads: usize) -> Roofline {
        let units = info.units.max(1) as usize;
        let share =
            if info.arch == "cpu" && threads > 0 { threads.min(units) as f64 / units as f64 } else { 1.0 };
        let bytes = match regime {
            Regime::ColdL2 => {
                let inputs = case.params().values().filter(|it| it.role == Role::Input);
                inputs.map(|it| it.bytes() as f64).sum()
            }
            Regime::Cool | Regime::Sustained => (case.work.bytes - info.cache_bytes as f64).max(0.0),
        };
        Roofline {
            compute: least_seconds(case, info, share),
            memory: info.peak_gb_per_s.filter(|it| *it > 0.0).map(|it| bytes / (it * 1e9)),
        }
    }

    /// The least time, and by which limit.
    pub fn seconds(&self) -> Option<(f64, Bound)> {
        match (self.compute, self.memory) {
            (Some(compute), Some(memory)) if memory > compute => Some((memory, Bound::Memory)),
            (Some(compute), _) => Some((compute, Bound::Compute)),
            (None, memory) => memory.filter(|it| *it > 0.0).map(|it| (it, Bound::Memory)),
        }
    }

    /// How much of the roofline a time reaches: 1 is all the machine can do.
    pub fn part(&self, seconds: f64) -> Option<f64> {
        self.seconds().map(|(least, _)| least / seconds)
    }

    /// Whether a time is less than the machine can need: a fault of the measurement.
    pub fn is_beaten(&self, seconds: f64) -> bool {
        self.part(seconds).is_some_and(|it| it > 1.02)
    }
}

impl Measured {
    pub(crate) fn new(label: &str) -> Measured {
        Measured {
            label: label.to_owned(),
            failure: None,
            before: None,
            after: None,
            calls: 0,
            seconds: vec![],
            rounds: vec![],
            stats: None,
            gflops: None,
            versus_baseline: None,
            suspicious: false,
        }
    }

    /// Draws the conclusions from the samples, once both verdicts are in.
    pub(crate) fn conclude(&mut self, case: &Case, roofline: &Roofline) {
        if self.failure.is_some() {
            return;
        }
        self.stats = Stats::of(&self.seconds);
        self.gflops = self.stats.map(|it| case.work.flops / it.median / 1e9);
        self.suspicious = self.stats.is_some_and(|it| roofline.is_beaten(it.median));
    }

    /// Operations per second of each sample, in GFLOPS.
    pub fn gflops_samples(&self, case: &Case) -> Vec<f64> {
        self.seconds.iter().map(|it| case.work.flops / it / 1e9).collect()
    }

    /// The first output that is wrong, and its check.
    pub fn wrong_output(&self) -> Option<(&Name, &OutputCheck)> {
        let verdicts = self.after.iter().chain(&self.before);
        verdicts.flat_map(|it| &it.outputs).find(|it| it.wrong > 0).map(|it| (&it.buffer, it))
    }
}
