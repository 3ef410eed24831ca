//! What may be written at a place: steps, their fields, and the loops, blocks and buffers that exist there.

use std::{ops::Range, path::Path};

use ir::{Func, Name, pipeline};
use schedule::{
    Thing,
    fields::{Field, Shape, Takes, fields, words},
    primitive,
};

use super::{
    describe::{describe, names_of},
    outline::NodeKind,
    script::Script,
    slot::{Part, Place, Slot},
    top::{OF_LIBRARIES, TOP, top_values},
};
use crate::text_file::Unsaved;

/// Something that may be written.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Item {
    pub(super) label: String,
    pub(super) kind: ItemKind,
    /// What it is, in a few words.
    pub(super) detail: String,
    /// Its manual, as Markdown.
    pub(super) manual: Option<String>,
    /// What is written, with stops for what has to be said: `${1:name}`.
    pub(super) snippet: String,
    /// What it takes the place of.
    pub(super) replaces: Range<usize>,
}

/// What an item is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ItemKind {
    Step,
    Procedure,
    Field,
    Name,
    Word,
}

/// What may be written at a place of a script.
pub(super) fn complete(script: &Script, path: &Path, offset: usize, unsaved: &Unsaved) -> Vec<Item> {
    let Some(place) = Place::of(&script.text, &script.outline, offset) else { return vec![] };
    match &place.slot {
        Slot::Step => steps(script, &place, offset),
        Slot::Key { call } => keys(script, &place, *call, offset),
        Slot::Value { call, key, part } => {
            if Some(*call) == script.outline.root {
                let all = top_values(script, path, key, *part, &place, unsaved);
                return all
                    .into_iter()
                    .map(|(label, detail)| quoted(&place, offset, &label, detail))
                    .collect();
            }
            values(script, &place, offset)
        }
    }
}

/// Steps: primitives, what holds lists of them, and procedures.
fn steps(script: &Script, place: &Place<'_>, offset: usize) -> Vec<Item> {
    let word = place.leaf(offset);
    let replaces = word.clone().unwrap_or(offset..offset);
    // The brackets of a step that is there already stay.
    let is_call = place.entry().value.is_some_and(|it| place.outline.nodes[it].kind == NodeKind::Call);
    let is_call = is_call && word.is_some();
    let comma = if is_call || ends_with_comma(place, replaces.end) { "" } else { "," };
    let item = |label: &str, kind, about: &str, manual: String, call: String| Item {
        label: label.to_owned(),
        kind,
        detail: about.to_owned(),
        manual: Some(manual),
        snippet: if is_call { label.to_owned() } else { format!("{call}{comma}") },
        replaces: replaces.clone(),
    };
    let primitives = primitive::names().chain(primitive::forms()).map(|name| {
        let manual = primitive::explain(name).unwrap_or_default();
        let about = manual.lines().next().unwrap_or_default().to_owned();
        item(name, ItemKind::Step, &about, manual, call_of(name, fields(name)))
    });
    let procedures = script.definitions.iter().flat_map(|all| {
        all.callable().map(|it| {
            let needed = it.params.iter().filter(|param| !it.defaults.contains_key(*param));
            let arguments: Vec<_> =
                needed.enumerate().map(|(n, param)| format!("{param}: ${{{}}}", n + 1)).collect();
            let call = format!("{}({})", it.name, arguments.join(", "));
            item(&it.name, ItemKind::Procedure, it.summary(), all.manual(it), call)
        })
    });
    primitives.chain(procedures).collect()
}

fn ends_with_comma(place: &Place<'_>, end: usize) -> bool {
    place.text[end..].trim_start().starts_with(',')
}

/// A step with its needed fields, and stops where their values go.
fn call_of(name: &str, all: &[Field]) -> String {
    let mut stop = 0;
    let needed: Vec<_> = all.iter().filter(|it| it.is_needed).map(|it| field_of(it, &mut stop)).collect();
    format!("{name}({})", needed.join(", "))
}

