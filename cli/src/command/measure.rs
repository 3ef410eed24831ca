//! Measuring scheduled programs, and the words for what came out. Shared by `run` and `tutorial`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use codegen::device::{MOST_THREADS, MachineInfo};
use tuner::{
    Bench, Bound, Candidate, Comparison, Failure, Measured, Progress, Record, Regime, Settings, Verification,
    append,
};

use crate::{
    build::Built,
    diagnostic::Diagnostic,
    guard,
    term::{shell::Shell, table::counted},
};

pub(crate) use crate::measuring::{bench_error, case, record};

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

/// Times programs against each other, with a progress line.
pub(crate) fn compare(
    bench: &mut Bench<'_>,
    rungs: &[(&str, &Built)],
    settings: &Settings,
    what: &str,
    shell: &mut Shell<'_>,
) -> Comparison {
    let candidates: Vec<_> = rungs
        .iter()
        .map(|(label, built)| Candidate { label: (*label).to_owned(), program: &built.program })
        .collect();
    bench.compare(&candidates, settings, &mut |it| show_progress(what, &it, shell))
}

/// How far a measurement is, in the progress line.
pub(crate) fn show_progress(what: &str, progress: &Progress<'_>, shell: &mut Shell<'_>) {
    match progress {
        Progress::Verifying(label) => shell.progress(&format!("{what}: verifying {label}")),
        Progress::Round { number, of } => shell.progress(&format!("{what}: round {number} of {of}")),
    }
}

/// Appends to the log, if one is wanted.
pub(crate) fn log(path: Option<&Path>, records: &[Record]) -> Result<(), Diagnostic> {
    let Some(path) = path else { return Ok(()) };
    append(path, records, true).map_err(|err| Diagnostic::io(path, &err))?;
    Ok(())
}

/// Where the tutorial keeps its records unless told otherwise: `tilewright/tutorial.jsonl` in `$XDG_STATE_HOME`, or in
/// `~/.local/state`. `None` for a user without a home.
pub(crate) fn state_log() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("tilewright/tutorial.jsonl"))
}

/// Appends to a log that nobody asked for by name, and says where, or why not: that must not stop a tutorial.
pub(crate) fn keep(path: &Path, records: &[Record]) -> String {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| append(path, records, true)) {
        Ok(_) => {
            let were = if records.len() == 1 { "was" } else { "were" };
            format!("{} {were} added to {}", counted(records.len(), "record"), path.display())
        }
        Err(err) => format!("no records were kept: {}: {err}", path.display()),
    }
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

/// Seconds with a fitting unit: `333.42 µs`.
pub(crate) fn time_words(seconds: f64) -> String {
    match seconds {
        it if it >= 1.0 => format!("{it:.3} s"),
        it if it >= 1e-3 => format!("{:.3} ms", it * 1e3),
        it if it >= 1e-6 => format!("{:.2} µs", it * 1e6),
        it => format!("{:.2} ns", it * 1e9),
    }
}

/// GFLOPS in four digits or so.
pub(crate) fn gflops_words(gflops: f64) -> String {
    match gflops {
        it if it >= 1000.0 => format!("{it:.0}"),
        it if it >= 100.0 => format!("{it:.1}"),
        it => format!("{it:.2}"),
    }
}
