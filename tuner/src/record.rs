//! The log: one line of JSON for each program measured.
//!
//! A line is written with one `write`, so that a reader never sees half of one from a living writer; a crash can
//! leave a torn last line, which readers skip and the next writer cuts off. Nothing in a log is ever executed.

use std::{
    fmt::Write as _,
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

use codegen::device::{Launch, MachineInfo};
use indexmap::IndexMap;
use schedule::Step;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Case, Comparison, Measured, Ratio, Roofline, Settings, Stats, Verification, Work, regular};

/// The largest log that is read or written, in bytes: a record has a few kilobytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// What was measured, how, on what, and what came out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// The version of this format. Readers refuse a greater one.
    pub v: u32,
    /// The version of tilewright.
    pub tool: String,
    /// When, as RFC 3339 in UTC: `2026-01-31T12:00:00Z`. The caller reads the clock.
    pub time: String,
    /// The schedule.
    pub script: Script,
    /// SHA-256 of the printed program after the schedule, in hexadecimal.
    pub ir_sha256: String,
    /// SHA-256 of the emitted source, in hexadecimal.
    pub source_sha256: String,
    /// How the kernels were launched.
    pub launches: Vec<Launch>,
    /// Registers, spills, shared memory and occupancy, where a compiler reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<codegen::device::Resources>>"))]
    pub resources: Option<Value>,
    /// Where and how it was measured.
    pub environment: Environment,
    /// Operations on elements that the workload needs.
    pub flops: f64,
    /// Bytes of its inputs and outputs.
    pub bytes: f64,
    /// How many back-to-back calls each sample timed.
    pub calls: u32,
    /// Seconds per call, every sample in the order taken.
    pub seconds: Vec<f64>,
    /// GFLOPS of every sample.
    pub gflops_samples: Vec<f64>,
    /// Seconds per call in summary.
    pub stats: Option<Stats>,
    /// GFLOPS at the median; absent unless the numbers were right before and after timing.
    pub gflops: Option<f64>,
    /// The least time that the machine allows.
    pub roofline: Roofline,
    /// Whether the result is faster than the machine can be.
    pub suspicious: bool,
    /// The verdict before timing.
    pub verified_before: Option<Verification>,
    /// The verdict after timing.
    pub verified_after: Option<Verification>,
    /// What stopped it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// How many times as fast as the vendor library in the same rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versus_baseline: Option<Ratio>,
    /// The vendor library's seconds per call in the same rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_seconds: Option<Vec<f64>>,
    /// The seconds per call of every baseline in the same rounds, by its name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub baselines: IndexMap<String, Vec<f64>>,
    /// Fields of later versions, kept as they were.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub other: IndexMap<String, Value>,
}

/// A schedule as it was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Script {
    /// What it is called: its path, or ladder and rung.
    pub name: String,
    /// Its text, whole.
    pub text: String,
    /// The workload that it names.
    pub workload: String,
    /// The workload's parameters, with the values they had.
    pub params: IndexMap<String, Value>,
    /// The steps that were applied, as data.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Value>"))]
    pub steps: Vec<RecordedStep>,
}

/// A step as a record has it. A JSON value sorts the keys of what it holds, and the parts of a `split` have an order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedStep {
    /// A step that this version knows.
    Known(Step),
    /// One of another version.
    Unknown(Value),
}

/// Where and how a program was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// The machine.
    pub machine: MachineInfo,
    /// The operating system and processor architecture that tilewright runs on.
    pub os: String,
    /// The seed of inputs, samples and orders.
    pub seed: u64,
    /// The regime.
    pub regime: crate::Regime,
    /// What the caches held, in words.
    pub caches: String,
    /// CPU threads, 0 for all.
    pub threads: usize,
}

/// The version of the format that this build writes.
const VERSION: u32 = 1;

impl Record {
    /// How much there is to do.
    pub fn work(&self) -> Work {
        Work { flops: self.flops, bytes: self.bytes }
    }

