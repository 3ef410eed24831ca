//! A strategy with a head start.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use super::{Evaluation, Next, Proposal, Strategy};

/// Proposes given points first and then what another strategy does, which learns from their results too.
pub struct Seeded<S> {
    seeds: VecDeque<Proposal>,
    count: usize,
    inner: S,
}

impl<S: Strategy> Seeded<S> {
    /// The first of `seeds` first. Of equal indexes the first counts. All of them must be points that the space admits.
    pub fn new(seeds: Vec<Proposal>, mut inner: S) -> Seeded<S> {
        let mut seen = HashSet::new();
        let seeds: VecDeque<_> = seeds.into_iter().filter(|it| seen.insert(it.index)).collect();
        for it in &seeds {
            inner.adopt(it.index);
        }
        Seeded { count: seeds.len(), seeds, inner }
    }
}

impl<S: Strategy> Strategy for Seeded<S> {
    fn next(&mut self) -> Next {
        self.seeds.pop_front().map_or_else(|| self.inner.next(), Next::Try)
    }

    fn tell(&mut self, evaluation: Evaluation) {
        self.inner.tell(evaluation);
    }

    fn adopt(&mut self, index: u128) {
        self.seeds.retain(|it| it.index != index);
        self.inner.adopt(index);
    }

    fn describe(&self) -> crate::log::Strategy {
        let mut out = self.inner.describe();
        out.params.insert("seeds".to_owned(), Value::from(self.count));
        out
    }
}
