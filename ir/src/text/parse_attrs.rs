//! Parses what is asked of loops and blocks.

use indexmap::{IndexMap, map::Entry};

use super::lex::{Cursor, Failure, ParseErrorKind, Token};
use crate::{Annotation, Name};

/// Sets what `#{key: value, …}` says, if it stands there.
pub(super) fn annotations(
    line: &mut Cursor<'_>,
    set: &mut dyn FnMut(&str, Annotation) -> Result<(), String>,
) -> Result<(), Failure> {
    if !line.eat("#{") {
        return Ok(());
    }
    for (key, (at, value)) in entries(line, |line| Ok((line.at(), annotation(line)?)))? {
        let found = format!("`{value}`");
        set(&key, value).map_err(|wanted| Failure { at, kind: ParseErrorKind::expected(&wanted, found) })?;
    }
    Ok(())
}

fn annotation(line: &mut Cursor<'_>) -> Result<Annotation, Failure> {
    match line.peek() {
        Some(Token::Text(_)) => line.text().map(Annotation::Text),
        Some(Token::Sign("[")) => {
            line.bump();
            line.list("]", Cursor::integer).map(Annotation::List)
        }
        Some(Token::Sign("{")) => {
            line.bump();
            let is_entry = line.peek_second() == Some(&Token::Sign(":"));
            if let Some(Token::Text(_)) = line.peek_third().filter(|_| is_entry) {
                let map = entries(line, Cursor::text)?;
                return Ok(Annotation::Words(
                    map.into_iter().map(|(key, it)| (Name::new(key), it)).collect(),
                ));
            }
            let map = entries(line, Cursor::integer)?;
            Ok(Annotation::Map(map.into_iter().map(|(key, it)| (Name::new(key), it)).collect()))
        }
        Some(Token::Sign("-") | Token::Number { .. }) => line.integer().map(Annotation::Int),
        _ => Err(line.expected("a number, a text, `[…]` or `{…}`")),
    }
}

/// `key: value` up to the closing brace, each key once.
fn entries<'a, T>(
    line: &mut Cursor<'a>,
    mut value: impl FnMut(&mut Cursor<'a>) -> Result<T, Failure>,
) -> Result<IndexMap<String, T>, Failure> {
    let mut out = IndexMap::new();
    line.list("}", |line| {
        let at = line.at();
        let key = match line.peek() {
            Some(Token::Text(text)) => {
                line.bump();
                text.clone()
            }
            _ => line.name("a key")?.to_string(),
        };
        line.expect(":")?;
        match out.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(value(line)?);
                Ok(())
            }
            Entry::Occupied(entry) => Err(Failure { at, kind: ParseErrorKind::Twice(entry.key().clone()) }),
        }
    })?;
    Ok(out)
}
