//! Quick fixes: what a help says, as changes of the text.

use std::ops::Range;

use super::{findings::Finding, outline::Outline};

/// A change that may mend something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fix {
    pub(super) title: String,
    pub(super) span: Range<usize>,
    pub(super) text: String,
}

/// The most words that are offered in place of one.
const MOST_WORDS: usize = 8;

/// What may mend a finding.
pub(super) fn fixes(finding: &Finding, text: &str, outline: &Outline) -> Vec<Fix> {
    let Some(help) = &finding.help else { return vec![] };
    if let Some(library) = help.split("add `use: [\"").nth(1).and_then(|it| it.split('"').next()) {
        return vec![with_library(library, text, outline)];
    }
    let is_choice = help.starts_with("did you mean") || help.starts_with("there is ");
    let Some(span) = wrong_word(finding, text).filter(|_| is_choice) else { return vec![] };
    let words = help.split('`').skip(1).step_by(2).take(MOST_WORDS);
    let fix =
        |word: &str| Fix { title: format!("Replace by `{word}`"), span: span.clone(), text: word.to_owned() };
    // A word may be followed by others that belong to another sentence.
    let is_word = |it: &&str| it.chars().all(|it| it.is_alphanumeric() || "_./:".contains(it));
    words.filter(is_word).map(fix).collect()
}

/// The word that a finding is about, without quotes.
fn wrong_word(finding: &Finding, text: &str) -> Option<Range<usize>> {
    let part = text.get(finding.span.clone())?;
    let inner = part.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    if inner.is_some_and(|it| !it.contains('"')) {
        return Some(finding.span.start + 1..finding.span.end - 1);
    }
    let is_word =
        |it: &str| !it.is_empty() && it.chars().all(|it| it.is_alphanumeric() || "_./:".contains(it));
    if is_word(part) {
        return Some(finding.span.clone());
    }
    // The place is larger, and the message names the word.
    let word = finding.title.split('`').nth(1)?;
    let at = finding.span.start
        + part.find(&format!("\"{word}\"")).map(|it| it + 1).or_else(|| part.find(word))?;
    Some(at..at + word.len())
}

/// A library more that a script uses.
fn with_library(library: &str, text: &str, outline: &Outline) -> Fix {
    let title = format!("Use the library `{library}`");
    let list = outline.top(text, "use").and_then(|it| it.value).map(|it| &outline.nodes[it]);
    if let Some(it) = list {
        let at = it.inside.start;
        let comma = if text[it.inside.clone()].trim().is_empty() { "" } else { ", " };
        return Fix { title, span: at..at, text: format!("\"{library}\"{comma}") };
    }
    let inside = outline.root.map_or(0..0, |it| outline.nodes[it].inside.clone());
    let blanks = &text[inside.start..inside.end];
    let blanks = &blanks[..blanks.len() - blanks.trim_start().len()];
    let line = if blanks.contains('\n') { blanks } else { " " };
    let (before, behind) = if blanks.contains('\n') { (line, "") } else { ("", line) };
    Fix { title, span: inside.start..inside.start, text: format!("{before}use: [\"{library}\"],{behind}") }
}
