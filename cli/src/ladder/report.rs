//! The report on a ladder: a section for each rung, then tables over all sizes.

use std::io::{self, Write};

use codegen::device::MachineInfo;
use ir::Target;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{Comparison, Measured, Rate, Ratio, Regime};

use super::{
    Ladder,
    rung_view::{Detail, RungView},
};
use crate::{
    build::Built,
    diagnostic::Diagnostic,
    figures::{
        failure_words, measured_words, ratio_words, roofline_words, speed_words, spread_warning,
        spread_words, time_words, times_words, verified_words,
    },
    plan::Plan,
    term::{
        bars::{self, Bar},
        report::Report,
        shell::Shell,
        table::Table,
        wrap::{width, wrapped},
    },
};

/// The report on some rungs of a ladder, with their measurements.
pub(crate) struct LadderReport {
    ladder: String,
    machine: String,
    library: &'static str,
    regime: Regime,
    detail: Detail,
    /// The position on the ladder of the first of these rungs, from 1.
    first: usize,
    /// Whether only the last rung is shown, and the one below it was only measured for comparison.
    only_last: bool,
    rungs: Vec<RungView>,
    sizes: Vec<Size>,
}

/// What was measured of the rungs of a ladder, in short.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "the last line")]
pub(crate) struct LadderSummary<'a> {
    /// Whether every measurement has a result.
    ok: bool,
    /// The ladder.
    ladder: &'a str,
    /// The position on the ladder of the first of these rungs, from 1.
    first: usize,
    /// The rungs.
    rungs: Vec<&'a str>,
    /// For each rung whether its source is that of the rung below.
    no_effect: Vec<bool>,
    /// The figures at each size.
    sizes: Vec<SizeSummary<'a>>,
    #[serde(skip)]
    report: &'a LadderReport,
}

/// The figures of all rungs at one size.
#[derive(Serialize, JsonSchema)]
struct SizeSummary<'a> {
    /// The size.
    size: &'a str,
    /// GFLOPS of each rung, where it has a result.
    gflops: Vec<Option<f64>>,
    /// GFLOPS of the vendor's library.
    baseline_gflops: Option<f64>,
    /// The last rung and the library with one thread each, on a CPU.
    single_thread: Option<SingleThread>,
}

/// The last rung against the library, one thread against one thread.
#[derive(Serialize, JsonSchema)]
struct SingleThread {
    /// GFLOPS of the rung.
    gflops: f64,
    /// GFLOPS of the library.
    baseline_gflops: f64,
    /// How many times as fast as the library the rung is.
    #[schemars(with = "Option<f64>")]
    versus_baseline: f64,
}

impl Report for LadderSummary<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        Ok(self.report.print(shell.out)?)
    }
}

/// All rungs at one size.
struct Size {
    word: String,
    comparison: Comparison,
    single: Option<Comparison>,
}

/// Rungs, their plans, and what they were built into, in the same order.
pub(crate) struct Rungs<'a> {
    pub(crate) ladder: &'a Ladder,
    pub(crate) plans: &'a [Plan],
    pub(crate) built: &'a [Built],
    pub(crate) target: &'a Target,
    /// The position on the whole ladder of the first of them, from 1.
    pub(crate) first: usize,
}

impl Rungs<'_> {
    /// What can be shown of them without measuring.
    pub(crate) fn views(&self, detail: Detail) -> Vec<RungView> {
        let all = self.plans.iter().zip(self.built);
        let view = |(at, here): (usize, (&Plan, &Built))| {
            let below = at.checked_sub(1).map(|it| (&self.plans[it], &self.built[it]));
            RungView::new(self.first + at, &self.ladder.rungs[at], here, below, self.target, detail)
        };
        all.enumerate().map(view).collect()
    }
}

impl LadderReport {
    pub(crate) fn new(ladder: &str, info: &MachineInfo, regime: Regime, detail: Detail) -> LadderReport {
        LadderReport {
            ladder: ladder.to_owned(),
            machine: format!("{} ({}, {} units)", info.name, info.arch, info.units),
            library: tuner::library(info),
            regime,
            detail,
            first: 1,
            only_last: false,
            rungs: vec![],
            sizes: vec![],
        }
    }

    /// The report on a rung and perhaps the one below it, for comparison: only the last is shown.
    pub(crate) fn only_last(self, first: usize) -> LadderReport {
        LadderReport { first, only_last: true, ..self }
    }

    /// Adds what was measured at one size. The views of the rungs are those of the last size.
    pub(crate) fn add(
        &mut self,
        word: &str,
        comparison: Comparison,
        single: Option<Comparison>,
        views: Vec<RungView>,
    ) {
        self.rungs = views;
        self.sizes.push(Size { word: word.to_owned(), comparison, single });
    }

