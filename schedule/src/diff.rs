//! What a step changed, as lines of the text form.

use std::fmt::Write as _;

use ir::Func;
use similar::{ChangeTag, TextDiff};

/// The difference of two programs, line by line: `-` before removed, `+` before added lines.
///
/// Lines that only moved in or out of a loop, and are indented differently, count as equal, and stand as they are
/// in the new program. Of equal lines only `context` around each change are shown, the others as one `…`.
pub fn diff(before: &Func, after: &Func, context: usize) -> String {
    diff_text(&ir::text::print(before).text, &ir::text::print(after).text, context)
}

/// The difference of two texts in the same form, of emitted sources for instance.
pub fn diff_text(before: &str, after: &str, context: usize) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let (old_words, new_words) = (trimmed(&old), trimmed(&new));
    let compared = TextDiff::from_slices(&old_words, &new_words);
    let lines: Vec<(ChangeTag, &str)> = compared
        .iter_all_changes()
        .filter_map(|change| {
            let line = match change.tag() {
                ChangeTag::Delete => old.get(change.old_index()?),
                ChangeTag::Insert | ChangeTag::Equal => new.get(change.new_index()?),
            };
            Some((change.tag(), *line?))
        })
        .collect();
    let near = |at: usize| {
        let around = at.saturating_sub(context)..lines.len().min(at.saturating_add(context + 1));
        lines[around].iter().any(|(tag, _)| *tag != ChangeTag::Equal)
    };
    let mut out = String::new();
    let mut skipping = false;
    for (at, (tag, line)) in lines.iter().enumerate() {
        if !near(at) {
            if !skipping {
                out.push_str("  …\n");
            }
            skipping = true;
            continue;
        }
        skipping = false;
        let sign = match tag {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        writeln!(out, "{sign} {line}").expect("strings take all text");
    }
    out
}

/// The difference of two texts as `diff -u` tells it and `patch` takes it, indentation and all; empty where they are the same.
pub fn unified(name: &str, before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().header(name, name).to_string()
}

fn trimmed<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    lines.iter().map(|it| it.trim_start()).collect()
}
