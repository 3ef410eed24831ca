//! `tilewright show --emit diff`: what each step changes.

use ir::Target;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    constant::{True, word},
    diagnostic::Diagnostic,
    plan::Plan,
    term::code,
    term::code::Lang,
    term::report::Report,
    term::shell::Shell,
};

/// Prints what each of the first steps changes, or what one of them does.
pub(super) fn show(
    plan: &Plan,
    target: &Target,
    until: Option<usize>,
    only: Option<usize>,
    context: usize,
    shell: &mut Shell<'_>,
) -> Result<(), Diagnostic> {
    // All steps are applied first, so that a refusal shows no half of the story on standard output.
    let mut told = vec![];
    plan.walk(target, until, &mut |step, session| told.push((step.to_ron(), session.last_diff(context))))?;
    let mut is_first = true;
    for (n, (word, diff)) in told.iter().enumerate().filter(|(n, _)| only.is_none_or(|it| it == n + 1)) {
        shell.report(&StepDiff { ok: True, emit: word::Diff, step: n + 1, text: word, diff, is_first })?;
        is_first = false;
    }
    Ok(())
}

/// What a step changes.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "--emit diff")]
pub(crate) struct StepDiff<'a> {
    ok: True,
    /// What is shown.
    emit: word::Diff,
    /// The step, from 1.
    step: usize,
    /// The step as a script has it.
    text: &'a str,
    /// The difference of the programs before and after it.
    diff: &'a str,
    #[serde(skip)]
    is_first: bool,
}

impl Report for StepDiff<'_> {
    fn print(&self, shell: &mut Shell<'_>) -> Result<(), Diagnostic> {
        if !self.is_first {
            writeln!(shell.out)?;
        }
        let word = if shell.colour { code::ansi(self.text, Lang::Ron) } else { self.text.to_owned() };
        writeln!(shell.out, "step {}: {word}", self.step)?;
        shell.code(self.diff, Lang::Diff)
    }
}
