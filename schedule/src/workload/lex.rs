//! The words of expressions, and the strings that expressions stand in.

use std::{fmt, ops::Range};

use ron::value::RawValue;

use super::error::{Problem, WorkloadError};
use crate::ron_text::{parse_raw, range_of};

/// A string and its place in the workload's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Text {
    pub(super) value: String,
    /// The whole literal, quotes included.
    pub(super) span: Range<usize>,
    /// Where its characters start, if they stand in the text as they are: not so with escapes.
    start: Option<usize>,
}

impl Text {
    /// The string that a raw value is.
    pub(super) fn read(text: &str, raw: &RawValue) -> Result<Text, WorkloadError> {
        let value: String = parse_raw(text, raw)?;
        let span = range_of(text, raw);
        let literal = &text[span.clone()];
        let start = literal.find('"').map(|quote| span.start + quote + 1);
        let start = start.filter(|at| text[*at..].starts_with(&value));
        Ok(Text { value, span, start })
    }

    /// Its tokens.
    pub(super) fn lexer(&self) -> Lexer<'_> {
        Lexer { text: self, at: 0, peeked: None }
    }

    /// The place of some bytes of the string; the whole literal where escapes blur it.
    fn place(&self, bytes: Range<usize>) -> Range<usize> {
        self.start.map_or(self.span.clone(), |start| start + bytes.start..start + bytes.end)
    }
}

/// A word of an expression.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    Int(i64),
    Float(f64),
    Name(String),
    Sign(&'static str),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Int(it) => write!(f, "`{it}`"),
            Token::Float(it) => write!(f, "`{it}`"),
            Token::Name(it) => write!(f, "`{it}`"),
            Token::Sign(it) => write!(f, "`{it}`"),
            Token::End => f.write_str("the end"),
        }
    }
}

/// Longer signs before their beginnings.
const SIGNS: [&str; 27] = [
    "max=", "min=", "&&", "||", "<<", ">>", "<=", ">=", "==", "!=", "+=", "*=", "<", ">", "=", "&", "|", "^",
    "+", "-", "*", "/", "(", ")", "[", "]", ",",
];

pub(super) struct Lexer<'a> {
    text: &'a Text,
    at: usize,
    peeked: Option<(Token, Range<usize>)>,
}

impl Lexer<'_> {
    /// The next token and its place, left where it is.
    pub(super) fn peek(&mut self) -> Result<(Token, Range<usize>), WorkloadError> {
        if self.peeked.is_none() {
            self.peeked = Some(self.read()?);
        }
        Ok(self.peeked.clone().expect("just read"))
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Result<(Token, Range<usize>), WorkloadError> {
        match self.peeked.take() {
            Some(it) => Ok(it),
            None => self.read(),
        }
    }

    fn read(&mut self) -> Result<(Token, Range<usize>), WorkloadError> {
        let rest = &self.text.value[self.at..];
        let blanks = rest.len() - rest.trim_start().len();
        let start = self.at + blanks;
        let rest = &rest[blanks..];
        let place = |len: usize| self.text.place(start..start + len);

        let word =
            rest.len() - rest.trim_start_matches(|it: char| it.is_ascii_alphanumeric() || it == '_').len();
        let (token, len) = if rest.is_empty() {
            (Token::End, 0)
        } else if rest.starts_with(|it: char| it.is_ascii_digit()) {
            let len = number_len(rest);
            (number(&rest[..len]).ok_or_else(|| odd(&rest[..len], place(len)))?, len)
        } else if word > 0 && !is_reducer(rest, word) {
            (Token::Name(rest[..word].to_owned()), word)
        } else {
            let sign = SIGNS.into_iter().find(|it| rest.starts_with(it));
            let len = rest.chars().next().map_or(0, char::len_utf8);
            let sign = sign.ok_or_else(|| odd(&rest[..len], place(len)))?;
            (Token::Sign(sign), sign.len())
        };
        let span = place(len);
        self.at = start + len;
        Ok((token, span))
    }
}

/// Whether the word is `max` or `min` before an assignment's `=`.
fn is_reducer(rest: &str, word: usize) -> bool {
    matches!(&rest[..word], "max" | "min") && rest[word..].starts_with('=') && !rest[word..].starts_with("==")
}

fn odd(found: &str, span: Range<usize>) -> WorkloadError {
    let (expected, found) = ("a number, a name or an operator", format!("`{found}`"));
    WorkloadError::new(Problem::Syntax { expected, found }, span)
}

/// How far a number goes: digits, letters, points, and signs after an exponent's `e`.
fn number_len(rest: &str) -> usize {
    let mut before = ' ';
    let ends = |it: char| {
        let signed = matches!(it, '+' | '-') && matches!(before, 'e' | 'E');
        before = it;
        !(it.is_ascii_alphanumeric() || it == '.' || it == '_' || signed)
    };
    rest.find(ends).unwrap_or(rest.len())
}

fn number(word: &str) -> Option<Token> {
    if word.bytes().all(|it| it.is_ascii_digit()) {
        return word.parse().ok().map(Token::Int);
    }
    word.parse().ok().filter(|it: &f64| it.is_finite()).map(Token::Float)
}
