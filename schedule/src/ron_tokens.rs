//! Texts in RON as tokens, comments among them: what formatters and editors look at, who must not lose any of it.
//!
//! Any text has tokens, a broken one, too: what is no part of RON is a word like others, and what lacks its end goes on to the
//! end of the text.

use std::ops::Range;

use crate::ron_letters::token;

/// A token and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Where it stands, in bytes.
    pub span: Range<usize>,
    /// How many lines end in the blanks before it.
    pub lines: usize,
}

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenKind {
    /// `(`, `[` or `{`.
    Open,
    /// `)`, `]` or `}`.
    Close,
    /// `,`.
    Comma,
    /// `:`.
    Colon,
    /// A text in quotes, raw ones included.
    Text,
    /// A name, a number, a character in quotes, and anything else.
    Word,
    /// `// …` up to the end of its line.
    LineComment,
    /// `/* … */`.
    BlockComment,
}

impl TokenKind {
    /// Whether it is there for people only.
    pub fn is_comment(self) -> bool {
        matches!(self, TokenKind::LineComment | TokenKind::BlockComment)
    }
}

/// The tokens of a text in order.
pub fn tokens(text: &str) -> Vec<Token> {
    read(text, false)
}

/// The tokens of a text that somebody is writing: what is in quotes ends with its line at the latest, so that one that lacks its
/// end does not take all that follows with it.
pub fn tokens_by_line(text: &str) -> Vec<Token> {
    read(text, true)
}

fn read(text: &str, by_line: bool) -> Vec<Token> {
    let (mut out, mut at, mut lines) = (vec![], 0, 0);
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            lines += usize::from(first == '\n');
            at += first.len_utf8();
            continue;
        }
        let (kind, mut len) = next(text, at);
        if by_line && kind == TokenKind::Text {
            let line = text[at..at + len].split('\n').next().unwrap_or_default();
            len = line.trim_end().len();
        }
        out.push(Token { kind, span: at..at + len, lines });
        (at, lines) = (at + len, 0);
    }
    out
}

/// What begins at a place that is no blank, and its length.
fn next(text: &str, at: usize) -> (TokenKind, usize) {
    let rest = &text[at..];
    let prefix = usize::from(is_bytes(rest));
    match rest.as_bytes()[0] {
        b'(' | b'[' | b'{' => (TokenKind::Open, 1),
        b')' | b']' | b'}' => (TokenKind::Close, 1),
        b',' => (TokenKind::Comma, 1),
        b':' => (TokenKind::Colon, 1),
        // The length of one byte says that no comment begins.
        b'/' if token(text, at) > 1 && rest.starts_with("//") => {
            (TokenKind::LineComment, rest[..token(text, at)].trim_end().len())
        }
        b'/' if token(text, at) > 1 => (TokenKind::BlockComment, token(text, at)),
        b'#' if rest.starts_with("#!") => (TokenKind::Word, attribute(rest)),
        b'\'' => (TokenKind::Word, character(rest)),
        b'b' if prefix == 1 && rest.starts_with("b'") => (TokenKind::Word, 1 + character(&rest[1..])),
        b'"' | b'r' | b'b' if begins_text(&rest[prefix..]) => {
            (TokenKind::Text, prefix + token(rest, prefix).max(1))
        }
        _ => (TokenKind::Word, word(rest)),
    }
}

fn is_bytes(rest: &str) -> bool {
    ["b\"", "b'", "br\"", "br#"].iter().any(|it| rest.starts_with(it))
}

/// Whether a text in quotes begins, raw or not; `r#use` is a name.
fn begins_text(rest: &str) -> bool {
    rest.starts_with('"')
        || rest.strip_prefix('r').is_some_and(|it| it.trim_start_matches('#').starts_with('"'))
}

/// The length of `#![enable(…)]`.
fn attribute(rest: &str) -> usize {
    let mut at = 0;
    while at < rest.len() {
        let len = token(rest, at);
        at += len;
        if len == 1 && rest.as_bytes()[at - 1] == b']' {
            break;
        }
    }
    at
}

/// The length of a character in quotes, or of a quote that begins none.
fn character(rest: &str) -> usize {
    let inner = &rest[1..];
    let skipped = if inner.starts_with('\\') { 2 } else { 1 };
    let from = inner.char_indices().nth(skipped).map_or(inner.len(), |it| it.0);
    let line = inner[from..].find('\n').map_or(inner.len(), |it| from + it);
    inner[from..line].find('\'').filter(|it| skipped == 2 || *it == 0).map_or(1, |it| 1 + from + it + 1)
}

/// The length of anything else, up to what begins another token.
fn word(rest: &str) -> usize {
    let is_end = |(at, it): &(usize, char)| {
        it.is_whitespace()
            || "()[]{},:\"'".contains(*it)
            || rest[*at..].starts_with("//")
            || rest[*at..].starts_with("/*")
    };
    let first = rest.chars().next().map_or(0, char::len_utf8);
    rest.char_indices().skip(1).find(is_end).map_or(rest.len(), |it| it.0).max(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(TokenKind, &str)> {
        tokens(text).into_iter().map(|it| (it.kind, &text[it.span])).collect()
    }

    #[test]
    fn texts_comments_and_characters_are_single_tokens() {
        use TokenKind::{BlockComment, Close, Colon, Comma, LineComment, Open, Text, Word};
        let text = "#![enable(a)]\na(r#use:\"x, \\\" y\", 'é', '\\'', r#\"a \"b\"#, b\"x\", -1.5e3) // c, d \n/* /* */ */";
        let found = words(text);
        let expected = [
            (Word, "#![enable(a)]"),
            (Word, "a"),
            (Open, "("),
            (Word, "r#use"),
            (Colon, ":"),
            (Text, "\"x, \\\" y\""),
            (Comma, ","),
            (Word, "'é'"),
            (Comma, ","),
            (Word, "'\\''"),
            (Comma, ","),
            (Text, "r#\"a \"b\"#"),
            (Comma, ","),
            (Text, "b\"x\""),
            (Comma, ","),
            (Word, "-1.5e3"),
            (Close, ")"),
            (LineComment, "// c, d"),
            (BlockComment, "/* /* */ */"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn broken_texts_have_tokens() {
        for text in
            ["\"", "r#\"x", "/*", "/", "'", "'\\", "#!", "b'", "b\"", "br#", "é", "(\"é", "a\u{200e}b", "''"]
        {
            let all = tokens(text);
            assert!(!all.is_empty() && all.iter().all(|it| !text[it.span.clone()].is_empty()), "{text}");
            assert_eq!(all.last().map(|it| it.span.end), Some(text.len()), "{text}");
        }
    }

    #[test]
    fn texts_without_an_end_may_end_with_their_line() {
        let text = "a(b: \"c, \n d: \"e\")";
        let texts: Vec<_> =
            tokens_by_line(text).into_iter().filter(|it| it.kind == TokenKind::Text).collect();
        assert_eq!(texts.iter().map(|it| &text[it.span.clone()]).collect::<Vec<_>>(), ["\"c,", "\"e\""]);
    }

    #[test]
    fn lines_before_a_token_are_counted() {
        let lines: Vec<_> = tokens("a\r\n\r\n  b // c\n d").into_iter().map(|it| it.lines).collect();
        assert_eq!(lines, [0, 2, 0, 1]);
    }
}
