//! Texts of others, made harmless for terminals.

use tuner::log::is_control;

/// A text with what would steer a terminal as an escape, such as `\u{1b}`.
pub(crate) fn visible(text: String) -> String {
    if !text.contains(is_control) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 8);
    for it in text.chars() {
        if is_control(it) { out.extend(it.escape_default()) } else { out.push(it) }
    }
    out
}
