//! What is at a place, in words: manuals of steps and fields, and what names mean at that step.

use std::{ops::Range, path::Path};

use ir::{Name, intrin};
use schedule::{Thing, fields::fields, primitive, procedure::Definitions, workload};

use super::{
    completion::procedure,
    describe::{describe, nest},
    script::Script,
    slot::{Place, Slot},
};
use crate::{
    command::explain::intrinsic::Manual, script_text::find_library, source::find_workload, text_file::Unsaved,
};

/// What is at a place of a script, as Markdown, and what it is said of.
pub(super) fn hover(
    script: &Script,
    path: &Path,
    offset: usize,
    unsaved: &Unsaved,
) -> Option<(Range<usize>, String)> {
    let (text, outline) = (&*script.text, &script.outline);
    let step = outline.step_at(text, offset);
    if let Some(step) = step {
        let node = &outline.nodes[step];
        if node.word.start <= offset && offset <= node.word.end {
            return Some((node.word.clone(), step_words(script, step)?));
        }
    }
    let (leaf, _) = outline.leaf_at(offset)?;
    let place = Place::of(text, outline, offset)?;
    let word = text[leaf.clone()].trim_matches('"');
    let words = match &place.slot {
        Slot::Key { call } if Some(*call) == outline.root => top_words(script, word),
        Slot::Key { call } => field_words(script, &place, *call, word),
        Slot::Value { call, key, .. } if Some(*call) == outline.root => match key.as_str() {
            "workload" => workload_words(script, unsaved),
            "use" => library_words(path, word, unsaved),
            "knobs" | "values" => knob_words(script, word),
            _ => None,
        },
        Slot::Value { .. } => value_words(script, &place, step?, word),
        Slot::Step => None,
    };
    Some((leaf, words?))
}

/// The manual of a step, and the nest that it leaves.
fn step_words(script: &Script, step: usize) -> Option<String> {
    let node = &script.outline.nodes[step];
    let word = &script.text[node.word.clone()];
    let manual = match procedure(script, word) {
        Some(it) => script.definitions.as_ref()?.manual(it),
        None => primitive::explain(word)?,
    };
    let state = script.after(&node.span).map(|func| {
        let known = |it: &&Name| func.is_taken(it);
        let names = names_in(script, step);
        let made = script.states.iter().filter(|it| it.span == node.span);
        let is_refused = made.into_iter().any(|it| it.is_refused);
        let names: Vec<Name> = names.iter().filter(known).cloned().collect();
        let when = if is_refused { "It is refused, and leaves" } else { "After it" };
        format!("\n\n---\n\n{when}:\n\n{}", nest(func, &names))
    });
    Some(format!("`{word}`\n\n{}{}", manual.trim_end(), state.unwrap_or_default()))
}

/// The texts in a step, which may be names.
fn names_in(script: &Script, step: usize) -> Vec<Name> {
    let span = &script.outline.nodes[step].span;
    let texts = script.text[span.clone()].split('"').skip(1).step_by(2);
    texts.map(Name::new).filter(Name::is_valid).collect()
}

/// What a field of a script is.
fn top_words(script: &Script, word: &str) -> Option<String> {
    let about = super::top::TOP.iter().find(|it| it.0 == word).map(|it| it.1)?;
    let last = script.states.last().map(|it| &it.func).or(script.plan.as_ref().map(|it| &it.func));
    let program =
        last.filter(|_| word == "steps").map(|it| format!("\n\nAfter all of them:\n\n{}", nest(it, &[])));
    Some(format!("`{word}`: {about}{}", program.unwrap_or_default()))
}

/// What a field of a step or a parameter of a procedure is.
fn field_words(script: &Script, place: &Place<'_>, call: usize, word: &str) -> Option<String> {
    let step = place.word(call);
    if let Some(it) = procedure(script, step) {
        let default = it.defaults.get(word).map(|it| format!("; {it} unless given")).unwrap_or_default();
        return it
            .params
            .iter()
            .any(|it| it == word)
            .then(|| format!("`{word}`: a parameter of `{step}`{default}"));
    }
    let field = fields(step).iter().find(|it| it.name == word)?;
    let needed = if field.is_needed { "" } else { " It may be left out." };
    Some(format!("`{word}`: {}{needed}", field.about))
}

/// What a value in a step is.
fn value_words(script: &Script, place: &Place<'_>, step: usize, word: &str) -> Option<String> {
    let span = &script.outline.nodes[step].span;
    let name = Name::new(word);
    let thing = place.thing();
    if thing == Some(Thing::Intrinsic) {
        return intrin::find(word).map(|it| format!("```text\n{}\n```", Manual::of(it).text().trim_end()));
    }
    if thing == Some(Thing::Knob) {
        return knob_words(script, word);
    }
    // What a step makes is there only afterwards.
    let (before, after) = (script.before(span.start)?, script.after(span)?);
    let (func, when) =
        if before.is_taken(&name) { (before, "Before this step") } else { (after, "After this step") };
    let Some(words) = describe(func, &name, thing) else { return knob_words(script, word) };
    let made = script.maker(&name, span.end).map(|it| {
        let line = script.text[..it.span.start].matches('\n').count() + 1;
        let step = script.text[it.span.clone()].split_whitespace().collect::<Vec<_>>().join(" ");
        let step: String = step.chars().take(100).collect();
        format!("\n\nMade in line {line} by `{step}`")
    });
    Some(format!("{words}{}\n\n{when}:\n\n{}", made.unwrap_or_default(), nest(func, &[name])))
}

/// What a knob or a value may be.
fn knob_words(script: &Script, word: &str) -> Option<String> {
    let value = &script.outline.nodes[script.knob(word)?.value?];
    let is_knob = script.plan.as_ref().is_some_and(|it| it.script.knobs.contains_key(word));
    let what = if is_knob { "knob" } else { "value" };
    Some(format!("**{what}** `{word}`: `{}`", script.text[value.span.clone()].trim_matches('"')))
}

/// What a library has.
fn library_words(path: &Path, word: &str, unsaved: &Unsaved) -> Option<String> {
    let find = |name: &str, user: &str| find_library(name, user, unsaved);
    let (name, text) = find(word, &path.display().to_string()).ok()?;
    let library = Definitions::of_library(&name, &text, &find).ok()?;
    let has = library.own().map(|it| format!("* `{}`: {}", it.name, it.summary())).collect::<Vec<_>>();
    Some(format!("**library** `{word}`: {}\n\n{}", library.about, has.join("\n")))
}

/// What a workload computes.
fn workload_words(script: &Script, unsaved: &Unsaved) -> Option<String> {
    let plan = script.plan.as_ref()?;
    let (file, text) = find_workload(&plan.text, &plan.script, unsaved).ok()?;
    let program = format!("\n\n{}", nest(&plan.func, &[]));
    if file.extension().is_some_and(|it| it == "tw") {
        return Some(program.trim_start().to_owned());
    }
    let it = workload::parse(&text).ok()?;
    let params: Vec<_> = it.params().into_iter().map(|(name, what)| format!("* `{name}`: {what}")).collect();
    Some(format!("**workload** `{}`: {}\n\n{}{program}", it.name(), it.about(), params.join("\n")))
}
