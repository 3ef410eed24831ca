//! Figures of logs against each other. They were not taken in the same rounds, and perhaps days apart, so that they count
//! only where everything else was the same, and a difference only from a wider margin on.

use tuner::{
    bench::{NO_FLOOR, verdict},
    bootstrap::unpaired_ratio,
};

use super::{
    Compare,
    entrant::{Entrant, Recorded},
    report::{EntrantReport, Figures, Method, Pair, Report, steps_apart},
    same,
};
use crate::{diagnostic::Diagnostic, usage_error::UsageError};

/// What counts as a difference: the clock of a machine drifts by more than one per cent between two runs.
const MARGIN: f64 = 0.05;

pub(super) fn compare(it: &Compare, entrants: &[Entrant]) -> Result<Report, Diagnostic> {
    let of = |it: &'_ Entrant| -> Result<Recorded, Diagnostic> {
        let none = |words: &str| Diagnostic::usage(UsageError::NoRun, format!("{}: {words}", it.name));
        let found = it.recorded.clone().ok_or_else(|| none("a script has no recorded figures"))?;
        if found.seconds.is_empty() { Err(none("the log has no result of it")) } else { Ok(found) }
    };
    let then = entrants.iter().map(of).collect::<Result<Vec<_>, _>>()?;
    for (b, entrant) in then.iter().zip(entrants).skip(1) {
        let differs = same::circumstances(&then[0], b);
        if !differs.is_empty() {
            let (a, b) = (&entrants[0].name, &entrant.name);
            let title = format!("the figures of {a} and {b} cannot be compared; {}", differs.join("; "));
            return Err(Diagnostic::usage(UsageError::Machine, title)
                .help("without `--recorded` both are made again and timed here".to_owned()));
        }
    }
    let target = same::concrete(&same::target(entrants, None)?, || None);
    let mut report = Report::new(entrants, &target, it.margin(MARGIN));
    report.method = Method::Recorded;
    report.machine = Some(then[0].machine.clone());
    report.regime = Some(then[0].regime);
    report.entrants = entrants.iter().zip(&then).map(|(it, then)| entrant_report(it, then)).collect();
    let pair = |(b, theirs): (&Entrant, &Recorded)| {
        let a = &entrants[0];
        let ratio = unpaired_ratio(&theirs.seconds, &then[0].seconds, 0);
        let (removed, added) = steps_apart(&a.steps, &b.steps);
        Pair {
            name: b.name.clone(),
            against: a.name.clone(),
            ratio,
            verdict: verdict(report.margin, ratio, Some(NO_FLOOR)),
            same_source: then[0].source == theirs.source,
            removed,
            added,
            program: (0, 0),
            code: None,
        }
    };
    report.pairs = entrants.iter().zip(&then).skip(1).map(pair).collect();
    Ok(report)
}

fn entrant_report(it: &Entrant, then: &Recorded) -> EntrantReport {
    EntrantReport {
        name: it.name.clone(),
        origin: it.origin,
        source_sha256: then.source.clone(),
        steps: it.steps.iter().map(schedule::Step::to_ron).collect(),
        launches: vec![],
        resources: then.resources.clone(),
        figures: Figures::recorded(then),
        failure: None,
    }
}
