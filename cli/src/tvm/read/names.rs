//! Names for what a function has: its own, as far as a program may have them.

use std::collections::{HashMap, HashSet};

use ir::Name;

/// The names that are given.
#[derive(Default)]
pub(super) struct Names {
    /// Buffers, which a block may share its name with.
    buffers: HashSet<Name>,
    /// Blocks, loops, dimensions and the function.
    others: HashSet<Name>,
    /// Iterators, which blocks may share among each other.
    iterators: HashSet<Name>,
    /// What words of the file stand for, where the file says so.
    pub(super) given: HashMap<String, String>,
    /// What could not be kept.
    pub(super) renamed: Vec<(String, Name)>,
}

impl Names {
    /// A name for a buffer.
    pub(super) fn buffer(&mut self, word: &str) -> Name {
        let taken = |it: &Name, all: &Names| all.is_global(it) || all.iterators.contains(it);
        let name = self.fresh(word, taken);
        self.buffers.insert(name.clone());
        name
    }

    /// A name for a block.
    pub(super) fn block(&mut self, word: &str) -> Name {
        let taken = |it: &Name, all: &Names| all.others.contains(it) || all.iterators.contains(it);
        let name = self.fresh(word, taken);
        self.others.insert(name.clone());
        name
    }

    /// A name for a loop, a dimension or the function.
    pub(super) fn other(&mut self, word: &str) -> Name {
        let taken = |it: &Name, all: &Names| all.is_global(it) || all.iterators.contains(it);
        let name = self.fresh(word, taken);
        self.others.insert(name.clone());
        name
    }

    /// A name for an iterator of a block that has some already.
    pub(super) fn iterator(&mut self, word: &str, of_block: &HashSet<Name>) -> Name {
        let taken = |it: &Name, all: &Names| all.is_global(it) || of_block.contains(it);
        let name = self.fresh(word, taken);
        self.iterators.insert(name.clone());
        name
    }

    fn is_global(&self, name: &Name) -> bool {
        self.buffers.contains(name) || self.others.contains(name)
    }

    fn fresh(&mut self, word: &str, taken: impl Fn(&Name, &Names) -> bool) -> Name {
        let word = self.given.get(word).map_or(word, String::as_str);
        let stem = spelled(word);
        let name = Name::fresh(&stem, |it| it.is_reserved() || taken(it, self));
        if name != *word {
            let word = word.to_owned();
            self.renamed.push((word, name.clone()));
        }
        name
    }
}

/// A word as an identifier, short enough for a number behind it.
fn spelled(word: &str) -> String {
    let letter = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '_' };
    let mut out: String = word.chars().map(letter).take(56).collect();
    let is_head = |it: char| it.is_ascii_alphabetic() || it == '_';
    if !out.starts_with(is_head) {
        out.insert(0, 'v');
    }
    // Names of compilers and emitted sources, which numbers behind them would not change.
    if ir::is_reserved(&format!("{out}_1")) { format!("v{}", out.trim_start_matches('_')) } else { out }
}
