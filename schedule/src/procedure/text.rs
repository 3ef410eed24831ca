//! Texts in RON as letters: where strings stand, and what word a value begins with.

use std::ops::Range;

/// The word that a value begins with, as `split` of `split(loop: "i")`; empty if it begins with something else, or if no
/// bracket follows.
pub(super) fn head(value: &str) -> &str {
    let len = value.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_')).unwrap_or(value.len());
    let (word, rest) = value.split_at(len);
    if rest.trim_start().starts_with('(') { word } else { "" }
}

/// The insides of the strings of a text, without quotes; raw strings and what stands in comments are left out.
pub(super) fn strings(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (vec![], 0);
    while let Some(byte) = bytes.get(at) {
        let rest = &text[at..];
        at += match byte {
            b'"' => {
                let len = closing_quote(&bytes[at + 1..]);
                out.push(at + 1..at + 1 + len);
                len + 2
            }
            b'r' if is_raw_string(rest) && !ends_word(&bytes[..at]) => raw_string(rest),
            b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => block_comment(rest),
            b'\'' if rest.starts_with("'\"'") => 3,
            it if it.is_ascii() => 1,
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    out
}

/// The bytes before the quote that ends a string.
fn closing_quote(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn ends_word(before: &[u8]) -> bool {
    before.last().is_some_and(|it| it.is_ascii_alphanumeric() || *it == b'_')
}

fn is_raw_string(rest: &str) -> bool {
    rest[1..].trim_start_matches('#').starts_with('"')
}

/// The length of a raw string, whose end has as many `#` as its beginning.
fn raw_string(rest: &str) -> usize {
    let marks = rest[1..].find('"').unwrap_or(0);
    let end = format!("\"{}", "#".repeat(marks));
    let inner = marks + 2;
    rest[inner..].find(&end).map_or(rest.len(), |at| inner + at + end.len())
}

/// The length of a comment, in which others may stand.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Where the next value of a list begins, behind a comma; the same place if there is no comma.
pub(super) fn behind_comma(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        let rest = &text[at..];
        let blanks = rest.len() - rest.trim_start().len();
        let rest = &rest[blanks..];
        at += blanks;
        match rest {
            _ if rest.starts_with("//") => at += rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => at += block_comment(rest),
            _ if rest.starts_with(',') => return at + 1,
            _ => return from,
        }
    }
}

/// The blanks before a place, if nothing else stands before it in its line.
pub(super) fn indent(text: &str, at: usize) -> &str {
    let line = &text[text[..at].rfind('\n').map_or(0, |it| it + 1)..at];
    let blanks = line.len() - line.trim_start().len();
    &line[..blanks]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_beside_comments_and_raw_strings() {
        let text = r##"a("x", r#"no "x" "#, /* "no /* "no" */ */ 'r', "é\"", for_r: "y") // "no"
            "z", '"', "#"##;
        let found: Vec<_> = strings(text).into_iter().map(|it| &text[it]).collect();
        assert_eq!(found, ["x", r#"é\""#, "y", "z"]);
        assert_eq!(&["\"", "r\"", "/*", "r#\"x"].map(|it| strings(it).len()), &[1, 0, 0, 0]);
    }

    #[test]
    fn heads_are_words_before_brackets() {
        assert_eq!(["split (a: 1)", "\"x\"", "ki", "[1]"].map(head), ["split", "", "", ""]);
    }

    #[test]
    fn commas_are_found_behind_comments() {
        let text = "a /* , */ // ,\n , b";
        assert_eq!(&text[behind_comma(text, 1)..], " b");
        assert_eq!(behind_comma("a b", 1), 1);
    }
}
