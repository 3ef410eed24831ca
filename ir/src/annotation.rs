//! The entries of `#{…}`: their values, and what is read from them.

use indexmap::IndexMap;

use crate::Name;

/// Entries of `#{…}`, in order.
pub type Annotations = IndexMap<String, Annotation>;

/// The value of an entry of `#{…}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Annotation {
    /// A number.
    Int(i64),
    /// A word.
    Text(String),
    /// Numbers in order, as TVM's positional pipeline lists.
    List(Vec<i64>),
    /// A number for each named block.
    Map(IndexMap<Name, i64>),
    /// A word for each named block.
    Words(IndexMap<Name, String>),
}

/// Entries that are there.
#[derive(Default)]
pub(crate) struct Entries(pub(crate) Annotations);

impl Entries {
    /// Adds an entry, if there is a value.
    pub(crate) fn add(&mut self, key: &str, value: Option<Annotation>) {
        self.0.extend(value.map(|it| (key.to_owned(), it)));
    }
}

/// A word.
pub(crate) fn text(word: &str) -> Annotation {
    Annotation::Text(word.to_owned())
}

/// A set of names.
pub(crate) fn names(list: &[Name]) -> Annotation {
    Annotation::Map(list.iter().map(|it| (it.clone(), 1)).collect())
}

/// The names of a set, or what it takes.
pub(crate) fn names_in(value: Annotation) -> Result<Vec<Name>, String> {
    match value {
        Annotation::Map(map) if map.values().all(|it| *it == 1) => Ok(map.into_keys().collect()),
        _ => Err("a map from names to 1".to_owned()),
    }
}

/// The number, or what it takes.
pub(crate) fn number(value: &Annotation) -> Result<i64, String> {
    if let Annotation::Int(it) = value { Ok(*it) } else { Err("a number".to_owned()) }
}

/// What the word stands for, or what is `wanted`.
pub(crate) fn word<T>(value: &Annotation, parse: fn(&str) -> Option<T>, wanted: &str) -> Result<T, String> {
    let found = if let Annotation::Text(it) = value { parse(it) } else { None };
    found.ok_or_else(|| wanted.to_owned())
}
