//! `tilewright show --emit space`: the knobs of a script, its constraints, and what they leave.

use indexmap::IndexMap;
use ir::Name;
use schedule::Choice;
use schemars::JsonSchema;
use serde::Serialize;
use tuner::{Pruning, Space};

use crate::{
    constant::{True, word},
    diagnostic::Diagnostic,
    plan::Plan,
    term::report::Report,
    term::shell::Shell,
    term::table::{Table, grouped},
};

/// How many choices of a knob are written out; the rest is counted.
const SHOWN: usize = 12;

pub(crate) fn show(plan: &Plan, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
    let space = plan.space()?;
    shell.report(&SpaceReport::of(&space, space.pruning()))
}

/// The knobs of a script, its constraints, and what they leave. Sizes may leave the range in which readers of JSON keep numbers exact, so
/// they are texts.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "--emit space")]
pub(crate) struct SpaceReport {
    ok: True,
    /// What is shown.
    emit: word::Space,
    /// How many points there are before constraints.
    size: String,
    /// Whether the counts are exact, and not estimates from a part of the points.
    exact: bool,
    /// How many points were looked at.
    looked_at: String,
    /// How many repeat another, since a knob decides nothing in them.
    inactive: String,
    /// How many the constraints admit.
    admitted: String,
    /// Each knob with its choices.
    knobs: IndexMap<Name, Vec<Choice>>,
    /// Each constraint.
    constraints: Vec<Refusing>,
    #[serde(skip)]
    pruning: Pruning,
}

/// A constraint, and how many points it refuses.
#[derive(Debug, Serialize, JsonSchema)]
struct Refusing {
    /// As the script has it.
    text: String,
    /// How many points it refuses.
    refuses: String,
    /// How many of them no other refuses.
    only: String,
}

impl SpaceReport {
    fn of(space: &Space, pruning: Pruning) -> SpaceReport {
        let constraints = space.script().constraints.iter().zip(&pruning.constraints);
        let constraints = constraints.map(|(expr, it)| Refusing {
            text: expr.text().to_owned(),
            refuses: it.alone.to_string(),
            only: it.only.to_string(),
        });
        SpaceReport {
            ok: True,
            emit: word::Space,
            size: pruning.size.to_string(),
            exact: pruning.is_exact(),
            looked_at: pruning.looked_at.to_string(),
            inactive: pruning.inactive.to_string(),
            admitted: pruning.admitted.to_string(),
            knobs: space.axes().clone(),
            constraints: constraints.collect(),
            pruning,
        }
    }
}

impl Report for SpaceReport {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        writeln!(shell.out, "{}", heading(&self.pruning))?;
        if !self.knobs.is_empty() {
            writeln!(shell.out)?;
            let mut table = Table::new(["knob", "count", "choices"]);
            for (name, choices) in &self.knobs {
                table.row([name.to_string(), choices.len().to_string(), words(choices)]);
            }
            table.print(shell.out)?;
        }
        if !self.constraints.is_empty() {
            writeln!(shell.out)?;
            let mut table = Table::new(["constraint", "refuses", "only it"]);
            for (expr, it) in self.constraints.iter().zip(&self.pruning.constraints) {
                let about = |it| about(it, &self.pruning);
                table.row([expr.text.clone(), about(it.alone), about(it.only)]);
            }
            table.print(shell.out)?;
        }
        Ok(())
    }
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
