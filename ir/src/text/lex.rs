//! Cuts a text into lines of tokens, and reads tokens off a line.

use crate::Name;

/// Why a text is not a function, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{line}:{column}: {kind}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub kind: ParseErrorKind,
}

/// What is wrong with a text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseErrorKind {
    /// Something else should stand here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What may stand here.
        expected: String,
        /// What does.
        found: String,
    },
    /// A character that no token begins with.
    #[error("the character {0:?} has no meaning here")]
    Character(char),
    /// A quoted text that does not end on its line.
    #[error("the text is not closed by `\"` on this line")]
    OpenText,
    /// An unknown escape in a quoted text.
    #[error("unknown escape; there are \\\" \\\\ \\n \\t \\u{{hex}}")]
    Escape,
    /// Indentation by something other than two spaces a level.
    #[error("a line is indented by two spaces a level, without tabs")]
    Indentation,
    /// A line indented deeper than its place allows.
    #[error("this line is indented too deep: nothing above it takes a body here")]
    TooDeepLine,
    /// A number that does not fit its type.
    #[error("{digits} is too large")]
    TooLarge {
        /// The number as written.
        digits: String,
    },
    /// Nesting beyond [`super::MAX_DEPTH`].
    #[error("nested more than {} deep", super::MAX_DEPTH)]
    TooDeep,
    /// A buffer, or a key of an annotation, that is given twice.
    #[error("`{0}` is given twice")]
    Twice(String),
}

crate::codes!(ParseErrorKind {
    Expected = 301,
    Character = 301,
    OpenText = 301,
    Escape = 301,
    Indentation = 302,
    TooDeepLine = 303,
    TooLarge = 303,
    TooDeep = 303,
    Twice = 304,
});

impl ParseErrorKind {
    pub(super) fn expected(expected: &str, found: String) -> ParseErrorKind {
        ParseErrorKind::Expected { expected: expected.to_owned(), found }
    }
}

/// An error at a byte of the text.
pub(super) struct Failure {
    pub(super) at: usize,
    pub(super) kind: ParseErrorKind,
}

impl Failure {
    /// The error with its line and column.
    pub(super) fn place(self, text: &str) -> ParseError {
        let before = &text[..self.at];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        ParseError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            kind: self.kind,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// Digits, perhaps with fraction and exponent, and the word that follows them without a blank.
    Number { digits: &'a str, suffix: &'a str },
    /// A quoted text, its escapes resolved.
    Text(String),
    /// Anything else.
    Sign(&'static str),
}

/// The signs, longer ones before those they begin with.
const SIGNS: [&str; 33] = [
    "..", "+:", "&&", "#{", "<<<", ">>>", "<<", ">>", "<=", "==", "!=", "(", ")", "[", "]", "{", "}", ",",
    ":", "=", "<", ">", "+", "-", "*", "/", "@", ".", "#", "&", "|", "^", ";",
];

/// A line that has tokens.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// How deep it is indented, in levels.
    pub(super) level: usize,
    /// The tokens, each with its first byte and the byte after it.
    pub(super) tokens: Vec<(Token<'a>, usize, usize)>,
    /// What it says, if it is a comment and nothing else.
    pub(super) comment: Option<&'a str>,
}

impl Line<'_> {
    /// The byte at which it begins.
    pub(super) fn start(&self) -> usize {
        self.tokens.first().map_or(0, |(_, start, _)| *start)
    }
}

/// The lines of a text that have tokens.
pub(super) fn lines(text: &str) -> Result<Vec<Line<'_>>, Failure> {
    let mut out = lines_with_comments(text)?;
    out.retain(|it| it.comment.is_none());
    Ok(out)
}