    /// The record of a program in a comparison. What the comparison does not know comes from the caller.
    pub fn new(
        case: &Case,
        comparison: &Comparison,
        measured: &Measured,
        script: Script,
        environment: Environment,
        time: String,
    ) -> Record {
        Record {
            v: VERSION,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            time,
            script,
            ir_sha256: String::new(),
            source_sha256: String::new(),
            launches: vec![],
            resources: None,
            environment,
            flops: case.work.flops,
            bytes: case.work.bytes,
            calls: measured.calls,
            seconds: measured.seconds.clone(),
            gflops_samples: measured.gflops_samples(case),
            stats: measured.stats,
            gflops: measured.gflops,
            roofline: comparison.roofline,
            suspicious: measured.suspicious,
            verified_before: measured.before.clone(),
            verified_after: measured.after.clone(),
            failure: measured.failure.as_ref().map(ToString::to_string),
            versus_baseline: measured.versus_baseline,
            baseline_seconds: comparison.baseline.as_ref().map(|it| it.seconds.clone()),
            baselines: comparison
                .baseline
                .iter()
                .chain(&comparison.other_baselines)
                .map(|it| (it.label.clone(), it.seconds.clone()))
                .collect(),
            other: IndexMap::new(),
        }
    }
}

impl Environment {
    /// Of a comparison.
    pub fn new(machine: &MachineInfo, case: &Case, settings: &Settings) -> Environment {
        Environment {
            machine: machine.clone(),
            os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            seed: case.seed,
            regime: settings.regime,
            caches: settings.regime.cache_policy().to_owned(),
            threads: settings.threads,
        }
    }
}

/// SHA-256 of a text in lower-case hexadecimal, as `sha256sum` prints it.
pub fn sha256(text: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    for byte in Sha256::digest(text.as_ref()) {
        write!(out, "{byte:02x}").expect("writing to a string does not fail");
    }
    out
}

/// What an append did besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Append {
    /// How many bytes of a torn last line it cut off.
    pub cut: u64,
}

/// Adds records to the end of a log, which is made if it is not there.
///
/// `durable` waits until the lines are on the disk, which matters when the power fails, not when the process does.
///
/// # Errors
/// Where the file cannot be opened or written.
pub fn append(path: &Path, records: &[Record], durable: bool) -> io::Result<Append> {
    let mut file = regular::open_with(path, OpenOptions::new().read(true).append(true).create(true))?;
    regular::expect_at_most(file.metadata()?.len(), MAX_FILE_BYTES)?;
    let cut = cut_torn_tail(&mut file)?;
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record)?;
        lines.push(b'\n');
    }
    file.write_all(&lines)?;
    if durable {
        file.sync_data()?;
    }
    Ok(Append { cut })
}

fn cut_torn_tail(file: &mut File) -> io::Result<u64> {
    let end = file.seek(SeekFrom::End(0))?;
    let mut keep = end;
    let mut window = vec![0; 1 << 16];
    while keep > 0 {
        let start = keep.saturating_sub(window.len() as u64);
        let part = &mut window[..usize::try_from(keep - start).expect("at most the window")];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        match part.iter().rposition(|it| *it == b'\n') {
            Some(at) => {
                keep = start + at as u64 + 1;
                break;
            }
            None => keep = start,
        }
    }
    if keep < end {
        file.set_len(keep)?;
    }
    Ok(end - keep)
}

/// A log as read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReadLog {
    /// The records in order.
    pub records: Vec<Record>,
    /// The length of a torn last line, which was skipped.
    pub torn: Option<usize>,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line before the last is not a record.
    #[error("line {line} is not a record: {reason}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A newer tilewright wrote it.
    #[error("line {line} has format version {version}; this build reads up to {VERSION}")]
    Newer {
        /// Which, from 1.
        line: usize,
        /// Its version.
        version: u32,
    },
}

/// Reads a log from a file.
pub fn read_log(path: &Path) -> Result<ReadLog, LogError> {
    let bytes = regular::read(path, MAX_FILE_BYTES)?;
    parse_log(&bytes)
}

/// Reads a log. A last line that does not end is torn, whatever it holds.
pub fn parse_log(bytes: &[u8]) -> Result<ReadLog, LogError> {
    let end = bytes.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let mut log = ReadLog { records: vec![], torn: (end < bytes.len()).then_some(bytes.len() - end) };
    let lines = bytes[..end].split(|it| *it == b'\n').enumerate();
    for (n, line) in lines.filter(|(_, it)| !it.is_empty()) {
        let line_error = |err: serde_json::Error| LogError::Line { line: n + 1, reason: err.to_string() };
        let version: Version = serde_json::from_slice(line).map_err(line_error)?;
        if version.v > VERSION {
            return Err(LogError::Newer { line: n + 1, version: version.v });
        }
        log.records.push(serde_json::from_slice(line).map_err(line_error)?);
    }
    Ok(log)
}

#[derive(Deserialize)]
struct Version {
    v: u32,
}