/// A field with stops where its value goes.
fn field_of(field: &Field, stop: &mut usize) -> String {
    let mut next = || {
        *stop += 1;
        format!("${{{stop}}}")
    };
    let is_name = |it: Takes| matches!(it, Takes::Thing(_) | Takes::Fresh);
    let mut one = |it: Takes| if is_name(it) { format!("\"{}\"", next()) } else { next() };
    let value = match field.shape {
        Shape::One | Shape::OneOrMap => one(field.takes),
        Shape::List => format!("[{}]", one(field.takes)),
        Shape::Steps => format!("[{}]", one(Takes::Other)),
        Shape::Map | Shape::ListOrMap if field.keys == Takes::Other => format!("{{{}}}", one(Takes::Other)),
        Shape::Map | Shape::ListOrMap => {
            let key = one(field.keys);
            let value = one(if field.keys == field.takes { Takes::Number } else { field.takes });
            format!("{{{key}: {value}}}")
        }
        Shape::MapOfLists => format!("{{{}: [{}]}}", one(field.keys), one(field.takes)),
    };
    format!("{}: {value}", field.name)
}

/// The fields of a call that are not there yet.
fn keys(script: &Script, place: &Place<'_>, call: usize, offset: usize) -> Vec<Item> {
    let replaces = place.leaf(offset).unwrap_or(offset..offset);
    let has_value = place.entry().key.is_some();
    let given: Vec<&str> = place.outline.nodes[call]
        .entries
        .iter()
        .filter_map(|it| it.key.clone().filter(|it| *it != replaces))
        .map(|it| &place.text[it])
        .collect();
    let item = |name: &str, about: &str, written: String| Item {
        label: name.to_owned(),
        kind: ItemKind::Field,
        detail: about.to_owned(),
        manual: None,
        snippet: if has_value { name.to_owned() } else { written },
        replaces: replaces.clone(),
    };
    let of_field = |it: &Field| item(&it.name, &it.about, field_of(it, &mut 0));
    let word = place.word(call);
    let all: Vec<Item> = if Some(call) == place.outline.root {
        let is_due = |name: &str| word != "library" || OF_LIBRARIES.contains(&name);
        TOP.iter()
            .filter(|it| is_due(it.0))
            .map(|(name, about, written)| item(name, about, format!("{name}: {written}")))
            .collect()
    } else if !place.outline.is_step(place.text, call) {
        let of_definition = ["about", "params", "defaults", "example", "steps"];
        let fields = if word == "procedure" { &of_definition[..] } else { &[] };
        fields.iter().map(|it| item(it, "", format!("{it}: ${{1}}"))).collect()
    } else if let Some(it) = procedure(script, word) {
        let default = |param: &String| match it.defaults.get(param) {
            Some(default) => format!("{default} unless given"),
            None => "it has to be given".to_owned(),
        };
        it.params.iter().map(|param| item(param, &default(param), format!("{param}: ${{1}}"))).collect()
    } else {
        fields(word).iter().map(of_field).collect()
    };
    all.into_iter().filter(|it| !given.contains(&it.label.as_str())).collect()
}

/// The procedure that a script calls by a word.
pub(super) fn procedure<'a>(script: &'a Script, word: &str) -> Option<&'a schedule::procedure::Procedure> {
    script.definitions.as_ref()?.callable().find(|it| *it.name == *word)
}

