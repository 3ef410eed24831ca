//! What a text has, for lists of it: fields, steps, procedures, parameters, tensors.

use gen_lsp_types::{DocumentSymbol, SymbolKind};

use super::{
    outline::{Entry, NodeKind, Outline},
    text::Text,
};

/// How many letters of a step or a value are shown.
const MOST_LETTERS: usize = 60;

/// How deep lists nest in the list.
const MOST_LEVELS: usize = 8;

/// What a text has.
pub(super) fn symbols(text: &Text, outline: &Outline) -> Vec<DocumentSymbol> {
    outline.root.map(|it| children(text, outline, it, 0)).unwrap_or_default()
}

fn children(text: &Text, outline: &Outline, node: usize, level: usize) -> Vec<DocumentSymbol> {
    if level > MOST_LEVELS {
        return vec![];
    }
    let is_list = outline.nodes[node].kind == NodeKind::List;
    let entries = outline.nodes[node].entries.iter();
    let all = entries.flat_map(|it| match (&it.key, it.value) {
        (None, Some(value)) if outline.is_step(&text.whole, value) => vec![step(text, outline, value, level)],
        // The lists of `choose` have no names.
        (None, Some(value)) if is_list && outline.nodes[value].kind == NodeKind::List => {
            children(text, outline, value, level + 1)
        }
        (Some(_), _) => vec![field(text, outline, it, level)],
        _ => vec![],
    });
    all.collect()
}

fn step(text: &Text, outline: &Outline, node: usize, level: usize) -> DocumentSymbol {
    let it = &outline.nodes[node];
    // Steps hold others in lists.
    let inner = it.entries.iter().filter_map(|it| it.value);
    let inner = inner.filter(|it| outline.nodes[*it].kind == NodeKind::List);
    let inner: Vec<_> = inner.flat_map(|it| children(text, outline, it, level + 1)).collect();
    let (name, inner) = (short(&text.whole[it.span.clone()]), (!inner.is_empty()).then_some(inner));
    let (range, word) = (text.range(&it.span), text.range(&it.word));
    DocumentSymbol::new(name, None, SymbolKind::Function, None, None, range, word, inner)
}

fn field(text: &Text, outline: &Outline, entry: &Entry, level: usize) -> DocumentSymbol {
    let key = entry.key.clone().unwrap_or(entry.bounds.clone());
    let value = entry.value.map(|it| &outline.nodes[it]);
    let span = value.map_or(key.clone(), |it| key.start..it.span.end.max(key.end));
    let inner = entry.value.map(|it| children(text, outline, it, level + 1)).unwrap_or_default();
    let is_procedure = value.is_some_and(|it| &text.whole[it.word.clone()] == "procedure");
    let detail = value.filter(|_| inner.is_empty()).map(|it| short(&text.whole[it.span.clone()]));
    let name = text.whole[key.clone()].trim_matches('"').to_owned();
    let kind = if is_procedure { SymbolKind::Method } else { SymbolKind::Field };
    let inner = (!inner.is_empty()).then_some(inner);
    DocumentSymbol::new(name, detail, kind, None, None, text.range(&span), text.range(&key), inner)
}

/// A text on one line, cut off.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_LETTERS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None if line.is_empty() => "?".to_owned(),
        None => line,
    }
}
