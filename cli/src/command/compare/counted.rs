//! Entrants on the virtual GPU: what they count, for there is no time.

use indexmap::IndexMap;
use ir::{Arch, Name};
use schedule::workload::Param;
use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Compare,
    entrant::{Entrant, Origin},
    fail_on::FailOn,
    report::{print_steps, steps_apart},
};
use crate::{
    constant::word,
    diagnostic::Diagnostic,
    term::report::Report,
    term::shell::Shell,
    term::table::{Table, grouped},
    usage_error::UsageError,
    virtual_gpu::{self, COUNTS},
};

pub(super) fn compare(
    it: &Compare,
    entrants: &[Entrant],
    arch: Option<&Arch>,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    if it.how.log.is_some() || matches!(it.fail_on, Some(FailOn::Slower(_) | FailOn::NotFaster)) {
        let title = "the virtual GPU has no clock: there is nothing to log, and nothing is slower";
        return Err(Diagnostic::usage(UsageError::Options, title)
            .help("`--fail-on different` fails where any counter differs".to_owned()));
    }
    let (mut counts, mut wrong) = (vec![], vec![]);
    for entrant in entrants {
        let plan = entrant.plan.as_ref().ok_or_else(|| {
            let title =
                format!("{} is a {}: the virtual GPU compares scripts", entrant.name, entrant.origin.word());
            Diagnostic::usage(UsageError::Options, title)
        })?;
        let came = virtual_gpu::scheduled(plan, &entrant.name, arch, it.how.seed, shell)?;
        counts.push(came.counts());
        wrong.extend(came.verdict(&entrant.name));
    }
    shell.done();
    let different = counts.iter().any(|it| *it != counts[0]);
    let wrong = Diagnostic::all(wrong);
    let unwanted = different && it.fail_on == Some(FailOn::Different);
    shell.report(&CountersCompared {
        ok: wrong.is_none() && !unwanted,
        method: word::Counters,
        workload: &entrants[0].script.workload,
        params: &entrants[0].params,
        dims: &entrants[0].dims,
        entrants: entrants.iter().zip(&counts).map(|(it, counts)| CountedEntrant::of(it, counts)).collect(),
        different,
        fail_on: it.fail_on.map(|it| it.to_string()),
        of: (entrants, &counts),
    })?;
    match wrong {
        Some(report) => Err(report),
        None if unwanted => Err(Diagnostic::failed(UsageError::FailOn, "their counters differ")),
        None => Ok(()),
    }
}

/// What a comparison on the virtual GPU found.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "of counters, on the virtual GPU")]
pub(crate) struct CountersCompared<'a> {
    /// Whether what was asked for is so.
    ok: bool,
    /// How it was compared.
    method: word::Counters,
    /// The workload.
    workload: &'a str,
    /// Its parameters.
    params: &'a IndexMap<String, Param>,
    /// The values of its symbolic dimensions.
    dims: &'a IndexMap<Name, i64>,
    /// All, the first the one to compare with.
    entrants: Vec<CountedEntrant<'a>>,
    /// Whether any counter differs.
    different: bool,
    /// What `--fail-on` asks for.
    fail_on: Option<String>,
    #[serde(skip)]
    of: (&'a [Entrant], &'a [[u64; COUNTS.len()]]),
}

/// What was counted of an entrant.
#[derive(Debug, Serialize, JsonSchema)]
struct CountedEntrant<'a> {
    /// What it is called.
    name: &'a str,
    /// Where it comes from.
    origin: Origin,
    /// Its steps.
    steps: Vec<String>,
    /// Each counter, over all kernels of the first run.
    counters: IndexMap<&'static str, u64>,
}

impl<'a> CountedEntrant<'a> {
    fn of(it: &'a Entrant, counts: &[u64; COUNTS.len()]) -> CountedEntrant<'a> {
        let counters = COUNTS.iter().zip(counts).map(|((_, name), count)| (*name, *count));
        let steps = it.steps.iter().map(schedule::Step::to_ron).collect();
        CountedEntrant { name: &it.name, origin: it.origin, steps, counters: counters.collect() }
    }
}

impl Report for CountersCompared<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        let (entrants, counts) = self.of;
        print(entrants, counts, shell)
    }
}

fn print(
    entrants: &[Entrant],
    counts: &[[u64; COUNTS.len()]],
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    let out = &mut *shell.out;
    writeln!(out, "on the virtual GPU, which has no clock: what is counted, and no verdict")?;
    for b in &entrants[1..] {
        let (removed, added) = steps_apart(&entrants[0].steps, &b.steps);
        writeln!(out, "\n{} against {}", b.name, entrants[0].name)?;
        print_steps(&removed, &added, out)?;
    }
    writeln!(out)?;
    let mut table =
        Table::new(["counter".to_owned()].into_iter().chain(entrants.iter().map(|it| it.name.clone())));
    for (at, (words, _)) in COUNTS.iter().enumerate() {
        let first = counts[0][at];
        let cell = |(n, it): (usize, &[u64; COUNTS.len()])| match it[at] {
            count if n == 0 || count == first || first == 0 => grouped(count),
            count => format!("{} ({:.2}x)", grouped(count), count as f64 / first as f64),
        };
        table.row([(*words).to_owned()].into_iter().chain(counts.iter().enumerate().map(cell)));
    }
    table.print(out)?;
    Ok(())
}