/// The values of a field of a step.
fn values(script: &Script, place: &Place<'_>, offset: usize) -> Vec<Item> {
    let Slot::Value { call, part, .. } = &place.slot else { return vec![] };
    let step = place.outline.nodes[*call].span.start;
    // A library has no program, and its steps have words all the same.
    let func = script.before(step);
    let name = |name: &Name, thing: Option<Thing>| {
        let about = func.and_then(|it| describe(it, name, thing)).unwrap_or_default().replace(['*', '`'], "");
        quoted(place, offset, name.as_str(), about)
    };
    let all = |thing: Thing| -> Vec<Item> {
        let names = func.map(|it| names_of(it, thing)).unwrap_or_default();
        names.into_iter().map(|it| name(&it, Some(thing))).collect()
    };
    let Some(takes) = place.takes() else {
        // An argument of a procedure may be any name.
        let things = [Thing::Loop, Thing::Block, Thing::Buffer];
        let names = things.into_iter().filter_map(|it| Some((it, names_of(func?, it))));
        let names = names.flat_map(|(thing, all)| all.into_iter().map(move |name| (name, thing)));
        let mut seen = std::collections::BTreeSet::new();
        let names = names.filter(|it| *part == Part::Value && seen.insert(it.0.clone()));
        return names.map(|(it, thing)| name(&it, Some(thing))).collect();
    };
    match takes {
        Takes::Thing(Thing::Block) => {
            // The annotations of a pipeline name parts of those inside it, too.
            let inner = func.into_iter().flat_map(ir::Func::loops).filter(|it| pipeline::is_pipeline(it));
            let parts = inner.flat_map(|it| pipeline::part_names(&it.var));
            let parts = parts.filter(|_| place.word(*call).starts_with("software_pipeline"));
            let parts = parts.map(|it| quoted(place, offset, it.as_str(), "a part of a pipeline".to_owned()));
            all(Thing::Block).into_iter().chain(parts).collect()
        }
        Takes::Thing(thing @ (Thing::Loop | Thing::Buffer)) => all(thing),
        Takes::Thing(Thing::Iterator) => {
            iterators(place, *call, func).iter().map(|it| name(it, None)).collect()
        }
        Takes::Thing(Thing::Role) => {
            let roles = roles(place, *call);
            roles.iter().map(|it| quoted(place, offset, it, "a role".to_owned())).collect()
        }
        Takes::Thing(Thing::Knob) | Takes::Number => knobs(script, place, offset),
        Takes::Thing(thing) => {
            let word = place.word(*call);
            words(word, thing).iter().map(|it| quoted(place, offset, it, String::new())).collect()
        }
        Takes::Flag => ["true", "false"].map(|it| plain(place, offset, it)).to_vec(),
        Takes::Fresh | Takes::Other => vec![],
    }
}

/// The iterators of the block that a step names, and the loops that they are.
fn iterators(place: &Place<'_>, call: usize, func: Option<&Func>) -> Vec<Name> {
    let block = place.outline.field(place.text, call, "block").and_then(|it| it.value);
    let block = block.map(|it| place.text[place.outline.nodes[it].word.clone()].trim_matches('"'));
    let block = block.zip(func).and_then(|(it, func)| func.find_block(&Name::new(it)));
    let iters = block.into_iter().flat_map(|it| &it.iters);
    iters.flat_map(|it| it.binding.as_var().into_iter().chain([&it.var])).cloned().collect()
}

/// The roles that a step gives to warps, and what is left to the others.
fn roles<'a>(place: &Place<'a>, call: usize) -> Vec<&'a str> {
    let map = place.outline.field(place.text, call, "roles").and_then(|it| it.value);
    let entries = map.into_iter().flat_map(|it| &place.outline.nodes[it].entries);
    let roles = entries.filter_map(|it| it.key.clone()).map(|it| place.text[it].trim_matches('"'));
    roles.chain([pipeline::COMPUTE]).collect()
}

/// The knobs and values of a script, which may stand where numbers do.
fn knobs(script: &Script, place: &Place<'_>, offset: usize) -> Vec<Item> {
    let Some(plan) = &script.plan else { return vec![] };
    let knobs = plan.script.knobs.keys().map(|it| (it, "a knob"));
    let values = plan.script.values.keys().map(|it| (it, "a value"));
    knobs.chain(values).map(|(it, about)| quoted(place, offset, it.as_str(), about.to_owned())).collect()
}

/// A text in quotes, in place of what stands there.
fn quoted(place: &Place<'_>, offset: usize, label: &str, detail: String) -> Item {
    let leaf = place.leaf(offset).unwrap_or(offset..offset);
    let now = &place.text[leaf.clone()];
    let is_text = now.starts_with('"') && offset > leaf.start;
    let is_closed = is_text && now.len() > 1 && now.ends_with('"') && offset < leaf.end;
    let (replaces, snippet) = match (is_text, is_closed) {
        (true, true) => (leaf.start + 1..leaf.end - 1, label.to_owned()),
        (true, false) => (leaf.start + 1..offset, format!("{label}\"")),
        (false, _) => (leaf, format!("\"{label}\"")),
    };
    let label = label.to_owned();
    Item { label, kind: ItemKind::Name, detail, manual: None, snippet, replaces }
}

/// A word without quotes.
fn plain(place: &Place<'_>, offset: usize, label: &str) -> Item {
    let replaces = place.leaf(offset).unwrap_or(offset..offset);
    let (label, snippet) = (label.to_owned(), label.to_owned());
    Item { label, kind: ItemKind::Word, detail: String::new(), manual: None, snippet, replaces }
}
