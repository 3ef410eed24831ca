//! The result of a comparison as data.

use codegen::device::{Launch, MachineInfo, Resources};
use indexmap::IndexMap;
use ir::Name;
use schedule::workload::Param;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{Regime, Stats, bench::Verdict, bootstrap::Interval};

use super::{
    entrant::Origin,
    fail_on::FailOn,
    report::{EntrantReport, Method, Pair, Report},
};
use crate::{diagnostic::Diagnostic, term, term::shell::Shell};

/// What a comparison of times found.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "of times")]
pub(crate) struct Compared<'a> {
    /// Whether what was asked for is so.
    ok: bool,
    /// How it was compared.
    method: Method,
    /// The workload.
    workload: &'a str,
    /// Its parameters.
    params: &'a IndexMap<String, Param>,
    /// The values of its symbolic dimensions.
    dims: &'a IndexMap<Name, i64>,
    /// cpu, or cuda with its architecture: cuda:sm_90a
    target: &'a str,
    /// What it was measured on, if anything was.
    machine: Option<&'a MachineInfo>,
    /// The state of the machine.
    regime: Option<Regime>,
    /// How many rounds there were.
    rounds: usize,
    /// How many of them at most were dropped for their clocks.
    dropped: usize,
    /// The first against itself.
    noise_floor: Option<Interval>,
    /// From where on a difference counts.
    margin: f64,
    /// All, the first the one to compare with.
    entrants: Vec<EntrantData<'a>>,
    /// Each of the others against the first.
    pairs: Vec<PairData<'a>>,
    /// What `--fail-on` asks for.
    fail_on: Option<String>,
    #[serde(skip)]
    report: &'a Report,
}

/// What was measured of an entrant.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entrant")]
struct EntrantData<'a> {
    /// What it is called.
    name: &'a str,
    /// Where it comes from.
    origin: Origin,
    /// SHA-256 of its source, in hexadecimal.
    source_sha256: &'a str,
    /// Its steps.
    steps: &'a [String],
    /// How its kernels are launched.
    launches: &'a [Launch],
    /// What they need, where a compiler told.
    resources: &'a [Resources],
    /// GFLOPS at the median.
    gflops: Option<f64>,
    /// Seconds per call in summary.
    stats: Option<Stats>,
    /// Seconds per call, every sample.
    seconds: Option<&'a [f64]>,
    /// Of a record: when it was measured.
    time: Option<&'a str>,
    /// Why there are no figures.
    failure: Option<&'a str>,
}

/// An entrant against the first.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Pair")]
struct PairData<'a> {
    /// What it is called.
    name: &'a str,
    /// What the first is called.
    against: &'a str,
    /// Whether it is faster.
    verdict: Verdict,
    /// Why the verdict is ambiguous.
    doubt: Option<String>,
    /// How many times as fast it is.
    ratio: Option<Interval>,
    /// Whether both have the same source.
    same_source: bool,
    /// The steps that only the first has.
    steps_removed: &'a [String],
    /// The steps that only this one has.
    steps_added: &'a [String],
    /// How the generated code differs, if that was asked.
    code: Option<&'a str>,
}

impl<'a> Compared<'a> {
    pub(super) fn of(report: &'a Report, ok: bool, fail_on: Option<FailOn>) -> Compared<'a> {
        Compared {
            ok,
            method: report.method,
            workload: &report.workload,
            params: &report.params,
            dims: &report.dims,
            target: &report.target,
            machine: report.machine.as_ref(),
            regime: report.regime,
            rounds: report.rounds,
            dropped: report.dropped,
            noise_floor: report.noise_floor,
            margin: report.margin,
            entrants: report.entrants.iter().map(EntrantData::of).collect(),
            pairs: report.pairs.iter().map(|it| PairData::of(it, report.ambiguity(it))).collect(),
            fail_on: fail_on.map(|it| it.to_string()),
            report,
        }
    }
}

impl<'a> EntrantData<'a> {
    fn of(it: &'a EntrantReport) -> EntrantData<'a> {
        let figures = it.figures.as_ref();
        EntrantData {
            name: &it.name,
            origin: it.origin,
            source_sha256: &it.source_sha256,
            steps: &it.steps,
            launches: &it.launches,
            resources: &it.resources,
            gflops: figures.and_then(|it| it.gflops),
            stats: figures.map(|it| it.stats),
            seconds: figures.map(|it| it.seconds.as_slice()),
            time: figures.and_then(|it| it.time.as_deref()),
            failure: it.failure.as_deref(),
        }
    }
}

impl<'a> PairData<'a> {
    fn of(it: &'a Pair, doubt: Option<String>) -> PairData<'a> {
        PairData {
            name: &it.name,
            against: &it.against,
            verdict: it.verdict,
            doubt,
            ratio: it.ratio,
            same_source: it.same_source,
            steps_removed: &it.removed,
            steps_added: &it.added,
            code: it.code.as_deref(),
        }
    }
}

impl term::report::Report for Compared<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(self.report.print(shell.out)?)
    }
}
