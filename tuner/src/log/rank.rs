//! The best trials of a log, found in one pass and little memory.

use std::{borrow::Cow, cmp::Ordering, path::Path};

use indexmap::IndexMap;
use schedule::Decisions;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::{Entry, Finals, LogError, LogLine, Origin, Raw, Run, Trial, numbers::Numbers, scan};
use crate::{Work, bench::tied};

/// The best trials of logs. Those of different problems are not compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranking {
    keep: usize,
    groups: Vec<Ranked>,
    runs: IndexMap<String, Ran>,
}

/// The trials of one workload at its sizes on one kind of machine.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranked {
    /// What, if the head of the run is whole.
    pub problem: Option<Compared>,
    /// The parameters of the workload in the first of the runs.
    pub params: IndexMap<String, Value>,
    /// How many trials there are, in all runs.
    pub trials: u64,
    /// How many of them came to nothing.
    pub failed: u64,
    /// How many are faster than the machine can be. They have no rank.
    pub suspicious: u64,
    /// The best, the fastest first.
    pub best: Vec<Best>,
}

/// What trials have in common that are compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// The name of the workload.
    pub workload: String,
    /// SHA-256 of the unscheduled program.
    pub workload_id: String,
    /// The values of its symbolic dimensions.
    pub dims: IndexMap<ir::Name, i64>,
    /// The target, as on the command line.
    pub target: String,
    /// The model of the machine.
    pub machine: String,
    /// How much there is to do.
    pub work: Work,
}

/// A trial among the best.
#[derive(Clone, PartialEq, Debug)]
pub struct Best {
    /// The run.
    pub run: String,
    /// Its number there.
    pub n: u64,
    /// Its name.
    pub id: String,
    /// GFLOPS at the median.
    pub gflops: f64,
    /// The median in seconds.
    pub seconds: f64,
    /// Whether it was left after the screen.
    pub screened: bool,
    /// What became of it in the finals of its run.
    pub finals: Option<FinalsPlace>,
    /// What was decided.
    pub decisions: Decisions,
    /// Where it comes from.
    pub origin: Origin,
    /// The most registers of a thread, where a compiler told.
    pub registers: Option<u32>,
    /// Bytes of registers that a thread writes to memory for want of registers, in all kernels.
    pub spill_bytes: Option<u32>,
    /// The most shared memory of a block in bytes.
    pub shared_bytes: u32,
    /// The most threads of a block.
    pub threads: u64,
}

/// What became of a trial in finals.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FinalsPlace {
    /// Its place, from 1.
    pub place: usize,
    /// GFLOPS at the median there.
    pub gflops: Option<f64>,
    /// The median there in seconds.
    pub seconds: Option<f64>,
    /// Whether it ties with the winner ([`tied`]).
    pub tied: bool,
}

#[derive(Clone, PartialEq, Debug, Default)]
struct Ran {
    group: usize,
    seen: Numbers,
    finals: Option<Finals>,
}

/// What is read of every trial.
#[derive(Deserialize)]
struct Brief<'a> {
    #[serde(borrow)]
    run: Cow<'a, str>,
    n: u64,
    result: Option<BriefResult>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct BriefResult {
    stats: BriefStats,
    #[serde(default)]
    suspicious: bool,
}

#[derive(Deserialize)]
struct BriefStats {
    median: f64,
}

impl Ranking {
    /// Of nothing yet, to keep so many of each problem.
    pub fn new(keep: usize) -> Ranking {
        Ranking { keep, groups: vec![], runs: IndexMap::new() }
    }

