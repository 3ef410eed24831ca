//! The brackets of a text, whole or broken: what stands where while somebody is writing it.
//!
//! A bracket that is not closed ends where a step begins that cannot stand in it, and one that closes nothing is passed over. So a
//! mistake in one step leaves the others what they are.

use std::ops::Range;

use schedule::{
    primitive,
    ron_tokens::{Token, TokenKind, tokens, tokens_by_line},
};

/// The brackets of a text, and what is in them.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    pub(super) nodes: Vec<Node>,
    /// What the text consists of.
    pub(super) root: Option<usize>,
    /// Brackets that close nothing.
    pub(super) strays: Vec<Range<usize>>,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    /// The word before the bracket of a call, or all of a text or a word.
    pub(super) word: Range<usize>,
    pub(super) span: Range<usize>,
    /// What is between the brackets.
    pub(super) inside: Range<usize>,
    pub(super) is_closed: bool,
    /// What it stands in, and in which of its entries.
    pub(super) parent: Option<(usize, usize)>,
    pub(super) entries: Vec<Entry>,
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NodeKind {
    Call,
    List,
    Map,
    Text,
    Word,
}

/// An element of a list, or a field with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// From the comma or bracket before it to the one behind it.
    pub(super) bounds: Range<usize>,
    pub(super) key: Option<Range<usize>>,
    pub(super) value: Option<usize>,
}

/// The innermost brackets around a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct At {
    pub(super) node: usize,
    pub(super) entry: usize,
}

/// How deep brackets are looked at; those inside are passed over.
const MAX_DEPTH: usize = 64;

impl Outline {
    /// The outline of a text; `is_whole` says that it is RON.
    pub(super) fn of(text: &str, is_whole: bool) -> Outline {
        let tokens = if is_whole { tokens(text) } else { tokens_by_line(text) };
        let tokens = tokens.into_iter().filter(|it| !it.kind.is_comment()).collect();
        let mut reader = Reader { text, tokens, out: Outline::default(), stack: vec![] };
        for at in 0..reader.tokens.len() {
            reader.token(at);
        }
        while !reader.stack.is_empty() {
            reader.give_up(text.len());
        }
        reader.out
    }

    /// The innermost brackets around a place.
    pub(super) fn at(&self, offset: usize) -> Option<At> {
        let mut node = self.root?;
        let holds = |it: &Range<usize>| it.start <= offset && offset <= it.end;
        if !holds(&self.nodes[node].inside) || self.nodes[node].entries.is_empty() {
            return None;
        }
        loop {
            let entries = &self.nodes[node].entries;
            let entry = entries.iter().rposition(|it| it.bounds.start <= offset)?;
            let inner = entries[entry].value.filter(|it| {
                let it = &self.nodes[*it];
                !it.entries.is_empty() && holds(&it.inside)
            });
            match inner {
                Some(inner) => node = inner,
                None => return Some(At { node, entry }),
            }
        }
    }

    /// A field of a call, by its name.
    pub(super) fn field(&self, text: &str, node: usize, name: &str) -> Option<&Entry> {
        let is_it =
            |it: &&Entry| it.key.as_ref().is_some_and(|it| text[it.clone()].trim_start_matches("r#") == name);
        self.nodes[node].entries.iter().find(is_it)
    }

    /// A field of the whole text, by its name.
    pub(super) fn top(&self, text: &str, name: &str) -> Option<&Entry> {
        self.field(text, self.root?, name)
    }

    /// The name of the field in whose value a node is.
    pub(super) fn key_of<'a>(&self, text: &'a str, node: usize) -> Option<&'a str> {
        let (parent, entry) = self.nodes[node].parent?;
        self.nodes[parent].entries[entry].key.clone().map(|it| text[it].trim_start_matches("r#"))
    }

    /// Whether the elements of a node are steps.
    pub(super) fn is_step_list(&self, text: &str, node: usize) -> bool {
        if self.nodes[node].kind != NodeKind::List {
            return false;
        }
        if let Some(key) = self.key_of(text, node) {
            return ["steps", "then", "else"].contains(&key);
        }
        let parent = self.nodes[node].parent.map(|it| it.0);
        parent.is_some_and(|it| self.key_of(text, it) == Some("one_of"))
    }

    /// Whether a node is a step.
    pub(super) fn is_step(&self, text: &str, node: usize) -> bool {
        let it = &self.nodes[node];
        let in_list = it.parent.is_some_and(|it| self.is_step_list(text, it.0));
        in_list && matches!(it.kind, NodeKind::Call | NodeKind::Word)
    }

    /// The innermost step at a place, its word and its brackets included.
    pub(super) fn step_at(&self, text: &str, offset: usize) -> Option<usize> {
        let holds = |it: &usize| {
            let span = &self.nodes[*it].span;
            span.start <= offset && offset <= span.end && self.is_step(text, *it)
        };
        // Inner ones come after those around them.
        (0..self.nodes.len()).rev().find(holds)
    }

    /// The text, the word or the key at a place, with its node or with the brackets that it is a key in.
    pub(super) fn leaf_at(&self, offset: usize) -> Option<(Range<usize>, At)> {
        let at = self.at(offset)?;
        let entry = &self.nodes[at.node].entries[at.entry];
        let holds = |it: &Range<usize>| it.start <= offset && offset <= it.end;
        let key = entry.key.clone().filter(holds);
        let value = entry.value.map(|it| &self.nodes[it].word).filter(|it| holds(it)).cloned();
        key.or(value).map(|it| (it, at))
    }
}

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    out: Outline,
    /// The brackets around what is being read.
    stack: Vec<usize>,
}

