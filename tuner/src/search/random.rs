//! Random search without replacement.

use std::collections::HashSet;

use indexmap::IndexMap;

use super::{Evaluation, Next, Points, Proposal, Strategy};
use crate::log::Origin;

/// Every point once, in an order that depends on the seed alone.
pub struct Random {
    stream: Box<dyn Iterator<Item = u128> + Send>,
    adopted: HashSet<u128>,
}

impl Random {
    /// Over a space.
    pub fn new(points: &dyn Points, seed: u64) -> Random {
        Random { stream: points.stream(seed), adopted: HashSet::new() }
    }
}

impl Strategy for Random {
    fn next(&mut self) -> Next {
        let index = self.stream.find(|it| !self.adopted.contains(it));
        index.map_or(Next::Done, |index| Next::Try(Proposal { index, origin: Origin::Random }))
    }

    fn tell(&mut self, _evaluation: Evaluation) {}

    fn adopt(&mut self, index: u128) {
        self.adopted.insert(index);
    }

    fn describe(&self) -> crate::log::Strategy {
        crate::log::Strategy { name: "random".to_owned(), params: IndexMap::new() }
    }
}