    /// Adds the trials of a log, a folder or a segment. A trial that is there twice counts once. `other` is told of
    /// damage and of torn ends.
    pub fn add(&mut self, log: &Path, other: &mut dyn FnMut(LogLine<'_>)) -> Result<(), LogError> {
        scan(log, &mut |line| {
            match line {
                LogLine::Record { raw, .. } => self.record(raw),
                LogLine::Damage(_) | LogLine::Torn(_) => other(line),
            }
            std::ops::ControlFlow::Continue(())
        })
    }

    /// The problems in the order found, each with its best.
    pub fn finish(mut self) -> Vec<Ranked> {
        for group in &mut self.groups {
            for place in &mut group.best {
                let finals = self.runs.get(&place.run).and_then(|it| it.finals.as_ref());
                let found = finals.and_then(|it| it.finalists.iter().position(|it| it.n == Some(place.n)));
                let result = |it: &Finals, at: usize| {
                    it.finalists[at].result.as_ref().map(|it| (it.gflops, it.stats.median))
                };
                place.finals = finals.zip(found).map(|(it, at)| FinalsPlace {
                    place: at + 1,
                    gflops: result(it, at).map(|it| it.0),
                    seconds: result(it, at).map(|it| it.1),
                    tied: tied(it).contains(&at),
                });
            }
        }
        self.groups.retain(|it| it.trials > 0);
        self.groups
    }

    /// A record that cannot be read is no trial; `log verify` tells of it.
    fn record(&mut self, raw: Raw<'_>) {
        match raw.kind() {
            "trial" => {
                if let Ok(brief) = raw.fields() {
                    self.trial(&brief, raw);
                }
            }
            "run" => {
                if let Ok(Entry::Run(head)) = raw.entry() {
                    self.head(&head);
                }
            }
            "finals" => {
                if let Ok(Entry::Finals(finals)) = raw.entry() {
                    let run = self.run(&finals.run);
                    run.finals = Some(finals);
                }
            }
            _ => {}
        }
    }

    fn head(&mut self, head: &Run) {
        let problem = Compared {
            workload: head.workload.name.clone(),
            workload_id: head.workload.id.clone(),
            dims: head.workload.dims.clone(),
            target: head.target.clone(),
            machine: head.machine.name.clone(),
            work: head.workload.work(),
        };
        let group = self.group(Some(problem), &head.script.params);
        self.runs.entry(head.run.clone()).or_default().group = group;
    }

    fn group(&mut self, problem: Option<Compared>, params: &IndexMap<String, Value>) -> usize {
        let found = self.groups.iter().position(|it| it.problem == problem);
        found.unwrap_or_else(|| {
            let params = params.clone();
            self.groups.push(Ranked { problem, params, trials: 0, failed: 0, suspicious: 0, best: vec![] });
            self.groups.len() - 1
        })
    }

    fn run(&mut self, name: &str) -> &mut Ran {
        if !self.runs.contains_key(name) {
            let group = self.group(None, &IndexMap::new());
            self.runs.insert(name.to_owned(), Ran { group, ..Ran::default() });
        }
        &mut self.runs[name]
    }

    fn trial(&mut self, brief: &Brief<'_>, raw: Raw<'_>) {
        let keep = self.keep;
        let run = self.run(&brief.run);
        if !run.seen.insert(brief.n) {
            return;
        }
        let group = run.group;
        let group = &mut self.groups[group];
        group.trials += 1;
        let Some(result) = brief.result.as_ref().filter(|_| brief.error.is_none()) else {
            group.failed += 1;
            return;
        };
        if result.suspicious {
            group.suspicious += 1;
            return;
        }
        let better = |it: &Best| it.seconds.total_cmp(&result.stats.median) != Ordering::Greater;
        let at = group.best.partition_point(better);
        if at < keep
            && let Ok(Entry::Trial(trial)) = raw.entry()
            && let Some(place) = Best::of(trial)
        {
            group.best.insert(at, place);
            group.best.truncate(keep);
        }
    }
}

impl Best {
    /// None where the numbers were wrong, whatever else the entry says.
    fn of(trial: Trial) -> Option<Best> {
        let result = trial.result.filter(|it| it.before.is_ok() && it.after.is_ok())?;
        let launches = &trial.launches;
        let dynamic = |kernel: &str| {
            launches.iter().filter(|it| it.kernel == kernel).map(|it| it.shared_bytes).max().unwrap_or(0)
        };
        let shared = trial.res.iter().map(|it| it.static_shared_bytes.saturating_add(dynamic(&it.kernel)));
        let threads = launches.iter().map(|it| it.block.iter().map(|it| u64::from(*it)).product());
        Some(Best {
            n: trial.n,
            id: trial.id,
            gflops: result.gflops,
            seconds: result.stats.median,
            screened: result.screened,
            finals: None,
            decisions: trial.decisions,
            origin: trial.origin,
            registers: trial.res.iter().map(|it| it.registers).max(),
            spill_bytes: trial.res.iter().map(|it| it.spill_store_bytes).reduce(u32::saturating_add),
            shared_bytes: shared.chain(launches.iter().map(|it| it.shared_bytes)).max().unwrap_or(0),
            threads: threads.max().unwrap_or(0),
            run: trial.run,
        })
    }
}
