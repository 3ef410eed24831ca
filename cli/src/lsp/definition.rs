//! Where something was made.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use ir::Name;

use super::{
    completion::procedure,
    script::Script,
    slot::{Place, Slot},
};
use crate::{script_text::find_library, source::workload_file, text_file::Unsaved};

/// A place in a file.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    pub(super) text: Arc<str>,
    pub(super) span: Range<usize>,
}

/// Where what stands at a place of a script was made: a procedure in its definition, a loop, a block or a buffer in the step that
/// made it or in the file of the workload.
pub(super) fn definition(script: &Script, path: &Path, offset: usize, unsaved: &Unsaved) -> Option<Target> {
    let (text, outline) = (&*script.text, &script.outline);
    let own = |span| Target { path: path.to_owned(), text: script.text.clone(), span };
    let step = outline.step_at(text, offset);
    if let Some(step) = step {
        let word = &outline.nodes[step].word;
        if word.start <= offset && offset <= word.end {
            let it = procedure(script, &text[word.clone()])?;
            let (name, text, span) = script.definitions.as_ref()?.place_of(it);
            let is_file = Path::new(name).is_absolute() || Path::new(name) == path;
            return is_file.then(|| Target { path: name.into(), text: text.into(), span });
        }
    }
    let (leaf, _) = outline.leaf_at(offset)?;
    let place = Place::of(text, outline, offset)?;
    let word = text[leaf.clone()].trim_matches('"');
    match &place.slot {
        Slot::Value { call, key, .. } if Some(*call) == outline.root => match key.as_str() {
            "workload" => whole(&workload_file(path, word)?, unsaved),
            "use" => {
                let (name, text) = find_library(word, &path.display().to_string(), unsaved).ok()?;
                let is_file = Path::new(&name).is_absolute();
                is_file.then(|| Target { path: name.into(), text: text.into(), span: 0..0 })
            }
            _ => knob(script, word).map(own),
        },
        Slot::Value { .. } => {
            let name = Name::new(word);
            let end = outline.nodes[step?].span.end;
            if let Some(state) = script.maker(&name, end) {
                return Some(own(within(text, &state.span, word).unwrap_or_else(|| state.span.clone())));
            }
            let is_known = script.plan.as_ref()?.func.is_taken(&name);
            if is_known { in_workload(script, path, word, unsaved) } else { knob(script, word).map(own) }
        }
        Slot::Key { .. } | Slot::Step => None,
    }
}

/// Where a word stands in quotes.
fn within(text: &str, span: &Range<usize>, word: &str) -> Option<Range<usize>> {
    let at = span.start + text.get(span.clone())?.find(&format!("\"{word}\""))? + 1;
    Some(at..at + word.len())
}

/// The key of a knob or a value.
fn knob(script: &Script, word: &str) -> Option<Range<usize>> {
    script.knob(word)?.key.clone()
}

fn whole(path: &Path, unsaved: &Unsaved) -> Option<Target> {
    let text = unsaved.read(path).ok()?.into();
    Some(Target { path: path.to_owned(), text, span: 0..0 })
}

/// Where the file of a workload introduces a name; what ships has no file, and is shown where the script names it.
fn in_workload(script: &Script, path: &Path, word: &str, unsaved: &Unsaved) -> Option<Target> {
    let plan = script.plan.as_ref()?;
    let Some(file) = workload_file(path, &plan.script.workload.value) else {
        let span = plan.script.workload.span.clone();
        return Some(Target { path: path.to_owned(), text: script.text.clone(), span });
    };
    let it = whole(&file, unsaved)?;
    let all = 0..it.text.len();
    let span = if file.extension().is_some_and(|it| it == "tw") {
        let heads = ["for", "block", "in", "out", "temp"];
        heads.iter().find_map(|head| {
            let line = format!("{head} {word}");
            let ends = |at: &usize| {
                let next = it.text[at + line.len()..].chars().next();
                !next.is_some_and(|it| it.is_ascii_alphanumeric() || it == '_')
            };
            let at = it.text.match_indices(&line).map(|it| it.0).find(ends)?;
            Some(at + head.len() + 1..at + line.len())
        })
    } else {
        within(&it.text, &all, word)
    };
    Some(Target { span: span.unwrap_or(0..0), ..it })
}
