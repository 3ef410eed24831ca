//! The flags about measuring that commands share.

use std::{path::PathBuf, time::Duration};

use codegen::device::{MOST_THREADS, MachineInfo};
use tuner::{Regime, Settings};

use crate::guard;

/// How to measure: the flags that commands share.
#[derive(Debug, clap::Args)]
pub(crate) struct Measure {
    /// Where inputs, sampled elements and the order of measurement come from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The state of the machine: cool, sustained, cold_l2
    #[arg(long, default_value = "cool", value_parser = parse_regime)]
    pub(crate) regime: Regime,
    /// CPU threads, 0 for all
    #[arg(long, default_value_t = 0, value_parser = parse_threads)]
    pub(crate) threads: usize,
    /// How long a compilation, or a call of a program, may take: 90s, 10m, 2h
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = parse_deadline)]
    pub(crate) deadline: Duration,
    /// Append one JSON line for each program measured to this file (`tutorial`: by default to tutorial.jsonl in the
    /// user's state folder)
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
}

pub(crate) fn parse_regime(word: &str) -> Result<Regime, String> {
    let words = Regime::ALL.map(Regime::as_str);
    let other = || schedule::suggestion(word, words).unwrap_or_default();
    Regime::ALL.into_iter().find(|it| it.as_str() == word).ok_or_else(other)
}

/// `90s`, `10m`, `2h`.
pub(crate) fn parse_time(word: &str) -> Result<f64, String> {
    let units = [('s', 1.0), ('m', 60.0), ('h', 3600.0)];
    let found = units.iter().find_map(|(unit, seconds)| Some((word.strip_suffix(*unit)?, seconds)));
    let seconds = found.and_then(|(number, unit)| Some(number.parse::<f64>().ok()? * unit));
    seconds
        .filter(|it| it.is_finite() && *it > 0.0)
        .ok_or_else(|| "a time is written 90s, 10m or 2h".to_owned())
}

/// The same for what is waited for.
fn parse_deadline(word: &str) -> Result<Duration, String> {
    let seconds = parse_time(word)?;
    Duration::try_from_secs_f64(seconds).map_err(|_| "a clock counts to 2^64 s".to_owned())
}

/// A number of threads that can be started in a moment.
pub(crate) fn parse_threads(word: &str) -> Result<usize, String> {
    let number = word.parse().map_err(|_| "a number of threads, 0 for all".to_owned())?;
    if number > MOST_THREADS { Err(format!("at most {MOST_THREADS} threads")) } else { Ok(number) }
}

impl Measure {
    /// Begins to watch that compilations and calls end in time.
    pub(crate) fn watch(&self) {
        guard::set_deadline(self.deadline);
    }

    pub(crate) fn settings(&self, info: &MachineInfo) -> Settings {
        Settings { threads: self.threads, ..Settings::new(self.regime, info.arch != "cpu") }
    }
}
