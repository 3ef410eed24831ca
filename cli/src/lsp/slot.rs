//! What may stand at a place of a script.

use std::ops::Range;

use schedule::{
    Thing,
    fields::{Field, Shape, Takes, fields},
};

use super::outline::{At, Entry, NodeKind, Outline};

/// What may stand at a place.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Slot {
    /// A step.
    Step,
    /// The name of a field of the script, or of what else the call of that word is.
    Key { call: usize },
    /// A value of a field.
    Value { call: usize, key: String, part: Part },
}

/// Which part of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// All of it, or an element of its list.
    Value,
    /// A key of its map.
    Key,
    /// A value of its map.
    OfKey,
}

/// A place in a script, and what may stand there.
#[derive(Clone, Debug)]
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) outline: &'a Outline,
    pub(super) at: At,
    pub(super) slot: Slot,
}

impl<'a> Place<'a> {
    /// What may stand at a place.
    pub(super) fn of(text: &'a str, outline: &'a Outline, offset: usize) -> Option<Place<'a>> {
        let at = outline.at(offset)?;
        let entry = &outline.nodes[at.node].entries[at.entry];
        let node = &outline.nodes[at.node];
        let is_key = is_key(outline, entry, offset);
        let slot = match node.kind {
            NodeKind::List if outline.is_step_list(text, at.node) => Slot::Step,
            NodeKind::Call if is_key => Slot::Key { call: at.node },
            NodeKind::Call => {
                let key = text[entry.key.clone()?].to_owned();
                Slot::Value { call: at.node, key, part: Part::Value }
            }
            NodeKind::List | NodeKind::Map => {
                let part = match node.kind {
                    NodeKind::Map if is_key => Part::Key,
                    NodeKind::Map => Part::OfKey,
                    _ => Part::Value,
                };
                let (call, key) = field_around(text, outline, at.node)?;
                Slot::Value { call, key, part }
            }
            NodeKind::Text | NodeKind::Word => return None,
        };
        Some(Place { text, outline, at, slot })
    }

    /// The word of a call.
    pub(super) fn word(&self, call: usize) -> &'a str {
        &self.text[self.outline.nodes[call].word.clone()]
    }

    /// The field of a step that the place is in the value of.
    pub(super) fn field(&self) -> Option<(&'a str, &'static Field)> {
        let Slot::Value { call, key, .. } = &self.slot else { return None };
        let word = self.word(*call);
        Some((word, fields(word).iter().find(|it| it.name == *key)?))
    }

    /// What stands at the place means.
    pub(super) fn takes(&self) -> Option<Takes> {
        let Slot::Value { part, .. } = &self.slot else { return None };
        let (_, field) = self.field()?;
        Some(match part {
            Part::Key => field.keys,
            Part::OfKey if field.shape == Shape::Map || field.shape == Shape::ListOrMap => Takes::Number,
            Part::Value | Part::OfKey => field.takes,
        })
    }

    /// What a name at the place is the name of.
    pub(super) fn thing(&self) -> Option<Thing> {
        match self.takes()? {
            Takes::Thing(it) => Some(it),
            Takes::Fresh | Takes::Number | Takes::Flag | Takes::Other => None,
        }
    }

    /// The entry at the place.
    pub(super) fn entry(&self) -> &'a Entry {
        &self.outline.nodes[self.at.node].entries[self.at.entry]
    }

    /// The text or the word at a place, which would be replaced there.
    pub(super) fn leaf(&self, offset: usize) -> Option<Range<usize>> {
        self.outline.leaf_at(offset).map(|it| it.0)
    }
}

/// Whether a place is in a key, or where one may be written.
fn is_key(outline: &Outline, entry: &Entry, offset: usize) -> bool {
    match (&entry.key, entry.value) {
        (Some(key), _) => offset <= key.end,
        (None, Some(value)) => matches!(outline.nodes[value].kind, NodeKind::Word | NodeKind::Text),
        (None, None) => true,
    }
}

/// The field of a call in whose value brackets stand, however deep.
fn field_around(text: &str, outline: &Outline, mut node: usize) -> Option<(usize, String)> {
    loop {
        let (parent, entry) = outline.nodes[node].parent?;
        let around = &outline.nodes[parent];
        if around.kind == NodeKind::Call {
            let key = around.entries[entry].key.clone()?;
            return Some((parent, text[key].to_owned()));
        }
        if outline.is_step_list(text, parent) {
            return None;
        }
        node = parent;
    }
}
