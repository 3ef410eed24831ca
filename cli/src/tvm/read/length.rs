//! How long a statement may be. Trees of expressions are as deep as their text is long, and are walked and freed by recursion.

use super::error::{ImportProblem, Refusal, refuse};

/// The most bytes of a statement without the blocks under it. TVM's printer writes some hundred.
const MOST: usize = 16 << 10;

/// Refuses texts with a longer statement.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    let bytes = text.as_bytes();
    let (mut at, mut start, mut depth) = (0, 0, 0_i64);
    while at < bytes.len() {
        match bytes[at] {
            b'#' => at += bytes[at..].iter().take_while(|it| **it != b'\n').count() - 1,
            quote @ (b'"' | b'\'') => at = end_of_string(bytes, at, quote),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            b'\n' if depth <= 0 => (start, depth) = (at, 0),
            _ => {}
        }
        at += 1;
        if at.saturating_sub(start) > MOST {
            let title = format!("this statement is longer than {MOST} bytes");
            let end = (start + 1..=text.len()).find(|it| text.is_char_boundary(*it)).unwrap_or(text.len());
            return Err(refuse(ImportProblem::Python, start..end, title)
                .help("bind parts of it to names, and close what is open"));
        }
    }
    Ok(())
}

/// The last byte of the string that begins at a quote; the end of the text if it does not end.
fn end_of_string(bytes: &[u8], start: usize, quote: u8) -> usize {
    let is_triple = bytes[start..].starts_with(&[quote; 3]);
    let width = if is_triple { 3 } else { 1 };
    let mut at = start + width;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\n' if !is_triple => return at - 1,
            it if it == quote && (!is_triple || bytes[at..].starts_with(&[quote; 3])) => {
                return at + width - 1;
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}
