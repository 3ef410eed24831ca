//! Entrants on the virtual GPU: what they count, for there is no time.

use ir::Arch;
use serde_json::{Map, Value, json};

use super::{
    Compare,
    entrant::Entrant,
    fail_on::FailOn,
    report::{print_steps, steps_apart},
};
use crate::{
    command::inspect::{self, COUNTS},
    diagnostic::Diagnostic,
    term::shell::Shell,
    term::table::{Table, grouped},
    usage_error::UsageError,
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
        let came = inspect::scheduled(plan, &entrant.name, arch, it.how.seed, shell)?;
        counts.push(came.counts());
        wrong.extend(came.verdict(&entrant.name));
    }
    shell.done();
    let different = counts.iter().any(|it| *it != counts[0]);
    let wrong = Diagnostic::all(wrong);
    let unwanted = different && it.fail_on == Some(FailOn::Different);
    if shell.json {
        let told: Vec<Value> = entrants.iter().zip(&counts).map(|(it, counts)| data(it, counts)).collect();
        shell.json(&json!({
            "ok": wrong.is_none() && !unwanted,
            "method": "counters",
            "workload": entrants[0].script.workload,
            "params": entrants[0].params,
            "dims": entrants[0].dims,
            "entrants": told,
            "different": different,
            "fail_on": it.fail_on.map(|it| it.to_string()),
        }))?;
    } else {
        print(entrants, &counts, shell)?;
    }
    match wrong {
        Some(report) => Err(report),
        None if unwanted => Err(Diagnostic::failed(UsageError::FailOn, "their counters differ")),
        None => Ok(()),
    }
}

fn data(it: &Entrant, counts: &[u64]) -> Value {
    let counts: Map<String, Value> =
        COUNTS.iter().zip(counts).map(|((_, name), count)| ((*name).to_owned(), json!(count))).collect();
    let steps: Vec<String> = it.steps.iter().map(schedule::Step::to_ron).collect();
    json!({"name": it.name, "origin": it.origin.word(), "steps": steps, "counters": counts})
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
