//! Names: the identity of loops, blocks and buffers.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    collections::HashSet,
    fmt,
    hash::{Hash, Hasher},
    ptr,
    sync::{LazyLock, PoisonError, RwLock},
};

use rustc_hash::FxBuildHasher;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::is_reserved;

/// The identity of a loop, block or buffer, unique among its kind within a `Func`.
///
/// A name is a valid C identifier (see [`Name::is_valid`]) so that the same word can stand in the script,
/// the IR, the diff, the log and the emitted source.
///
/// Names are interned: there is one symbol of a text, which is never freed, so that a clone is a copy of a pointer
/// and two names are equal where their pointers are. A program has few names, and the candidates of a space share
/// theirs. The order of names is that of their texts and their hash that of their texts, so neither tells where or when
/// a symbol was made.
#[derive(Clone, Eq)]
pub struct Name(&'static Symbol);

/// A text that is there once.
struct Symbol {
    text: Box<str>,
    /// The first eight bytes of the text as a number, by which most texts are told apart in order.
    head: u64,
    is_valid: bool,
    is_reserved: bool,
}

/// The symbols that there are. The hash tells only where a text is looked for, so it may be a fast one.
static SYMBOLS: LazyLock<RwLock<HashSet<&'static Symbol, FxBuildHasher>>> = LazyLock::new(RwLock::default);

impl Symbol {
    fn new(text: &str) -> Symbol {
        let mut head = [0; 8];
        head.iter_mut().zip(text.bytes()).for_each(|(to, byte)| *to = byte);
        let head = u64::from_be_bytes(head);
        Symbol { text: text.into(), head, is_valid: is_valid(text), is_reserved: is_reserved(text) }
    }

    /// The one of a text.
    fn of(text: &str) -> &'static Symbol {
        // Whoever panicked with the lock in hand left a set as it was before or after.
        let known = SYMBOLS.read().unwrap_or_else(PoisonError::into_inner).get(text).copied();
        known.unwrap_or_else(|| {
            let mut symbols = SYMBOLS.write().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have been faster.
            symbols.get(text).copied().unwrap_or_else(|| {
                let new: &'static Symbol = Box::leak(Box::new(Symbol::new(text)));
                symbols.insert(new);
                new
            })
        })
    }
}

impl PartialEq for Symbol {
    fn eq(&self, other: &Symbol) -> bool {
        self.text == other.text
    }
}

impl Eq for Symbol {}

impl Hash for Symbol {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl Borrow<str> for &'static Symbol {
    fn borrow(&self) -> &str {
        &self.text
    }
}

/// Whether the text is an identifier of at most 64 characters.
fn is_valid(text: &str) -> bool {
    let mut bytes = text.bytes();
    let head = bytes.next().is_some_and(|it| it.is_ascii_alphabetic() || it == b'_');
    head && text.len() <= 64 && bytes.all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

impl Name {
    /// Wraps a text as a name. The verifier refuses names that are not valid identifiers.
    pub fn new(text: impl AsRef<str>) -> Self {
        Name(Symbol::of(text.as_ref()))
    }

    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Whether the text is an identifier: an ASCII letter or `_`, then letters, digits and `_`, at most 64.
    pub fn is_valid(&self) -> bool {
        self.0.is_valid
    }

    /// Whether it is not to be given to anything: see [`is_reserved`].
    pub fn is_reserved(&self) -> bool {
        self.0.is_reserved
    }

    /// A number that no other name has while the process runs. It is another one in the next process: good to tell names
    /// apart, and for nothing that is seen.
    pub(crate) fn key(&self) -> usize {
        ptr::from_ref(self.0).addr()
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

// There is one symbol of each text.
impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        ptr::eq(self.0, other.0)
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        if self == other {
            return Ordering::Equal;
        }
        self.0.head.cmp(&other.0.head).then_with(|| self.0.text.cmp(&other.0.text))
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// The same as that of the text, which a name may be looked up by.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.text.hash(state);
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        String::deserialize(deserializer).map(Name::new)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Name::new(text)
    }
}

// What the builders of steps are given: slices of texts, names made at run time, names of a program.
impl From<&&str> for Name {
    fn from(text: &&str) -> Self {
        Name::new(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        Name::new(text)
    }
}

impl From<&String> for Name {
    fn from(text: &String) -> Self {
        Name::new(text)
    }
}

impl From<&Name> for Name {
    fn from(name: &Name) -> Self {
        name.clone()
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}
