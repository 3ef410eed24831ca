//! Blame: which bytes of a step caused its refusal, and which name a program probably meant.

use std::ops::Range;

use ir::{Func, Loop, LoopKind, Name, Part, ThreadAxis, VerifyError, VerifyErrorKind};
use schedule::{Blame, ScheduleError, nearest};

/// The bytes within a step that are to blame for its refusal, if the step has them.
pub(crate) fn blamed_span(text: &str, step: &Range<usize>, err: &ScheduleError) -> Option<Range<usize>> {
    let slice = text.get(step.clone())?;
    let names = err.names();
    let found = match err.blame() {
        Blame::Name => None,
        Blame::Again => names.iter().find_map(|it| {
            let first = quoted(slice, it)?;
            let again = quoted(&slice[first.end..], it)?;
            Some(first.end + again.start..first.end + again.end)
        }),
        Blame::Field(field) => value(slice, field),
    };
    let found = found.or_else(|| names.iter().find_map(|it| quoted(slice, it)))?;
    Some(step.start + found.start..step.start + found.end)
}

/// A name where it first stands in quotes, without these.
fn quoted(slice: &str, name: &Name) -> Option<Range<usize>> {
    let start = slice.find(&format!("\"{name}\""))? + 1;
    Some(start..start + name.as_str().len())
}

/// The value of a field: a text without its quotes, or up to the end of the brackets, or up to the next comma.
fn value(slice: &str, field: &str) -> Option<Range<usize>> {
    let colon = slice.match_indices(field).find_map(|(at, _)| {
        let begins = !slice[..at].ends_with(|it: char| it == '_' || it.is_alphanumeric());
        let rest = slice[at + field.len()..].trim_start();
        (begins && rest.starts_with(':')).then(|| slice.len() - rest.len() + 1)
    })?;
    let rest = slice[colon..].trim_start();
    let start = slice.len() - rest.len();
    if let Some(inner) = rest.strip_prefix('"') {
        return inner.find('"').map(|len| start + 1..start + 1 + len);
    }
    let mut depth = 0usize;
    for (at, sign) in rest.char_indices() {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    return Some(start..start + at + 1);
                }
            }
            ')' | ',' if depth == 0 => return Some(start..start + at),
            _ => {}
        }
    }
    None
}

/// The loop with the most iterations, as far as known, of those bound to these axes.
pub(crate) fn longest_bound<'a>(func: &'a Func, axes: &[ThreadAxis]) -> Option<&'a Name> {
    let is_bound = |it: &&Loop| matches!(it.kind, LoopKind::Bound(to) if axes.contains(&to));
    let bound = func.loops().into_iter().filter(is_bound);
    bound.rev().max_by_key(|it| it.extent.as_int()).map(|it| &it.var)
}

/// A hint with the name that was probably meant by one that a program does not have.
pub(crate) fn did_you_mean(func: &Func, err: &VerifyError) -> Option<String> {
    let (name, known): (&Name, Vec<&Name>) = match &err.kind {
        VerifyErrorKind::NoSuchBuffer { buffer } => (buffer, func.buffers.keys().collect()),
        VerifyErrorKind::NotInScope { var, part, is_loop: false } => {
            let block = func.find_block(&err.at);
            let iters = block.into_iter().flat_map(|it| &it.iters).map(|it| &it.var);
            let around = func.loops_of(&err.at).or_else(|| func.path_to_loop(&err.at)).unwrap_or_default();
            let loops = around.into_iter().map(|it| &it.var).filter(|it| **it != err.at);
            let known = match part {
                Part::Shape | Part::IterExtent(_) => vec![],
                Part::Extent | Part::Binding(_) | Part::Guard => loops.collect(),
                Part::Init | Part::Body => iters.collect(),
            };
            (var, known.into_iter().chain(&func.dims).collect())
        }
        _ => return None,
    };
    nearest(name.as_str(), known.into_iter().map(Name::as_str)).map(|it| format!("did you mean `{it}`?"))
}
