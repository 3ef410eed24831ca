//! `tilewright top`.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tuner::log::{Best, Damage, FinalsPlace, Log, LogError, LogLine, Origin, Ranked, Ranking};

use crate::{
    command::measure::{gflops_words, time_words},
    diagnostic::Diagnostic,
    term::table::Table,
    term::{shell::Shell, visible::visible},
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
        if shell.json {
            groups.iter().try_for_each(|it| shell.json(&data(it)))?;
        } else {
            for (n, group) in groups.iter().enumerate() {
                if n > 0 {
                    writeln!(shell.out)?;
                }
                print(group, shell)?;
            }
            if groups.is_empty() && failed.is_empty() {
                shell.note("the log has no trials");
            }
        }
        Diagnostic::all(failed).map_or(Ok(()), Err)
    }
}

/// What a reader of a log passes over: segments that are not read and torn ends one by one, damaged lines in one line.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    damaged: u64,
    first: Option<String>,
    others: Vec<String>,
    unread: Option<LogError>,
}

/// How many segments are named that are not read, or have torn ends.
const NAMED: usize = 8;

impl Noted {
    /// Of a log that was read as a whole.
    pub(crate) fn of(log: &Log) -> Noted {
        let mut it = Noted::default();
        log.damage.iter().for_each(|damage| it.damage(damage));
        log.torn.iter().for_each(|torn| it.others.push(torn.to_string()));
        it
    }

    /// Takes note of a line that is no record.
    pub(crate) fn line(&mut self, line: &LogLine<'_>) {
        match line {
            LogLine::Record { .. } => {}
            LogLine::Damage(it) => self.damage(it),
            LogLine::Torn(it) => self.others.push(it.to_string()),
        }
    }

    fn damage(&mut self, it: &Damage) {
        if let Some(err) = it.unread() {
            self.others.push(it.to_string());
            self.unread.get_or_insert(err);
        } else {
            self.damaged += 1;
            self.first.get_or_insert_with(|| it.to_string());
        }
    }

    /// Says so. Comes back with why a segment is not read, if there is one.
    pub(crate) fn tell(self, log: &Path, shell: &mut Shell<'_>) -> Option<LogError> {
        let rest = self.others.len().saturating_sub(NAMED);
        self.others.into_iter().take(NAMED).for_each(|it| shell.note(&visible(it)));
        let all = format!("`tilewright log verify {}` tells all", log.display());
        if rest > 0 {
            shell.note(&visible(format!("and {rest} more; {all}")));
        }
        if let Some(first) = self.first {
            let more =
                if self.damaged > 1 { format!(" ({} such lines)", self.damaged) } else { String::new() };
            shell.note(&visible(format!("{first}{more}; {all}")));
        }
        self.unread
    }
}

fn data(group: &Ranked) -> Value {
    let problem = group.problem.as_ref();
    let best = group.best.iter().enumerate().map(|(n, it)| {
        json!({
            "rank": n + 1, "run": it.run, "n": it.n, "id": it.id, "gflops": it.gflops, "seconds": it.seconds,
            "screened": it.screened, "final": it.finals.map(|it| json!({"place": it.place, "gflops": it.gflops, "tied": it.tied})),
            "decisions": it.decisions, "origin": it.origin, "registers": it.registers,
            "spill_bytes": it.spill_bytes, "shared_bytes": it.shared_bytes, "threads": it.threads,
        })
    });
    json!({
        "ok": true,
        "workload": problem.map(|it| &it.workload),
        "workload_id": problem.map(|it| &it.workload_id),
        "dims": problem.map(|it| &it.dims),
        "params": group.params,
        "target": problem.map(|it| &it.target),
        "machine": problem.map(|it| &it.machine),
        "trials": group.trials, "failed": group.failed, "suspicious": group.suspicious,
        "best": best.collect::<Vec<_>>(),
    })
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
    table(&group.best).print(shell.out)?;
    Ok(())
}

/// Columns that say the same of all are left out.
fn table(best: &[Best]) -> Table {
    let runs = best.iter().any(|it| it.run != best[0].run);
    let finals = best.iter().any(|it| it.finals.is_some());
    let resources = best.iter().any(|it| it.registers.is_some());
    let heads = ["rank"]
        .into_iter()
        .chain(runs.then_some("run"))
        .chain(["n", "GFLOPS", "time"])
        .chain(finals.then_some(["final", "GFLOPS there"]).into_iter().flatten())
        .chain(resources.then_some(["registers", "spilled", "shared", "threads"]).into_iter().flatten())
        .chain(["origin", "decisions"]);
    let mut table = Table::new(heads);
    let dash = || "—".to_owned();
    for (n, it) in best.iter().enumerate() {
        let mut row = vec![(n + 1).to_string()];
        row.extend(runs.then(|| it.run.clone()));
        row.extend([it.n.to_string(), gflops_words(it.gflops), time_words(it.seconds)]);
        if finals {
            let place = |it: FinalsPlace| format!("{}{}", it.place, if it.tied { ", tied" } else { "" });
            row.push(it.finals.map_or_else(dash, place));
            row.push(it.finals.and_then(|it| it.gflops).map_or_else(dash, gflops_words));
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
