//! Names: the identity of loops, blocks and buffers.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

/// The identity of a loop, block or buffer, unique among its kind within a `Func`.
///
/// A name is a valid C identifier (see [`Name::is_valid`]) so that the same word can stand in the script,
/// the IR, the diff, the log and the emitted source.
#[derive(Clone, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(Arc<str>);

impl Name {
    /// Wraps a text as a name. The verifier refuses names that are not valid identifiers.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Name(text.into())
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the text is an identifier: an ASCII letter or `_`, then letters, digits and `_`, at most 64.
    pub fn is_valid(&self) -> bool {
        let mut bytes = self.0.bytes();
        let head = bytes.next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_');
        head && self.0.len() <= 64 && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
    }

    /// The first of `stem`, `stem_1`, `stem_2`, … for which `taken` is false: for names that no script says.
    pub fn fresh(stem: &str, taken: impl Fn(&Name) -> bool) -> Name {
        let numbered = (1..).map(|n| Name::new(format!("{stem}_{n}")));
        let mut candidates = std::iter::once(Name::new(stem)).chain(numbered);
        candidates.find(|it| !taken(it)).expect("the numbers do not end")
    }

    /// The first of `stem`, `stem2`, `stem3`, … for which `taken` is false: for what scripts speak of.
    ///
    /// A number after an underscore is that of a loop of a block (`A_shared_0`), so what comes second has its number
    /// without one: `A_shared2` is a copy, and `A_shared2_0` its first loop, whatever was made before. After a digit
    /// there is an `x`: `T_0x2`.
    pub fn nth(stem: &str, taken: impl Fn(&Name) -> bool) -> Name {
        let mark = if stem.ends_with(|it: char| it.is_ascii_digit()) { "x" } else { "" };
        let numbered = (2..).map(|n| Name::new(format!("{stem}{mark}{n}")));
        let mut candidates = std::iter::once(Name::new(stem)).chain(numbered);
        candidates.find(|it| !taken(it)).expect("the numbers do not end")
    }
}

// Most names that are compared are clones of one another.
impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.0)
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name::new(text)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}
