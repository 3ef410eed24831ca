//! The one dialect of RON: how scripts and workloads are read, and where in their text a value stands.
//!
//! serde forgets positions. What needs one is read as [`RawValue`] first: it borrows a slice of the text, and
//! [`range_of`] says which. [`parse_at`] then reads that slice and reports errors in bytes of the whole text.

use std::{fmt, hash::Hash, marker::PhantomData, ops::Range};

use indexmap::{IndexMap, map::Entry};
use ron::{
    Options,
    error::{Position, SpannedError},
    extensions::Extensions,
    value::RawValue,
};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
};

/// A text that is not RON, or not of the expected form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct RonError {
    /// What is wrong.
    pub message: String,
    /// What sort of thing is wrong.
    pub problem: RonProblem,
    /// Where, in bytes of the whole text.
    pub span: Range<usize>,
    /// The word that was meant, where one is close.
    pub help: Option<String>,
}

/// What sort of thing is wrong with a text in RON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RonProblem {
    /// It is not RON.
    Syntax,
    /// It has a field or a variant that does not exist there.
    UnknownField,
    /// A field is missing.
    MissingField,
    /// A field or a key stands twice.
    Twice,
    /// A value is of another type, or out of its range.
    WrongType,
}

/// The dialect: `split(loop: "i")` for a variant that holds a struct, `8` for `Some(8)`.
pub fn options() -> Options {
    Options::default().with_default_extension(Extensions::UNWRAP_VARIANT_NEWTYPES | Extensions::IMPLICIT_SOME)
}

/// Reads a whole text.
pub fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, RonError> {
    parse_at(text, 0)
}

/// Reads a slice of a text that starts at byte `start` of it.
pub fn parse_at<'a, T: Deserialize<'a>>(slice: &'a str, start: usize) -> Result<T, RonError> {
    options().from_str(slice).map_err(|err| place(slice, start, &err))
}

/// Reads a value kept for later from the text that it was kept of.
pub fn parse_raw<'a, T: Deserialize<'a>>(text: &str, raw: &'a RawValue) -> Result<T, RonError> {
    let raw = raw.trim();
    parse_at(raw.get_ron(), range_of(text, raw).start)
}

/// The bytes of `text` at which a value borrowed from it stands, without blanks and comments around it.
pub fn range_of(text: &str, raw: &RawValue) -> Range<usize> {
    let slice = raw.trim().get_ron();
    let start = (slice.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    start..(start + slice.len()).min(text.len())
}

/// An error of `ron` in bytes of the whole text. An empty place grows to one character, so that it can be shown,
/// and `ron` leaves out the opening quote of a string.
fn place(slice: &str, start: usize, err: &SpannedError) -> RonError {
    let mut from = offset(slice, err.span.start);
    let mut to = offset(slice, err.span.end).max(from);
    if slice[from..to].ends_with('"') && slice[..from].ends_with('"') {
        from -= 1;
    }
    if from == to {
        to += slice[from..].chars().next().map_or(0, char::len_utf8);
    }
    let (problem, help) = sort(&err.code);
    if problem == RonProblem::WrongType && slice[from..to].trim().is_empty() {
        // The value that is wrong stands after the blanks.
        let rest = slice[from..].trim_start();
        if let Some(first) = rest.chars().next() {
            from = slice.len() - rest.len();
            to = from + first.len_utf8();
        }
    }
    RonError { message: err.code.to_string(), problem, span: start + from..start + to, help }
}

/// The sort of an error of `ron`, and the word that was meant.
fn sort(err: &ron::Error) -> (RonProblem, Option<String>) {
    use ron::Error as E;
    let near = |word: &str, known: &[&str]| {
        crate::nearest(word, known.iter().copied()).map(|it| format!("did you mean `{it}`?"))
    };
    match err {
        E::NoSuchStructField { found, expected, .. } | E::NoSuchEnumVariant { found, expected, .. } => {
            (RonProblem::UnknownField, near(found, expected))
        }
        E::MissingStructField { .. } => (RonProblem::MissingField, None),
        E::DuplicateStructField { .. } => (RonProblem::Twice, None),
        E::Message(words) if words.ends_with(" stands twice") => (RonProblem::Twice, None),
        E::InvalidValueForType { .. }
        | E::ExpectedDifferentLength { .. }
        | E::IntegerOutOfBounds
        | E::ExpectedArray
        | E::ExpectedBoolean
        | E::ExpectedFloat
        | E::ExpectedInteger
        | E::ExpectedMap
        | E::ExpectedString
        | E::ExpectedOption
        | E::ExpectedDifferentStructName { .. }
        | E::ExpectedNamedStructLike(_)
        | E::ExpectedStructName(_)
        | E::Message(_) => (RonProblem::WrongType, None),
        // What is left is about letters and brackets; the list is that of another crate, and grows.
        _ => (RonProblem::Syntax, None),
    }
}

/// The byte of a position, whose line and column count from one, the column in characters.
fn offset(text: &str, at: Position) -> usize {
    let line = text.split_inclusive('\n').take(at.line - 1).map(str::len).sum::<usize>().min(text.len());
    let rest = &text[line..];
    line + rest.char_indices().nth(at.col - 1).map_or(rest.len(), |(byte, _)| byte)
}

/// A map in the order of its text, in which no key stands twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unique<K: Hash + Eq, V>(pub IndexMap<K, V>);

impl<K: Hash + Eq, V> Default for Unique<K, V> {
    fn default() -> Self {
        Unique(IndexMap::new())
    }
}

impl<K: Hash + Eq + Serialize, V: Serialize> Serialize for Unique<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, K, V> Deserialize<'de> for Unique<K, V>
where
    K: Deserialize<'de> + Hash + Eq + fmt::Debug,
    V: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unique(deserializer).map(Unique)
    }
}

