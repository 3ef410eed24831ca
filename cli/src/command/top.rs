//! `tilewright top`.

use std::path::PathBuf;

use indexmap::IndexMap;
use ir::Name;
use schedule::Decisions;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tuner::{
    Rate,
    log::{Best, FinalsPlace, Origin, Ranked, Ranking},
};

use crate::{
    constant::True,
    diagnostic::Diagnostic,
    escape::visible,
    figures::{speed_words, time_words},
    log_notes::Noted,
    term::report::Report,
    term::shell::Shell,
    term::table::Table,
};

/// Show the best trials of tuning logs
#[derive(Debug, clap::Args)]
pub(crate) struct Top {
    /// Tuning logs: folders or single segments
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// How many of each workload and machine
    #[arg(short, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    k: u32,
}

impl Top {
    pub(crate) fn run(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let mut ranking = Ranking::new(self.k as usize);
        // One log that cannot be read is no reason to say nothing of the others.
        let (mut failed, mut unread) = (vec![], None);
        for log in &self.logs {
            let mut noted = Noted::default();
            match ranking.add(log, &mut |line| noted.line(&line)) {
                Ok(()) => unread = unread.or(noted.tell(log, shell)),
                Err(err) => failed.push(Diagnostic::log(&err)),
            }
        }
        let groups = ranking.finish();
        if groups.is_empty() && failed.is_empty() {
            failed.extend(unread.map(|it| Diagnostic::log(&it)));
        }
        for (n, group) in groups.iter().enumerate() {
            shell.report(&Group::of(group, n == 0))?;
        }
        if groups.is_empty() && failed.is_empty() && !shell.json {
            shell.note("the log has no trials");
        }
        Diagnostic::all(failed).map_or(Ok(()), Err)
    }
}

/// The best trials of one workload on one machine.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Group<'a> {
    ok: True,
    /// The workload; null for runs whose head is damaged, as are the other facts about it.
    workload: Option<&'a str>,
    /// SHA-256 of the unscheduled program, in hexadecimal.
    workload_id: Option<&'a str>,
    /// The values of its symbolic dimensions.
    dims: Option<&'a IndexMap<Name, i64>>,
    /// The parameters of the workload in the first of the runs.
    params: &'a IndexMap<String, Value>,
    /// cpu, or cuda with its architecture: cuda:sm_90a
    target: Option<&'a str>,
    /// The machine that measured.
    machine: Option<&'a str>,
    /// How many trials there are, in all runs.
    trials: u64,
    /// How many of them came to nothing.
    failed: u64,
    /// How many are faster than the machine can be. They have no rank.
    suspicious: u64,
    /// The best, the fastest first.
    best: Vec<BestTrial<'a>>,
    #[serde(skip)]
    ranked: &'a Ranked,
    #[serde(skip)]
    is_first: bool,
}

/// A trial among the best.
#[derive(Debug, Serialize, JsonSchema)]
struct BestTrial<'a> {
    /// Its place, from 1.
    rank: usize,
    /// The run.
    run: &'a str,
    /// Its number there.
    n: u64,
    /// SHA-256 of the workload, the target and the steps, in hexadecimal.
    id: &'a str,
    /// GFLOPS at the median.
    gflops: f64,
    /// The median in seconds.
    seconds: f64,
    /// Whether it was left after the screen.
    screened: bool,
    /// What became of it in the finals of its run.
    #[serde(rename = "final")]
    finals: Option<PlaceInFinals>,
    /// What was decided.
    decisions: &'a Decisions,
    /// Where it comes from.
    origin: &'a Origin,
    /// The most registers of a thread, where a compiler told.
    registers: Option<u32>,
    /// Bytes of registers that a thread writes to memory for want of registers, in all kernels.
    spill_bytes: Option<u32>,
    /// The most shared memory of a block in bytes.
    shared_bytes: u32,
    /// The most threads of a block.
    threads: u64,
}

/// What became of a trial in finals.
#[derive(Debug, Serialize, JsonSchema)]
struct PlaceInFinals {
    /// Its place, from 1.
    place: usize,
    /// GFLOPS at the median there.
    gflops: Option<f64>,
    /// Whether it cannot be told from the winner.
    tied: bool,
}

