//! What a climb found, and how it is told: a section for each rung, then tables over all sizes.

mod needs;
mod told;

use std::io::{self, Write};

use codegen::device::MachineInfo;
use ir::Target;
use serde_json::{Value, json};
use tuner::{Comparison, Measured, Regime, bootstrap::ratio_interval, log::Interval};

pub(crate) use told::{How, Told};

use crate::{
    build::Built,
    command::ladder::Ladder,
    command::measure::{failure_words, gflops_words, roofline_words, time_words, verified_words},
    plan::Plan,
    term::{table::Table, wrap::wrapped},
};

/// Some rungs of a ladder with their measurements.
pub(crate) struct Climb {
    ladder: String,
    machine: String,
    library: &'static str,
    regime: Regime,
    how: How,
    /// The place on the ladder of the first of these rungs, from 1.
    first: usize,
    /// Whether only the last rung is told, and the one below it was only measured for comparison.
    only_last: bool,
    rungs: Vec<Told>,
    sizes: Vec<Size>,
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
    /// The place on the whole ladder of the first of them, from 1.
    pub(crate) first: usize,
}

impl Rungs<'_> {
    /// What there is to tell of them without measuring.
    pub(crate) fn told(&self, how: How) -> Vec<Told> {
        let all = self.plans.iter().zip(self.built);
        let tell = |(at, here): (usize, (&Plan, &Built))| {
            let below = at.checked_sub(1).map(|it| (&self.plans[it], &self.built[it]));
            Told::new(self.first + at, &self.ladder.rungs[at], here, below, self.target, how)
        };
        all.enumerate().map(tell).collect()
    }
}

impl Climb {
    pub(crate) fn new(ladder: &str, info: &MachineInfo, regime: Regime, how: How) -> Climb {
        Climb {
            ladder: ladder.to_owned(),
            machine: format!("{} ({}, {} units)", info.name, info.arch, info.units),
            library: tuner::library(info),
            regime,
            how,
            first: 1,
            only_last: false,
            rungs: vec![],
            sizes: vec![],
        }
    }

    /// Of a rung and perhaps the one below it, for comparison: only the last is told.
    pub(crate) fn only_last(self, first: usize) -> Climb {
        Climb { first, only_last: true, ..self }
    }

    /// Adds what was measured at one size. What is told of the rungs is that of the last size.
    pub(crate) fn add(
        &mut self,
        word: &str,
        comparison: Comparison,
        single: Option<Comparison>,
        told: Vec<Told>,
    ) {
        self.rungs = told;
        self.sizes.push(Size { word: word.to_owned(), comparison, single });
    }

    /// How many measurements have no result.
    pub(crate) fn failures(&self) -> usize {
        let all = self.sizes.iter().flat_map(|it| &it.comparison.candidates);
        all.filter(|it| it.failure.is_some()).count()
    }

    /// The last line of `--json`.
    pub(crate) fn summary(&self) -> Value {
        let sizes = self.sizes.iter().map(|size| {
            let single = size.single_thread();
            json!({
                "size": size.word,
                "gflops": size.comparison.candidates.iter().map(|it| it.gflops).collect::<Vec<_>>(),
                "baseline_gflops": size.comparison.baseline.as_ref().and_then(|it| it.gflops),
                "single_thread": single.map(|(ours, theirs, ratio)| {
                    json!({"gflops": ours, "baseline_gflops": theirs, "versus_baseline": ratio})
                }),
            })
        });
        json!({
            "ok": self.failures() == 0,
            "ladder": self.ladder,
            "first": self.first,
            "rungs": self.rungs.iter().map(|it| &it.title).collect::<Vec<_>>(),
            "no_effect": self.rungs.iter().map(|it| it.no_effect).collect::<Vec<_>>(),
            "sizes": sizes.collect::<Vec<_>>(),
        })
    }