/// The lines of a text that have tokens or are comments. How comments are indented is nobody's business.
pub(super) fn lines_with_comments(text: &str) -> Result<Vec<Line<'_>>, Failure> {
    let mut out = Vec::new();
    let mut start = 0;
    for raw in text.split_inclusive('\n') {
        let tokens = tokens(text, start, start + raw.trim_end().len())?;
        if !tokens.is_empty() {
            let indent = raw.len() - raw.trim_start().len();
            if !raw.starts_with(&" ".repeat(indent)) || indent % 2 != 0 {
                return Err(Failure { at: start, kind: ParseErrorKind::Indentation });
            }
            out.push(Line { level: indent / 2, tokens, comment: None });
        } else if let Some(comment) = raw.trim().strip_prefix("//") {
            let level = (raw.len() - raw.trim_start().len()) / 2;
            let comment = Some(comment.strip_prefix(' ').unwrap_or(comment));
            out.push(Line { level, tokens, comment });
        }
        start += raw.len();
    }
    Ok(out)
}

/// The tokens between two bytes of a line, up to a comment.
fn tokens(text: &str, mut at: usize, end: usize) -> Result<Vec<(Token<'_>, usize, usize)>, Failure> {
    let mut out = Vec::new();
    loop {
        let rest = text[at..end.max(at)].trim_start();
        at = end.max(at) - rest.len();
        let Some(first) = rest.chars().next() else { return Ok(out) };
        if rest.starts_with("//") {
            return Ok(out);
        }
        let (token, len) = match first {
            'a'..='z' | 'A'..='Z' | '_' => {
                let word = word(rest);
                (Token::Word(word), word.len())
            }
            '0'..='9' => {
                let digits = &rest[..number(rest)];
                let suffix = word(&rest[digits.len()..]);
                (Token::Number { digits, suffix }, digits.len() + suffix.len())
            }
            '"' => quoted(rest).map_err(|kind| Failure { at, kind })?,
            _ => match SIGNS.iter().find(|it| rest.starts_with(**it)) {
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => return Err(Failure { at, kind: ParseErrorKind::Character(first) }),
            },
        };
        out.push((token, at, at + len));
        at += len;
    }
}

/// The identifier at the beginning of a text, perhaps empty.
fn word(text: &str) -> &str {
    let end = text.bytes().position(|it| !it.is_ascii_alphanumeric() && it != b'_');
    &text[..end.unwrap_or(text.len())]
}

/// The length of the number at the beginning of a text: digits, a fraction, an exponent.
fn number(text: &str) -> usize {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut len = digits(0);
    // `0..n` is a range and no fraction.
    if text[len..].starts_with('.') && digits(len + 1) > 0 {
        len += 1 + digits(len + 1);
    }
    if text[len..].starts_with('e') {
        let sign = usize::from(text[len + 1..].starts_with(['-', '+']));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    len
}

/// The quoted text at the beginning of a text, and its length with the quotes.
fn quoted(text: &str) -> Result<(Token<'_>, usize), ParseErrorKind> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, ch)) = chars.next() {
        match ch {
            '"' => return Ok((Token::Text(out), at + 1)),
            '\\' => out.push(match chars.next().map(|(_, ch)| ch) {
                Some(ch @ ('"' | '\\')) => ch,
                Some('n') => '\n',
                Some('t') => '\t',
                Some('u') => {
                    let code: String = chars.by_ref().map(|(_, ch)| ch).take_while(|ch| *ch != '}').collect();
                    let code = code.strip_prefix('{').and_then(|it| u32::from_str_radix(it, 16).ok());
                    code.and_then(char::from_u32).ok_or(ParseErrorKind::Escape)?
                }
                _ => return Err(ParseErrorKind::Escape),
            }),
            _ => out.push(ch),
        }
    }
    Err(ParseErrorKind::OpenText)
}