impl<'a> Group<'a> {
    fn of(ranked: &'a Ranked, is_first: bool) -> Group<'a> {
        let problem = ranked.problem.as_ref();
        Group {
            ok: True,
            workload: problem.map(|it| it.workload.as_str()),
            workload_id: problem.map(|it| it.workload_id.as_str()),
            dims: problem.map(|it| &it.dims),
            params: &ranked.params,
            target: problem.map(|it| it.target.as_str()),
            machine: problem.map(|it| it.machine.as_str()),
            trials: ranked.trials,
            failed: ranked.failed,
            suspicious: ranked.suspicious,
            best: ranked.best.iter().enumerate().map(|(n, it)| BestTrial::of(n + 1, it)).collect(),
            ranked,
            is_first,
        }
    }
}

impl<'a> BestTrial<'a> {
    fn of(rank: usize, it: &'a Best) -> BestTrial<'a> {
        let finals =
            it.finals.map(|FinalsPlace { place, gflops, tied, .. }| PlaceInFinals { place, gflops, tied });
        BestTrial {
            rank,
            run: &it.run,
            n: it.n,
            id: &it.id,
            gflops: it.gflops,
            seconds: it.seconds,
            screened: it.screened,
            finals,
            decisions: &it.decisions,
            origin: &it.origin,
            registers: it.registers,
            spill_bytes: it.spill_bytes,
            shared_bytes: it.shared_bytes,
            threads: it.threads,
        }
    }
}

impl Report for Group<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if !self.is_first {
            writeln!(shell.out)?;
        }
        print(self.ranked, shell)
    }
}

fn print(group: &Ranked, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let problem = match &group.problem {
        Some(it) => {
            let sizes = group.params.iter().map(|(name, value)| match value {
                Value::String(word) => format!("{name}={word}"),
                value => format!("{name}={value}"),
            });
            let dims = it.dims.iter().map(|(name, value)| format!("{name}={value}"));
            let sizes: Vec<_> = sizes.chain(dims).collect();
            format!("{} ({}) for {} on {}", it.workload, sizes.join(" "), it.target, it.machine)
        }
        None => "runs whose head is damaged".to_owned(),
    };
    let counts = [("failed", group.failed), ("suspicious", group.suspicious)];
    let counts = counts.iter().filter(|it| it.1 > 0).map(|(word, count)| format!(", {count} {word}"));
    let counts: String = counts.collect();
    let plural = if group.trials == 1 { "" } else { "s" };
    writeln!(shell.out, "{}: {} trial{plural}{counts}", visible(problem), group.trials)?;
    if group.best.is_empty() {
        return Ok(());
    }
    table(group).print(shell.out)?;
    Ok(())
}

/// Columns that say the same of all are left out.
fn table(group: &Ranked) -> Table {
    let best = &group.best;
    let work = group.problem.as_ref().map(|it| it.work);
    let rate = work.map_or(Rate::Gflops, |it| Rate::of(&it));
    // Of what nothing is known but the times, GFLOPS are those of the log.
    let speed = |gflops: f64, seconds: f64| work.map_or(gflops, |it| rate.speed(&it, seconds));
    let there = format!("{} there", rate.unit());
    let runs = best.iter().any(|it| it.run != best[0].run);
    let finals = best.iter().any(|it| it.finals.is_some());
    let resources = best.iter().any(|it| it.registers.is_some());
    let heads = ["rank"]
        .into_iter()
        .chain(runs.then_some("run"))
        .chain(["n", rate.unit(), "time"])
        .chain(finals.then_some(["final", there.as_str()]).into_iter().flatten())
        .chain(resources.then_some(["registers", "spilled", "shared", "threads"]).into_iter().flatten())
        .chain(["origin", "decisions"]);
    let mut table = Table::new(heads);
    let dash = || "—".to_owned();
    for (n, it) in best.iter().enumerate() {
        let mut row = vec![(n + 1).to_string()];
        row.extend(runs.then(|| it.run.clone()));
        row.extend([it.n.to_string(), speed_words(speed(it.gflops, it.seconds)), time_words(it.seconds)]);
        if finals {
            let place = |it: FinalsPlace| format!("{}{}", it.place, if it.tied { ", tied" } else { "" });
            row.push(it.finals.map_or_else(dash, place));
            let figures = it.finals.and_then(|it| it.gflops.zip(it.seconds));
            row.push(figures.map_or_else(dash, |(gflops, seconds)| speed_words(speed(gflops, seconds))));
        }
        if resources {
            row.push(it.registers.map_or_else(dash, |it| it.to_string()));
            row.push(it.spill_bytes.map_or_else(dash, |it| format!("{it} B")));
            row.push(format!("{:.1} KiB", f64::from(it.shared_bytes) / 1024.0));
            row.push(it.threads.to_string());
        }
        let decisions = it.decisions.iter().map(|(knob, choice)| format!("{knob}={choice}"));
        let screened = if it.screened { ", screened" } else { "" };
        row.push(format!("{}{screened}", origin_words(&it.origin)));
        row.push(decisions.collect::<Vec<_>>().join(" "));
        table.row(row);
    }
    table
}

/// Where a candidate comes from.
fn origin_words(origin: &Origin) -> String {
    match origin {
        Origin::Random => "random".to_owned(),
        Origin::Rule => "rule".to_owned(),
        Origin::Default => "default".to_owned(),
        Origin::Mutation { of } => format!("from {of}"),
        Origin::Crossover { of: [a, b] } => format!("from {a} and {b}"),
    }
}
