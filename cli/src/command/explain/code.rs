//! The pages about codes: what a refusal means, a script that causes it, and one that does not.

use ir::Code;
use serde_json::{Value, json};

/// Names and texts of all pages, in the order of their codes.
static PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a code, as Markdown.
pub(super) fn page(code: Code) -> Option<&'static str> {
    let name = code.to_string();
    PAGES.iter().find(|it| it.0 == name).map(|it| it.1)
}

/// Each code with the heading of its page.
pub(super) fn headings() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().map(|(name, text)| {
        let heading = text.lines().next().unwrap_or_default();
        (*name, heading.trim_start_matches("# ").trim_start_matches(name).trim_start_matches(": "))
    })
}

/// A page as data.
pub(super) fn data(code: Code, page: &str) -> Value {
    json!({"ok": true, "code": code.to_string(), "text": page})
}