impl Reader<'_> {
    fn token(&mut self, at: usize) {
        let Token { kind, span, .. } = self.tokens[at].clone();
        match kind {
            TokenKind::Word | TokenKind::Text => {
                if self.is_step(at) {
                    self.leave_brackets(&span);
                }
                let kind = if kind == TokenKind::Text { NodeKind::Text } else { NodeKind::Word };
                self.value(kind, span);
            }
            TokenKind::Open => self.open(at),
            TokenKind::Close => self.close(at),
            TokenKind::Comma => self.comma(&span),
            TokenKind::Colon => self.colon(),
            TokenKind::LineComment | TokenKind::BlockComment => {}
        }
    }

    /// Whether a step begins that cannot stand here: nothing but a list may hold one.
    fn is_step(&self, at: usize) -> bool {
        let word = &self.text[self.tokens[at].span.clone()];
        let is_call = self.tokens.get(at + 1).is_some_and(|it| it.kind == TokenKind::Open);
        is_call && primitive::names().chain(primitive::forms()).any(|it| it == word)
    }

    /// Gives brackets up in which no step stands, up to a list.
    fn leave_brackets(&mut self, step: &Range<usize>) {
        let in_list =
            |it: &Reader<'_>| it.stack.last().is_none_or(|top| it.out.nodes[*top].kind == NodeKind::List);
        let has_list = self.stack.iter().any(|it| self.out.nodes[*it].kind == NodeKind::List);
        while has_list && !in_list(self) {
            self.give_up(step.start);
        }
    }

    /// Adds a value to the entry that is being read, or to a new one where a comma is missing.
    fn value(&mut self, kind: NodeKind, span: Range<usize>) -> usize {
        let node = self.out.nodes.len();
        let mut parent = None;
        if let Some(top) = self.stack.last().copied() {
            let entries = &mut self.out.nodes[top].entries;
            if let Some(last) = entries.last_mut().filter(|it| it.value.is_some()) {
                last.bounds.end = span.start;
                entries.push(Entry { bounds: span.start..span.start, key: None, value: None });
            }
            let entry = entries.len() - 1;
            entries[entry].value = Some(node);
            parent = Some((top, entry));
        } else if self.out.root.is_none() {
            self.out.root = Some(node);
        }
        let inside = span.end..span.end;
        self.out.nodes.push(Node {
            kind,
            word: span.clone(),
            span,
            inside,
            is_closed: true,
            parent,
            entries: vec![],
        });
        node
    }

    fn open(&mut self, at: usize) {
        let span = self.tokens[at].span.clone();
        if self.stack.len() >= MAX_DEPTH {
            return;
        }
        let kind = match &self.text[span.clone()] {
            "[" => NodeKind::List,
            "{" => NodeKind::Map,
            _ => NodeKind::Call,
        };
        let last = self.out.nodes.len().checked_sub(1).filter(|it| {
            let it = &self.out.nodes[*it];
            let is_before = at > 0 && it.span == self.tokens[at - 1].span;
            kind == NodeKind::Call && it.kind == NodeKind::Word && is_before
        });
        let node = last.unwrap_or_else(|| {
            let node = self.value(kind, span.clone());
            self.out.nodes[node].word = span.start..span.start;
            node
        });
        let it = &mut self.out.nodes[node];
        (it.kind, it.is_closed) = (kind, false);
        it.inside = span.end..span.end;
        it.entries = vec![Entry { bounds: span.end..span.end, key: None, value: None }];
        self.stack.push(node);
    }

    fn close(&mut self, at: usize) {
        let span = self.tokens[at].span.clone();
        let wanted = match &self.text[span.clone()] {
            "]" => NodeKind::List,
            "}" => NodeKind::Map,
            _ => NodeKind::Call,
        };
        let fits = |it: &Reader<'_>| it.stack.last().is_some_and(|top| it.out.nodes[*top].kind == wanted);
        let is_there = self.stack.iter().any(|it| self.out.nodes[*it].kind == wanted);
        // What goes on behind it was not meant to end.
        let goes_on = self.tokens.get(at + 1).is_some_and(|it| it.kind != TokenKind::Close);
        if !fits(self) && (!is_there || goes_on) {
            self.out.strays.push(span);
            return;
        }
        while !fits(self) {
            self.give_up(span.start);
        }
        if let Some(top) = self.stack.pop() {
            self.end(top, span.start, span.end, true);
        }
    }

    /// Ends the innermost brackets, which are not closed, with the line of what stands in them last, or at a place before.
    fn give_up(&mut self, end: usize) {
        let Some(top) = self.stack.pop() else { return };
        let start = self.out.nodes[top].inside.start;
        let last = self.tokens.iter().rev().map(|it| it.span.end).find(|it| *it <= end).unwrap_or(start);
        let line = self.text[last..end].find('\n').map_or(end, |it| last + it);
        self.end(top, line.max(start), line.max(start), false);
    }

    fn end(&mut self, node: usize, inside: usize, end: usize, is_closed: bool) {
        let it = &mut self.out.nodes[node];
        it.inside.end = inside;
        it.span.end = end;
        it.is_closed = is_closed;
        if let Some(last) = it.entries.last_mut() {
            last.bounds.end = inside.max(last.bounds.start);
        }
    }

    fn comma(&mut self, span: &Range<usize>) {
        let Some(top) = self.stack.last() else { return };
        let entries = &mut self.out.nodes[*top].entries;
        if let Some(last) = entries.last_mut() {
            last.bounds.end = span.start;
        }
        entries.push(Entry { bounds: span.end..span.end, key: None, value: None });
    }

    /// What was read last is a key.
    fn colon(&mut self) {
        let Some(top) = self.stack.last().copied() else { return };
        let value = self.out.nodes[top].entries.last_mut().and_then(|it| it.value.take());
        let Some(value) = value else { return };
        let word = self.out.nodes[value].span.clone();
        let Some(last) = self.out.nodes[top].entries.last_mut() else { return };
        if last.key.is_some() {
            // The field before it has no value yet.
            last.bounds.end = word.start;
            let entry = Entry { bounds: word.start..word.end, key: Some(word), value: None };
            self.out.nodes[top].entries.push(entry);
        } else {
            last.key = Some(word);
        }
        // A key is no value of anything.
        self.out.nodes[value].parent = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Vec<&str> {
        let outline = Outline::of(text, false);
        let list = outline.top(text, "steps").and_then(|it| it.value).unwrap();
        let steps = outline.nodes[list].entries.iter().filter_map(|it| it.value);
        steps.map(|it| &text[outline.nodes[it].span.clone()]).collect()
    }

    #[test]
    fn a_broken_step_leaves_the_others_alone() {
        for broken in [
            "split(loop: \"i\", into: {\"io\": ",
            "split(loop: \"i",
            "split(loop: ",
            "split(",
            "split",
            "split(loop: \"i\"))",
            "split(loop: \"i\"]",
        ] {
            let text = format!(
                "schedule(\n  steps: [\n    unroll(loop: \"a\"),\n    {broken}\n    unroll(loop: \"b\"),\n  ],\n)\n"
            );
            let found = steps(&text);
            assert_eq!(found.first(), Some(&"unroll(loop: \"a\")"), "{broken}");
            assert_eq!(found.last(), Some(&"unroll(loop: \"b\")"), "{broken}: {found:?}");
        }
    }

    #[test]
    fn places_know_what_is_around_them() {
        let text = "schedule(steps: [split(loop: \"i\", into: {\"io\": 8, \"ii\"";
        let outline = Outline::of(text, false);
        let at = outline.at(text.len()).unwrap();
        assert_eq!((outline.nodes[at.node].kind, at.entry), (NodeKind::Map, 1));
        let step = outline.step_at(text, text.len()).unwrap();
        assert_eq!(&text[outline.nodes[step].word.clone()], "split");
        let (leaf, _) = outline.leaf_at(text.find("io").unwrap()).unwrap();
        assert_eq!(&text[leaf], "\"io\"");
    }

    #[test]
    fn hostile_texts_have_an_outline() {
        for text in ["", ")", "]]]", "a:b:c", "(((", ":,:,", "a(b c d)", "{]", "é(\"", "a: , b("] {
            let outline = Outline::of(text, false);
            for at in 0..=text.len() {
                let _ = (outline.at(at), outline.leaf_at(at), outline.step_at(text, at));
            }
        }
        Outline::of(&"(".repeat(100_000), false);
    }
}