/// Reads the tokens of one line from left to right.
pub(super) struct Cursor<'a> {
    line: &'a Line<'a>,
    next: usize,
    /// How deep the expression being read is nested.
    pub(super) depth: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(line: &'a Line<'a>) -> Cursor<'a> {
        Cursor { line, next: 0, depth: 0 }
    }

    pub(super) fn peek(&self) -> Option<&'a Token<'a>> {
        self.line.tokens.get(self.next).map(|(token, ..)| token)
    }

    /// The token after the next one.
    pub(super) fn peek_second(&self) -> Option<&'a Token<'a>> {
        self.line.tokens.get(self.next + 1).map(|(token, ..)| token)
    }

    /// The token after the next two.
    pub(super) fn peek_third(&self) -> Option<&'a Token<'a>> {
        self.line.tokens.get(self.next + 2).map(|(token, ..)| token)
    }

    pub(super) fn bump(&mut self) {
        self.next += 1;
    }

    /// The byte at which the next token begins, or the line ends.
    pub(super) fn at(&self) -> usize {
        match self.line.tokens.get(self.next) {
            Some((_, start, _)) => *start,
            None => self.line.tokens.last().map_or(0, |(.., end)| *end),
        }
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(it)) if *it == sign)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(it)) if *it == word)
    }

    /// Takes the sign if it comes next.
    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let hit = self.is_sign(sign);
        self.next += usize::from(hit);
        hit
    }

    /// Takes the word if it comes next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let hit = self.is_word(word);
        self.next += usize::from(hit);
        hit
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), Failure> {
        if self.eat(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<(), Failure> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// Takes a word as a name.
    pub(super) fn name(&mut self, what: &str) -> Result<Name, Failure> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.bump();
                Ok(Name::new(*word))
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Takes a text in quotes.
    pub(super) fn text(&mut self) -> Result<String, Failure> {
        match self.peek() {
            Some(Token::Text(text)) => {
                self.bump();
                Ok(text.clone())
            }
            _ => Err(self.expected("a text")),
        }
    }

    /// Takes an integer, perhaps negative.
    pub(super) fn integer(&mut self) -> Result<i64, Failure> {
        let at = self.at();
        let sign = if self.eat("-") { "-" } else { "" };
        match self.peek() {
            Some(Token::Number { digits, suffix: "" }) if !digits.contains(['.', 'e']) => {
                self.bump();
                let text = format!("{sign}{digits}");
                text.parse()
                    .map_err(|_| Failure { at, kind: ParseErrorKind::TooLarge { digits: shown(&text) } })
            }
            _ => Err(self.expected("an integer")),
        }
    }

    /// Takes an integer of a type that has no negative numbers.
    pub(super) fn count<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, Failure> {
        if self.is_sign("-") {
            return Err(self.expected(what));
        }
        let at = self.at();
        let value = self.integer()?;
        let too_large = ParseErrorKind::TooLarge { digits: value.to_string() };
        value.try_into().map_err(|_| Failure { at, kind: too_large })
    }

    /// The items up to a closing sign, commas between them.
    pub(super) fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut out = Vec::new();
        while !self.eat(close) {
            if !out.is_empty() && !self.eat(",") {
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
            out.push(item(self)?);
        }
        Ok(out)
    }

    /// That the line ends here.
    pub(super) fn finish(&self) -> Result<(), Failure> {
        if self.peek().is_none() { Ok(()) } else { Err(self.expected("the end of the line")) }
    }

    /// The error that something else should come next.
    pub(super) fn expected(&self, expected: &str) -> Failure {
        let found = match self.peek() {
            None => "the end of the line".to_owned(),
            Some(Token::Word(word)) => format!("`{}`", shown(word)),
            Some(Token::Number { digits, suffix }) => format!("`{}`", shown(&format!("{digits}{suffix}"))),
            Some(Token::Text(text)) => format!("{:?}", shown(text)),
            Some(Token::Sign(sign)) => format!("`{sign}`"),
        };
        Failure { at: self.at(), kind: ParseErrorKind::expected(expected, found) }
    }
}

/// A text cut to what a message can hold.
fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(40).collect();
    if chars.next().is_some() { format!("{head}…") } else { head }
}
