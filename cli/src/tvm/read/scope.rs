//! What names of the file mean, from the outermost statement to the innermost.

use ir::{DType, Index, Iter, Name};

use super::term::Term;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    /// A buffer.
    Buffer(Name),
    /// A part of a buffer: the buffer, and where the part begins in each dimension. Its own dimensions are the last ones.
    View { buffer: Name, starts: Vec<Index>, rank: usize },
    /// A parameter of the function that has no buffer yet, by its place.
    Handle(usize),
    /// A dimension, an iterator of a block, or the variable of a loop in one.
    Index(Index, DType),
    /// The variable of a loop around the block, which only bindings and guards may use; where it begins, and how often it runs.
    Loop { value: Index, dtype: DType, start: Index, extent: Index },
    /// The iterator of a block that was left out: what it is for the blocks inside.
    Outer { iter: Iter, start: Index, dtype: DType },
    /// A value with a name.
    Let { term: Term, depth: usize, is_stale: bool, weight: usize },
}

/// The names, innermost last.
#[derive(Default)]
pub(super) struct Scope(Vec<(String, Meaning)>);

impl Scope {
    /// How many there are: what [`Scope::leave`] goes back to.
    pub(super) fn mark(&self) -> usize {
        self.0.len()
    }

    /// Forgets all that came after a mark.
    pub(super) fn leave(&mut self, mark: usize) {
        self.0.truncate(mark);
    }

    /// Gives a name a meaning.
    pub(super) fn bind(&mut self, name: &str, meaning: Meaning) {
        self.0.push((name.to_owned(), meaning));
    }

    /// What a name means.
    pub(super) fn find(&self, name: &str) -> Option<&Meaning> {
        self.0.iter().rev().find(|it| it.0 == name).map(|it| &it.1)
    }

    /// The names that are known, for those that are misspelt.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|it| it.0.as_str())
    }

    /// A buffer was written: values that were read from it before are not what it holds now.
    pub(super) fn wrote(&mut self, buffer: &Name) {
        for (_, meaning) in &mut self.0 {
            if let Meaning::Let { term, is_stale, .. } = meaning {
                *is_stale |= term.loads_from(buffer);
            }
        }
    }
}