    /// How many measurements have no result.
    pub(crate) fn failures(&self) -> usize {
        let all = self.sizes.iter().flat_map(|it| &it.comparison.candidates);
        all.filter(|it| it.failure.is_some()).count()
    }

    /// The last line of `--json`.
    pub(crate) fn summary(&self) -> LadderSummary<'_> {
        let sizes = self.sizes.iter().map(|size| SizeSummary {
            size: &size.word,
            gflops: size.comparison.candidates.iter().map(|it| it.gflops).collect(),
            baseline_gflops: size.comparison.baseline.as_ref().and_then(|it| it.gflops),
            single_thread: size.single_thread().map(|(gflops, baseline_gflops, ratio)| SingleThread {
                gflops,
                baseline_gflops,
                versus_baseline: ratio.median,
            }),
        });
        LadderSummary {
            ok: self.failures() == 0,
            ladder: &self.ladder,
            first: self.first,
            rungs: self.rungs.iter().map(|it| it.title.as_str()).collect(),
            no_effect: self.rungs.iter().map(|it| it.no_effect).collect(),
            sizes: sizes.collect(),
            report: self,
        }
    }

    /// What speeds are told in.
    fn rate(&self) -> Rate {
        Rate::of_all(self.sizes.iter().map(|it| it.comparison.work))
    }

    /// Prints the whole report.
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        wrapped(&format!("{} on {}", self.ladder, self.machine), "", "  ", out)?;
        let (regime, caches) = (self.regime.as_str(), self.regime.cache_policy());
        wrapped(&format!("regime {regime}; caches {caches}"), "", "  ", out)?;
        let last = self.rungs.len().saturating_sub(1);
        for at in if self.only_last { last..self.rungs.len() } else { 0..self.rungs.len() } {
            writeln!(out)?;
            self.rungs[at].print(self.detail, out)?;
            self.sizes.iter().try_for_each(|it| self.print_result(it, at, out))?;
        }
        if !self.only_last {
            self.print_tables(out)?;
        }
        if self.sizes.iter().any(|it| it.single_thread().is_some()) {
            writeln!(out)?;
        }
        self.sizes.iter().try_for_each(|it| self.print_single(it, out))?;
        self.sizes.iter().try_for_each(|it| self.print_spreads(it, out))
    }

    /// Warns of figures with a large spread.
    fn print_spreads(&self, size: &Size, out: &mut dyn Write) -> io::Result<()> {
        let stats = size.comparison.candidates.iter().zip(&self.rungs);
        let stats = stats.filter_map(|(it, rung)| Some((rung.title.as_str(), it.stats?)));
        match spread_warning(stats) {
            Some(words) => {
                writeln!(out)?;
                wrapped(&format!("{}: {words}", size.word), "warning: ", "  ", out)
            }
            None => Ok(()),
        }
    }

    fn print_tables(&self, out: &mut dyn Write) -> io::Result<()> {
        let rate = self.rate();
        writeln!(out, "\n{}, median of the samples", rate.unit())?;
        self.table(out, &|size, at| size.speed(rate, size.candidate(at)))?;
        writeln!(out, "\nTimes as fast as the rung below, round by round")?;
        let gain = |size: &Size, at: usize| {
            let below = size.candidate(at.checked_sub(1)?);
            Some(times_words(versus(size.candidate(at), below)?.median))
        };
        self.table(out, &gain)?;
        let has_baseline = self.sizes.iter().any(|it| it.comparison.baseline.is_some());
        if has_baseline {
            writeln!(out, "\n% of {}, round by round", self.library)?;
            let part = |it: &Measured| Some(format!("{:.1}", 100.0 * it.versus_baseline?.median));
            self.table(out, &|size, at| part(size.candidate(at)))?;
        }
        self.sizes.last().map_or(Ok(()), |it| self.plot(it, out))
    }

    /// How fast the rungs are at a size, and the library, as a plot.
    fn plot(&self, size: &Size, out: &mut dyn Write) -> io::Result<()> {
        let rate = self.rate();
        let row = |name: String, it: &Measured| -> Bar {
            let seconds = it.stats.filter(|_| it.gflops.is_some()).map(|it| it.median);
            let speed = seconds.map(|it| rate.speed(&size.comparison.work, it));
            (name, speed.map_or_else(|| "—".to_owned(), speed_words), speed.unwrap_or(0.0))
        };
        let name = |at: usize| format!("{}. {}", self.rungs[at].number, self.rungs[at].title);
        let mut rows: Vec<_> = (0..self.rungs.len()).map(|at| row(name(at), size.candidate(at))).collect();
        rows.extend(size.comparison.baseline.as_ref().map(|it| row(self.library.to_owned(), it)));
        if rows.iter().all(|it| it.2 == 0.0) {
            return Ok(());
        }
        writeln!(out, "\n{} at {}", rate.unit(), size.word)?;
        bars::print(&rows, width(), out)
    }

    fn print_result(&self, size: &Size, at: usize, out: &mut dyn Write) -> io::Result<()> {
        let measured = size.candidate(at);
        if let Some(words) = failure_words(measured) {
            return wrapped(&format!("{}: ✗ {words}", size.word), "  ", "    ", out);
        }
        let rate = self.rate();
        let (Some(speed), Some(stats)) = (size.speed(rate, measured), measured.stats) else { return Ok(()) };
        let below = at.checked_sub(1).map(|it| size.candidate(it)).filter(|it| it.failure.is_none());
        let before = below.and_then(|it| size.speed(rate, it));
        let arrow = before.map(|it| format!("{it} -> ")).unwrap_or_default();
        let mut words = vec![format!("{arrow}{speed} {}", rate.unit())];
        let ratio = below.and_then(|below| versus(measured, below));
        words.extend(ratio.map(|it| ratio_words(&it, "the rung below")));
        let first = Some(size.candidate(0)).filter(|_| at > 1 && !self.only_last);
        let first = first.and_then(|first| versus(measured, first));
        words.extend(first.map(|it| format!("{} the first", times_words(it.median))));
        let spread = below.and_then(|it| it.stats).map(|it| format!(" (below: {})", spread_words(&it)));
        let spread = spread.unwrap_or_default();
        words.push(format!("{}, spread {}{spread}", time_words(stats.median), spread_words(&stats)));
        words.extend(roofline_words(&size.comparison, measured));
        if let Some(ratio) = measured.versus_baseline {
            words.push(format!("{:.1} % of {}", 100.0 * ratio.median, self.library));
        }
        wrapped(&format!("{}: {}", size.word, words.join(", ")), "  ", "    ", out)?;
        let is_slower = ratio.and_then(|it| it.interval()).is_some_and(|it| it.high < 1.0);
        if is_slower && let Some(words) = self.rungs[at].did_not_pay() {
            wrapped(&words, "  ", "    ", out)?;
        }
        match &measured.after {
            Some(verdict) => wrapped(&format!("✓ verified: {}", verified_words(verdict)), "  ", "    ", out),
            None => Ok(()),
        }
    }

    /// One row for each rung, one column for each size.
    fn table(&self, out: &mut dyn Write, cell: &dyn Fn(&Size, usize) -> Option<String>) -> io::Result<()> {
        let heads = self.sizes.iter().map(|it| it.word.clone());
        let mut table = Table::new(["rung".to_owned()].into_iter().chain(heads));
        for (at, rung) in self.rungs.iter().enumerate() {
            let cells = self.sizes.iter().map(|it| cell(it, at).unwrap_or_else(|| "—".to_owned()));
            let note = rung.no_effect.then(|| "no effect".to_owned());
            table.row([format!("{}. {}", rung.number, rung.title)].into_iter().chain(cells).chain(note));
        }
        table.print(out)
    }

    fn print_single(&self, size: &Size, out: &mut dyn Write) -> io::Result<()> {
        let Some((ours, theirs, ratio)) = size.single_thread() else { return Ok(()) };
        let words = format!(
            "{}: one thread against one thread: {} GFLOPS, and {} {}; this is {}",
            size.word,
            speed_words(ours),
            self.library,
            speed_words(theirs),
            ratio_words(&ratio, "as fast")
        );
        wrapped(&words, "", "  ", out)
    }
}

impl Size {
    fn candidate(&self, at: usize) -> &Measured {
        &self.comparison.candidates[at]
    }

    fn speed(&self, rate: Rate, measured: &Measured) -> Option<String> {
        measured_words(rate, &self.comparison, measured)
    }

    /// Our GFLOPS, the library's, and how many times as fast ours is.
    fn single_thread(&self) -> Option<(f64, f64, Ratio)> {
        let single = self.single.as_ref()?;
        let ours = single.candidates.first()?;
        Some((ours.gflops?, single.baseline.as_ref()?.gflops?, ours.versus_baseline?))
    }
}

/// How many times as fast one program is as another, round by round; nothing where one of them has no result.
pub(crate) fn versus(ours: &Measured, theirs: &Measured) -> Option<Ratio> {
    let sound = ours.failure.is_none() && theirs.failure.is_none();
    Ratio::of(ours, theirs).filter(|_| sound)
}
