//! How long the loops are that steps make.

use std::ops::Range;

use ir::Func;

use super::script::Script;
use crate::made::new_loops;

/// The most loops that are told behind a step.
const MOST_LOOPS: usize = 4;

/// A word that is shown in the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hint {
    pub(super) at: usize,
    pub(super) label: String,
}

/// The extents of the loops that each step makes: beside their names, or behind the step where it does not name them.
pub(super) fn hints(script: &Script) -> Vec<Hint> {
    let Some(plan) = &script.plan else { return vec![] };
    let mut out = vec![];
    let mut before = &plan.func;
    let mut states = script.states.iter().peekable();
    while let Some(it) = states.next() {
        // The steps of a call are told together.
        if states.peek().is_some_and(|next| next.span == it.span) {
            continue;
        }
        out.extend(of_step(script, &it.span, before, &it.func));
        before = &it.func;
    }
    out
}

fn of_step(script: &Script, span: &Range<usize>, before: &Func, after: &Func) -> Vec<Hint> {
    let (mut out, mut others) = (vec![], vec![]);
    for it in new_loops(before, after) {
        match named(script, span, it.var.as_str()) {
            Some((at, value)) if value != it.extent.to_string() => {
                out.push(Hint { at, label: format!("= {}", it.extent) });
            }
            Some(_) => {}
            None => others.push(format!("{}: {}", it.var, it.extent)),
        }
    }
    if !others.is_empty() {
        let more = others.len().saturating_sub(MOST_LOOPS);
        let rest = if more > 0 { format!(", {more} more") } else { String::new() };
        others.truncate(MOST_LOOPS);
        out.push(Hint { at: span.end, label: format!("{}{rest}", others.join(", ")) });
    }
    out
}

/// Where a step says a name: the place behind it and its value, and that value.
fn named(script: &Script, span: &Range<usize>, name: &str) -> Option<(usize, String)> {
    let is_it = |range: &Range<usize>| script.text[range.clone()].trim_matches('"') == name;
    let inside =
        script.outline.nodes.iter().filter(|it| span.start <= it.span.start && it.span.end <= span.end);
    let mut entries = inside.flat_map(|it| &it.entries);
    entries.find_map(|it| {
        let value = it.value.map(|it| script.outline.nodes[it].span.clone());
        match (&it.key, value) {
            (Some(key), Some(value)) if is_it(key) => Some((value.end, script.text[value].to_owned())),
            (_, Some(value)) if is_it(&value) => Some((value.end, String::new())),
            _ => None,
        }
    })
}