    /// The whole story.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{} on {}", self.ladder, self.machine)?;
        writeln!(out, "regime {}; caches {}", self.regime.as_str(), self.regime.cache_policy())?;
        let last = self.rungs.len().saturating_sub(1);
        for at in if self.only_last { last..self.rungs.len() } else { 0..self.rungs.len() } {
            writeln!(out)?;
            self.rungs[at].print(self.how, out)?;
            self.sizes.iter().try_for_each(|it| self.print_result(it, at, out))?;
        }
        if !self.only_last {
            self.print_tables(out)?;
        }
        if self.sizes.iter().any(|it| it.single_thread().is_some()) {
            writeln!(out)?;
        }
        self.sizes.iter().try_for_each(|it| self.print_single(it, out))
    }

    fn print_tables(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\nGFLOPS, median of the samples")?;
        self.table(out, &|size, at| size.candidate(at).gflops.map(gflops_words))?;
        writeln!(out, "\nGain over the rung below")?;
        self.table(out, &|size, at| gain(size.candidate(at.checked_sub(1)?), size.candidate(at)))?;
        let has_baseline = self.sizes.iter().any(|it| it.comparison.baseline.is_some());
        if has_baseline {
            writeln!(out, "\n% of {}, round by round", self.library)?;
            let part = |it: &Measured| Some(format!("{:.1}", 100.0 * it.versus_baseline?.median));
            self.table(out, &|size, at| part(size.candidate(at)))?;
        }
        Ok(())
    }

    fn print_result(&self, size: &Size, at: usize, out: &mut dyn Write) -> io::Result<()> {
        let it = size.candidate(at);
        if let Some(words) = failure_words(it) {
            return wrapped(&format!("{}: ✗ {words}", size.word), "  ", "    ", out);
        }
        let (Some(gflops), Some(stats)) = (it.gflops, it.stats) else { return Ok(()) };
        let below = at.checked_sub(1).map(|it| size.candidate(it)).filter(|it| it.failure.is_none());
        let before = below.and_then(|it| it.gflops);
        let arrow = before.map(|it| format!("{} -> ", gflops_words(it))).unwrap_or_default();
        let mut words = vec![format!("{arrow}{} GFLOPS", gflops_words(gflops))];
        if let Some(ratio) = below.and_then(|below| versus(it, below)) {
            let Interval { median, low, high, .. } = ratio;
            words.push(format!("{median:.2}x the rung below ({low:.2} to {high:.2})"));
        }
        let first = size.candidate(0).gflops.filter(|_| at > 1 && !self.only_last);
        words.extend(first.map(|first| format!("{:.2}x the first", gflops / first)));
        let spread =
            below.and_then(|it| it.stats).map(|it| format!(" (below: {:.1} %)", 100.0 * it.spread()));
        words.push(format!(
            "{}, spread {:.1} %{}",
            time_words(stats.median),
            100.0 * stats.spread(),
            spread.unwrap_or_default()
        ));
        words.extend(roofline_words(&size.comparison, it));
        if let Some(ratio) = it.versus_baseline {
            words.push(format!("{:.1} % of {}", 100.0 * ratio.median, self.library));
        }
        wrapped(&format!("{}: {}", size.word, words.join(", ")), "  ", "    ", out)?;
        if before.is_some_and(|below| gflops < below)
            && let Some(words) = self.rungs[at].did_not_pay()
        {
            wrapped(&words, "  ", "    ", out)?;
        }
        match &it.after {
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
        writeln!(
            out,
            "{}: one thread against one thread: {} GFLOPS, {:.3} times {} ({} GFLOPS)",
            size.word,
            gflops_words(ours),
            ratio,
            self.library,
            gflops_words(theirs)
        )
    }
}

impl Size {
    fn candidate(&self, at: usize) -> &Measured {
        &self.comparison.candidates[at]
    }

    /// Our GFLOPS, the library's, and the ratio.
    fn single_thread(&self) -> Option<(f64, f64, f64)> {
        let single = self.single.as_ref()?;
        let ours = single.candidates.first()?;
        Some((ours.gflops?, single.baseline.as_ref()?.gflops?, ours.versus_baseline?.median))
    }
}

/// How many times as fast one program is as another, over the rounds in which both were timed, with its interval.
pub(crate) fn versus(ours: &Measured, theirs: &Measured) -> Option<Interval> {
    let pairs = ours.rounds.iter().zip(&ours.seconds).filter_map(|(round, ours)| {
        let at = theirs.rounds.iter().position(|it| it == round)?;
        Some(theirs.seconds[at] / ours)
    });
    ratio_interval(&pairs.collect::<Vec<_>>(), 0)
}

fn gain(below: &Measured, it: &Measured) -> Option<String> {
    Some(format!("{:+.0} %", 100.0 * (it.gflops? / below.gflops? - 1.0)))
}
