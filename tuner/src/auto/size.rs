//! The sizes that rules choose, which are knobs where the script is to be a space.

use std::fmt;

/// A size in a script: its value, and in a space the expression of knobs that stands for it.
#[derive(Clone, Debug)]
pub(super) struct Size {
    pub value: i64,
    words: Option<String>,
    /// Whether the words stand for themselves within others.
    is_atom: bool,
}

impl Size {
    /// A knob with this for its first choice, or a name for what is computed of knobs.
    pub(super) fn named(name: &str, value: i64) -> Size {
        Size { value, words: Some(name.to_owned()), is_atom: true }
    }

    /// Whether knobs decide it.
    pub(super) fn is_open(&self) -> bool {
        self.words.is_some()
    }

    pub(super) fn times(&self, other: impl Into<Size>) -> Size {
        self.with(&other.into(), "*", |a, b| a * b)
    }

    pub(super) fn plus(&self, other: impl Into<Size>) -> Size {
        self.with(&other.into(), "+", |a, b| a + b)
    }

    /// Divided by what divides it.
    pub(super) fn over(&self, other: impl Into<Size>) -> Size {
        self.with(&other.into(), "/", |a, b| a / b)
    }

    /// The widest of these that divides it, or the last.
    pub(super) fn widest(&self, of: &[i64]) -> Size {
        let Some((last, wider)) = of.split_last() else { return self.clone() };
        let value = wider.iter().find(|it| self.value % **it == 0).unwrap_or(last);
        let words = self.words.as_ref().map(|words| {
            wider
                .iter()
                .rev()
                .fold(last.to_string(), |rest, it| format!("select({words} % {it} == 0, {it}, {rest})"))
        });
        Size { value: *value, words, is_atom: true }
    }

    /// The expression, or the number.
    pub(super) fn words(&self) -> String {
        self.words.clone().unwrap_or_else(|| self.value.to_string())
    }

    /// As a part of an expression.
    fn operand(&self) -> String {
        if self.is_atom { self.words() } else { format!("({})", self.words()) }
    }

    fn with(&self, other: &Size, sign: &str, compute: impl Fn(i64, i64) -> i64) -> Size {
        if sign != "+" && other.words.is_none() && other.value == 1 {
            return self.clone();
        }
        let is_named = self.words.is_some() || other.words.is_some();
        let words = is_named.then(|| format!("{} {sign} {}", self.operand(), other.operand()));
        Size { value: compute(self.value, other.value), is_atom: words.is_none(), words }
    }
}

impl From<i64> for Size {
    fn from(value: i64) -> Size {
        Size { value, words: None, is_atom: true }
    }
}

impl From<&Size> for Size {
    fn from(it: &Size) -> Size {
        it.clone()
    }
}

/// As an argument of a step.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.words {
            Some(words) => write!(f, "{words:?}"),
            None => write!(f, "{}", self.value),
        }
    }
}