/// For `#[serde(deserialize_with = "unique")]`: a map that refuses a repeated key instead of dropping a value.
pub fn unique<'de, D, K, V>(deserializer: D) -> Result<IndexMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Hash + Eq + fmt::Debug,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(UniqueVisitor(PhantomData))
}

struct UniqueVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K, V> Visitor<'de> for UniqueVisitor<K, V>
where
    K: Deserialize<'de> + Hash + Eq + fmt::Debug,
    V: Deserialize<'de>,
{
    type Value = IndexMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map in which no key stands twice")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut out = IndexMap::new();
        while let Some(key) = map.next_key()? {
            match out.entry(key) {
                Entry::Vacant(slot) => slot.insert(map.next_value()?),
                Entry::Occupied(slot) => {
                    return Err(A::Error::custom(format!("the key {:?} stands twice", slot.key())));
                }
            };
        }
        Ok(out)
    }
}

/// The fields of a struct, `(a: 1, b: "x")`, whatever their names are.
#[derive(Debug)]
pub(crate) struct Fields<'a>(pub Vec<(String, &'a RawValue)>);

/// The entries of a map in order, whatever its keys are.
#[derive(Debug)]
pub(crate) struct Pairs<'a>(pub Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = deserializer.deserialize_struct("", &[], EntriesVisitor::<Word, &RawValue>(PhantomData))?;
        Ok(Fields(all.into_iter().map(|(key, value)| (key.0, value)).collect()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Pairs<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor(PhantomData)).map(Pairs)
    }
}

/// All entries in order.
struct EntriesVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Visitor<'de> for EntriesVisitor<K, V> {
    type Value = Vec<(K, V)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names with values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        std::iter::from_fn(|| map.next_entry().transpose()).collect()
    }
}

/// The name of a field.
struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(WordVisitor)
    }
}

struct WordVisitor;

impl Visitor<'_> for WordVisitor {
    type Value = Word;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Word, E> {
        Ok(Word(value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields, rename = "thing")]
    struct Thing<'a> {
        #[serde(borrow)]
        parts: Vec<&'a RawValue>,
        #[serde(default)]
        sizes: Unique<String, i64>,
    }

    fn refused(text: &str) -> String {
        let err = parse::<Thing>(text).unwrap_err();
        format!("{} at `{}`", err.message, &text[err.span])
    }

    #[test]
    fn raw_values_know_their_place() {
        let text = "thing(\n  parts: [ /* é */ split(a: 1) , 7 ],\n)";
        let thing: Thing = parse(text).unwrap();
        let slices: Vec<_> = thing.parts.iter().map(|it| &text[range_of(text, it)]).collect();
        assert_eq!(slices, ["split(a: 1)", "7"]);
        assert!(thing.sizes.0.is_empty());
    }

    #[test]
    fn errors_inside_a_raw_value_are_placed_in_the_whole_text() {
        let text = "thing(parts: [\n  // ß\n  [1, \"ä\", x],\n])";
        let thing: Thing = parse(text).unwrap();
        let err = parse_raw::<Vec<i64>>(text, thing.parts[0]).unwrap_err();
        assert_eq!((&text[err.span.clone()], err.message.as_str()), ("\"", "Expected integer"));
    }

    #[test]
    fn repeated_and_unknown_keys_are_refused() {
        assert_eq!(
            refused("thing(parts: [], sizes: {\"a\": 1, \"a\": 2})"),
            "the key \"a\" stands twice at `\"a\"`"
        );
        assert!(refused("thing(part: [])").contains("part"));
    }

    #[test]
    fn the_end_of_a_text_is_a_place() {
        for text in ["", "thing(", "thing(parts: [", "é", "thing(parts: [1]"] {
            let err = parse::<Thing>(text).unwrap_err();
            assert!(text.get(err.span).is_some());
        }
    }
}
