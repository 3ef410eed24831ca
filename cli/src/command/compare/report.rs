//! The result of a comparison, in words; `data.rs` has it as data.

use std::io::{self, Write};

use codegen::device::{Launch, MachineInfo, Resources};
use indexmap::IndexMap;
use ir::{Name, Target};
use schedule::{Step, workload::Param};
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{
    Rate, Regime, Stats, Work, bench::Verdict, bootstrap::Interval, build::target_word, log::Measurement,
};

use super::{
    entrant::{Entrant, Origin, Recorded},
    paired::resource_words,
    same::param_words,
};
use crate::{
    escape::visible,
    figures::{
        interval_words, range_words, speed_words, spread_warning, spread_words, time_words, times_words,
    },
    term::table::{Table, counted},
    term::wrap::wrapped,
};

/// What a comparison found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) method: Method,
    pub(super) workload: String,
    pub(super) params: IndexMap<String, Param>,
    pub(super) dims: IndexMap<Name, i64>,
    /// How much there is to do, if it can be counted.
    pub(super) work: Option<Work>,
    pub(super) target: String,
    pub(super) machine: Option<MachineInfo>,
    pub(super) regime: Option<Regime>,
    pub(super) rounds: usize,
    pub(super) dropped: usize,
    /// The first against itself.
    pub(super) noise_floor: Option<Interval>,
    /// From where on a difference counts.
    pub(super) margin: f64,
    /// All, the first the one to compare with.
    pub(super) entrants: Vec<EntrantReport>,
    /// Each of the others against the first.
    pub(super) pairs: Vec<Pair>,
}

/// How it was compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Method {
    /// Timed in the same rounds.
    Paired,
    /// The sources are the same.
    Source,
    /// By the figures of logs.
    Recorded,
}

/// What is reported of an entrant.
#[derive(Debug)]
pub(super) struct EntrantReport {
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) source_sha256: String,
    pub(super) steps: Vec<String>,
    pub(super) launches: Vec<Launch>,
    pub(super) resources: Vec<Resources>,
    pub(super) figures: Option<Figures>,
    /// Why there are none.
    pub(super) failure: Option<String>,
}

/// What was measured of an entrant.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Figures {
    pub(super) seconds: Vec<f64>,
    pub(super) stats: Stats,
    pub(super) gflops: Option<f64>,
    /// When, of recorded ones.
    pub(super) time: Option<String>,
}

/// An entrant against the first.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) against: String,
    /// How many times as fast.
    pub(super) ratio: Option<Interval>,
    pub(super) verdict: Verdict,
    pub(super) same_source: bool,
    /// Steps that only the first has, and steps that only this has.
    pub(super) removed: Vec<String>,
    pub(super) added: Vec<String>,
    /// How many lines the program has more, and less.
    pub(super) program: (usize, usize),
    pub(super) code: Option<String>,
}

impl Figures {
    pub(super) fn of(it: &Measurement) -> Figures {
        Figures { seconds: it.seconds.clone(), stats: it.stats, gflops: Some(it.gflops), time: None }
    }

    pub(super) fn recorded(it: &Recorded) -> Option<Figures> {
        let stats = Stats::of(&it.seconds)?;
        Some(Figures { seconds: it.seconds.clone(), stats, gflops: it.gflops, time: Some(it.time.clone()) })
    }
}

#[cfg(test)]
impl Figures {
    pub(super) fn fixed(seconds: &[f64], gflops: f64) -> Option<Figures> {
        Some(Figures {
            seconds: seconds.to_vec(),
            stats: Stats::of(seconds)?,
            gflops: Some(gflops),
            time: None,
        })
    }
}

#[cfg(test)]
impl Report {
    pub(super) fn fixed(method: Method, entrants: Vec<EntrantReport>, pairs: Vec<Pair>) -> Report {
        Report {
            method,
            workload: "matmul".to_owned(),
            params: IndexMap::from([("m".to_owned(), Param::Int(512))]),
            dims: IndexMap::new(),
            work: Some(Work { flops: 1e6, bytes: 1e3 }),
            target: "cpu".to_owned(),
            machine: None,
            regime: Some(Regime::Cool),
            rounds: 31,
            dropped: 0,
            noise_floor: None,
            margin: 0.01,
            entrants,
            pairs,
        }
    }
}

impl Report {
    /// A report of entrants that nothing is known of yet.
    pub(super) fn new(entrants: &[Entrant], target: &Target, margin: f64) -> Report {
        let first = &entrants[0];
        Report {
            method: Method::Paired,
            workload: first.script.workload.clone(),
            params: first.params.clone(),
            dims: first.dims.clone(),
            work: Work::of(&first.func, &first.dims),
            target: target_word(target),
            machine: None,
            regime: None,
            rounds: 0,
            dropped: 0,
            noise_floor: None,
            margin,
            entrants: vec![],
            pairs: vec![],
        }
    }

