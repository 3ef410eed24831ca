//! Exercises in words.

use std::io;

use super::{
    check::{CheckResult, GoalResult},
    course::{Exercise, Goal},
};
use crate::term::{
    shell::{Shell, Style},
    wrap::{error_width, folded, narrow, wrapped},
};

/// A measured number: whole ones in groups, others with two places.
pub(super) fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        let text = format!("{:.0}", value.abs());
        let mut out = String::from(if value < 0.0 { "-" } else { "" });
        for (n, digit) in text.chars().enumerate() {
            if n > 0 && (text.len() - n).is_multiple_of(3) {
                out.push(',');
            }
            out.push(digit);
        }
        return out;
    }
    format!("{value:.2}")
}

/// An exercise that was checked: what is wrong, or what was learnt.
pub(super) fn result(
    exercise: &Exercise,
    result: &CheckResult,
    start: Option<f64>,
    shell: &mut Shell<'_>,
) -> io::Result<()> {
    let (style, mark) = if result.is_solved() { (Style::Good, "✓") } else { (Style::Bad, "✗") };
    let (mark, colour) = (shell.paint(style, mark), shell.colour);
    let out = &mut *shell.out;
    wrapped(&format!("{mark} {}: {}", exercise.name, exercise.lesson.title), "", "  ", out)?;
    if let Some(refused) = &result.refused {
        writeln!(out, "{}", folded(&refused.render(colour, error_width()), narrow()))?;
        return Ok(());
    }
    for (n, (goal, found)) in exercise.lesson.goals.iter().zip(&result.results).enumerate() {
        if !result.is_solved() {
            wrapped(&goal_words(goal, *found), "  ", "      ", out)?;
        } else if n == 0 {
            wrapped(&format!("learnt: {}", exercise.lesson.learnt), "  ", "    ", out)?;
            wrapped(&gained_words(goal, *found, start), "  ", "    ", out)?;
        }
    }
    Ok(())
}

fn goal_words(goal: &Goal, found: GoalResult) -> String {
    let what = goal.what.words();
    match (found.holds, found.value) {
        (true, Some(value)) => format!("✓ {what}: {}", number(value)),
        (_, Some(value)) => format!("✗ {what}: {}, want {}", number(value), goal.words()),
        (_, None) => format!("✗ {what}: none, want {}", goal.words()),
    }
}

/// `stride of `B` in the innermost loop: 512 -> 1`.
fn gained_words(goal: &Goal, found: GoalResult, start: Option<f64>) -> String {
    let word = |it: Option<f64>| it.map_or("—".to_owned(), number);
    format!("{}: {} -> {}", goal.what.words(), word(start), word(found.value))
}
