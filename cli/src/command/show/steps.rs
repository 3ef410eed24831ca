//! `tilewright show --emit diff`: what each step changes.

use ir::Target;
use serde_json::json;

use crate::{
    diagnostic::Diagnostic,
    plan::Plan,
    term::{
        code::{self, Lang},
        shell::Shell,
    },
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
        if shell.json {
            shell.json(&json!({"ok": true, "emit": "diff", "step": n + 1, "text": word, "diff": diff}))?;
            continue;
        }
        if !is_first {
            writeln!(shell.out)?;
        }
        is_first = false;
        let word = if shell.colour { code::ansi(word, Lang::Ron) } else { word.clone() };
        writeln!(shell.out, "step {}: {word}", n + 1)?;
        shell.code(diff, Lang::Diff)?;
    }
    Ok(())
}