    pub(super) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let params = self.params.iter().map(|(name, it)| format!("{name}={}", param_words(it)));
        let dims = self.dims.iter().map(|(name, it)| format!("{name}={it}"));
        let sizes: Vec<String> = params.chain(dims).collect();
        writeln!(out, "workload   {} {}", visible(self.workload.clone()), visible(sizes.join(" ")))?;
        match &self.machine {
            Some(it) => writeln!(out, "machine    {} ({}, {} units)", it.name, it.arch, it.units)?,
            None => writeln!(out, "target     {}", self.target)?,
        }
        writeln!(out, "method     {}", self.method_words())?;
        if self.method != Method::Source {
            writeln!(out, "margin     {} %: SAME is what is shown to differ by less", 100.0 * self.margin)?;
        }
        for pair in &self.pairs {
            pair.print(out)?;
        }
        writeln!(out)?;
        self.table().print(out)?;
        writeln!(out)?;
        self.pairs.iter().try_for_each(|it| self.print_verdict(it, out))?;
        if self.method != Method::Source && self.pairs.iter().any(|it| it.verdict == Verdict::Ambiguous) {
            let words = "AMBIGUOUS is not SAME: nothing is shown. More `--rounds`, a quieter machine or a wider \
                         `--margin` may help";
            wrapped(words, "note       ", "           ", out)?;
        }
        let stats =
            self.entrants.iter().filter_map(|it| Some((it.name.as_str(), it.figures.as_ref()?.stats)));
        match spread_warning(stats) {
            Some(words) => wrapped(&visible(words), "warning    ", "           ", out),
            None => Ok(()),
        }
    }

    fn method_words(&self) -> String {
        let regime = self.regime.map_or("", Regime::as_str);
        match self.method {
            Method::Source => "the generated sources are compared; they are the same".to_owned(),
            Method::Recorded => {
                format!("figures of logs, not taken together: unpaired, regime {regime}")
            }
            Method::Paired => {
                let dropped = match self.dropped {
                    0 => String::new(),
                    it => format!(", up to {it} of them dropped for their clocks"),
                };
                let noise = self.noise_floor.map(|it| format!("; itself {} as fast", interval_words(it)));
                let rounds = counted(self.rounds, "shuffled round");
                format!("{rounds}, regime {regime}{dropped}{}", noise.unwrap_or_default())
            }
        }
    }

    fn table(&self) -> Table {
        let resources: Vec<_> =
            self.entrants.iter().map(|it| resource_words(&it.resources, &it.launches)).collect();
        let rate = self.work.as_ref().map_or(Rate::Gflops, Rate::of);
        let mut heads = vec![""; 1];
        if self.method != Method::Source {
            heads.extend([rate.unit(), "time", "spread"]);
        }
        let mut kinds: Vec<&str> = resources.iter().flat_map(|it| it.keys().copied()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        if self.method == Method::Recorded {
            kinds.retain(|it| *it != "kernels");
        }
        heads.extend(kinds.iter().copied());
        let mut table = Table::new(heads);
        for (it, resources) in self.entrants.iter().zip(&resources) {
            let mut row = vec![it.name.clone()];
            let dash = || "—".to_owned();
            if self.method != Method::Source {
                let figures = it.figures.as_ref();
                let speed = figures.zip(self.work).map(|(it, work)| rate.speed(&work, it.stats.median));
                row.push(speed.map_or_else(dash, speed_words));
                row.push(figures.map_or_else(dash, |it| time_words(it.stats.median)));
                row.push(figures.map_or_else(dash, |it| spread_words(&it.stats)));
            }
            row.extend(kinds.iter().map(|kind| resources.get(kind).cloned().unwrap_or_else(dash)));
            table.row(row);
        }
        table
    }

    fn print_verdict(&self, it: &Pair, out: &mut dyn Write) -> io::Result<()> {
        let names = format!("{} against {}", visible(it.name.clone()), visible(it.against.clone()));
        let why = match (self.method, it.ratio, it.verdict) {
            (Method::Source, _, _) | (_, _, Verdict::Same) if it.same_source => "same program".to_owned(),
            (_, None, _) => "there is no ratio to judge by".to_owned(),
            (_, Some(ratio), _) => {
                let rounds = match self.method {
                    Method::Paired => format!(", 95 % in {}", counted(ratio.rounds, "round")),
                    Method::Recorded | Method::Source => ", 95 %".to_owned(),
                };
                format!("{} as fast ({}{rounds})", times_words(ratio.median), range_words(ratio))
            }
        };
        writeln!(out, "{:<9}  {names}: {why}", it.verdict)?;
        match self.ambiguity(it) {
            Some(words) => wrapped(&format!("cannot tell: {words}"), "           ", "           ", out),
            None => Ok(()),
        }
    }
}

impl Pair {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\n{} against {}", visible(self.name.clone()), visible(self.against.clone()))?;
        print_steps(&self.removed, &self.added, out)?;
        let (more, less) = self.program;
        if self.same_source {
            writeln!(out, "  same program: the generated sources are identical")?;
        } else if more + less > 0 {
            writeln!(out, "  the program changes: {more} lines more, {less} lines less")?;
        }
        let code = self.code.as_deref().unwrap_or_default();
        code.lines().try_for_each(|it| writeln!(out, "    {it}"))
    }
}

/// Prints the steps that differ.
pub(super) fn print_steps(removed: &[String], added: &[String], out: &mut dyn Write) -> io::Result<()> {
    for (sign, steps) in [('-', removed), ('+', added)] {
        steps.iter().try_for_each(|it| writeln!(out, "  {sign} {it}"))?;
    }
    if removed.is_empty() && added.is_empty() {
        writeln!(out, "  the same steps")?;
    }
    Ok(())
}

/// The steps that only `a` has, and those that only `b` has, in their order; a step that stands at another place is both.
pub(super) fn steps_apart(a: &[Step], b: &[Step]) -> (Vec<String>, Vec<String>) {
    let words = |all: &[Step]| all.iter().map(Step::to_ron).collect::<Vec<_>>().join("\n");
    let lines = schedule::diff_text(&words(a), &words(b), 0);
    let with = |sign: &str| {
        let lines = lines.lines().filter_map(|it| it.strip_prefix(sign)?.strip_prefix(' '));
        lines.map(|it| visible(it.to_owned())).collect::<Vec<_>>()
    };
    (with("-"), with("+"))
}
