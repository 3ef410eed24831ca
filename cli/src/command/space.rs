//! `tilewright show --emit space`: the knobs of a script, its constraints, and what they leave.

use schedule::Choice;
use serde_json::json;
use tuner::{Pruning, Space};

use crate::{
    diagnostic::Diagnostic,
    plan::Plan,
    term::shell::Shell,
    term::table::{Table, grouped},
};

/// How many choices of a knob are written out; the rest is counted.
const SHOWN: usize = 12;

pub(crate) fn show(plan: &Plan, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let space = plan.space()?;
    let pruning = space.pruning();
    if shell.json {
        return shell.json(&data(&space, &pruning));
    }
    writeln!(shell.out, "{}", heading(&pruning))?;
    if !space.axes().is_empty() {
        writeln!(shell.out)?;
        let mut table = Table::new(["knob", "count", "choices"]);
        for (name, choices) in space.axes() {
            table.row([name.to_string(), choices.len().to_string(), words(choices)]);
        }
        table.print(shell.out)?;
    }
    if !pruning.constraints.is_empty() {
        writeln!(shell.out)?;
        let mut table = Table::new(["constraint", "refuses", "only it"]);
        for (expr, it) in space.script().constraints.iter().zip(&pruning.constraints) {
            let about = |it| about(it, &pruning);
            table.row([expr.text().to_owned(), about(it.alone), about(it.only)]);
        }
        table.print(shell.out)?;
    }
    Ok(())
}

/// The sizes in sentences.
fn heading(it: &Pruning) -> String {
    let points = if it.size == 1 { "point" } else { "points" };
    let by = || format!(", judged by {} of them", grouped(it.looked_at));
    let judged = if it.is_exact() { String::new() } else { by() };
    let mut lines = vec![format!("{} {points}{judged}", grouped(it.size))];
    if it.inactive > 0 {
        let about = about(it.inactive, it);
        lines.push(format!("{about} repeat another, since a knob decides nothing in them"));
    }
    lines.push(format!("{} admitted ({})", about(it.admitted, it), share(it.admitted, it.size)));
    lines.join("\n")
}

/// A count, marked if it is an estimate.
fn about(count: u128, of: &Pruning) -> String {
    let mark = if of.is_exact() { "" } else { "~" };
    format!("{mark}{}", grouped(count))
}

fn share(part: u128, whole: u128) -> String {
    let percent = part as f64 / whole as f64 * 100.0;
    if percent > 0.0 && percent < 0.1 { format!("{percent:.1e} %") } else { format!("{percent:.1} %") }
}

fn words(choices: &[Choice]) -> String {
    let mut shown: Vec<_> = choices.iter().take(SHOWN).map(ToString::to_string).collect();
    if choices.len() > SHOWN {
        shown.push(format!("and {} more", choices.len() - SHOWN));
    }
    format!("[{}]", shown.join(", "))
}

fn data(space: &Space, pruning: &Pruning) -> serde_json::Value {
    // Sizes may leave the range in which readers of JSON keep numbers exact, so they are texts.
    let constraints = space.script().constraints.iter().zip(&pruning.constraints).map(|(expr, it)| {
        json!({"text": expr.text(), "refuses": it.alone.to_string(), "only": it.only.to_string()})
    });
    json!({
        "ok": true,
        "emit": "space",
        "size": pruning.size.to_string(),
        "exact": pruning.is_exact(),
        "looked_at": pruning.looked_at.to_string(),
        "inactive": pruning.inactive.to_string(),
        "admitted": pruning.admitted.to_string(),
        "knobs": space.axes(),
        "constraints": constraints.collect::<Vec<_>>(),
    })
}
