//! Texts in RON as letters: where strings and fields stand, and what word a value begins with.

use std::ops::Range;

/// The word that a value begins with, as `split` of `split(loop: "i")`; empty if it begins with something else, or if no
/// bracket follows.
pub(crate) fn head(value: &str) -> &str {
    let len = value.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_')).unwrap_or(value.len());
    let (word, rest) = value.split_at(len);
    if rest[blanks(rest)..].starts_with('(') { word } else { "" }
}

/// The length of the blanks and comments that a text begins with.
fn blanks(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        at += match rest {
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => block_comment(rest),
            _ if rest.starts_with(char::is_whitespace) => rest.len() - rest.trim_start().len(),
            _ => return at,
        };
    }
}

/// The insides of the strings of a text, without quotes; raw strings and what stands in comments are left out.
pub(crate) fn strings(text: &str) -> Vec<Range<usize>> {
    let (mut out, mut at) = (vec![], 0);
    while at < text.len() {
        let len = token(text, at);
        if text.as_bytes()[at] == b'"' {
            // The last string of a text may lack its end.
            let inner = (at + 1..(at + len).min(text.len())).len();
            let is_closed = closing_quote(&text.as_bytes()[at + 1..]) < inner;
            out.push(at + 1..at + 1 + if is_closed { inner - 1 } else { inner });
        }
        at += len;
    }
    out
}

/// The length of a string, a comment, a character in quotes or any other character.
pub(crate) fn token(text: &str, at: usize) -> usize {
    let (bytes, rest) = (text.as_bytes(), &text[at..]);
    match bytes[at] {
        b'"' => (closing_quote(&bytes[at + 1..]) + 2).min(rest.len()),
        b'r' if is_raw_string(rest) && !ends_word(&bytes[..at]) => raw_string(rest),
        b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
        b'/' if rest.starts_with("/*") => block_comment(rest),
        b'\'' if rest.starts_with("'\"'") => 3,
        _ => rest.chars().next().map_or(1, char::len_utf8),
    }
}

/// Where a field of the outermost struct of a text begins, with its name.
pub(crate) fn field(text: &str, key: &str) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        let rest = &text[at..];
        match text.as_bytes()[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ if depth == 1 && rest.starts_with(key) && !ends_word(&text.as_bytes()[..at]) => {
                let behind = &rest[key.len()..];
                if behind[blanks(behind)..].starts_with(':') {
                    // A name may be written `r#use`.
                    return Some(if text[..at].ends_with("r#") { at - 2 } else { at });
                }
            }
            _ => {}
        }
        at += token(text, at);
    }
    None
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
pub(crate) fn behind_comma(text: &str, from: usize) -> usize {
    let at = from + blanks(&text[from..]);
    if text[at..].starts_with(',') { at + 1 } else { from }
}

/// A part of a text without the indentation that its first line has.
pub(crate) fn dedented(text: &str, part: &Range<usize>) -> String {
    let blanks = indent(text, part.start);
    let lines = text[part.clone()].lines().map(|it| it.strip_prefix(blanks).unwrap_or(it));
    lines.collect::<Vec<_>>().join("\n")
}

/// The blanks before a place, if nothing else stands before it in its line.
pub(crate) fn indent(text: &str, at: usize) -> &str {
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
            "z", '"', "##;
        let found: Vec<_> = strings(text).into_iter().map(|it| &text[it]).collect();
        assert_eq!(found, ["x", r#"é\""#, "y", "z"]);
        assert_eq!(&["\"", "r\"", "/*", "r#\"x"].map(|it| strings(it).len()), &[1, 0, 0, 0]);
    }

    #[test]
    fn heads_are_words_before_brackets() {
        assert_eq!(
            ["split (a: 1)", "\"x\"", "ki", "[1]", "a /* ( */ //\n (1)"].map(head),
            ["split", "", "", "", "a"]
        );
    }

    #[test]
    fn fields_are_found_beside_comments_and_strings() {
        let text =
            "schedule(about: \"use: \", /* use: 1 */ reuse: 1, steps: [a(use: 1)], use /* use: */ : [])";
        assert_eq!(field(text, "use").map(|it| &text[it..]), Some("use /* use: */ : [])"));
        assert_eq!(field("(r#use: [])", "use"), Some(1));
        assert_eq!(field("(a: [use: 1]", "use"), None);
    }

    #[test]
    fn parts_of_a_text_lose_their_indentation() {
        let text = "  a(\n    b,\n  )";
        assert_eq!(dedented(text, &(2..text.len())), "a(\n  b,\n)");
    }

    #[test]
    fn commas_are_found_behind_comments() {
        let text = "a /* , */ // ,\n , b";
        assert_eq!(&text[behind_comma(text, 1)..], " b");
        assert_eq!(behind_comma("a b", 1), 1);
    }
}
